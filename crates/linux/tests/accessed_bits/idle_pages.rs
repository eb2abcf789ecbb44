//! Idle page tracking with the real kernel's pagemap and kpageflags, and a file as the bitmap.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::symlink;
use std::path::Path;

use isotherm_linux::accessed_bits::{Found, IdlePages, Scanner};
use isotherm_linux::process::Pid;

use crate::program::{Program, bytes_within};

const BITMAP: &str = "sys/kernel/mm/page_idle/bitmap";
const SIZE: u64 = 32 << 20;

#[test]
fn the_real_kernel_tracks_idle_pages_or_says_what_it_needs() {
    match IdlePages::new() {
        Ok(_) => assert!(fs::exists(format!("/{BITMAP}")).unwrap()),
        Err(error) => println!("skipped: {error}"),
    }
}

/// Makes a directory with the process's real files, but with one range in `maps`, and an empty bitmap.
fn machine(process: Pid, range: &Range<u64>) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let own = root.path().join(format!("proc/{}", process.0));
    fs::create_dir_all(&own).unwrap();
    fs::create_dir_all(root.path().join("sys/kernel/mm/page_idle")).unwrap();
    let real = Path::new("/proc").join(process.0.to_string());
    for name in ["pagemap", "clear_refs"] {
        symlink(real.join(name), own.join(name)).unwrap();
    }
    symlink("/proc/kpageflags", root.path().join("proc/kpageflags")).unwrap();
    fs::write(own.join("maps"), format!("{:x}-{:x} rw-p 00000000 00:00 0 \n", range.start, range.end))
        .unwrap();
    fs::write(root.path().join(BITMAP), "").unwrap();
    root
}

/// Starts a program whose range is scanned in one piece, as a file loses marks of a word written twice.
fn program(pages: &str) -> (Program, Range<u64>) {
    loop {
        let arguments =
            format!("planted --size 32M --pages {pages} --share 100% --layout contiguous --seconds 300");
        let program = Program::start(&arguments);
        let range = program.planted().range;
        if range.start >> 28 == (range.end - 1) >> 28 {
            return (program, range);
        }
    }
}

/// Counts the marks of the range's pages; `None` where the user may not.
fn marks(pages: &str) -> Option<u64> {
    let (program, range) = program(pages);
    let root = machine(program.pid(), &range);
    let bitmap = root.path().join(BITMAP);
    let scanner = IdlePages::at(root.path()).map_err(|error| println!("skipped: {error}")).ok()?;
    let mut target = scanner.open(program.pid()).unwrap();
    let mut found = Found::default();
    scanner.scan(&mut target, &mut found).unwrap();
    // New pages wait in their processor's batch for a moment before they join a list.
    assert!(bytes_within(&found.pages, &range) >= SIZE * 9 / 10, "never marked: accessed");
    assert_eq!(found.referenced + found.undecided, SIZE / 4096);
    let mut marks = fs::read(&bitmap).unwrap();
    let set = marks.iter().map(|byte| u64::from(byte.count_ones())).sum();

    // Makes the bitmap of a kernel that saw no access, also to pages that could not be marked before.
    marks.fill(0xff);
    marks.resize(marks.len() + (1 << 20), 0xff);
    fs::write(&bitmap, marks).unwrap();
    found.clear();
    scanner.scan(&mut target, &mut found).unwrap();
    assert_eq!(bytes_within(&found.pages, &range), 0);
    Some(set)
}

/// Each base page has a mark, and each huge page one mark for all of it.
#[test]
fn a_mark_for_each_page_and_one_for_each_huge_page() {
    let (Some(base), Some(huge)) = (marks("base"), marks("huge")) else { return };
    assert!((SIZE / 4096 * 9 / 10..=SIZE / 4096).contains(&base), "{base}");
    let available = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    if available.is_ok_and(|text| text.contains("[never]")) {
        println!("skipped: huge pages are off");
    } else {
        assert!(huge < base / 2, "{huge} of {base}");
    }
}
