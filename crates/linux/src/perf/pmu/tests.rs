use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

/// Writes files below a new root.
pub(crate) fn tree(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        write(root.path(), name, text);
    }
    root
}

pub(crate) fn write(root: &Path, name: &str, text: &str) {
    let path = root.join("sys/bus/event_source/devices").join(name);
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("created");
    std::fs::write(path, format!("{text}\n")).expect("written");
}

/// Formats of an Intel core PMU: `hsw_format_attr` and `skl_format_attr` in `arch/x86/events/intel/core.c`.
pub(crate) const CORE: &[(&str, &str)] = &[
    ("cpu/type", "4"),
    ("cpu/format/event", "config:0-7"),
    ("cpu/format/umask", "config:8-15"),
    ("cpu/format/edge", "config:18"),
    ("cpu/format/cmask", "config:24-31"),
    ("cpu/format/inv", "config:23"),
    ("cpu/format/ldlat", "config1:0-15"),
    ("cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3"),
    ("cpu/events/mem-stores", "event=0xd0,umask=0x82"),
];

pub(crate) fn core(root: &TempDir) -> Pmu {
    Pmu::read(Tree::new(root.path()), "cpu").expect("well-formed").expect("there")
}

#[test]
fn events_are_encoded_by_the_formats() {
    let root = tree(CORE);
    let cpu = core(&root);
    assert_eq!((cpu.kind, cpu.cpus.len()), (4, 0));
    let local = cpu.encode(&[("event", 0xd3), ("umask", 1)]).expect("fits");
    assert_eq!(local, Encoding { kind: 4, config: [0x1d3, 0, 0, 0] });
    let stalls = cpu.encode(&[("event", 0xa3), ("umask", 6), ("cmask", 6)]).expect("fits");
    assert_eq!(stalls.config[0], 0x0600_06a3);
    let latency = cpu.event(Tree::new(root.path()), "mem-loads").expect("well-formed").expect("there");
    assert_eq!(latency.config, [0x1cd, 3, 0, 0]);
    assert_eq!(cpu.event(Tree::new(root.path()), "mem-loads-aux").expect("well-formed"), None);
}

#[test]
fn what_the_formats_lack_is_not_encoded() {
    let cpu = core(&tree(CORE));
    assert_eq!(cpu.encode(&[("event", 0x1d3)]), None);
    assert_eq!(cpu.encode(&[("frontend", 1)]), None);
    assert!(cpu.has("ldlat") && !cpu.has("l3missonly"));
}

#[test]
fn all_instances_of_an_uncore_pmu_are_found() {
    let mut files = CORE.to_vec();
    for (name, text) in
        [("uncore_cha_0/type", "30"), ("uncore_cha_10/type", "40"), ("uncore_cha_2/type", "32")]
    {
        files.push((name, text));
    }
    files.extend([("uncore_cha_0/cpumask", "0,28"), ("uncore_chaos/type", "9"), ("uncore_imc_0/type", "8")]);
    let root = tree(&files);
    let pmus = Pmu::all(Tree::new(root.path()), "uncore_cha").expect("well-formed");
    assert_eq!(pmus.iter().map(|pmu| pmu.kind).collect::<Vec<_>>(), [30, 32, 40]);
    assert_eq!(pmus[0].cpus, [0, 28]);
    assert!(Pmu::all(Tree::new(root.path()), "uncore_m3upi").expect("well-formed").is_empty());
}

#[test]
fn nonsense_names_the_file_and_what_was_expected() {
    for (file, text, expected) in [
        ("cpu/type", "four", "a PMU number"),
        ("cpu/format/event", "config9:0-7", "bits of a configuration word"),
        ("cpu/format/event", "config:7-0", "bits of a configuration word"),
        ("cpu/format/event", "config:0-64", "bits of a configuration word"),
    ] {
        let root = tree(CORE);
        write(root.path(), file, text);
        let error = Pmu::read(Tree::new(root.path()), "cpu").expect_err(text).to_string();
        assert!(error.contains(file) && error.contains(expected), "{error}");
    }
    let root = tree(CORE);
    write(root.path(), "cpu/events/mem-loads", "event=0xcd,ldlat=zzz");
    let error = core(&root).event(Tree::new(root.path()), "mem-loads").expect_err("no number").to_string();
    assert!(error.contains("mem-loads") && error.contains("terms"), "{error}");
}

static CHA: LazyLock<Pmu> = LazyLock::new(|| {
    let root = tree(&[("cha/type", "1"), ("cha/format/umask", "config:8-15,32-55")]);
    Pmu::read(Tree::new(root.path()), "cha").expect("well-formed").expect("there")
});

proptest! {
    /// A term's value fills exactly its bits, in order.
    #[test]
    fn values_are_spread_over_their_bits(value in 0u64..1 << 32) {
        let cha = &*CHA;
        let config = cha.encode(&[("umask", value)]).expect("32 bits").config[0];
        prop_assert_eq!(config >> 8 & 0xff | (config >> 32 & 0xff_ffff) << 8, value);
        prop_assert_eq!(config & !(0xff << 8 | 0xff_ffff << 32), 0);
        prop_assert_eq!(cha.encode(&[("umask", value | 1 << 32)]), None);
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in "\\PC{0,40}|(config)?[0-9:,=x-]{0,20}") {
        let _ = (parse_format(&text), parse_terms(&text));
    }
}
