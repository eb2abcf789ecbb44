//! Tests on a directory that stands for `proc` and `sys`, made by the kernel's documents
//! (admin-guide/mm/pagemap.rst and idle_page_tracking.rst). Its bitmap is a plain file; these tests clear the
//! bits of accessed frames as the kernel does.

use std::collections::BTreeSet;
use std::fs;

use proptest::prelude::*;

use super::*;

const START: u64 = 0x1000_0000;
const FRAMES: u64 = 4096;

struct Machine {
    root: tempfile::TempDir,
    scanner: IdlePages,
}

impl Machine {
    /// Makes a process 1 with one mapping whose n-th page is in `frames[n]`.
    fn new(frames: &[Option<u64>], flags: &[u64]) -> Self {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        for directory in ["proc/1", "sys/kernel/mm/page_idle"] {
            fs::create_dir_all(path(directory)).unwrap();
        }
        let end = START + frames.len() as u64 * PAGE;
        fs::write(path("proc/1/maps"), format!("{START:x}-{end:x} rw-p 00000000 00:00 0 \n")).unwrap();
        let entries: Vec<u8> = frames
            .iter()
            .flat_map(|frame| frame.map_or(0, |frame| 1 << 63 | 1 << 61 | frame).to_ne_bytes())
            .collect();
        let pagemap = File::create(path("proc/1/pagemap")).unwrap();
        pagemap.write_all_at(&entries, START / PAGE * 8).unwrap();
        fs::write(path("proc/1/clear_refs"), "").unwrap();
        fs::write(path(FLAGS), flags.iter().flat_map(|flags| flags.to_ne_bytes()).collect::<Vec<_>>())
            .unwrap();
        fs::write(path(BITMAP), [0; FRAMES as usize / 8]).unwrap();
        let scanner = IdlePages::at(root.path()).unwrap();
        Self { root, scanner }
    }

    /// Returns the indices of the pages found accessed.
    fn scan(&self) -> (BTreeSet<u64>, Found) {
        let mut target = self.scanner.open(Pid(1)).unwrap();
        let mut found = Found::default();
        self.scanner.scan(&mut target, &mut found).unwrap();
        let pages =
            found.pages.iter().flat_map(|range| (range.start - START) / PAGE..(range.end - START) / PAGE);
        (pages.collect(), found.clone())
    }

    /// Clears the frame's mark, as the kernel does when it finds an accessed bit.
    fn access(&self, frame: u64) {
        let path = self.root.path().join(BITMAP);
        let mut bytes = fs::read(&path).unwrap();
        bytes[frame as usize / 8] &= !(1 << (frame % 8));
        fs::write(path, bytes).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn each_page_for_itself(
        frames in proptest::collection::vec(proptest::option::of(64..FRAMES), 1..300),
        accessed in proptest::collection::btree_set(0usize..300, 0..100),
    ) {
        // Frames are distinct, as in a private mapping.
        let mut taken = BTreeSet::new();
        let frames: Vec<_> = frames.into_iter().map(|frame| frame.filter(|&frame| taken.insert(frame))).collect();
        let machine = Machine::new(&frames, &[LRU; FRAMES as usize]);
        let present: BTreeSet<u64> = (0..frames.len() as u64).filter(|&at| frames[at as usize].is_some()).collect();
        prop_assert_eq!(machine.scan().0, present.clone(), "never marked: accessed since they were mapped");
        prop_assert_eq!(machine.scan().0, BTreeSet::new(), "all marked");
        let accessed: BTreeSet<u64> = accessed.into_iter().map(|at| at as u64).filter(|at| present.contains(at)).collect();
        for &at in &accessed {
            machine.access(frames[at as usize].unwrap());
        }
        let (pages, found) = machine.scan();
        prop_assert_eq!(pages, accessed.clone());
        prop_assert_eq!((found.walked, found.referenced), (present.len() as u64, accessed.len() as u64));
    }
}

#[test]
fn a_huge_page_has_its_first_frames_mark() {
    let mut flags = vec![LRU; FRAMES as usize];
    flags[513..1024].fill(TAIL | LRU);
    let frames: Vec<_> = (512..1024).map(Some).chain([Some(64)]).collect();
    let machine = Machine::new(&frames, &flags);
    machine.scan();
    machine.access(512);
    assert_eq!(machine.scan().0, (0..512).collect());
    machine.access(64);
    assert_eq!(machine.scan().0, [512].into());
}

#[test]
fn frames_that_cannot_be_marked_are_undecided() {
    let mut flags = vec![LRU; FRAMES as usize];
    flags[100] = 0;
    let machine = Machine::new(&[Some(100), Some(101)], &flags);
    let (pages, found) = machine.scan();
    assert_eq!((pages, found.undecided), ([1].into(), 1));
}

#[test]
fn the_flush_follows_the_marks() {
    let machine = Machine::new(&[Some(64)], &[LRU; FRAMES as usize]);
    machine.scan();
    assert_eq!(fs::read_to_string(machine.root.path().join("proc/1/clear_refs")).unwrap(), "4");
}

#[test]
fn hidden_frames_name_the_capability() {
    let machine = Machine::new(&[Some(0)], &[LRU; FRAMES as usize]);
    let mut target = machine.scanner.open(Pid(1)).unwrap();
    let error = machine.scanner.scan(&mut target, &mut Found::default()).unwrap_err();
    assert!(error.to_string().contains("CAP_SYS_ADMIN"), "{error}");
}

#[test]
fn a_kernel_without_it_is_told_apart() {
    let root = tempfile::tempdir().unwrap();
    let error = IdlePages::at(root.path()).unwrap_err();
    assert!(error.to_string().contains("CONFIG_IDLE_PAGE_TRACKING=y"), "{error}");
}
