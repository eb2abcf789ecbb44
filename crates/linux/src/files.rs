//! Small files of `/proc` and `/sys` below a root, and parsers of their numbers and lists.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::LinuxError;

/// Maximum bytes read of a file, more than any such file has.
const LIMIT: u64 = 1 << 20;
/// Maximum characters of a file shown in an error.
const SHOWN: usize = 40;
/// Limit of numbers in a list, more than any kernel has nodes or processors.
const LIST_LIMIT: u32 = 1 << 16;

/// Tree of files below a root: `/` on a live machine, a fixture in tests. Names are written as on a live
/// machine, with or without the leading slash. Reading fails with [`LinuxError::File`], parsing with
/// [`LinuxError::Format`].
#[derive(Debug, Clone, Copy)]
pub struct Tree<'a> {
    root: &'a Path,
}

impl<'a> Tree<'a> {
    pub fn new(root: &'a Path) -> Self {
        Self { root }
    }

    pub fn path(self, name: &str) -> PathBuf {
        self.root.join(name.trim_start_matches('/'))
    }

    /// Reads a file's text, without white space around it.
    pub fn text(self, name: &str) -> Result<String, LinuxError> {
        let path = self.path(name);
        let mut bytes = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(LIMIT).read_to_end(&mut bytes));
        read.map_err(|error| LinuxError::file(&path, error))?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    pub fn text_if_there(self, name: &str) -> Result<Option<String>, LinuxError> {
        if_there(self.text(name))
    }

    /// Reads a file's text and parses it by `parse`, which expects `expected`.
    pub fn parsed<T>(
        self,
        name: &str,
        expected: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, LinuxError> {
        let text = self.text(name)?;
        parse(&text).ok_or_else(|| format_error(&self.path(name), expected, &text))
    }

    pub fn parsed_if_there<T>(
        self,
        name: &str,
        expected: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, LinuxError> {
        if_there(self.parsed(name, expected, parse))
    }

    /// Returns the sorted names in a directory; none if it does not exist.
    pub fn names(self, name: &str) -> Result<Vec<String>, LinuxError> {
        let path = self.path(name);
        let entries = match std::fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if is_absent(&error) => return Ok(Vec::new()),
            Err(error) => return Err(LinuxError::file(path, error)),
        };
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the numbers in a directory's names of the form `PREFIXnumber`, ascending.
    pub fn numbered(self, directory: &str, prefix: &str) -> Result<Vec<u32>, LinuxError> {
        let names = self.names(directory)?;
        let mut numbers: Vec<u32> =
            names.iter().filter_map(|name| decimal(name.strip_prefix(prefix)?)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }
}

fn if_there<T>(result: Result<T, LinuxError>) -> Result<Option<T>, LinuxError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(LinuxError::File { error, .. }) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns whether a file does not exist; ENODEV and ENXIO mean the same of an attribute in sysfs or procfs.
pub fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENXIO | libc::ESRCH))
}

pub fn format_error(path: &Path, expected: &'static str, text: &str) -> LinuxError {
    let mut found: String = text.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().count() > SHOWN {
        found.push_str("...");
    }
    LinuxError::Format { path: path.to_owned(), expected, found }
}

/// Parses an unsigned decimal number without sign or blanks.
pub fn decimal<T: std::str::FromStr>(text: &str) -> Option<T> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Parses a hexadecimal number with or without `0x`.
pub fn hexadecimal(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    plain.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}

/// Parses a list as the kernel prints bitmaps (`%*pbl`): `0-3,8` or nothing. Sorts it, without duplicates.
pub fn list(text: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (decimal(first)?, decimal(last)?);
        if last < first || last >= LIST_LIMIT {
            return None;
        }
        numbers.extend(first..=last);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_are_read_as_the_kernel_prints_them() {
        assert_eq!(list(""), Some(vec![]));
        assert_eq!(list("0"), Some(vec![0]));
        assert_eq!(list("0-2,8,10-11"), Some(vec![0, 1, 2, 8, 10, 11]));
        for wrong in ["-", "1-", "-1", "2-1", "0,", ",", "a", "0 1", "+1", "0-4294967295", "1--2"] {
            assert_eq!(list(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn numbers_take_no_signs_and_no_blanks() {
        assert_eq!(decimal::<u32>("17"), Some(17));
        assert_eq!(decimal::<u8>("256"), None);
        assert_eq!(decimal::<u32>("+1").or(decimal("")).or(decimal(" 1")), None);
        assert_eq!(hexadecimal("0x1fF"), Some(0x1ff));
        assert_eq!(hexadecimal("000001fffeffffff"), Some(0x01ff_feff_ffff));
        assert_eq!(hexadecimal("0x").or(hexadecimal("")).or(hexadecimal("+1")), None);
    }

    #[test]
    fn an_error_names_the_file_and_shows_a_short_line_of_it() {
        let error = format_error(Path::new("/sys/x"), "a number", &format!("a\nb{}", "c".repeat(100)));
        assert_eq!(
            error.to_string(),
            format!("/sys/x: expected a number, found 'a b{}...'", "c".repeat(SHOWN - 3))
        );
    }

    proptest! {
        #[test]
        fn a_list_survives_printing(mut numbers in prop::collection::vec(0..200u32, 0..40)) {
            let text = numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            numbers.sort_unstable();
            numbers.dedup();
            prop_assert_eq!(list(&text), Some(numbers));
        }

        #[test]
        fn no_text_makes_a_parser_panic(text in "\\PC{0,40}|[0-9,-]{0,20}") {
            let _ = (list(&text), decimal::<u64>(&text), hexadecimal(&text));
        }
    }
}
