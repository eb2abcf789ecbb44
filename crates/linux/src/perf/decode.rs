//! Turns samples into [`Access`]es, according to the event that took them.

use isotherm_core::{Nanos, Operation, TierId};

use super::data_source::{DataSource, Served, TierMap};
use super::events::{EventSpec, Format};
use super::ibs::Op;
use super::sample::{Fields, Layout};
use crate::process::Pid;
use crate::source::{Access, Cause};

/// Result of decoding a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded {
    /// Access that memory served, or may have served.
    Access(Access),
    /// Access that a cache served.
    Hit,
    /// Access to the kernel's own memory, or without an address.
    Foreign,
    /// Sample too short for its layout.
    Malformed,
}

#[derive(Debug, Clone)]
pub struct Decoder {
    layout: Layout,
    format: Format,
    operation: Operation,
    tier: Option<TierId>,
    tiers: TierMap,
    /// Period in force; 0 where samples carry it.
    period: u64,
    /// Nanoseconds per cycle in units of 2^-[`FRACTION`]; 0 where unknown.
    cycle: u64,
}

/// Access of a sample in any format.
struct Seen {
    address: u64,
    /// In cycles.
    latency: u32,
    /// Present where the sample tells it; otherwise the event does.
    operation: Option<Operation>,
    served: Served,
}

/// Fraction bits of [`Decoder::cycle`]: multiplication is several times as fast as division.
const FRACTION: u32 = 20;

/// First address of the kernel on every 64-bit architecture whose PMU samples addresses.
const KERNEL: u64 = 1 << 63;

impl Decoder {
    /// Decodes samples of `spec`, which carry their period if `period` is `None`, and latencies in cycles of
    /// `megahertz`, 0 if unknown. Returns `None` if samples hold unknown fields.
    pub fn new(spec: &EventSpec, period: Option<u64>, tiers: TierMap, megahertz: u32) -> Option<Self> {
        let layout = Layout::new(spec.sample_type(period.is_none()))?;
        let period = period.unwrap_or(0);
        let cycle = (1000u64 << FRACTION).checked_div(u64::from(megahertz)).unwrap_or(0);
        let (format, operation, tier) = (spec.format, spec.operation, spec.tier);
        Some(Self { layout, format, operation, tier, tiers, period, cycle })
    }

    // All formats meet before the access is built, so that it is written once, straight to its place.
    #[inline]
    pub fn decode(&self, body: &[u8]) -> Decoded {
        let Some(fields) = self.layout.decode(body) else { return Decoded::Malformed };
        match self.seen(&fields) {
            Ok(seen) => self.access(&fields, seen),
            Err(skipped) => skipped,
        }
    }

    #[inline]
    fn seen(&self, fields: &Fields<'_>) -> Result<Seen, Decoded> {
        let (address, latency) = (fields.address, fields.latency);
        match self.format {
            Format::Plain => Ok(Seen { address, latency, operation: None, served: Served::Unknown }),
            Format::DataSource => {
                let source = DataSource(fields.data_source);
                Ok(Seen { address, latency, operation: source.operation(), served: source.served() })
            }
            Format::Ibs => {
                let op = Op::decode(fields.raw).ok_or(Decoded::Malformed)?;
                match (op.operation, op.address) {
                    (Some(_), Some(address)) => {
                        let Op { latency, operation, served, .. } = op;
                        Ok(Seen { address, latency, operation, served })
                    }
                    // Micro-op without memory access.
                    (None, _) => Err(Decoded::Hit),
                    (_, None) => Err(Decoded::Foreign),
                }
            }
        }
    }

    #[inline]
    fn access(&self, fields: &Fields<'_>, seen: Seen) -> Decoded {
        let tier = match seen.served {
            Served::Cache => return Decoded::Hit,
            Served::Device => return Decoded::Foreign,
            Served::Memory(memory) => self.tiers.tier(memory).or(self.tier),
            Served::Unknown => self.tier,
        };
        let address = seen.address;
        // An exiting task has the number -1.
        if address == 0 || address >= KERNEL || fields.pid == 0 || fields.pid == u32::MAX {
            return Decoded::Foreign;
        }
        Decoded::Access(Access {
            time: Nanos(fields.time),
            process: Pid(fields.pid),
            address,
            weight: u32::try_from(fields.period.max(self.period)).unwrap_or(u32::MAX).max(1),
            latency: self.nanoseconds(seen.latency),
            tier,
            operation: seen.operation.unwrap_or(self.operation),
            cause: Cause::Sampled,
        })
    }

    /// Rounds to the nearest nanosecond. The product has at most 62 bits.
    #[inline]
    fn nanoseconds(&self, cycles: u32) -> u32 {
        let nanoseconds = (u64::from(cycles) * self.cycle + (1 << (FRACTION - 1))) >> FRACTION;
        u32::try_from(nanoseconds).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::super::data_source::Memory;
    use super::*;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn tiers() -> TierMap {
        TierMap::default().with(Memory::LocalDram, TierId(0)).with(Memory::LocalCxl, TierId(1))
    }

    fn task(pid: u32) -> u64 {
        u64::from_ne_bytes([pid.to_ne_bytes(), 77u32.to_ne_bytes()].concat().try_into().expect("8 bytes"))
    }

    fn latency_event() -> EventSpec {
        EventSpec { format: Format::DataSource, tier: None, ..EventSpec::page_faults() }
    }

    /// Writes a PEBS load latency sample as Linux does: task, time, address, period, weight, data source.
    fn pebs(pid: u32, address: u64, source: u64) -> Vec<u8> {
        words(&[task(pid), 1_000, address, 199, 600, source])
    }

    /// `mem_op` load, `mem_lvl` hit, `mem_lvl_num`.
    fn load_from(number: u64) -> u64 {
        2 | 2 << 5 | number << 33
    }

    #[test]
    fn a_load_latency_sample_says_tier_weight_and_nanoseconds() {
        let decoder = Decoder::new(&latency_event(), None, tiers(), 3_000).expect("known fields");
        let Decoded::Access(access) = decoder.decode(&pebs(42, 0x7f00_1234, load_from(9))) else {
            panic!("an access")
        };
        assert_eq!((access.process, access.address, access.time), (Pid(42), 0x7f00_1234, Nanos(1_000)));
        assert_eq!((access.weight, access.latency, access.tier), (199, 200, Some(TierId(1))));
        assert_eq!(decoder.decode(&pebs(42, 0x1000, load_from(3))), Decoded::Hit);
        assert_eq!(decoder.decode(&pebs(42, 0x1000, load_from(10))), Decoded::Foreign);
        let Decoded::Access(unknown) = decoder.decode(&pebs(42, 0x1000, 4)) else { panic!("an access") };
        assert_eq!((unknown.tier, unknown.operation), (None, Operation::Store));
    }

    #[test]
    fn the_kernels_memory_and_exiting_tasks_are_foreign() {
        let decoder = Decoder::new(&latency_event(), None, tiers(), 0).expect("known fields");
        for (pid, address) in [(42, 0), (42, 0xffff_8880_0000_0000), (0, 0x1000), (u32::MAX, 0x1000)] {
            assert_eq!(decoder.decode(&pebs(pid, address, load_from(13))), Decoded::Foreign);
        }
        assert_eq!(decoder.decode(&pebs(42, 0x1000, load_from(13))[..40]), Decoded::Malformed);
    }

    #[test]
    fn an_event_of_one_tier_needs_no_data_source() {
        let spec = EventSpec { tier: Some(TierId(1)), ..EventSpec::page_faults() };
        let decoder = Decoder::new(&spec, Some(4), tiers(), 0).expect("known fields");
        let Decoded::Access(access) = decoder.decode(&words(&[task(5), 7, 0x2000])) else {
            panic!("an access")
        };
        assert_eq!((access.tier, access.weight, access.latency), (Some(TierId(1)), 4, 0));
    }

    #[test]
    fn an_ibs_sample_takes_address_and_latency_from_the_registers() {
        let spec = EventSpec { format: Format::Ibs, ..EventSpec::page_faults() };
        let decoder = Decoder::new(&spec, None, tiers(), 2_000).expect("known fields");
        let sample = |data2: u64, data3: u64| {
            let mut body = words(&[task(5), 7, 0, 0x4000]);
            // 60 bytes: the capabilities, of Zen 4, and seven registers.
            body.extend(60u32.to_ne_bytes());
            body.extend((1u32 << 11).to_ne_bytes());
            body.extend(words(&[0, 0, 0, data2, data3, 0x7000_0040, 0]));
            body
        };
        let miss = 1 | 1 << 7 | 1 << 17 | 1 << 20 | 500 << 32;
        let Decoded::Access(access) = decoder.decode(&sample(1 << 6, miss)) else { panic!("an access") };
        assert_eq!((access.address, access.latency, access.tier), (0x7000_0040, 250, Some(TierId(1))));
        assert_eq!((access.weight, access.operation), (0x4000, Operation::Load));
        assert_eq!(decoder.decode(&sample(3, miss & !(1 << 20))), Decoded::Hit);
        assert_eq!(decoder.decode(&sample(3, 0)), Decoded::Hit);
        assert_eq!(decoder.decode(&sample(3, miss & !(1 << 17))), Decoded::Foreign);
    }
}
