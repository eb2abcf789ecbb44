//! Addresses of the kernel's symbols, from `/proc/kallsyms`.

use std::io::{self, BufRead};

/// Returns the addresses of `names`, in their order; `None` for missing ones. Reads no further than needed.
pub(super) fn find<const N: usize>(
    mut symbols: impl BufRead,
    names: [&str; N],
) -> io::Result<[Option<u64>; N]> {
    let mut found = [None; N];
    let mut line = Vec::new();
    while found.iter().any(Option::is_none) {
        line.clear();
        if symbols.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let Some((address, name)) = parse(&line) else { continue };
        if let Some(index) = names.iter().position(|wanted| wanted.as_bytes() == name) {
            found[index].get_or_insert(address);
        }
    }
    Ok(found)
}

/// Parses `ADDRESS TYPE NAME`, which a module's name may follow.
fn parse(line: &[u8]) -> Option<(u64, &[u8])> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let address = str::from_utf8(words.next()?).ok()?;
    let (_, name) = (words.next()?, words.next()?);
    Some((u64::from_str_radix(address, 16).ok()?, name))
}

#[cfg(fuzzing)]
pub fn fuzz(text: &[u8]) {
    let _ = find(text, ["pcpu_hot", "__per_cpu_start"]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "0000000000000000 A __per_cpu_start\n\
        \n000000000002a400 A pcpu_hot\nnothing here\nffffffff81000000 T pcpu_hot_other\n\
        ffffffff81000040 t twice\nffffffff81000080 t twice\nffffffffc0000000 t module_symbol\t[module]\n";

    #[test]
    fn symbols_are_found_by_their_whole_name() {
        let names = ["pcpu_hot", "__per_cpu_start", "twice", "module_symbol", "pcpu"];
        let found = find(SYMBOLS.as_bytes(), names).expect("readable");
        let expected =
            [Some(0x2a400), Some(0), Some(0xffff_ffff_8100_0040), Some(0xffff_ffff_c000_0000), None];
        assert_eq!(found, expected);
        assert_eq!(find(&b""[..], ["x"]).expect("readable"), [None]);
    }
}
