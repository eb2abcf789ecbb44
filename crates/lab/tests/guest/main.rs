//! Tests that boot a guest. They print `skipped: REASON` where the lab is not set up (`make lab-setup`), and
//! run only with `LAB_TEST=quick` or `all`, which `scripts/lab-test.sh` sets.

mod support;

use std::time::Duration;

use isotherm_core::Bytes;
use isotherm_lab::LabError;
use isotherm_lab::console::Console;
use isotherm_lab::counts::settled;
use isotherm_lab::job::Start;
use isotherm_lab::kernel_tiering::KernelTiering;
use support::{Lab, Outcome, shell};

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

#[test]
fn a_program_of_the_host_runs_with_its_output_and_status() -> Result {
    let Some(lab) = Lab::find("small")? else { return Ok(()) };
    let Outcome { status, stdout, stderr, .. } = lab
        .run(&shell("uname -r; pwd; echo $GREETING; echo wrong >&2; cat /proc/cmdline >/dev/null; exit 7"))?;
    let mut lines = stdout.lines();
    assert_eq!((status, stderr.as_str()), (7, "wrong\n"));
    assert_eq!(lines.next(), Some(lab.cache.kernel_release().as_str()));
    assert_eq!(lines.next().map(Into::into), Some(std::env::current_dir()?));
    assert_eq!(lines.next(), Some("it's \"me\""));
    Ok(())
}

#[test]
fn a_signal_is_a_status_of_128_and_its_number_and_the_kernel_says_why() -> Result {
    let Some(lab) = Lab::find("small")? else { return Ok(()) };
    let outcome = lab.run(&shell("exec python3 -c 'import ctypes; ctypes.string_at(8)'"))?;
    assert_eq!(outcome.status, 128 + 11);
    let line = outcome.kernel_log.ok_or("no line of the kernel")?;
    assert!(line.starts_with("python3[") && line.contains("]: segfault at 8 ip "), "{line}");
    Ok(())
}

#[test]
fn nodes_are_as_the_machine_says_and_what_is_written_stays_in_the_guest() -> Result {
    let Some(lab) = Lab::find("small")? else { return Ok(()) };
    let mark = std::env::temp_dir().join(format!("isotherm-lab-test-{}", std::process::id()));
    let script = format!(
        "cd /sys/devices/system/node; cat node*/cpulist; cat node1/access0/initiators/read_latency; \
         ls /sys/devices/virtual/memory_tiering | grep -c 'memory_tier[0-9]'; \
         touch {0} && test -e {0} && echo written",
        mark.display()
    );
    let latency = lab.machine.profile.tiers[1].latency.0;
    let outcome = lab.run(&shell(&script))?;
    assert_eq!(outcome.stdout, format!("0\n\n{latency}\n2\nwritten\n"), "{}", outcome.stderr);
    assert!(!mark.exists());
    Ok(())
}

#[test]
fn a_panic_is_told_with_its_reason_and_the_console_is_kept() -> Result {
    let Some(lab) = Lab::find("small")? else { return Ok(()) };
    let error = lab.run(&shell("echo c >/proc/sysrq-trigger")).err().ok_or("the guest must panic")?;
    let Some(LabError::Panic { reason, console }) = error.downcast_ref() else { return Err(error) };
    assert!(reason.contains("sysrq triggered crash"), "{reason}");
    assert!(Console::read(console).panic().is_some());
    Ok(())
}

#[test]
fn a_program_that_never_ends_is_stopped_at_the_time_limit() -> Result {
    let Some(lab) = Lab::find("small")? else { return Ok(()) };
    let lab = lab.with_limit(Duration::from_secs(8));
    let error = lab.run(&shell("sleep 1000")).err().ok_or("the guest must be stopped")?;
    assert!(matches!(error.downcast_ref(), Some(LabError::TimeLimit { .. })), "{error}");
    Ok(())
}

#[test]
fn memory_starts_where_it_is_told_to_and_the_fast_node_is_as_small_as_told() -> Result {
    let Some(lab) = Lab::find("small")? else { return Ok(()) };
    let program = python(&format!("{}time.sleep(2)", allocate(96)));
    let node_shares = |start, fast| {
        let outcome = lab.job(&program, KernelTiering::NONE, start, fast)?;
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let last = settled(&outcome.residence).ok_or("no residence was seen")?;
        Ok::<_, Box<dyn std::error::Error>>((last.node_bytes[0] >> 20, last.node_bytes[1] >> 20))
    };
    let (fast, slow) = node_shares(Start::Slow, None)?;
    assert!(fast < 16 && slow > 90, "slow start: {fast} MiB fast, {slow} MiB slow");
    let (fast, slow) = node_shares(Start::FirstTouch, Some(Bytes(48 << 20)))?;
    assert!((32..=56).contains(&fast) && slow > 40, "48 MiB fast: {fast} MiB fast, {slow} MiB slow");
    Ok(())
}

#[test]
fn the_kernels_own_tiering_moves_pages_and_none_does_not() -> Result {
    let Some(lab) = Lab::find("small")? else { return Ok(()) };
    let program = python(&format!(
        "{}end = time.monotonic() + 12\nwhile time.monotonic() < end: x[::4096] = b'y' * len(x[::4096])",
        allocate(64)
    ));
    let moved = |name: &str| {
        let outcome = lab.job(&program, name.parse::<KernelTiering>()?, Start::Slow, None)?;
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        Ok::<_, Box<dyn std::error::Error>>(outcome.counts)
    };
    let numab = moved("numab")?;
    assert!(numab.promoted > 1000 && numab.moved >= numab.promoted, "{numab:?}");
    let none = moved("none")?;
    assert_eq!((none.promoted, none.demoted, none.moved), (0, 0, 0));
    let damon = moved("damon-lru")?.damon.ok_or("DAMON left nothing")?;
    assert!(damon.promoted > 1000, "{damon:?}");
    Ok(())
}

#[test]
fn a_cxl_device_is_brought_online_as_the_slow_node() -> Result {
    let Some(lab) = Lab::find("cxl")? else { return Ok(()) };
    let script = "cat /sys/bus/dax/devices/dax*/target_node; cat /sys/devices/system/node/has_cpu \
                  /sys/devices/system/node/has_memory; grep -A9 'CXL Window 0' /proc/iomem | grep -m 1 'System RAM'";
    let outcome = lab.run(&shell(script))?;
    let mut lines = outcome.stdout.lines();
    assert_eq!(
        [lines.next(), lines.next(), lines.next()],
        [Some("1"), Some("0"), Some("0-1")],
        "{}",
        outcome.stderr
    );
    let range = &isotherm_lab::layout::physical_ranges(&lab.machine)[1][0];
    let start = lines
        .next()
        .and_then(|line| line.trim().split_once('-'))
        .map(|(start, _)| u64::from_str_radix(start, 16));
    assert_eq!(start, Some(Ok(range.start)), "{}", outcome.stdout);
    Ok(())
}

/// Returns Python that touches `mebibytes` MiB and reports it.
fn allocate(mebibytes: u32) -> String {
    format!(
        "import time, os\nx = bytearray({mebibytes} << 20)\nx[::4096] = b'x' * len(x[::4096])\n\
         open(os.environ['ISOTHERM_LAB_STARTED'], 'w').close()\ntime.sleep(1)\n"
    )
}

fn python(script: &str) -> Vec<std::ffi::OsString> {
    ["python3", "-c", script].map(Into::into).to_vec()
}
