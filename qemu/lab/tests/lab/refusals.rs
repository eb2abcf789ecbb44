//! The plugin refuses what it cannot work with at QEMU's start, in one line.

use std::process::Command;

use crate::support::{cache, finish, plugin};

fn refused(emulator: &mut Command, arguments: &str, rest: &[&str]) -> String {
    let mut option = plugin().into_os_string();
    option.push(arguments);
    let output = finish(emulator.arg("-plugin").arg(option).args(rest));
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn bad_arguments_end_the_start() {
    let Some(cache) = cache() else { return };
    let start = || {
        let mut command = Command::new(cache.qemu());
        command.env("LD_LIBRARY_PATH", cache.libraries()).args(["-machine", "none", "-display", "none"]);
        command
    };
    for (arguments, expected) in [
        (",speed=1", "isotherm-lab-plugin: unknown argument 'speed=1'"),
        ("", "isotherm-lab-plugin: argument machine= is missing"),
        (",machine=/no/such", "isotherm-lab-plugin: machine=/no/such: No such file"),
    ] {
        let message = refused(&mut start(), arguments, &[]);
        assert!(message.lines().any(|line| line.starts_with(expected)), "{message}");
    }
}

#[test]
fn another_version_of_the_interface_is_refused() {
    // Debian 12's user-mode emulator has version 1; later ones emulate no system, either.
    let emulator = "/usr/bin/qemu-x86_64";
    if !std::path::Path::new(emulator).is_file() {
        println!("skipped: there is no {emulator}");
        return;
    }
    let message = refused(&mut Command::new(emulator), "", &["/bin/true"]);
    assert!(message.contains("API version 4"), "{message}");
}
