//! The guest's console, which tells how the guest ended.

use std::path::Path;

const PANIC: &str = "Kernel panic - not syncing: ";
const LOOKED_AT: usize = 256 << 10;

/// Console's lines, without control characters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Console(Vec<String>);

impl Console {
    /// Reads a log; an unreadable one is empty.
    pub fn read(path: &Path) -> Self {
        Self::parse(&std::fs::read(path).unwrap_or_default())
    }

    fn parse(bytes: &[u8]) -> Self {
        let end = &bytes[bytes.len().saturating_sub(LOOKED_AT)..];
        let text = String::from_utf8_lossy(end);
        Self(text.lines().map(plain).filter(|line| !line.trim().is_empty()).collect())
    }

    pub fn panic(&self) -> Option<&str> {
        self.0.iter().find_map(|line| Some(line.split_once(PANIC)?.1.trim()))
    }

    /// Returns the last lines, oldest first.
    pub fn tail(&self, lines: usize) -> &[String] {
        &self.0[self.0.len().saturating_sub(lines)..]
    }
}

/// Removes escape sequences (ESC, `[`, parameters, a letter) and control characters.
fn plain(line: &str) -> String {
    let mut letters = line.chars().peekable();
    let mut text = String::new();
    while let Some(letter) = letters.next() {
        if letter == '\u{1b}' {
            if letters.next_if(|&next| matches!(next, '[' | '(')).is_some() {
                while letters.next_if(|next| !next.is_ascii_alphabetic()).is_some() {}
            }
            letters.next();
        } else if !letter.is_control() || letter == '\t' {
            text.push(letter);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_and_its_reason_are_found() {
        let console = Console::parse(b"\x1b[2J\x1b[01;01HSeaBIOS\r\n[ 3.1] Kernel panic - not syncing: sysrq triggered crash\r\n[ 3.2] CPU: 0\r\n");
        assert_eq!(console.panic(), Some("sysrq triggered crash"));
        assert_eq!(console.tail(3)[0], "SeaBIOS");
        assert_eq!(console.tail(1), ["[ 3.2] CPU: 0"]);
        assert_eq!(Console::parse(b"fine\n").panic(), None);
    }

    proptest::proptest! {
        #[test]
        fn no_console_is_too_strange(bytes in proptest::collection::vec(0u8.., 0..300)) {
            let console = Console::parse(&bytes);
            let clean = |line: &String| line.chars().all(|letter| !letter.is_control() || letter == '\t');
            proptest::prop_assert!(console.tail(10).iter().all(clean));
        }
    }
}
