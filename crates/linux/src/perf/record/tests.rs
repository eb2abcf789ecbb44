use proptest::prelude::*;

use super::*;

/// Encodes a record as the kernel does, its body padded to a multiple of 8.
fn encode(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(misc.to_ne_bytes());
    bytes.extend(((body.len().next_multiple_of(8) + HEADER) as u16).to_ne_bytes());
    bytes.extend(body);
    bytes.resize(body.len().next_multiple_of(8) + HEADER, 0);
    bytes
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn content_of(kind: u32, misc: u16, body: &[u8]) -> String {
    let bytes = encode(kind, misc, body);
    let mut seen = Vec::new();
    for_each(&bytes, &[], &mut Vec::new(), |record| seen.push(format!("{:?}", record.content())));
    seen.concat()
}

#[test]
fn every_kind_is_understood() {
    let task = words(&[7, 5, 8, 6]);
    let expected = Task { pid: 7, parent_pid: 5, tid: 8, parent_tid: 6 };
    assert_eq!(content_of(7, 0, &task), format!("{:?}", Content::Change(Change::Fork(expected))));
    assert_eq!(content_of(4, 0, &task), format!("{:?}", Content::Change(Change::Exit(expected))));
    assert_eq!(content_of(2, 0, &words(&[9, 0, 41, 0])), "Lost(41)");
    assert_eq!(content_of(13, 0, &words(&[42, 0])), "Lost(42)");
    assert_eq!(content_of(5, 0, &words(&[0; 6])), "Throttled");
    assert_eq!(content_of(6, 0, &words(&[0; 6])), "Other");
    assert_eq!(content_of(3, 1 << 13, &words(&[3, 4, 0, 0])), "Change(Exec(3, 4))");
    assert_eq!(content_of(3, 0, &words(&[3, 4, 0, 0])), "Other");
    assert_eq!(content_of(1, 0, &words(&[3, 4])), "Other");
    assert_eq!(
        content_of(11, 0, &words(&[64, 0, 32, 0, 1, 0])),
        "Aux { offset: 64, size: 32, truncated: true }"
    );
    assert_eq!(content_of(7, 0, &words(&[3, 4])), "Malformed");
    assert_eq!(content_of(11, 0, &words(&[64, 0, 32, 0])), "Malformed");
}

/// Reads a simulated ring from `tail` to `head`, as [`super::super::sys::Mapping::records`] does.
fn read(memory: &[u8], tail: usize, head: usize) -> (Vec<(u32, Vec<u8>)>, usize) {
    let (start, length) = (tail % memory.len(), head - tail);
    let first = length.min(memory.len() - start);
    let mut seen = Vec::new();
    let left =
        for_each(&memory[start..start + first], &memory[..length - first], &mut Vec::new(), |record| {
            seen.push((record.kind, record.body.to_vec()));
        });
    (seen, left)
}

proptest! {
    /// A reader loses nothing to a writer that never overtakes it, wherever records wrap.
    #[test]
    fn nothing_is_lost_at_any_wrap_position(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..600), 1..200),
        start in 0usize..4096,
        drain_at in 1usize..3000,
    ) {
        let mut memory = vec![0xa5u8; 4096];
        let mut tail = start / 8 * 8;
        let mut head = tail;
        let (mut expected, mut seen) = (Vec::new(), Vec::new());
        for (kind, body) in bodies.iter().enumerate() {
            let record = encode(kind as u32, 0, body);
            if head - tail + record.len() > memory.len() || head - tail > drain_at {
                let (records, left) = read(&memory, tail, head);
                prop_assert_eq!(left, 0);
                seen.extend(records);
                tail = head;
            }
            for &byte in &record {
                let length = memory.len();
                memory[head % length] = byte;
                head += 1;
            }
            expected.push((kind as u32, record[HEADER..].to_vec()));
        }
        seen.extend(read(&memory, tail, head).0);
        prop_assert_eq!(seen, expected);
    }

    /// Damaged memory causes neither a panic nor an endless loop; unreadable bytes are counted.
    #[test]
    fn damaged_memory_is_survived(
        first in prop::collection::vec(any::<u8>(), 0..300),
        second in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut bytes = 0;
        let left = for_each(&first, &second, &mut Vec::new(), |record| {
            let _ = (record.content(), record.identifier());
            bytes += record.body.len() + HEADER;
        });
        prop_assert_eq!(bytes + left, first.len() + second.len());
    }
}
