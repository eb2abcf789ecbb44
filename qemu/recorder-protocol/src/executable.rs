//! Finds the program that QEMU runs for a file: the file itself, or the interpreter of its `#!` line.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Longest chain of `#!` lines, as in the Linux kernel.
const INTERPRETERS: usize = 4;
/// Bytes of the first line that the kernel reads.
const FIRST_LINE: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Executable {
    /// An x86-64 ELF program.
    Native,
    /// A `#!` script, with its interpreter and optional argument.
    Script(PathBuf, Option<OsString>),
    /// An ELF file of another kind, described in words.
    Foreign(String),
    /// Neither ELF nor `#!`.
    Other,
}

fn inspect(path: &Path) -> io::Result<Executable> {
    // Opening a pipe would wait for a writer.
    if !fs::metadata(path)?.is_file() {
        return Ok(Executable::Other);
    }
    let mut head = Vec::with_capacity(FIRST_LINE);
    File::open(path)?.take(FIRST_LINE as u64).read_to_end(&mut head)?;
    Ok(if let Some(line) = head.strip_prefix(b"#!") {
        script(line)
    } else if head.starts_with(b"\x7fELF") {
        elf(&head)
    } else {
        Executable::Other
    })
}

fn script(head: &[u8]) -> Executable {
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii();
    let end = line.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(line.len());
    let (interpreter, argument) = (&line[..end], line[end..].trim_ascii());
    if interpreter.is_empty() {
        return Executable::Other;
    }
    let argument = (!argument.is_empty()).then(|| OsStr::from_bytes(argument).to_owned());
    Executable::Script(PathBuf::from(OsStr::from_bytes(interpreter)), argument)
}

/// Judges by the ELF header's class, byte order, type and machine.
fn elf(head: &[u8]) -> Executable {
    let [class, order] = [head.get(4), head.get(5)];
    let half = |at: usize| {
        let bytes = [*head.get(at)?, *head.get(at + 1)?];
        Some(if order == Some(&2) { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    };
    Executable::Foreign(match (class, order, half(18)) {
        (Some(2), Some(1), Some(62)) if matches!(half(16), Some(2 | 3)) => return Executable::Native,
        (Some(2), _, Some(62)) => "an x86-64 file that is not a program".into(),
        (_, _, Some(3)) => "a 32-bit x86 program".into(),
        (_, _, Some(40)) => "a 32-bit Arm program".into(),
        (_, _, Some(62)) => "an x32 program".into(),
        (_, _, Some(183)) => "a 64-bit Arm program".into(),
        (_, _, Some(machine)) => format!("a program for ELF machine {machine}"),
        _ => "a truncated ELF file".into(),
    })
}

/// Command for QEMU: the program that the kernel would load, and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    pub program: PathBuf,
    /// Arguments of the program, `argv[0]` first.
    pub arguments: Vec<OsString>,
}

/// Follows `#!` lines from `path` to an x86-64 program, or to the file that QEMU cannot run and its kind.
///
/// # Errors
/// If a file on the way cannot be read.
pub fn resolve(path: &Path, arguments: &[OsString]) -> io::Result<Result<Resolved, (PathBuf, Executable)>> {
    let mut resolved = Resolved { program: path.to_owned(), arguments: arguments.to_vec() };
    for _ in 0..=INTERPRETERS {
        match inspect(&resolved.program)? {
            Executable::Native => return Ok(Ok(resolved)),
            Executable::Script(interpreter, argument) => {
                let mut next = vec![interpreter.clone().into_os_string()];
                next.extend(argument);
                next.push(resolved.program.into_os_string());
                next.extend(resolved.arguments.into_iter().skip(1));
                resolved = Resolved { program: interpreter, arguments: next };
            }
            other => return Ok(Err((resolved.program, other))),
        }
    }
    Ok(Err((resolved.program, Executable::Other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_gives_the_interpreter_and_one_argument() {
        let expected =
            |argument: Option<&str>| Executable::Script("/bin/sh".into(), argument.map(OsString::from));
        assert_eq!(script(b"/bin/sh\necho"), expected(None));
        assert_eq!(script(b" /bin/sh -e -u \necho"), expected(Some("-e -u")));
        assert_eq!(script(b"  \n"), Executable::Other);
    }

    #[test]
    fn an_interpreter_that_is_a_pipe_is_not_waited_for() {
        let folder = std::env::temp_dir().join(format!("isotherm-pipe-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let (pipe, script) = (folder.join("pipe"), folder.join("script"));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
        fs::write(&script, format!("#!{}\n", pipe.display())).expect("written");
        let found = resolve(&script, &["script".into()]).expect("readable");
        fs::remove_dir_all(&folder).expect("removed");
        assert!(made.success());
        assert_eq!(found, Err((pipe, Executable::Other)));
    }

    #[test]
    fn elf_headers_are_told_apart() {
        let header = |class: u8, machine: u8| {
            let mut head = b"\x7fELF".to_vec();
            head.extend([class, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, machine, 0]);
            elf(&head)
        };
        assert_eq!(header(2, 62), Executable::Native);
        assert_eq!(header(1, 3), Executable::Foreign("a 32-bit x86 program".into()));
        assert_eq!(header(2, 183), Executable::Foreign("a 64-bit Arm program".into()));
        assert_eq!(elf(b"\x7fELF"), Executable::Foreign("a truncated ELF file".into()));
    }
}
