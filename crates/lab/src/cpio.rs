//! The archive that a kernel unpacks as its first file system: cpio in the "newc" form.

use crate::LabError;

/// Kinds of entries: the upper bits of the mode.
const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const DEVICE: u32 = 0o020_000;

/// Growing archive. Add parents before their contents.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// Adds a directory; `path` has no leading slash.
    pub fn directory(&mut self, path: &str) {
        self.entry(path.as_bytes(), DIRECTORY | 0o755, (0, 0), &[]);
    }

    /// Adds a file with its permissions.
    ///
    /// # Errors
    /// If it has 4 GiB or more, which the format cannot hold.
    pub fn file(&mut self, path: &[u8], permissions: u32, content: &[u8]) -> Result<(), LabError> {
        if u32::try_from(content.len()).is_err() {
            let what = format!("{} has {} bytes", String::from_utf8_lossy(path), content.len());
            return Err(LabError::Unfit { what, expected: "a file below 4 GiB".into() });
        }
        self.entry(path, FILE | (permissions & 0o7777), (0, 0), content);
        Ok(())
    }

    pub fn link(&mut self, path: &str, target: &str) {
        self.entry(path.as_bytes(), LINK | 0o777, (0, 0), target.as_bytes());
    }

    pub fn device(&mut self, path: &str, major: u32, minor: u32) {
        self.entry(path.as_bytes(), DEVICE | 0o600, (major, minor), &[]);
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.entry(b"TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn entry(&mut self, path: &[u8], mode: u32, (major, minor): (u32, u32), content: &[u8]) {
        let size = content.len() as u32;
        self.entries += 1;
        let links = if mode & DIRECTORY == DIRECTORY { 2 } else { 1 };
        let name = path.len() as u32 + 1;
        let words = [self.entries, mode, 0, 0, links, 0, size, 0, 0, major, minor, name, 0];
        self.bytes.extend_from_slice(b"070701");
        for word in words {
            self.bytes.extend_from_slice(format!("{word:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path);
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    /// Pads a name or a content to a multiple of four bytes.
    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads an archive by the format's description: name, mode, content.
    fn read(mut bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut entries = Vec::new();
        loop {
            let word = |index: usize| {
                let text = str::from_utf8(&bytes[6 + 8 * index..14 + 8 * index]).unwrap_or_default();
                usize::from_str_radix(text, 16).unwrap_or(usize::MAX)
            };
            assert_eq!(&bytes[..6], b"070701");
            let (mode, size, name) = (word(1), word(6), word(11));
            let start = (110 + name).next_multiple_of(4);
            let path = String::from_utf8_lossy(&bytes[110..110 + name - 1]).into_owned();
            if path == "TRAILER!!!" {
                return entries;
            }
            entries.push((path, mode as u32, bytes[start..start + size].to_vec()));
            bytes = &bytes[(start + size).next_multiple_of(4)..];
        }
    }

    #[test]
    fn an_archive_reads_back() -> Result<(), LabError> {
        let mut archive = Archive::default();
        archive.directory("bin");
        archive.file(b"bin/init", 0o755, b"#!/bin/sh\n")?;
        archive.link("init", "bin/init");
        archive.device("console", 5, 1);
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        let expected = [
            ("bin".to_owned(), 0o040_755, Vec::new()),
            ("bin/init".to_owned(), 0o100_755, b"#!/bin/sh\n".to_vec()),
            ("init".to_owned(), 0o120_777, b"bin/init".to_vec()),
            ("console".to_owned(), 0o020_600, Vec::new()),
        ];
        assert_eq!(read(&bytes), expected);
        Ok(())
    }

    #[test]
    fn inodes_differ_so_that_nothing_is_taken_for_a_hard_link() -> Result<(), LabError> {
        let mut archive = Archive::default();
        archive.file(b"a", 0o644, b"1")?;
        archive.file(b"b", 0o644, b"2")?;
        let bytes = archive.finish();
        // The second entry begins after 112 bytes of header and name and 4 of content.
        assert_ne!(bytes[6..14], bytes[122..130]);
        Ok(())
    }

    proptest::proptest! {
        #[test]
        fn any_content_reads_back(files in proptest::collection::vec(("[a-z]{1,20}", proptest::collection::vec(0u8.., 0..99)), 0..9)) {
            let mut archive = Archive::default();
            for (name, content) in &files {
                proptest::prop_assert!(archive.file(name.as_bytes(), 0o600, content).is_ok());
            }
            let back: Vec<_> = read(&archive.finish()).into_iter().map(|(name, _, content)| (name, content)).collect();
            proptest::prop_assert_eq!(back, files);
        }
    }
}
