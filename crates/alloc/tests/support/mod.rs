//! Runs programs under the library.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

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

/// Runs a command that must succeed. Returns its standard output.
pub(crate) fn succeed(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
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
