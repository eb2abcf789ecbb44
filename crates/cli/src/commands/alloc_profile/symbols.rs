//! Names return addresses from the symbol tables and debug information of their files.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use addr2line::Loader;

#[derive(Default)]
pub(super) struct Symbols {
    files: HashMap<String, Option<Object>>,
}

struct Object {
    loader: Loader,
    /// Address of the file's first byte.
    base: u64,
}

impl Symbols {
    /// Returns the function of a return address, with its line if known; otherwise file and offset.
    pub(super) fn name(&mut self, path: &str, offset: u64) -> String {
        let object = self.files.entry(path.to_owned()).or_insert_with(|| Object::open(path));
        let short = Path::new(path).file_name().map_or(path.into(), |name| name.to_string_lossy());
        let Some(object) = object else { return format!("{short}+{offset:#x}") };
        // The call lies before the address that it returns to.
        let address = object.base + offset.saturating_sub(1);
        let Some(function) = object.loader.find_symbol(address) else {
            return format!("{short}+{offset:#x}");
        };
        let function = addr2line::demangle_auto(Cow::Borrowed(function), None);
        let location = object.loader.find_location(address).ok().flatten();
        match location.and_then(|location| Some((location.file?, location.line?))) {
            Some((file, line)) => format!("{function} at {file}:{line}"),
            None => format!("{function} in {short}"),
        }
    }
}

impl Object {
    fn open(path: &str) -> Option<Self> {
        Some(Self { base: first_address(Path::new(path))?, loader: Loader::new(path).ok()? })
    }
}

/// Returns the lowest load address of a 64-bit ELF file in this byte order, rounded down to a page.
fn first_address(path: &Path) -> Option<u64> {
    const LOAD: u32 = 1;
    let mut start = vec![0; 4096];
    let length = File::open(path).ok()?.read(&mut start).ok()?;
    start.truncate(length);
    let word = |at: usize| Some(u64::from_ne_bytes(start.get(at..at + 8)?.try_into().ok()?));
    let half = |at: usize| Some(usize::from(u16::from_ne_bytes(start.get(at..at + 2)?.try_into().ok()?)));
    if !start.starts_with(b"\x7fELF\x02") {
        return None;
    }
    let (from, size, count) = (usize::try_from(word(32)?).ok()?, half(54)?, half(56)?);
    let headers = (0..count).filter_map(|index| from.checked_add(index * size));
    let loaded = headers.filter(|&at| {
        at.checked_add(size)
            .and_then(|end| start.get(at..end))
            .is_some_and(|header| header.starts_with(&LOAD.to_ne_bytes()))
    });
    Some(loaded.filter_map(|at| word(at + 16)).min()? & !4095)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_named() {
        let own = std::env::current_exe().expect("a file");
        let path = own.to_str().expect("UTF-8");
        let base = first_address(&own).expect("an ELF file");
        // The first mapping of its file tells where the program was loaded.
        let maps = std::fs::read_to_string("/proc/self/maps").expect("procfs");
        let line = maps.lines().find(|line| line.ends_with(path)).expect("its mapping");
        let start = u64::from_str_radix(line.split('-').next().expect("a range"), 16).expect("an address");
        let function: fn(&Path) -> Option<u64> = first_address;
        let name = Symbols::default().name(path, function as usize as u64 - start + 2);
        assert!(name.contains("first_address"), "{name} (base {base:#x})");
    }

    #[test]
    fn other_files_have_no_names() {
        let mut symbols = Symbols::default();
        assert_eq!(symbols.name("/no/such/file", 16), "file+0x10");
        assert_eq!(symbols.name("/etc/passwd", 16), "passwd+0x10");
    }
}
