use proptest::prelude::*;

use super::*;

/// Builds a record packet by packet, as in the manual's figures.
fn encode(op: &Op, tag: u8, padding: usize) -> Vec<u8> {
    let mut out = vec![0u8; padding];
    let mut put = |header: &[u8], payload: &[u8]| {
        out.extend_from_slice(header);
        out.extend_from_slice(payload);
    };
    // Address packet, index 0: the program counter, which is ignored.
    put(&[0xb0], &0x40_0000u64.to_le_bytes());
    if let Some(context) = op.context {
        put(&[0x64], &context.to_le_bytes());
    }
    match op.operation {
        Some(Operation::Load) => put(&[0x49], &[0]),
        Some(Operation::Store) => put(&[0x49], &[1]),
        None => put(&[0x4a], &[1]),
    }
    put(&[0x98], &(op.latency as u16).to_le_bytes());
    // Counter packet, index 1: issue latency, which is ignored.
    put(&[0x99], &7u16.to_le_bytes());
    if let Some(address) = op.address {
        put(&[0xb2], &(address | u64::from(tag) << 56).to_le_bytes());
    }
    if let Some(physical) = op.physical {
        put(&[0xb3], &(physical | 1 << 63).to_le_bytes());
    }
    // Events in 4 bytes, the data source in 1.
    put(&[0x62], &(op.events as u32).to_le_bytes());
    if let Some(source) = op.source {
        put(&[0x43], &[source as u8]);
    }
    if op.timestamp == 0 {
        put(&[0x01], &[]);
    } else {
        put(&[0x71], &op.timestamp.to_le_bytes());
    }
    out
}

fn operations() -> impl Strategy<Value = Op> {
    let operation = prop_oneof![Just(None), Just(Some(Operation::Load)), Just(Some(Operation::Store))];
    let address = || prop::option::of(0u64..1 << 56);
    let rest = (any::<u16>(), any::<u32>(), prop::option::of(0u16..16), any::<u64>());
    (operation, address(), address(), prop::option::of(any::<u32>()), rest).prop_map(
        |(operation, address, physical, context, (latency, events, source, timestamp))| Op {
            operation,
            address,
            physical,
            context,
            latency: u32::from(latency),
            events: u64::from(events),
            source,
            timestamp,
        },
    )
}

proptest! {
    #[test]
    fn records_survive_encoding(
        ops in prop::collection::vec((operations(), any::<u8>(), 0usize..5), 0..20),
    ) {
        let buffer: Vec<u8> = ops.iter().flat_map(|(op, tag, padding)| encode(op, *tag, *padding)).collect();
        let mut records = Records::new(&buffer);
        let seen: Vec<Op> = records.by_ref().collect();
        prop_assert_eq!(seen, ops.iter().map(|(op, ..)| *op).collect::<Vec<_>>());
        prop_assert_eq!(records.damaged, 0);
    }

    #[test]
    fn no_bytes_make_it_panic_or_loop(buffer in prop::collection::vec(any::<u8>(), 0..500)) {
        prop_assert!(Records::new(&buffer).count() <= buffer.len());
    }
}

/// Bytes that processors wrote, as `perf report --dump-raw-trace` shows them.
mod recorded {
    /// A load of the kernel, with its physical address: the message of Linux' commit ffd3d18c20b8, "perf
    /// tools: Add ARM Statistical Profiling Extensions (SPE) support", 2018.
    pub(super) const PHYSICAL: &str = "49 00 b2 c0 3b 29 0f 00 00 ff ff b3 c0 eb 24 fb 00 00 00 80 9a 00 00 42 16 \
        b0 00 c4 15 08 00 00 ff ff 98 00 00 71 36 6c 21 2c 09 00 00 00";
    /// A load and an operation without memory, in a guest of KVM: Haibo Xu, "[PATCH 0/7] target/arm: Add vSPE
    /// support to KVM guest", qemu-devel, 7 August 2020.
    pub(super) const GUEST: &str = "b0 f4 d3 29 10 00 80 ff a0 99 0b 00 98 0d 00 52 16 00 49 00 \
        b2 d0 40 d8 70 00 00 ff 00 9a 01 00 00 00 00 71 a5 1f b3 20 14 00 00 00 \
        b0 7c f9 29 10 00 80 ff a0 99 02 00 98 03 00 52 02 00 48 00 00 00 00 71 ef 1f b3 20 14 00 00 00";
    /// A load that missed the last-level cache, on an Ampere Altra (Neoverse N1), and the begin of the next
    /// record: github.com/AmpereComputing/ampere-lts-kernel---DEPRECATED, issue 123, 2021.
    pub(super) const ALTRA: &str = "49 00 52 1e 03 99 51 01 98 f5 01 b2 50 9e d7 f1 3e 40 ff 00 9a 01 00 \
        b3 50 9e d7 71 3f 40 00 80 43 0c 00 00 71 b3 9a e9 bd 3e 07 00 00 \
        b0 88 b6 cb 8f 22 d4 ff c0 00 00 00 00 00 00 00 00 00 00";
    /// A load and a branch with their contexts: src/quipper/arm_spe_decoder_test.cc of
    /// github.com/google/perf_data_converter.
    pub(super) const CONTEXTS: &str = "b0 d0 c2 a1 ed 66 ba ff c0 00 00 00 00 00 65 80 5f 00 00 49 00 52 16 00 \
        99 04 00 98 0c 00 b2 28 6b 09 03 37 0e ff 00 9a 01 00 00 00 00 00 00 00 00 00 00 43 00 00 00 \
        71 2e 65 2f 6a 0a 00 00 00 \
        b0 e0 b0 ef ed 66 ba ff c0 00 00 00 00 00 65 0e 00 00 00 4a 01 52 42 00 99 10 00 98 11 00 \
        b1 e4 b0 ef ed 66 ba ff c0 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 71 8d 65 2f 6a 0a 00 00 00";
    /// The end of a record and a user's load without its own end: the test of `get_packets` in Arm's
    /// spe_parser (gitlab.arm.com/telemetry-solution), 2023.
    pub(super) const USER: &str = "71 af f9 04 81 00 0c 00 00 b0 00 b6 a9 e4 aa aa 00 80 49 00 52 16 00 99 04 00 \
        98 08 00 b2 43 da 5d e6 aa aa 00 00 9a 01 00 b3 43 5a 95 2c 03 08 00 80 43 00";
}

/// Reads recorded bytes; returns the records, and how many bytes no packet begins with.
fn read(text: &str) -> (Vec<Op>, usize) {
    let bytes: Vec<u8> =
        text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("hexadecimal")).collect();
    let mut records = Records::new(&bytes);
    let ops = records.by_ref().collect();
    (ops, records.damaged)
}

/// Perf printed the same values beside the bytes.
#[test]
fn recorded_bytes_are_read_as_perf_reads_them() {
    let load = Op { operation: Some(Operation::Load), events: 0x16, ..Op::default() };
    let physical = Op {
        address: Some(0xff_0000_0f29_3bc0),
        physical: Some(0xfb24_ebc0),
        timestamp: 39_395_093_558,
        ..load
    };
    assert_eq!(read(recorded::PHYSICAL), (vec![physical], 0));
    let guest = [
        Op { address: Some(0xff_0000_70d8_40d0), latency: 13, timestamp: 86_447_955_877, ..load },
        Op { operation: None, events: 2, latency: 3, timestamp: 86_447_955_951, ..Op::default() },
    ];
    assert_eq!(read(recorded::GUEST), (guest.to_vec(), 0));
    let altra = Op {
        address: Some(0xff_403e_f1d7_9e50),
        physical: Some(0x403f_71d7_9e50),
        latency: 501,
        events: 0x31e,
        source: Some(12),
        timestamp: 7_966_055_570_099,
        ..load
    };
    assert_eq!(read(recorded::ALTRA), (vec![altra], 0), "the next record is not whole");
    assert_eq!(altra.served(Sources::Neoverse), Served::Cache, "of another cluster");
    let contexts = [
        Op {
            address: Some(0xff_0e37_0309_6b28),
            context: Some(0x5f80),
            latency: 12,
            source: Some(0),
            timestamp: 44_731_163_950,
            ..load
        },
        Op { context: Some(0xe), events: 0x42, latency: 17, timestamp: 44_731_164_045, ..Op::default() },
    ];
    assert_eq!(read(recorded::CONTEXTS), (contexts.to_vec(), 0));
    let begun = Op { timestamp: 13_196_304_120_239, ..Op::default() };
    assert_eq!(read(recorded::USER), (vec![begun], 0));
    let user = Op {
        address: Some(0xaaaa_e65d_da43),
        physical: Some(0x803_2c95_5a43),
        latency: 8,
        source: Some(0),
        ..load
    };
    assert_eq!(read(&format!("{} 01", recorded::USER)), (vec![begun, user], 0));
}

/// Cut anywhere, recorded bytes give whole records only, and no others.
#[test]
fn a_cut_recording_loses_the_cut_record_only() {
    let (whole, _) = read(recorded::CONTEXTS);
    let bytes: Vec<&str> = recorded::CONTEXTS.split_whitespace().collect();
    for end in 0..bytes.len() {
        let (found, damaged) = read(&bytes[..end].join(" "));
        assert!(found.len() < 2 && found[..] == whole[..found.len()] && damaged == 0, "{end}: {found:?}");
    }
}

#[test]
fn an_extended_header_holds_a_larger_index() {
    // Address packet, index 0b01_010: not the data address, whose index is 2.
    let mut buffer = vec![0x21, 0xb2];
    buffer.extend(0x1234u64.to_le_bytes());
    buffer.push(0x01);
    assert_eq!(Records::new(&buffer).collect::<Vec<_>>(), [Op::default()]);
}

#[test]
fn an_alignment_command_skips() {
    // Aligns to the next multiple of 16: exponent 3, plus 1.
    let mut buffer = vec![0x23, 0x00];
    buffer.resize(16, 0xff);
    buffer.extend(encode(&Op { timestamp: 5, ..Op::default() }, 0, 0));
    assert_eq!(Records::new(&buffer).map(|op| op.timestamp).collect::<Vec<_>>(), [5]);
}

#[test]
fn data_sources_are_those_of_the_core() {
    let op = |source, events| Op { source: Some(source), events, ..Op::default() };
    let neoverse = |source, events| op(source, events).served(Sources::Neoverse);
    assert_eq!(neoverse(0xe, 0), Served::Memory(Memory::LocalDram));
    assert_eq!(neoverse(0xe, REMOTE), Served::Memory(Memory::RemoteDram));
    assert_eq!(neoverse(0xd, REMOTE | LAST_LEVEL_MISS), Served::Memory(Memory::RemoteDram));
    assert_eq!(neoverse(0xd, REMOTE), Served::Unknown);
    assert_eq!(neoverse(0, 0), Served::Cache);
    assert_eq!(neoverse(0xb, 0), Served::Cache);
    assert_eq!(neoverse(7, 0), Served::Unknown);
    assert_eq!(op(7, 0).served(Sources::AmpereOne), Served::Memory(Memory::LocalDram));
    assert_eq!(op(3, 0).served(Sources::AmpereOne), Served::Cache);
    assert_eq!(op(0xe, 0).served(Sources::AmpereOne), Served::Unknown);
    assert_eq!(Op::default().served(Sources::Neoverse), Served::Unknown);
}
