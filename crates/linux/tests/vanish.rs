//! Processes that end at any moment, and processes without permission.

mod support;

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use isotherm_core::{MoveStatus, Nanos};
use isotherm_linux::LinuxError;
use isotherm_linux::memory::maps::{Mapping, MapsReader};
use isotherm_linux::memory::mover::{Mover, MoverOptions, PageMove, Shape};
use isotherm_linux::memory::nodes::{Kernel, NodeReader, Residence};
use isotherm_linux::memory::pagemap::{Method, PageRun, Pagemap};
use isotherm_linux::process::tree::{Event, Tree};
use isotherm_linux::process::{Pid, ProcRoot};
use support::helper;

const TARGET: &str = "ISOTHERM_TEST_TARGET";

/// Makes every request of an engine to a process until it has ended; returns how often.
fn work_until_ended(pid: Pid) -> (usize, LinuxError) {
    let mut rounds = 0;
    loop {
        match work(pid) {
            Ok(()) => rounds += 1,
            Err(error) => return (rounds, error),
        }
    }
}

fn work(pid: Pid) -> Result<(), LinuxError> {
    let mut mappings = Vec::new();
    MapsReader::default().read(pid, &mut mappings)?;
    let mut pagemap = Pagemap::open(&ProcRoot::default(), pid)?;
    let mut addresses = Vec::new();
    for mapping in mappings.iter().filter(|mapping| mapping.is_movable()) {
        scan(&mut pagemap, mapping, &mut addresses)?;
    }
    let mut reading = pagemap.with_method(Method::Read);
    for mapping in &mappings {
        scan(&mut reading, mapping, &mut Vec::new())?;
    }
    let mut residences = Vec::new();
    NodeReader::new(Kernel).locate(pid, &addresses, &mut residences)?;
    let pages = addresses.iter().zip(residences);
    let moves: Vec<PageMove> = pages
        .filter_map(|(&address, residence)| match residence {
            Residence::Node(node) => Some(PageMove { address, shape: Shape::Base, node }),
            _ => None,
        })
        .collect();
    let mut statuses = Vec::new();
    Mover::new(Kernel, MoverOptions::default())
        .step(Nanos(0), pid, &moves, &mut statuses, &mut |_, _| false)?;
    let fine = |status: &MoveStatus| {
        matches!(status, MoveStatus::AlreadyThere | MoveStatus::Gone | MoveStatus::Moved)
    };
    assert!(statuses.iter().all(fine));
    Ok(())
}

fn scan(pagemap: &mut Pagemap, mapping: &Mapping, addresses: &mut Vec<u64>) -> Result<(), LinuxError> {
    let (mut next, mut runs) = (mapping.start, [PageRun::default(); 32]);
    while next < mapping.end {
        let scanned = pagemap.scan(next..mapping.end, &mut runs)?;
        next = scanned.next;
        for run in &runs[..scanned.runs] {
            addresses.extend((0..run.pages).map(|page| run.start + page * 4096));
        }
    }
    Ok(())
}

#[test]
fn a_process_may_end_at_any_moment() {
    let mut rounds = 0;
    for delay in 0..60u64 {
        let script = "i=0; while :; do i=$((i+1)); x=$x$i; case $i in *00) x=; : & esac; done";
        let mut child = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).spawn().expect("sh");
        let pid = Pid(child.id());
        let mut tree = Tree::follow(ProcRoot::default(), pid, None).expect("followed");
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(delay * 137));
            child.kill().expect("killed");
            child.wait().expect("waited");
        });
        let mut events = Vec::new();
        tree.poll(&mut events).expect("polled");
        let (done, error) = work_until_ended(pid);
        assert!(matches!(error, LinuxError::Ended(number) if number == pid.0), "{error}");
        rounds += done;
        while !tree.is_empty() {
            tree.poll(&mut events).expect("polled");
        }
        let ended = events.contains(&Event::Ended(pid));
        assert_eq!(
            ended,
            events.iter().any(|event| matches!(event, Event::Started { pid: found, .. } if *found == pid))
        );
        killer.join().expect("joined");
    }
    assert!(rounds > 0, "no process lived long enough to be worked on");
}

/// Runs as another user than the target.
#[test]
#[ignore = "a helper of the test below"]
fn stranger() {
    let pid = Pid(std::env::var(TARGET).expect("the target").parse().expect("a number"));
    check_refusals(pid);
    println!("checked");
}

fn check_refusals(pid: Pid) {
    let error = NodeReader::new(Kernel).locate(pid, &[4096], &mut Vec::new()).expect_err("another user's");
    assert!(error.to_string().contains("CAP_SYS_PTRACE"), "{error}");
    let error = MapsReader::default().read(pid, &mut Vec::new()).expect_err("another user's");
    assert!(error.to_string().contains("CAP_SYS_PTRACE"), "{error}");
    assert!(matches!(Pagemap::open(&ProcRoot::default(), pid), Err(LinuxError::Permission { .. })));
    let (mut mover, mut statuses) = (Mover::new(Kernel, MoverOptions::default()), Vec::new());
    let moves = [PageMove { address: 4096, shape: Shape::Base, node: 0 }; 3];
    mover.step(Nanos(0), pid, &moves, &mut statuses, &mut |_, _| false).expect("no error");
    assert_eq!(statuses, [MoveStatus::Denied; 3]);
    let denials = mover.denials();
    assert!(denials.len() == 1 && denials[0].to_string().contains("CAP_SYS_PTRACE"), "{denials:?}");
    // Frame numbers are hidden from it even of its own pages.
    let mut own = Pagemap::open(&ProcRoot::default(), Pid(std::process::id())).expect("own");
    let error = own.frames(&raw const moves as u64, &mut [0]).expect_err("hidden");
    assert!(error.to_string().contains("CAP_SYS_ADMIN"), "{error}");
}

#[test]
fn another_users_process_is_refused_with_what_is_missing() {
    let mut target = Command::new("sleep").arg("1000").spawn().expect("sleep");
    let root = std::fs::metadata("/proc/self").expect("own entry").uid() == 0;
    if !root {
        target.kill().expect("killed");
        target.wait().expect("waited");
        check_refusals(Pid(1));
        return;
    }
    // 65534 is the user nobody.
    let stranger = helper("stranger").uid(65534).env(TARGET, target.id().to_string()).output();
    target.kill().expect("killed");
    target.wait().expect("waited");
    match stranger {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            println!("skipped: another user may not run the test from where it was built");
        }
        stranger => {
            let output = stranger.expect("run");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("checked"), "{text}");
        }
    }
}
