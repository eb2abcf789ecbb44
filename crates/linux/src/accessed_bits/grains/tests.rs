use std::fs;

use proptest::prelude::*;

use super::*;

/// A directory as `/sys/kernel/mm/transparent_hugepage`.
fn settings(top: &str, sizes: &[(u64, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: String, selected: &str| {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let choice = "always inherit madvise never".replace(selected, &format!("[{selected}]"));
        fs::write(path, choice + "\n").unwrap();
    };
    write("enabled".to_owned(), top);
    for (kilobytes, selected) in sizes {
        write(format!("hugepages-{kilobytes}kB/enabled"), selected);
    }
    directory
}

fn is_void(top: &str, sizes: &[(u64, &str)], grain: u64) -> bool {
    huge_advice_is_void(settings(top, sizes).path(), Bytes(grain << 10))
}

#[test]
fn advice_for_huge_pages_is_void_where_none_fits() {
    let usual = [(64, "never"), (2048, "inherit")];
    assert!(is_void("never", &usual, 2048));
    assert!(is_void("madvise", &usual, 1024));
    assert!(!is_void("madvise", &usual, 2048));
    assert!(!is_void("always", &usual, 64));
    let small = [(64, "madvise"), (2048, "never")];
    assert!(is_void("never", &small, 32));
    assert!(!is_void("never", &small, 64));
    assert!(!is_void("never", &[(64, "always"), (2048, "never")], 16));
}

#[test]
fn kernels_with_one_size_and_with_none() {
    assert!(is_void("never", &[], 4096) && is_void("madvise", &[], 1024));
    assert!(!is_void("madvise", &[], 2048) && !is_void("always", &[], 4));
    assert!(huge_advice_is_void(Path::new("/nowhere"), Bytes(2 << 20)));
}

proptest! {
    /// Grains cover each part exactly, in order, and begin at multiples of the grain but for the first.
    #[test]
    fn grains_cover_their_parts(
        start in 0u64..1000,
        pages in 1u64..500,
        shift in 12u32..18,
    ) {
        let range = start * PAGE..(start + pages) * PAGE;
        let part = Part { range: range.clone(), huge: false };
        let grains = Grains { mark: Mark::CoreDump, grain: 1 << shift, parts: vec![part] };
        let all: Vec<_> = grains.ranges().collect();
        prop_assert_eq!((all[0].start, all[all.len() - 1].end), (range.start, range.end));
        prop_assert!(all.windows(2).all(|pair| pair[0].end == pair[1].start && pair[1].start % (1 << shift) == 0));
        prop_assert!(all.iter().all(|grain| !grain.is_empty() && grain.end - grain.start <= 1 << shift));
    }
}

#[test]
fn what_is_split_and_what_is_passed_over() {
    let plain = Mapping {
        range: 0x10000..0x50000,
        present: 64,
        referenced: 0,
        anonymous: true,
        huge_eligible: false,
        flags: smaps::Flags::default(),
    };
    let kept = |mapping: &Mapping, grain| {
        part(mapping, &(0x20000..u64::MAX), Mark::CoreDump, Bytes(grain)).map(|part| part.range)
    };
    assert_eq!(kept(&plain, 4096), Some(0x20000..0x50000));
    assert_eq!(kept(&Mapping { anonymous: false, ..plain.clone() }, 4096), None);
    let eligible = Mapping { huge_eligible: true, ..plain.clone() };
    assert_eq!(kept(&eligible, HUGE / 2), None);
    assert_eq!(kept(&eligible, HUGE), Some(0x20000..0x50000));
    for flags in [
        smaps::Flags { special: true, ..smaps::Flags::default() },
        smaps::Flags { no_dump: true, ..smaps::Flags::default() },
    ] {
        assert_eq!(kept(&Mapping { flags, ..plain.clone() }, 4096), None);
    }
    assert_eq!(kept(&Mapping { range: 0x10000..0x20000, ..plain }, 4096), None);
}
