//! Idle page tracking with the real kernel's pagemap, maps and kpageflags; only the bitmap, which this kernel may not
//! have, is a file.

use std::fs;
use std::os::unix::fs::{FileExt, symlink};

use isotherm_linux::accessed_bits::{Found, IdlePages, Scanner};

use crate::program::{Program, bytes_within};

const BITMAP: &str = "sys/kernel/mm/page_idle/bitmap";

/// A directory with the real `/proc`, and an empty bitmap for every frame there is.
fn machine() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    symlink("/proc", root.path().join("proc")).unwrap();
    fs::create_dir_all(root.path().join("sys/kernel/mm/page_idle")).unwrap();
    fs::File::create(root.path().join(BITMAP)).unwrap();
    root
}

#[test]
fn the_real_kernel_is_asked_whether_it_can() {
    match IdlePages::new() {
        Ok(_) => assert!(fs::exists(format!("/{BITMAP}")).unwrap()),
        Err(error) => println!("skipped: {error}"),
    }
}

/// Each base page has a mark, each huge page one for all of it.
fn marks(pages: &str) -> Option<u64> {
    let root = machine();
    let scanner = match IdlePages::at(root.path()) {
        Ok(scanner) => scanner,
        Err(error) => {
            println!("skipped: {error}");
            return None;
        }
    };
    let arguments =
        format!("planted --size 32M --pages {pages} --share 100% --layout contiguous --seconds 300");
    let program = Program::start(&arguments);
    let planted = program.planted();
    let mut target = scanner.open(program.pid()).unwrap();
    let mut found = Found::default();
    scanner.scan(&mut target, &mut found).unwrap();
    // New pages wait in their processor's batch for a moment before they are on a list.
    let seen = bytes_within(&found.pages, &planted.range);
    assert!(seen >= (planted.range.end - planted.range.start) * 9 / 10, "{seen}");
    let bitmap = fs::File::open(root.path().join(BITMAP)).unwrap();
    let mut set = 0;
    let mut buffer = vec![0; 1 << 20];
    let mut offset = 0;
    loop {
        let length = bitmap.read_at(&mut buffer, offset).unwrap();
        if length == 0 {
            break;
        }
        set += buffer[..length].iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>();
        offset += length as u64;
    }
    // As the kernel's bitmap would be if nothing had been accessed. (A file does not keep the marks of a word that is
    // written twice, as the kernel's does.)
    fs::write(root.path().join(BITMAP), vec![0xff; offset as usize + (1 << 20)]).unwrap();
    found.clear();
    scanner.scan(&mut target, &mut found).unwrap();
    assert_eq!(bytes_within(&found.pages, &planted.range), 0);
    Some(set)
}

#[test]
fn a_mark_for_each_page_and_one_for_each_huge_page() {
    let (Some(base), Some(huge)) = (marks("base"), marks("huge")) else { return };
    assert!(base >= 8192 * 9 / 10, "{base}");
    println!("marks: {base} for base pages, {huge} for huge ones");
    assert!(huge < base / 2, "{huge} of {base}");
}
