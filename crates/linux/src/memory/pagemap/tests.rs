use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::*;
use crate::sys::testing::Memory;

fn own() -> Pagemap {
    Pagemap::open(&ProcRoot::default(), Pid(std::process::id())).expect("own page table")
}

/// Returns every page of the range, by runs of at most `batch` a call.
fn present(pagemap: &mut Pagemap, range: Range<u64>, batch: usize) -> Vec<u64> {
    let (mut pages, mut next) = (Vec::new(), range.start);
    let mut runs = vec![PageRun::default(); batch];
    while next < range.end {
        let scanned = pagemap.scan(next..range.end, &mut runs).expect("scanned");
        assert!(scanned.next > next && scanned.runs <= batch);
        next = scanned.next;
        for run in &runs[..scanned.runs] {
            assert!(run.pages > 0);
            pages.extend((0..run.pages).map(|page| run.start + page * BASE));
        }
    }
    pages
}

#[test]
fn both_methods_find_the_touched_pages_at_any_batch() {
    let memory = Memory::new(8 << 20, false);
    let touched: Vec<u64> = (0..2048).filter(|page| page % 7 < 3 || page / 512 == 2).collect();
    touched.iter().for_each(|&page| memory.touch(page));
    let expected: Vec<u64> = touched.iter().map(|&page| memory.page(page)).collect();
    for batch in [1, 5, 4096] {
        for method in [own().method(), Method::Read] {
            let found = present(&mut own().with_method(method), memory.range(), batch);
            assert!(found == expected, "{method:?} in batches of {batch} found {} pages", found.len());
        }
    }
    memory.drop_pages(0..1024);
    let kept: Vec<u64> = expected.into_iter().filter(|&address| address >= memory.page(1024)).collect();
    assert!(present(&mut own(), memory.range(), 64) == kept, "dropped pages are absent, and no others");
}

#[test]
fn the_page_of_zeros_holds_no_memory() {
    let memory = Memory::new(2 << 20, false);
    assert_eq!(memory.read(3), 0);
    memory.touch(5);
    let mut pagemap = own();
    if pagemap.method() == Method::Scan {
        assert_eq!(present(&mut pagemap, memory.range(), 8), [memory.page(5)]);
    } else {
        println!(
            "skipped: this kernel has no PAGEMAP_SCAN, and reads do not tell the page of zeros from others"
        );
    }
}

#[test]
fn huge_pages_are_told_from_others() {
    let memory = Memory::new(4 << 20, true);
    memory.touch(0);
    let mut pagemap = own();
    let mut runs = [PageRun::default(); 4];
    let scanned = pagemap.scan(memory.range(), &mut runs).expect("scanned");
    if pagemap.method() == Method::Read || runs[0].pages != 512 {
        println!("skipped: no PAGEMAP_SCAN, or the kernel gave no huge page");
        return;
    }
    assert_eq!(
        runs[..scanned.runs],
        [PageRun { start: memory.page(0), pages: 512, huge: Some(true), swapped: false }]
    );
    let small = Memory::new(2 << 20, false);
    small.touch(7);
    pagemap.scan(small.range(), &mut runs).expect("scanned");
    assert_eq!(runs[0].huge, Some(false));
}

#[test]
fn frames_are_told_to_the_privileged_only() {
    let memory = Memory::new(2 << 20, false);
    memory.touch(1);
    memory.touch(2);
    let mut frames = [9; 4];
    match own().frames(memory.page(0), &mut frames) {
        Ok(()) => {
            assert!(frames[0] == ABSENT && frames[3] == ABSENT, "{frames:?}");
            assert!(frames[1] != ABSENT && frames[2] != ABSENT && frames[1] != frames[2], "{frames:?}");
        }
        Err(error) => assert!(error.to_string().contains("CAP_SYS_ADMIN"), "{error}"),
    }
}

#[test]
fn an_address_space_that_is_gone_has_ended_by_either_method() {
    let mut child = Command::new("sleep").arg("100").stdout(Stdio::null()).spawn().expect("sleep");
    let pid = Pid(child.id());
    let open = || Pagemap::open(&ProcRoot::default(), pid);
    let mut pagemaps = [open().expect("opened"), open().expect("opened").with_method(Method::Read)];
    child.kill().expect("killed");
    child.wait().expect("waited for");
    let (range, mut runs) = (0x5000_0000_0000..0x5000_0100_0000, [PageRun::default(); 4]);
    for pagemap in &mut pagemaps {
        let ended = pagemap.scan(range.clone(), &mut runs);
        assert!(matches!(ended, Err(LinuxError::Ended(number)) if number == pid.0), "{ended:?}");
        assert!(matches!(pagemap.frames(range.start, &mut [0; 3]), Err(LinuxError::Ended(_))));
    }
    assert!(matches!(open(), Err(LinuxError::Ended(_))));
}

proptest! {
    #[test]
    fn runs_cover_exactly_what_is_present_or_swapped(present in prop::collection::vec(0usize..3, 0..200), room in 1usize..20) {
        let entries: Vec<u64> = present.iter().map(|&kind| [5, entry::PRESENT | 77, entry::SWAPPED | 77][kind]).collect();
        let mut runs = vec![PageRun::default(); room];
        let (found, covered) = runs_of(&entries, 0x1000, &mut runs);
        prop_assert!(covered == entries.len() || found == room);
        let mut seen = vec![0; covered];
        for run in &runs[..found] {
            let first = ((run.start - 0x1000) / BASE) as usize;
            let kind = if run.swapped { 2 } else { 1 };
            // Runs are maximal.
            prop_assert!(first == 0 || present[first - 1] != kind);
            seen[first..first + run.pages as usize].fill(kind);
        }
        prop_assert_eq!(&seen[..], &present[..covered]);
    }
}
