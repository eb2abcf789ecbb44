//! Runs programs under the library.
#![allow(dead_code)]

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Returns the folder of cargo's output beside this test.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its file");
    test.ancestors().nth(2).expect("target/PROFILE/deps/TEST").to_owned()
}

/// Returns the path of `libisotherm_alloc.so`.
pub(crate) fn library() -> PathBuf {
    built().join("deps/libisotherm_alloc.so")
}

/// Returns the path of an example of this package.
pub(crate) fn example(name: &str) -> PathBuf {
    built().join("examples").join(name)
}

/// Returns whether a program is installed, and reports if not.
pub(crate) fn has(program: &str) -> bool {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()));
    if !found {
        println!("skipped: {program} is not installed");
    }
    found
}

/// Returns a command under the library.
pub(crate) fn preloaded(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", library());
    command
}

/// Runs a command. One that has not ended after five minutes is ended, and the test fails with the calls that
/// its threads were in.
pub(crate) fn output(command: &mut Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn();
    let child = child.expect("the program starts");
    let group = child.id().to_string();
    let (done, ended) = channel();
    thread::spawn(move || done.send(child.wait_with_output().expect("its output can be read")));
    ended.recv_timeout(Duration::from_secs(300)).unwrap_or_else(|_| {
        let text = |command: &mut Command| {
            command.output().map_or_else(|error| error.to_string(), |output| both(&output))
        };
        let members = text(Command::new("pgrep").args(["-g", &group]));
        let traces = members
            .lines()
            .map(|id| text(Command::new("gdb").args(["-batch", "-ex", "thread apply all bt", "-p", id])));
        let traces: String = traces.collect();
        text(Command::new("kill").args(["-KILL", &format!("-{group}")]));
        panic!("{command:?} does not end:\n{traces}");
    })
}

/// Runs a command that must succeed. Returns its standard output.
pub(crate) fn succeed(command: &mut Command) -> String {
    let output = output(command);
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, both(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns everything that a program printed.
pub(crate) fn both(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Compiles one of `programs/`. Returns the program's path.
pub(crate) fn compile(folder: &Path, source: &str, options: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(source);
    let cxx = source.extension().is_some_and(|extension| extension == "cpp");
    let target = folder.join("program");
    let mut compiler = Command::new(if cxx { "g++" } else { "gcc" });
    succeed(compiler.args(["-O2", "-pthread"]).args(options).arg(&source).arg("-o").arg(&target));
    target
}
