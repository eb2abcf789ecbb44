//! Notes that a process sends beside its misses: its memory's mappings, and names.

use std::fmt;

/// Change in a process, written as a line of text. Ranges are guest addresses, their end exclusive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The process runs the program at this path.
    Program(String),
    /// The process is a copy of another.
    Forked(u32),
    /// The sending thread has this name.
    Thread(String),
    /// The name is a file's path, or a word in brackets. A `fixed` mapping's place is the program's choice.
    Map {
        start: u64,
        end: u64,
        fixed: bool,
        name: String,
    },
    Unmap {
        start: u64,
        end: u64,
    },
    /// A mapping moved, or changed its size.
    Move {
        from: (u64, u64),
        to: (u64, u64),
    },
    /// Blocks in this range of the allocator's are allocated at these return addresses, innermost first; none
    /// where many sites share the range.
    Site {
        start: u64,
        end: u64,
        addresses: Vec<u64>,
    },
    /// The process reached an instruction of AVX-512, at this address.
    Avx512(u64),
}

/// Name of a mapping of no file.
pub const ANONYMOUS: &str = "[anonymous]";

impl Note {
    /// Reads a line that [`Note`] wrote.
    pub fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ')?;
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let range = |start: &str, end: &str| {
            let (start, end) = (number(start)?, number(end)?);
            (start < end).then_some((start, end))
        };
        let mut words = rest.splitn(4, ' ');
        let mut next = || words.next();
        Some(match word {
            "program" => Self::Program(rest.into()),
            "forked" => Self::Forked(u32::try_from(number(rest)?).ok()?),
            "thread" => Self::Thread(rest.into()),
            "map" | "fixed" => {
                let ((start, end), name) = (range(next()?, next()?)?, rest.splitn(3, ' ').nth(2)?);
                Self::Map { start, end, fixed: word == "fixed", name: name.into() }
            }
            "unmap" => {
                let (start, end) = range(next()?, next()?)?;
                Self::Unmap { start, end }
            }
            "site" => {
                let mut words = rest.split(' ');
                let (start, end) = range(words.next()?, words.next()?)?;
                Self::Site { start, end, addresses: words.map(number).collect::<Option<_>>()? }
            }
            "avx512" => Self::Avx512(number(rest)?),
            "move" => Self::Move { from: range(next()?, next()?)?, to: range(next()?, next()?)? },
            _ => return None,
        })
    }
}

/// Returns a name without line ends, which the kernel, too, writes as `\012`.
fn line(name: &str) -> String {
    name.replace('\n', "\\012")
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(path) => write!(f, "program {}", line(path)),
            Self::Forked(parent) => write!(f, "forked {parent:x}"),
            Self::Thread(name) => write!(f, "thread {}", line(name)),
            Self::Map { start, end, fixed, name } => {
                write!(f, "{} {start:x} {end:x} {}", if *fixed { "fixed" } else { "map" }, line(name))
            }
            Self::Unmap { start, end } => write!(f, "unmap {start:x} {end:x}"),
            Self::Site { start, end, addresses } => {
                write!(f, "site {start:x} {end:x}")?;
                addresses.iter().try_for_each(|address| write!(f, " {address:x}"))
            }
            Self::Avx512(address) => write!(f, "avx512 {address:x}"),
            Self::Move { from, to } => write!(f, "move {:x} {:x} {:x} {:x}", from.0, from.1, to.0, to.1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn notes_survive_writing() {
        let name = || "/a b/c\\012d".to_owned();
        for note in [
            Note::Program(name()),
            Note::Forked(u32::MAX),
            Note::Thread(String::new()),
            Note::Map { start: 0, end: u64::MAX, fixed: false, name: name() },
            Note::Map { start: 4096, end: 8192, fixed: true, name: ANONYMOUS.into() },
            Note::Unmap { start: 1, end: 2 },
            Note::Move { from: (1, 2), to: (3, 9) },
            Note::Avx512(0x40_0000_1234),
            Note::Site { start: 1 << 40, end: 2 << 40, addresses: vec![5, 0xfff] },
            Note::Site { start: 1, end: 2, addresses: vec![] },
        ] {
            assert_eq!(Note::parse(&note.to_string()), Some(note));
        }
        assert_eq!(Note::Thread("a\nb".into()).to_string(), "thread a\\012b");
    }

    proptest! {
        #[test]
        fn any_line_is_refused_or_read_as_it_is_written(line in "(map|fixed|unmap|move|forked|thread|avx512|site)?[ 0-9a-f/]{0,60}") {
            if let Some(note) = Note::parse(&line) {
                prop_assert_eq!(Note::parse(&note.to_string()), Some(note));
            }
        }
    }

    #[test]
    fn other_lines_are_no_notes() {
        for line in
            ["", "map", "map 1", "map 2 1 x", "map 1 2", "map g 2 x", "unmap 5 5", "move 1 2 3", "x 1"]
        {
            assert_eq!(Note::parse(line), None, "{line}");
        }
    }
}
