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
