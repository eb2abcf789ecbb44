//! The command line that started QEMU, and the one that starts it again for a program that the guest
//! executes: `qemu-x86_64 -plugin PLUGIN,pool=POOL[,previous=PROCESS] [-E NAME=VALUE].. -0 ARGV0 PROGRAM
//! ARGUMENT..`

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use isotherm_recorder_protocol::Resolved;

/// Plugin's option that names the process replaced by `exec`.
const PREVIOUS: &str = ",previous=";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invocation {
    qemu: PathBuf,
    plugin: OsString,
    pub(crate) program: PathBuf,
    arguments: Vec<OsString>,
}

impl Invocation {
    /// Returns this process's command line, unless it has another form than the one above.
    pub(crate) fn current() -> Option<Self> {
        let line = std::fs::read("/proc/self/cmdline").ok()?;
        let mut invocation = Self::parse(std::fs::read_link("/proc/self/exe").ok()?, &line)?;
        invocation.program = std::fs::canonicalize(&invocation.program).unwrap_or(invocation.program);
        Some(invocation)
    }

    fn parse(qemu: PathBuf, line: &[u8]) -> Option<Self> {
        let line = line.strip_suffix(b"\0")?;
        let mut words = line.split(|&byte| byte == 0).map(|word| OsStr::from_bytes(word).to_owned()).skip(1);
        let (mut plugin, mut zeroth) = (None, None);
        let program = loop {
            match words.next()?.as_bytes() {
                b"-plugin" => plugin = words.next(),
                b"-0" => zeroth = words.next(),
                option if option.starts_with(b"-") => drop(words.next()),
                program => break OsString::from_vec(program.to_vec()),
            }
        };
        let arguments = std::iter::once(zeroth?).chain(words).collect();
        Some(Self { qemu, plugin: without_previous(&plugin?), program: program.into(), arguments })
    }

    /// Returns the guest's command, its words joined by spaces.
    pub(crate) fn command_line(&self) -> Vec<u8> {
        self.arguments.join(OsStr::new(" ")).into_vec()
    }

    pub(crate) fn qemu(&self) -> Option<CString> {
        CString::new(self.qemu.as_os_str().as_bytes()).ok()
    }

    /// Returns QEMU's arguments and environment to run `resolved` in place of process `previous`.
    pub(crate) fn again(
        &self,
        resolved: Resolved,
        environment: Vec<OsString>,
        previous: u32,
    ) -> (Vec<OsString>, Vec<OsString>) {
        let mut plugin = self.plugin.clone();
        plugin.push(format!("{PREVIOUS}{previous}"));
        let mut arguments = vec![self.qemu.clone().into_os_string(), "-plugin".into(), plugin];
        let (for_guest, kept): (Vec<_>, Vec<_>) =
            environment.into_iter().partition(|entry| concerns_loader(entry));
        for entry in for_guest {
            arguments.extend(["-E".into(), entry]);
        }
        let mut words = resolved.arguments.into_iter();
        arguments.extend(["-0".into(), words.next().unwrap_or_default(), resolved.program.into_os_string()]);
        arguments.extend(words);
        (arguments, kept)
    }
}

/// Returns whether a variable addresses the guest's loader: in the environment `LD_*` would address QEMU's.
/// `-E` splits values at commas, so those with commas stay in the environment, where the guest finds them,
/// too.
fn concerns_loader(entry: &OsStr) -> bool {
    entry.as_bytes().starts_with(b"LD_") && !entry.as_bytes().contains(&b',')
}

fn without_previous(plugin: &OsStr) -> OsString {
    let bytes = plugin.as_bytes();
    let end = bytes.windows(PREVIOUS.len()).rposition(|window| window == PREVIOUS.as_bytes());
    OsStr::from_bytes(&bytes[..end.unwrap_or(bytes.len())]).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_taken_apart_and_put_together() {
        let line = b"qemu-x86_64\0-plugin\0/p.so,pool=/a\0-E\0LD_X=1\0-0\0sh\0/bin/sh\0-c\0\0";
        let invocation = Invocation::parse("/usr/bin/qemu-x86_64".into(), line).expect("valid");
        assert_eq!(invocation.command_line(), b"sh -c ");
        let resolved = Resolved { program: "/bin/ls".into(), arguments: vec!["ls".into(), "-l".into()] };
        let environment = vec!["LD_PRELOAD=/x.so".into(), "HOME=/".into(), "LD_Y=a,b".into()];
        let (arguments, kept) = invocation.again(resolved, environment, 3);
        let expected =
            "/usr/bin/qemu-x86_64 -plugin /p.so,pool=/a,previous=3 -E LD_PRELOAD=/x.so -0 ls /bin/ls -l";
        assert_eq!(arguments.join(OsStr::new(" ")), expected);
        assert_eq!(kept, ["HOME=/", "LD_Y=a,b"]);
        assert_eq!(without_previous(&arguments[2]), "/p.so,pool=/a");
    }

    #[test]
    fn another_form_is_refused() {
        assert_eq!(Invocation::parse("/q".into(), b"qemu\0/bin/ls\0"), None);
        assert_eq!(Invocation::parse("/q".into(), b""), None);
    }
}
