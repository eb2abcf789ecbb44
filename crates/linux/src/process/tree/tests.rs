use std::fs;
use std::path::PathBuf;

use super::*;

/// A `/proc` of few processes.
struct Fixture {
    directory: tempfile::TempDir,
    listed: bool,
}

impl Fixture {
    fn new(listed: bool) -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory"), listed }
    }

    fn path(&self, pid: u32) -> PathBuf {
        self.directory.path().join(pid.to_string())
    }

    /// Writes a process, and the list of its children where the kernel has one.
    fn put(&self, pid: u32, parent: u32, state: char, start: u64, code: u64, children: &str) {
        let task = self.path(pid).join(format!("task/{pid}"));
        fs::create_dir_all(&task).expect("made");
        let rest = "7 7 0 -1 4194304 1 0 0 0 1 1 0 0 20 0 1 0";
        let line =
            format!("{pid} (a b) {state} {parent} {rest} {start} 99 9 18446744073709551615 {code} 1 5 0 0\n");
        fs::write(self.path(pid).join("stat"), line).expect("written");
        if self.listed {
            fs::write(task.join("children"), children).expect("written");
        }
    }

    fn remove(&self, pid: u32) {
        fs::remove_dir_all(self.path(pid)).expect("removed");
    }

    fn follow(&self, pid: u32) -> Tree {
        Tree::follow(ProcRoot::at(self.directory.path()), Pid(pid), None).expect("followed")
    }
}

fn poll(tree: &mut Tree) -> Vec<Event> {
    let mut events = Vec::new();
    tree.poll(&mut events).expect("polled");
    events
}

fn started(pid: u32, parent: u32) -> Event {
    Event::Started { pid: Pid(pid), parent: Pid(parent) }
}

#[test]
fn a_number_that_is_used_again_is_another_process() {
    for listed in [true, false] {
        let proc = Fixture::new(listed);
        proc.put(10, 1, 'S', 100, 4096, "11 ");
        proc.put(11, 10, 'S', 200, 4096, "");
        let mut tree = proc.follow(10);
        assert_eq!(poll(&mut tree), [started(10, 1), started(11, 10)]);
        // It belongs to another process now.
        proc.put(10, 1, 'S', 100, 4096, "");
        proc.put(11, 1, 'S', 300, 4096, "");
        assert_eq!(poll(&mut tree), [Event::Ended(Pid(11))]);
        assert_eq!(poll(&mut tree), []);
        // It belongs to a child once more.
        proc.put(10, 1, 'S', 100, 4096, "11 ");
        proc.put(11, 10, 'S', 400, 4096, "");
        assert_eq!(poll(&mut tree), [started(11, 10)]);
        // A child's, and again a child's: both are reported.
        proc.put(11, 10, 'S', 500, 4096, "");
        assert_eq!(poll(&mut tree), [Event::Ended(Pid(11)), started(11, 10)]);
    }
}

#[test]
fn zombies_and_the_vanished_are_no_processes() {
    for listed in [true, false] {
        let proc = Fixture::new(listed);
        proc.put(10, 1, 'R', 100, 4096, "11 12 13 ");
        proc.put(11, 10, 'Z', 200, 0, "");
        proc.put(12, 10, 'S', 200, 4096, "14 ");
        proc.put(14, 12, 'S', 300, 4096, "");
        let mut tree = proc.follow(10);
        let events = poll(&mut tree);
        assert_eq!(events, [started(10, 1), started(12, 10), started(14, 12)]);
        // The middle one ends: its child is an orphan, and still the program's.
        proc.put(12, 10, 'Z', 200, 0, "");
        proc.put(14, 1, 'S', 300, 4096, "");
        assert_eq!(poll(&mut tree), [Event::Ended(Pid(12))]);
        proc.remove(12);
        assert_eq!(poll(&mut tree), []);
        proc.remove(14);
        proc.remove(10);
        assert_eq!(poll(&mut tree), [Event::Ended(Pid(10)), Event::Ended(Pid(14))]);
        assert!(tree.is_empty());
    }
}

#[test]
fn what_ends_before_its_start_was_told_is_not_told_at_all() {
    let proc = Fixture::new(true);
    proc.put(10, 1, 'R', 100, 4096, "");
    let mut tree = proc.follow(10);
    proc.remove(10);
    assert_eq!(poll(&mut tree), []);
    assert!(tree.is_empty());
}

#[test]
fn exec_moves_the_code() {
    let proc = Fixture::new(true);
    proc.put(10, 1, 'R', 100, 4096, "");
    let mut tree = proc.follow(10);
    assert_eq!(poll(&mut tree), [started(10, 1)]);
    proc.put(10, 1, 'R', 100, 8192, "");
    assert_eq!(poll(&mut tree), [Event::Executed(Pid(10))]);
    // Its memory goes before it ends.
    proc.put(10, 1, 'R', 100, 0, "");
    assert_eq!(poll(&mut tree), []);
    proc.put(10, 1, 'Z', 100, 0, "");
    assert_eq!(poll(&mut tree), [Event::Ended(Pid(10))]);
}

#[test]
fn nothing_is_looked_for_while_nothing_was_forked() {
    let proc = Fixture::new(true);
    let loadavg = |last: u32| {
        fs::write(proc.directory.path().join("loadavg"), format!("0.1 0.2 0.3 1/99 {last}\n"))
            .expect("written");
    };
    loadavg(10);
    proc.put(10, 1, 'R', 100, 4096, "");
    let mut tree = proc.follow(10);
    (0..3).for_each(|_| drop(poll(&mut tree)));
    proc.put(11, 10, 'S', 200, 4096, "");
    proc.put(10, 1, 'R', 100, 4096, "11 ");
    assert_eq!(poll(&mut tree), []);
    loadavg(11);
    assert_eq!(poll(&mut tree), [started(11, 10)]);
    // A thorough poll looks for it all the same.
    proc.put(12, 10, 'S', 300, 4096, "");
    proc.put(10, 1, 'R', 100, 4096, "11 12 ");
    let later: Vec<Event> = (0..THOROUGH + 2).flat_map(|_| poll(&mut tree)).collect();
    assert_eq!(later, [started(12, 10)]);
}

#[test]
fn members_are_followed_as_named_and_their_children_are_not() {
    let fixture = Fixture::new(true);
    fixture.put(7, 1, 'S', 5, 4096, "8 ");
    fixture.put(8, 7, 'S', 6, 4096, "");
    fixture.put(9, 1, 'S', 6, 4096, "");
    let mut tree = Tree::of_members(ProcRoot::at(fixture.directory.path()));
    for pid in [7, 9, 9] {
        tree.add_member(Pid(pid)).expect("it runs");
    }
    assert_eq!(poll(&mut tree), [started(7, 1), started(9, 1)]);
    tree.remove_member(Pid(9));
    tree.remove_member(Pid(8));
    assert_eq!(poll(&mut tree), [Event::Ended(Pid(9))]);
    tree.add_member(Pid(8)).expect("it runs");
    tree.remove_member(Pid(8));
    assert_eq!(poll(&mut tree), [], "its start was not told");
    fixture.remove(7);
    assert_eq!(poll(&mut tree), [Event::Ended(Pid(7))]);
    assert!(matches!(tree.add_member(Pid(7)), Err(LinuxError::Ended(7))));
}
