//! Unusable options are reported in one line, and the program runs.

mod support;

use support::{both, preloaded};

#[test]
fn unusable_values_are_reported_in_one_line() {
    for (name, value) in [
        ("REGIONS", "0"),
        ("REGIONS", "257"),
        ("REGIONS", "many"),
        ("DEPTH", "0"),
        ("DEPTH", "11"),
        ("DEPTH", "-1"),
        ("REGION_SIZE", "5"),
        ("REGION_SIZE", "3G"),
        ("SAMPLE", "64X"),
        ("REGION", "8"),
    ] {
        let output = preloaded("/bin/echo").arg("runs").env(format!("ISOTHERM_ALLOC_{name}"), value).output();
        let output = output.expect("echo");
        assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"runs\n"[..]), "{}", both(&output));
        let report = String::from_utf8_lossy(&output.stderr);
        let expected = format!("isotherm-alloc: ISOTHERM_ALLOC_{name}={value}: expected ");
        assert!(report.starts_with(&expected) && report.matches('\n').count() == 1, "{report}");
    }
}

#[test]
fn valid_options_are_not_reported() {
    let mut command = preloaded("/bin/echo");
    command.arg("runs").env("ISOTHERM_ALLOC_REGIONS", "256").env("ISOTHERM_ALLOC_DEPTH", "1");
    let output = command.env("ISOTHERM_ALLOC_REGION_SIZE", "64M").output().expect("echo");
    assert_eq!(both(&output), "runs\n");
}

#[test]
fn a_limit_on_addresses_is_kept() {
    const REPORT: &str = "isotherm-alloc: expected addresses for 32 regions";
    for (limit, size, report) in
        [("20000000", "512M", ""), ("20000000", "256G", REPORT), ("500000", "64M", REPORT)]
    {
        let mut command = preloaded("/bin/sh");
        command.env("ISOTHERM_ALLOC_REGION_SIZE", size);
        // The limit holds for the program that the shell starts, where the library starts again.
        let output =
            command.args(["-c", &format!("ulimit -v {limit}; exec /bin/echo runs")]).output().expect("sh");
        assert_eq!(&*output.stdout, b"runs\n", "{}", both(&output));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.starts_with(report) && stderr.is_empty() == report.is_empty(), "{limit}: {stderr}");
    }
}
