//! The state file: one line per change, written before it is made, and again with the value that resulted.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::LinuxError;
use crate::process::excerpt;

/// One value that was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) file: PathBuf,
    pub(super) old: String,
    /// Value after the change as the kernel shows it; `None` until known.
    pub(super) left: Option<String>,
}

/// Formats the change as a line.
pub(super) fn record(change: &Change) -> Vec<u8> {
    let mut line = Vec::new();
    escape(change.file.as_os_str().as_bytes(), &mut line);
    line.push(b'\t');
    escape(change.old.as_bytes(), &mut line);
    if let Some(left) = &change.left {
        line.push(b'\t');
        escape(left.as_bytes(), &mut line);
    }
    line.push(b'\n');
    line
}

/// Parses the changes of a state file, in order. An incomplete last line was never acted upon.
pub(super) fn parse(text: &[u8], path: &Path) -> Result<Vec<Change>, LinuxError> {
    let end = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let mut changes: Vec<Change> = Vec::new();
    for line in text[..end].split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let change = parse_line(line).ok_or_else(|| LinuxError::Format {
            path: path.into(),
            expected: "'file<tab>old value<tab>new value'",
            found: excerpt(line),
        })?;
        match changes.last_mut() {
            // The second line of the same change.
            Some(last) if last.left.is_none() && change.left.is_some() && last.file == change.file => {
                *last = change;
            }
            _ => changes.push(change),
        }
    }
    Ok(changes)
}

fn parse_line(line: &[u8]) -> Option<Change> {
    let mut fields = line.split(|&byte| byte == b'\t').map(unescape);
    let file = OsString::from_vec(fields.next()??).into();
    let mut text = || -> Option<Option<String>> {
        fields.next().map_or(Some(None), |field| Some(Some(String::from_utf8(field?).ok()?)))
    };
    let (old, left) = (text()??, text()?);
    fields.next().is_none().then_some(Change { file, old, left })
}

/// Writes backslashes and separators of fields and lines as a backslash and two hexadecimal digits.
fn escape(bytes: &[u8], line: &mut Vec<u8>) {
    for &byte in bytes {
        match byte {
            b'\\' | b'\t' | b'\n' => line.extend(format!("\\{byte:02x}").into_bytes()),
            _ => line.push(byte),
        }
    }
}

fn unescape(field: &[u8]) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::with_capacity(field.len()), field);
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn changes_are_read_back(
            files in prop::collection::vec((prop::collection::vec(1u8.., 1..20), ".{0,10}", ".{0,10}"), 1..5),
        ) {
            let changes: Vec<Change> = files
                .into_iter()
                .map(|(file, old, left)| Change { file: OsString::from_vec(file).into(), old, left: Some(left) })
                .collect();
            let mut text = Vec::new();
            for change in &changes {
                text.extend(record(&Change { left: None, ..change.clone() }));
                text.extend(record(change));
            }
            prop_assert_eq!(parse(&text, Path::new("state")).expect("well-formed"), changes.clone());
            // Killed while writing the last line, before acting upon it.
            text.truncate(text.len() - 1);
            let read = parse(&text, Path::new("state")).expect("well-formed");
            prop_assert_eq!(read.len(), changes.len());
            prop_assert_eq!(&read[read.len() - 1].left, &None);
        }

        #[test]
        fn no_text_panics(text in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = parse(&text, Path::new("state"));
        }
    }
}
