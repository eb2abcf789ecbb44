use super::*;
use proptest::prelude::*;

/// Builds type information.
#[derive(Default)]
struct Builder {
    types: Vec<u8>,
    strings: Vec<u8>,
}

impl Builder {
    fn name(&mut self, name: &str) -> u32 {
        if self.strings.is_empty() {
            self.strings.push(0);
        }
        if name.is_empty() {
            return 0;
        }
        let at = self.strings.len() as u32;
        self.strings.extend_from_slice(name.as_bytes());
        self.strings.push(0);
        at
    }

    fn words(&mut self, words: &[u32]) {
        words.iter().for_each(|word| self.types.extend_from_slice(&word.to_le_bytes()));
    }

    fn plain(&mut self, kind: u32, name: &str, other: u32, rest: &[u32]) {
        let name = self.name(name);
        self.words(&[name, kind << 24, other]);
        self.words(rest);
    }

    /// Adds a structure or union of members: name, type, offset in bits.
    fn structure(&mut self, kind: u32, flag: bool, name: &str, members: &[(&str, u32, u32)]) {
        let name = self.name(name);
        self.words(&[name, u32::from(flag) << 31 | kind << 24 | members.len() as u32, 64]);
        for &(member, number, offset) in members {
            let member = self.name(member);
            self.words(&[member, number, offset]);
        }
    }

    fn finish(&self) -> Vec<u8> {
        let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
        let header = [u32::from(MAGIC) | 1 << 16, 24, 0, types, types, strings];
        let mut bytes: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend_from_slice(&self.types);
        bytes.extend_from_slice(&self.strings);
        bytes
    }
}

/// Builds a small kernel: every kind of type once, and two structures of interest.
pub(in crate::virtual_pmu) fn kernel() -> Vec<u8> {
    let mut builder = Builder::default();
    builder.plain(1, "int", 4, &[32]);
    builder.plain(2, "", 1, &[]);
    builder.plain(3, "", 0, &[1, 1, 4]);
    builder.plain(6, "empty_enum", 4, &[]);
    builder.plain(14, "variable", 1, &[1]);
    builder.plain(17, "tag", 1, &[0]);
    builder.plain(19, "empty_enum64", 8, &[]);
    // 8: the inside of an unnamed union.
    builder.structure(kind::STRUCT, false, "", &[("preempt", 1, 64), ("current_task", 2, 0)]);
    builder.plain(kind::CONST, "", 8, &[]);
    builder.plain(kind::TYPEDEF, "inside_t", 9, &[]);
    builder.structure(kind::UNION, false, "", &[("pad", 3, 0), ("", 10, 32)]);
    builder.structure(kind::STRUCT, false, "pcpu_hot", &[("", 11, 64)]);
    builder.structure(
        kind::STRUCT,
        true,
        "task_struct",
        &[
            ("state", 1, 0),
            ("flag", 1, 1 << 24 | 33),
            ("pid", 1, 64),
            ("tgid", 1, 96),
            ("real_parent", 2, 192),
        ],
    );
    // A structure that contains itself.
    builder.structure(kind::STRUCT, false, "endless", &[("", 14, 0)]);
    builder.finish()
}

#[test]
fn members_are_found_through_unnamed_structures_and_qualifiers() {
    let bytes = kernel();
    let btf = Btf::parse(&bytes).expect("valid");
    assert_eq!(btf.member("pcpu_hot", "current_task"), Some(8 + 4));
    assert_eq!(btf.member("pcpu_hot", "preempt"), Some(8 + 4 + 8));
    assert_eq!(btf.member("task_struct", "tgid"), Some(12));
    assert_eq!(btf.member("task_struct", "pid"), Some(8));
}

#[test]
fn what_is_not_there_is_not_found() {
    let bytes = kernel();
    let btf = Btf::parse(&bytes).expect("valid");
    for (structure, member) in
        [("task_struct", "flag"), ("task_struct", "tgi"), ("task", "tgid"), ("endless", "x"), ("", "x")]
    {
        assert_eq!(btf.member(structure, member), None, "{structure}.{member}");
    }
}

#[test]
fn what_is_no_type_information_is_refused() {
    let bytes = kernel();
    assert_eq!(Btf::parse(&[]).map(|_| ()), Err(BtfError::Truncated));
    assert_eq!(Btf::parse(b"\x7fELF\x02\x01\x01\0\0\0").map(|_| ()), Err(BtfError::Magic));
    assert_eq!(Btf::parse(&bytes[..bytes.len() - 1]).map(|_| ()), Err(BtfError::Truncated));
    let mut unknown = Builder::default();
    unknown.plain(25, "later", 0, &[]);
    assert_eq!(Btf::parse(&unknown.finish()).map(|_| ()), Err(BtfError::Kind(25)));
    let mut cut = Builder::default();
    cut.plain(kind::STRUCT, "short", 0, &[]);
    cut.types[4] = 1;
    assert_eq!(Btf::parse(&cut.finish()).map(|_| ()), Err(BtfError::Truncated));
}

#[test]
fn this_kernel_says_where_a_task_keeps_its_ids() {
    let path = "/sys/kernel/btf/vmlinux";
    let Ok(bytes) = std::fs::read(path) else {
        println!("skipped: {path} cannot be read");
        return;
    };
    let btf = Btf::parse(&bytes).expect("the kernel's own");
    let (pid, tgid) = (btf.member("task_struct", "pid"), btf.member("task_struct", "tgid"));
    // include/linux/sched.h: pid_t pid; pid_t tgid;
    assert_eq!(tgid, pid.map(|pid| pid + 4));
    assert!(btf.member("task_struct", "real_parent").is_some_and(|parent| Some(parent) > tgid));
    // The member of an unnamed structure in an unnamed union.
    assert!(btf.member("page", "mapping").is_some_and(|mapping| mapping > 0));
}

#[test]
fn unnamed_structures_that_hold_each_other_end() {
    let mut builder = Builder::default();
    let twice = |number| [("", number, 0), ("", number, 32)];
    builder.structure(kind::STRUCT, false, "task_struct", &twice(2));
    builder.structure(kind::STRUCT, false, "", &twice(1));
    let bytes = builder.finish();
    assert_eq!(Btf::parse(&bytes).expect("whole").member("task_struct", "pid"), None);
}

proptest! {
    #[test]
    fn damaged_type_information_never_panics(at in 0usize..2000, value: u8, length in 0usize..2000) {
        let mut bytes = kernel();
        let place = at % bytes.len();
        bytes[place] = value;
        bytes.truncate(length.max(1));
        if let Ok(btf) = Btf::parse(&bytes) {
            let _ = (btf.member("task_struct", "tgid"), btf.member("pcpu_hot", "current_task"), btf.member("endless", "x"));
        }
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Btf::parse(&bytes).map(|btf| btf.member("a", "b"));
    }
}
