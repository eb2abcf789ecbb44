//! Names return addresses from the symbol tables and debug information of their files.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use addr2line::Loader;

#[derive(Default)]
pub(crate) struct Symbols {
    files: HashMap<String, Option<Object>>,
}

struct Object {
    loader: Loader,
    /// Address of the file's first byte.
    base: u64,
}

/// Function and line of an instruction, as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub(crate) function: Option<String>,
    line: Option<(String, u32)>,
    /// Name of the program's or library's file, and the offset in it.
    file: String,
    offset: u64,
}

impl Symbol {
    /// Returns the function, and the line without the folders of its file.
    pub(crate) fn short(&self) -> String {
        match (&self.function, &self.line) {
            (Some(function), Some((file, line))) => format!("{function} {}:{line}", name_of(file)),
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { function, line, file, offset } = self;
        match (function, line) {
            (Some(function), Some((file, line))) => write!(f, "{function} at {file}:{line}"),
            (Some(function), None) => write!(f, "{function} in {file}"),
            (None, _) if file.is_empty() => write!(f, "{offset:#x}"),
            (None, _) => write!(f, "{file}+{offset:#x}"),
        }
    }
}

fn name_of(path: &str) -> String {
    Path::new(path).file_name().map_or(path.into(), |name| name.to_string_lossy().into_owned())
}

impl Symbols {
    /// Returns the function of a return address, with its line if known; otherwise file and offset.
    pub(crate) fn name(&mut self, path: &str, offset: u64) -> String {
        // The call lies before the address that it returns to.
        self.find(path, offset, 1).last().map_or_else(String::new, Symbol::to_string)
    }

    /// As [`Self::name`], of an instruction's own address.
    pub(crate) fn name_of_instruction(&mut self, path: &str, offset: u64) -> String {
        self.find(path, offset, 0).last().map_or_else(String::new, Symbol::to_string)
    }

    /// Returns the functions at a return address: those that the compiler put into another before that one.
    pub(crate) fn at_return(&mut self, path: &str, offset: u64) -> Vec<Symbol> {
        self.find(path, offset, 1)
    }

    /// Returns at least one symbol.
    fn find(&mut self, path: &str, offset: u64, back: u64) -> Vec<Symbol> {
        let object = self.files.entry(path.to_owned()).or_insert_with(|| Object::open(path));
        let unknown = Symbol { function: None, line: None, file: name_of(path), offset };
        let Some(object) = object else { return vec![unknown] };
        let address = object.base + offset.saturating_sub(back);
        let mut found = Vec::new();
        if let Ok(mut frames) = object.loader.find_frames(address) {
            while let Ok(Some(frame)) = frames.next() {
                let function = frame.function.and_then(|name| name.demangle().ok().map(Cow::into_owned));
                let line =
                    frame.location.and_then(|location| Some((location.file?.to_owned(), location.line?)));
                found.push(Symbol { function, line, ..unknown.clone() });
            }
        }
        // Without debug information there is the symbol table.
        if found.iter().all(|symbol| symbol.function.is_none()) {
            let function = object.loader.find_symbol(address);
            let function =
                function.map(|name| addr2line::demangle_auto(Cow::Borrowed(name), None).into_owned());
            return vec![Symbol { function, ..unknown }];
        }
        found
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
