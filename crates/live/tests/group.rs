//! Sessions of groups on real processes, in shadow mode.

use std::collections::BTreeMap;
use std::process::{Child, Command};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use isotherm_core::Bytes;
use isotherm_linux::process::{Pid, ProcRoot, ProcessStat};
use isotherm_live::host::Share;
use isotherm_live::policy_run::PolicyRun;
use isotherm_live::session::{Members, Session, SessionConfig, Target, TierRequest};

/// A program that sleeps; it is ended on drop.
struct Program(Child);

impl Program {
    fn start() -> Self {
        Self(Command::new("sleep").arg("600").spawn().expect("sleep"))
    }

    fn pid(&self) -> Pid {
        Pid(self.0.id())
    }

    fn stat(&self) -> ProcessStat {
        ProcessStat::read(&ProcRoot::default(), self.pid(), &mut Vec::new()).expect("it runs")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A session of a group on a thread of its own.
struct Group {
    members: Members,
    share: Share,
    thread: JoinHandle<()>,
}

impl Group {
    fn start(fast: Bytes) -> Self {
        let (members, share) = (Members::default(), Share::new(fast));
        let policy = PolicyRun::new(isotherm_policies::find("first-touch").expect("a policy"));
        let config = SessionConfig {
            tiers: TierRequest { shadow: true, ..TierRequest::default() },
            share: Some(share.clone()),
            ..SessionConfig::new(policy)
        };
        let target = Target::Group { members: members.clone() };
        let run = move || {
            let session = Session::open(config, target).expect("no signal is needed");
            session.start().expect("nothing to launch").run().result.expect("it runs to its end");
        };
        Self { members, share, thread: std::thread::spawn(run) }
    }

    fn set(&self, programs: &[&Program]) {
        let start = |program: &&Program| (program.pid(), program.stat().start);
        self.members.set(programs.iter().map(start).collect::<BTreeMap<_, _>>());
    }

    fn followed(&self) -> Vec<(Pid, Bytes)> {
        let report = self.share.report();
        let processes = report.iter().flat_map(|report| &report.processes);
        processes.map(|one| (one.process, one.resident.iter().copied().sum())).collect()
    }

    fn ends(self) {
        self.members.end();
        self.thread.join().expect("the session ends");
    }
}

/// Fewer pages than any program has.
const FEW: Bytes = Bytes(4 << 12);

/// Waits until it is so, or fails.
#[track_caller]
fn until(what: &str, so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn processes_come_and_go_and_each_has_one_engine() {
    let (one, other) = (Program::start(), Program::start());
    let (group, rival) = (Group::start(Bytes(1 << 30)), Group::start(Bytes(1 << 30)));
    group.set(&[&one, &other]);
    until("both are followed, with their memory", || {
        let followed = group.followed();
        followed.len() == 2 && followed.iter().all(|one| one.1 > Bytes(0))
    });
    rival.set(&[&one]);
    until("a second engine is refused", || {
        rival.members.refused().get(&one.pid()).is_some_and(|why| why.contains("a second engine"))
    });
    group.set(&[&other]);
    until("the other engine takes over", || rival.followed().len() == 1 && group.followed().len() == 1);
    assert!(rival.members.refused().is_empty());
    drop(other);
    until("its end is seen", || group.followed().is_empty());
    group.ends();
    rival.ends();
    assert_eq!(one.stat().state, b'S', "it sleeps on");
}

#[test]
fn a_share_bounds_the_fast_memory_while_the_session_runs() {
    let program = Program::start();
    let group = Group::start(Bytes(1 << 30));
    group.set(&[&program]);
    let resident = |tier: usize| group.share.report().map_or(Bytes(0), |report| report.tiers[tier].resident);
    until("its memory is fast", || resident(0) > FEW && resident(1) == Bytes(0));
    group.share.set_fast(FEW);
    until("the rest is slow", || resident(0) == FEW && resident(1) > Bytes(0));
    group.ends();
}
