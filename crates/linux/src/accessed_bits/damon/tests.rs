//! Tests on a directory that stands for `proc` and `sys`, made by the kernel's
//! Documentation/admin-guide/mm/damon/usage.rst. It takes writes as plain files; the lab's
//! tests use a kernel.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::*;

const START: u64 = 0x1000_0000;

/// Makes the files of so many kdamonds, and a process 1 whose pages are present but for the first of each
/// eight.
fn machine(kdamonds: usize) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        let path = Tree::new(root.path()).path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    };
    write(&format!("{KDAMONDS}/nr_kdamonds"), "0");
    for kdamond in 0..kdamonds {
        let files = "state pid contexts/nr_contexts contexts/0/operations contexts/0/targets/nr_targets \
            contexts/0/targets/0/pid_target contexts/0/schemes/nr_schemes contexts/0/schemes/0/action \
            contexts/0/monitoring_attrs/nr_regions/min contexts/0/monitoring_attrs/intervals/sample_us \
            contexts/0/schemes/0/access_pattern/sz/max contexts/0/schemes/0/access_pattern/age/max \
            contexts/0/schemes/0/access_pattern/nr_accesses/max";
        files.split_whitespace().for_each(|name| write(&file(kdamond, name), "0"));
        write(&file(kdamond, "contexts/0/avail_operations"), "vaddr\nfvaddr\npaddr\n");
        write(&file(kdamond, "state"), "off");
    }
    write("/proc/1/maps", &format!("{START:x}-{:x} rw-p 00000000 00:00 0 \n", START + 64 * PAGE));
    let pagemap = File::create(root.path().join("proc/1/pagemap")).expect("made");
    let entries = (0u64..64).flat_map(|page| (u64::from(page % 8 != 0) << 63).to_ne_bytes());
    pagemap.write_all_at(&entries.collect::<Vec<_>>(), START / PAGE * 8).expect("written");
    root
}

fn text(root: &Path, name: &str) -> String {
    Tree::new(root).text(name).expect("a file")
}

fn region(root: &Path, number: usize, pages: [u64; 2], accesses: u32) {
    let folder = Tree::new(root).path(&file(0, &format!("contexts/0/schemes/0/tried_regions/{number}")));
    fs::create_dir_all(&folder).expect("made");
    let [start, end] = pages.map(|page| (START + page * PAGE).to_string());
    for (name, text) in [("start", start), ("end", end), ("nr_accesses", accesses.to_string())] {
        fs::write(folder.join(name), text).expect("written");
    }
}

#[test]
fn a_process_has_a_kdamond_whose_regions_are_delivered_with_their_heat() {
    let root = machine(4);
    let root = root.path();
    let damon = Damon::at(root).expect("free");
    assert_eq!(text(root, &format!("{KDAMONDS}/nr_kdamonds")), "4");
    let mut target = damon.open(Pid(1)).expect("there");
    assert_eq!(text(root, &file(0, "state")), "on");
    assert_eq!(text(root, &file(0, "contexts/0/targets/0/pid_target")), "1");
    assert_eq!(text(root, &file(0, "contexts/0/monitoring_attrs/intervals/sample_us")), "5000");
    region(root, 0, [24, 48], 0);
    region(root, 1, [8, 24], 3);
    region(root, 2, [48, 56], 250);
    let mut found = Found::default();
    damon.scan(&mut target, &mut found).expect("read");
    let pages = |first: u64| START + first * PAGE..START + (first + 7) * PAGE;
    assert_eq!(found.pages, [pages(9), pages(17), pages(49)]);
    // Both ranges of the second region rest on the same looks.
    let heat = [(3, 14), (3, 14), (CHECKS as u32, 7)].map(|(accesses, pages)| Heat { accesses, pages });
    assert_eq!((&found.heat[..], found.walked), (&heat[..], 48));
    assert_eq!(found.accessed, found.pages);
    drop(target);
    assert_eq!(text(root, &file(0, "state")), "off");
    drop(damon);
    assert_eq!(text(root, &format!("{KDAMONDS}/nr_kdamonds")), "0");
}

#[test]
fn more_processes_than_kdamonds_have_twice_as_many_and_all_are_started_again() {
    let root = machine(8);
    let root = root.path();
    for process in 2..6 {
        let path = root.join(format!("proc/{process}"));
        fs::create_dir_all(&path).expect("made");
        for name in ["maps", "pagemap"] {
            fs::copy(root.join("proc/1").join(name), path.join(name)).expect("copied");
        }
    }
    let damon = Damon::at(root).expect("free");
    let targets: Vec<_> = (1..6).map(|process| damon.open(Pid(process)).expect("there")).collect();
    assert_eq!(text(root, &format!("{KDAMONDS}/nr_kdamonds")), "8");
    let observed = |number: usize| text(root, &file(number, "contexts/0/targets/0/pid_target"));
    assert_eq!((0..5).map(observed).collect::<Vec<_>>(), ["1", "2", "3", "4", "5"]);
    let running = || (0..8).filter(|&number| text(root, &file(number, "state")) == "on").count();
    assert_eq!(running(), 5);
    drop(targets);
    assert_eq!(running(), 0);
}

#[test]
fn a_running_damon_of_another_user_is_left_alone() {
    let root = machine(1);
    fs::write(Tree::new(root.path()).path(&file(0, "state")), "on").expect("written");
    let error = Damon::at(root.path()).expect_err("in use").to_string();
    assert!(error.starts_with("DAMON is not supported here: another user's kdamond0 runs"), "{error}");
    assert_eq!(text(root.path(), &format!("{KDAMONDS}/nr_kdamonds")), "0");
    assert_eq!(text(root.path(), &file(0, "state")), "on");
}

#[test]
fn a_kernel_without_damon_is_told() {
    let root = tempfile::tempdir().expect("a directory");
    let error = Damon::at(root.path()).expect_err("no DAMON").to_string();
    assert!(error.contains("CONFIG_DAMON_SYSFS=y"), "{error}");
}

#[test]
fn a_damon_that_cannot_observe_processes_is_told_and_left_as_it_was() {
    let root = machine(4);
    let root = root.path();
    let operations = file(0, "contexts/0/avail_operations");
    fs::write(Tree::new(root).path(&operations), "paddr\n").expect("written");
    let error = Damon::at(root).expect_err("physical memory only").to_string();
    assert!(error.contains("CONFIG_DAMON_VADDR=y"), "{error}");
    assert_eq!(text(root, &format!("{KDAMONDS}/nr_kdamonds")), "0");
}

#[test]
fn a_kdamond_that_another_user_removed_is_told() {
    let root = machine(4);
    let damon = Damon::at(root.path()).expect("free");
    let mut target = damon.open(Pid(1)).expect("there");
    fs::remove_dir_all(Tree::new(root.path()).path(&format!("{KDAMONDS}/0"))).expect("removed");
    let error = damon.scan(&mut target, &mut Found::default()).expect_err("gone").to_string();
    assert!(error.starts_with("kdamond0 was stopped by another user of DAMON"), "{error}");
    fs::remove_file(root.path().join("proc/1/maps")).expect("removed");
    let ended = damon.scan(&mut target, &mut Found::default());
    assert!(matches!(ended, Err(LinuxError::Ended(1))), "{ended:?}");
}
