//! The process tree on real processes: storms of forks, double forks, exec, many threads.

mod support;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};

use isotherm_linux::process::signals::Signals;
use isotherm_linux::process::tree::{Event, Tree};
use isotherm_linux::process::{Pid, ProcRoot};
use support::{alone, helper, until};

/// A tree, and its reports per process.
struct Seen {
    tree: Tree,
    events: Vec<Event>,
    /// Whether each process runs, and how often it executed a program.
    state: BTreeMap<Pid, (bool, u32)>,
}

impl Seen {
    fn of(first: &Child, adopts: bool) -> Self {
        let own = Pid(std::process::id());
        let tree =
            Tree::follow(ProcRoot::default(), Pid(first.id()), adopts.then_some(own)).expect("followed");
        Self { tree, events: Vec::new(), state: BTreeMap::new() }
    }

    /// Polls, and checks the order of events.
    fn poll(&mut self) {
        let first = self.events.len();
        self.tree.poll(&mut self.events).expect("polled");
        for event in &self.events[first..] {
            match *event {
                Event::Started { pid, .. } => {
                    let before = self.state.insert(pid, (true, 0));
                    assert!(before.is_none_or(|(runs, _)| !runs), "{pid:?} started twice");
                }
                Event::Executed(pid) => {
                    let state = self.state.get_mut(&pid).filter(|state| state.0);
                    state.expect("started before").1 += 1;
                }
                Event::Ended(pid) => {
                    let state = self.state.get_mut(&pid).filter(|state| state.0);
                    state.expect("started before").0 = false;
                }
            }
        }
        let running = self.state.iter().filter(|(_, state)| state.0).map(|(&pid, _)| pid);
        assert!(running.eq(self.tree.processes()), "the events give the tree");
    }

    fn running(&self) -> usize {
        self.tree.processes().count()
    }

    fn executions(&self, pid: u32) -> u32 {
        self.state[&Pid(pid)].1
    }
}

fn shell(script: &str) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("sh")
}

fn command_name(pid: Pid) -> String {
    std::fs::read_to_string(format!("/proc/{}/comm", pid.0)).unwrap_or_default().trim().into()
}

#[test]
fn a_storm_of_short_lived_children_is_followed_to_its_end() {
    let mut child = shell("i=0; while [ $i -lt 1000 ]; do : & i=$((i+1)); done; wait");
    let mut seen = Seen::of(&child, false);
    until("the end of the storm", || {
        seen.poll();
        // The first process stays a zombie until it is reaped, but it has ended.
        seen.tree.is_empty()
    });
    assert!(child.wait().expect("waited for").success());
    assert!(seen.state.values().all(|&(runs, _)| !runs));
}

#[test]
fn a_thousand_living_children_are_found_and_seen_to_end() {
    let script = "exec 3<&0; i=0; while [ $i -lt 1000 ]; do (read x <&3) & i=$((i+1)); done; wait";
    let mut child = shell(script);
    let mut seen = Seen::of(&child, false);
    until("a thousand children", || {
        seen.poll();
        seen.running() == 1001
    });
    drop(child.stdin.take());
    until("their end", || {
        seen.poll();
        seen.tree.is_empty()
    });
    child.wait().expect("waited for");
}

#[test]
fn children_of_two_hundred_threads_are_found() {
    let mut child = helper("two_hundred_threads").stdout(Stdio::null()).spawn().expect("a helper");
    let mut seen = Seen::of(&child, false);
    until("a child of each thread", || {
        seen.poll();
        seen.tree.processes().filter(|&pid| command_name(pid) == "cat").count() == 200
    });
    drop(child.stdin.take());
    until("their end", || {
        seen.poll();
        seen.tree.is_empty()
    });
    assert!(child.wait().expect("waited for").success());
}

#[test]
#[ignore = "a helper of children_of_two_hundred_threads_are_found"]
fn two_hundred_threads() {
    std::thread::scope(|scope| {
        for _ in 0..200 {
            scope.spawn(|| Command::new("cat").stdout(Stdio::null()).status().expect("cat"));
        }
    });
}

#[test]
fn exec_is_told_also_of_the_same_program_at_the_same_addresses() {
    // Its arguments are the same each time, and so is its stack where addresses are not randomised.
    let again = r#"sh -c 'read x && exec sh -c "$0" "$0"' 'read x && exec sh -c "$0" "$0"'"#;
    for program in ["sh -c 'read x; exec cat'", again, &format!("setarch -R {again}")] {
        let mut child = shell(&format!("exec {program}"));
        let mut seen = Seen::of(&child, false);
        until("the program", || {
            seen.poll();
            let line = std::fs::read(format!("/proc/{}/cmdline", child.id())).unwrap_or_default();
            line.starts_with(b"sh\0-c\0read")
        });
        (0..3).for_each(|_| seen.poll());
        let before = seen.executions(child.id());
        child.stdin.as_mut().expect("piped").write_all(b"\n").expect("written");
        until("exec", || {
            seen.poll();
            seen.executions(child.id()) > before
        });
        drop(child.stdin.take());
        until("the end", || {
            seen.poll();
            seen.tree.is_empty()
        });
        child.wait().expect("waited for");
    }
}

#[test]
fn a_double_fork_is_adopted_and_followed_beyond_its_ancestors() {
    if !alone("a_double_fork_is_adopted_and_followed_beyond_its_ancestors") {
        return;
    }
    use isotherm_linux::process::launch::Launch;
    let script = ["-c", "(setsid sleep 1000 &) ; exec sleep 0.5"].map(Into::into);
    let signals = Signals::receive().expect("signals");
    let launch = Launch::start(signals, "sh".as_ref(), &script, &[], true).expect("forked");
    let (first, own) = (launch.pid(), std::process::id());
    let mut tree = Tree::follow(ProcRoot::default(), first, Some(Pid(own))).expect("followed");
    let mut running = launch.release().expect("started");
    // The parent between them comes and goes unseen.
    until("the orphan", || {
        let threads = std::fs::read_dir("/proc/self/task").expect("own threads").flatten();
        let lists = threads.map(|thread| std::fs::read_to_string(thread.path().join("children")));
        lists.map(|list| list.unwrap_or_default().split_whitespace().count()).sum::<usize>() == 2
    });
    let (mut events, mut exit) = (Vec::new(), None);
    until("the end of the first process", || {
        exit = running.wait(std::time::Duration::from_millis(1)).expect("waited");
        tree.poll(&mut events).expect("polled");
        exit.is_some()
    });
    until("the daemon", || {
        tree.poll(&mut events).expect("polled");
        tree.processes().map(command_name).eq(["sleep".to_owned()])
    });
    let daemon = tree.processes().next().expect("the daemon");
    assert!(events.contains(&Event::Ended(first)) && daemon != first);
    support::kill("-KILL", daemon.0);
    until("the daemon's end", || {
        running.wait(std::time::Duration::ZERO).expect("waited");
        tree.poll(&mut events).expect("polled");
        tree.is_empty()
    });
    // Adopted, hence reaped: nothing is left of it.
    until("the reaping", || {
        running.wait(std::time::Duration::ZERO).expect("waited");
        !std::path::Path::new(&format!("/proc/{}", daemon.0)).exists()
    });
}

#[test]
fn kernel_threads_and_the_dead_are_not_followed() {
    let follow = |pid| Tree::follow(ProcRoot::default(), Pid(pid), None);
    let mut child = shell(":");
    until("a zombie", || follow(child.id()).is_err());
    let error = follow(child.id()).expect_err("a zombie").to_string();
    assert!(error.ends_with("has ended"), "{error}");
    child.wait().expect("waited for");
    if command_name(Pid(2)) != "kthreadd" {
        println!("skipped: process 2 is not kthreadd in this PID namespace");
        return;
    }
    let error = follow(2).expect_err("a kernel thread").to_string();
    assert!(error.contains("thread of the kernel"), "{error}");
}
