//! AMD's IBS op record, as the kernel passes it in `PERF_SAMPLE_RAW`.
//!
//! The record is `caps` (32 bits) and the registers from `IBS_OP_CTL`, 64 bits each: control, RIP, op data 1,
//! 2 and 3, linear and physical data address (`perf_ibs_handle_irq` in `arch/x86/events/amd/ibs.c`). The
//! registers' fields are those of the "Processor Programming Reference for AMD Family 19h Model 01h",
//! MSRC001_1036 and MSRC001_1037, and of `arch/x86/include/asm/amd/ibs.h`. Kernels before 6.1 do not decode
//! it; later ones repeat it in `PERF_SAMPLE_DATA_SRC`.

use isotherm_core::Operation;

use super::data_source::{Memory, Served};
use super::record::{half, word};

const CAPS_ZEN4: u32 = 1 << 11;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    /// Load, also of a read-modify-write, or store; `None` for other ops and software prefetches.
    pub operation: Option<Operation>,
    /// Linear address, where valid.
    pub address: Option<u64>,
    /// Latency of the L1 miss in cycles; 0 for hits and stores.
    pub latency: u32,
    /// Known of loads only.
    pub served: Served,
}

const fn bit(value: u64, position: u32) -> bool {
    value >> position & 1 != 0
}

impl Op {
    /// Decodes the content of a raw record; `None` if it is too short.
    pub fn decode(raw: &[u8]) -> Option<Self> {
        let caps = half(raw, 0)?;
        let register = |number: usize| word(raw, 4 + 8 * number);
        let (data2, data3) = (register(3)?, register(4)?);
        // The record ends with the physical address.
        let (linear, _) = (register(5)?, register(6)?);
        let operation = operation(data3);
        let load = operation == Some(Operation::Load);
        let missed = bit(data3, 7);
        Some(Self {
            operation,
            address: bit(data3, 17).then_some(linear),
            latency: if load && missed { (data3 >> 32 & 0xffff) as u32 } else { 0 },
            served: if load { served(caps, data2, data3) } else { Served::Unknown },
        })
    }
}

fn operation(data3: u64) -> Option<Operation> {
    let (load, store, prefetch) = (bit(data3, 0), bit(data3, 1), bit(data3, 21));
    match (load, store) {
        _ if prefetch => None,
        (true, _) => Some(Operation::Load),
        (false, true) => Some(Operation::Store),
        (false, false) => None,
    }
}

fn served(caps: u32, data2: u64, data3: u64) -> Served {
    let (l1_missed, l2_missed, uncached) = (bit(data3, 7), bit(data3, 20), bit(data3, 14));
    if uncached {
        return Served::Device;
    }
    if !l1_missed || !l2_missed {
        return Served::Cache;
    }
    let remote = bit(data2, 4);
    let memory = |local, other| Served::Memory(if remote { other } else { local });
    let extended = if caps & CAPS_ZEN4 != 0 { (data2 >> 6 & 3) << 3 } else { 0 };
    match data2 & 7 | extended {
        1 | 2 | 4 | 5 => Served::Cache,
        3 => memory(Memory::LocalDram, Memory::RemoteDram),
        6 if caps & CAPS_ZEN4 != 0 => memory(Memory::LocalPmem, Memory::RemotePmem),
        8 => memory(Memory::LocalCxl, Memory::RemoteCxl),
        7 => Served::Device,
        _ => Served::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Builds a record bit by bit from the register descriptions.
    fn encode(caps: u32, data2: u64, data3: u64, linear: u64, physical: u64) -> Vec<u8> {
        let mut raw = caps.to_ne_bytes().to_vec();
        for register in [0x1111, 0x40_1000, 0x2222, data2, data3, linear, physical] {
            raw.extend(u64::to_ne_bytes(register));
        }
        raw
    }

    /// Load that missed L1 and L2 with a valid address and a latency of 300 cycles.
    const MISS: u64 = 1 | 1 << 7 | 1 << 17 | 1 << 20 | 300 << 32;

    fn served_by(caps: u32, data2: u64, data3: u64) -> Served {
        Op::decode(&encode(caps, data2, data3, 0x7000, 0)).expect("complete").served
    }

    #[test]
    fn data_sources_of_zen4_are_told_apart() {
        use Memory::*;
        let remote = 1 << 4;
        let far = 1 << 6;
        let cases = [
            (3, Served::Memory(LocalDram)),
            (3 | remote, Served::Memory(RemoteDram)),
            (6, Served::Memory(LocalPmem)),
            (6 | remote, Served::Memory(RemotePmem)),
            (far, Served::Memory(LocalCxl)),
            (far | remote, Served::Memory(RemoteCxl)),
            (1, Served::Cache),
            (2, Served::Cache),
            (5, Served::Cache),
            (7, Served::Device),
            (0, Served::Unknown),
            (4 | far, Served::Unknown),
        ];
        for (data2, served) in cases {
            assert_eq!(served_by(CAPS_ZEN4, data2, MISS), served, "{data2:#x}");
        }
    }

    #[test]
    fn before_zen4_the_high_bits_do_not_count() {
        assert_eq!(served_by(0, 3 | 1 << 6, MISS), Served::Memory(Memory::LocalDram));
        assert_eq!(served_by(0, 4, MISS), Served::Cache);
        assert_eq!(served_by(0, 6, MISS), Served::Unknown);
    }

    #[test]
    fn hits_and_uncached_accesses_are_not_memory() {
        assert_eq!(served_by(CAPS_ZEN4, 3, MISS & !(1 << 7)), Served::Cache);
        assert_eq!(served_by(CAPS_ZEN4, 3, MISS & !(1 << 20)), Served::Cache);
        assert_eq!(served_by(CAPS_ZEN4, 3, MISS | 1 << 14), Served::Device);
    }

    proptest! {
        #[test]
        fn fields_are_where_the_manual_has_them(
            load: bool, store: bool, missed: bool, valid: bool, physical_valid: bool, prefetch: bool,
            latency: u16, linear: u64, physical: u64, refill: u16,
        ) {
            let data3 = u64::from(load) | u64::from(store) << 1 | u64::from(missed) << 7 | u64::from(valid) << 17
                | u64::from(physical_valid) << 18 | 1 << 20 | u64::from(prefetch) << 21
                | u64::from(latency) << 32 | u64::from(refill) << 48;
            let raw = encode(CAPS_ZEN4, 3, data3, linear, physical);
            let op = Op::decode(&raw).expect("complete");
            let operation = match (prefetch, load, store) {
                (true, ..) | (_, false, false) => None,
                (false, true, _) => Some(Operation::Load),
                (false, false, true) => Some(Operation::Store),
            };
            prop_assert_eq!(op.operation, operation);
            prop_assert_eq!(op.address, valid.then_some(linear));
            let counted = missed && operation == Some(Operation::Load);
            prop_assert_eq!(op.latency, if counted { u32::from(latency) } else { 0 });
            for cut in 0..raw.len() {
                prop_assert_eq!(Op::decode(&raw[..cut]), None);
            }
        }
    }
}
