use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::*;

fn read_text(text: &str) -> Result<Vec<Mapping>, LinuxError> {
    let mut mappings = Vec::new();
    parse(text.as_bytes(), Path::new("maps"), &mut mappings).map(|()| mappings)
}

/// Writes a mapping as the kernel does (fs/proc/task_mmu.c, show_vma_header_prefix).
fn write(mapping: &Mapping, name: &str) -> String {
    let flag = |set: bool, letter: char| if set { letter } else { '-' };
    format!(
        "{:08x}-{:08x} {}{}{}{} {:08x} {:02x}:{:02x} {} {name}\n",
        mapping.start,
        mapping.end,
        flag(mapping.readable, 'r'),
        flag(mapping.writable, 'w'),
        flag(mapping.executable, 'x'),
        if mapping.shared { 's' } else { 'p' },
        mapping.offset,
        mapping.device.0,
        mapping.device.1,
        mapping.inode
    )
}

#[test]
fn kinds_follow_from_names() {
    let kind_of = |name: &str| kind(name.as_bytes());
    for (name, expected) in [
        ("", MappingKind::Anonymous),
        ("[anon:glibc: malloc arena]", MappingKind::Anonymous),
        ("[heap]", MappingKind::Heap),
        ("[stack]", MappingKind::Stack),
        ("[vdso]", MappingKind::Vdso),
        ("[vvar_vclock]", MappingKind::Vdso),
        ("/memfd:x (deleted)", MappingKind::SharedMemory),
        ("/dev/zero (deleted)", MappingKind::SharedMemory),
        ("/SYSV00000000 (deleted)", MappingKind::SharedMemory),
        ("/anon_hugepage (deleted)", MappingKind::Hugetlb),
        ("/dev/dax0.0", MappingKind::Other),
        ("anon_inode:[perf_event]", MappingKind::Other),
        ("/usr/lib/a b.so (deleted)", MappingKind::File("/usr/lib/a b.so (deleted)".into())),
    ] {
        assert_eq!(kind_of(name), expected, "{name}");
    }
}

#[test]
fn malformed_lines_are_named() {
    let good = "7f00-8f00 rw-p 00000000 fe:00 12 /x";
    assert_eq!(read_text(good).expect("well-formed").len(), 1);
    for bad in [
        "8f00-7f00 rw-p 00000000 fe:00 12 /x",
        "7f00-7f00 rw-p 00000000 fe:00 12 /x",
        "7f00 rw-p 00000000 fe:00 12 /x",
        "7f00-8f00 rwxq 00000000 fe:00 12 /x",
        "7f00-8f00 wr-p 00000000 fe:00 12 /x",
        "7f00-8f00 rw-p 0000000g fe:00 12 /x",
        "7f00-8f00 rw-p 00000000 fe00 12 /x",
        "7f00-8f00 rw-p 00000000 fe:00",
        "+7f00-8f00 rw-p 00000000 fe:00 12 /x",
        "7f00-1ffffffffffffffff rw-p 00000000 fe:00 12 /x",
    ] {
        let error = read_text(&format!("{good}\n{bad}\n")).expect_err(bad).to_string();
        assert!(error.starts_with("maps: expected 'start-end") && error.contains(&bad[..9]), "{error}");
    }
}

#[test]
fn own_memory_is_found_where_it_is() {
    let (on_heap, on_stack) = (Box::new([1u8; 64]), 1u8);
    let mut mappings = Vec::new();
    MapsReader::default().read(Pid(std::process::id()), &mut mappings).expect("own maps");
    let holder =
        |address: u64| mappings.iter().find(|mapping| (mapping.start..mapping.end).contains(&address));
    let code = holder(read_text as *const () as u64).expect("code");
    assert!(code.executable && matches!(&code.kind, MappingKind::File(path) if path.exists()), "{code:?}");
    for address in [on_heap.as_ptr() as u64, &raw const on_stack as u64] {
        assert!(holder(address).is_some_and(|mapping| mapping.writable && mapping.is_movable()));
    }
    assert!(mappings.iter().any(|mapping| mapping.kind == MappingKind::Vdso));
}

#[test]
fn a_process_that_vanishes_or_is_a_zombie_has_ended() {
    let mut child = Command::new("sleep").arg("100").stdout(Stdio::null()).spawn().expect("sleep");
    let (pid, mut reader, mut mappings) = (Pid(child.id()), MapsReader::default(), Vec::new());
    reader.read(pid, &mut mappings).expect("its maps");
    child.kill().expect("killed");
    // Not reaped: it soon becomes a zombie.
    let ended = loop {
        match reader.read(pid, &mut mappings) {
            Ok(()) => std::thread::yield_now(),
            Err(error) => break error,
        }
    };
    assert!(matches!(ended, LinuxError::Ended(number) if number == pid.0), "{ended}");
    child.wait().expect("waited for");
    assert!(matches!(reader.read(pid, &mut mappings), Err(LinuxError::Ended(_))));
    assert!(mappings.is_empty());
}

prop_compose! {
    fn mapping()(
        start in 0u64..u64::MAX - 1, length in 1u64..1 << 40, flags in any::<[bool; 4]>(), offset in any::<u64>(),
        device in (0u32..4096, 0u32..1 << 20), inode in any::<u64>(), path in "/[a-z ()\\\\é]{1,20}[a-z]",
    ) -> (Mapping, String) {
        let [readable, writable, executable, shared] = flags;
        let kind = MappingKind::File(path.clone().into());
        let end = start.saturating_add(length);
        (Mapping { start, end, readable, writable, executable, shared, offset, device, inode, kind }, path)
    }
}

proptest! {
    #[test]
    fn what_the_kernel_writes_is_read_back(list in prop::collection::vec(mapping(), 0..8)) {
        let text: String = list.iter().map(|(mapping, path)| write(mapping, path)).collect();
        let expected: Vec<Mapping> = list.into_iter().map(|(mapping, _)| mapping).collect();
        prop_assert_eq!(read_text(&text).expect("well-formed"), expected);
    }

    #[test]
    fn no_text_panics(text in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(&text, Path::new("maps"), &mut Vec::new());
    }

    #[test]
    fn a_line_that_lost_its_start_or_end_is_refused((mapping, path) in mapping(), keep in 0usize..20) {
        let text = write(&mapping, &path);
        prop_assert!(read_text(&text[..keep.min(text.len())]).is_err() || keep == 0);
    }
}
