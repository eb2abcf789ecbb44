//! A sample as the ring holds it: four words.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Process {
    /// Known by its thread group (a user's process id).
    Tgid(u32),
    /// Known only by its page tables: bits 12 to 51 of CR3.
    PageTables(u64),
}

/// Sampled miss of the last-level cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    pub address: u64,
    pub process: Process,
    /// Modelled time of its epoch in nanoseconds.
    pub time: u64,
    /// Tier that served it; below 256.
    pub tier: u8,
    pub store: bool,
    /// Guest's processor; below 128.
    pub vcpu: u8,
    /// Latency in nanoseconds, at most [`Self::MAX_LATENCY`].
    pub latency: u32,
    /// Misses that it stands for, at most [`Self::MAX_WEIGHT`].
    pub weight: u32,
}

/// Flag in the process's word: the other bits are page tables, not a thread group.
const PAGE_TABLES: u64 = 1 << 63;

impl Record {
    /// Largest latency that a record holds: a millisecond.
    pub const MAX_LATENCY: u32 = (1 << 20) - 1;
    pub const MAX_WEIGHT: u32 = (1 << 28) - 1;

    /// Packs the record. The last word, from bit 0: tier 8, store 1, processor 7, latency 20, weight 28.
    pub fn pack(self) -> [u64; 4] {
        let process = match self.process {
            Process::Tgid(tgid) => u64::from(tgid),
            Process::PageTables(tables) => tables | PAGE_TABLES,
        };
        let info = u64::from(self.tier)
            | u64::from(self.store) << 8
            | u64::from(self.vcpu & 127) << 9
            | u64::from(self.latency.min(Self::MAX_LATENCY)) << 16
            | u64::from(self.weight.min(Self::MAX_WEIGHT)) << 36;
        [self.address, process, self.time, info]
    }

    /// Unpacks the record that these words hold; any words hold one.
    pub fn unpack([address, process, time, info]: [u64; 4]) -> Self {
        let process = match process & PAGE_TABLES {
            0 => Process::Tgid(process as u32),
            _ => Process::PageTables(process & !PAGE_TABLES),
        };
        Self {
            address,
            process,
            time,
            tier: info as u8,
            store: info >> 8 & 1 != 0,
            vcpu: (info >> 9 & 127) as u8,
            latency: (info >> 16) as u32 & Self::MAX_LATENCY,
            weight: (info >> 36) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_record_survives_its_words(
            address: u64, tgid: u32, tables in 0u64..1 << 52, resolved: bool, time: u64, tier: u8, store: bool,
            vcpu in 0u8..128, latency in 0..=Record::MAX_LATENCY, weight in 0..=Record::MAX_WEIGHT,
        ) {
            let process = if resolved { Process::Tgid(tgid) } else { Process::PageTables(tables) };
            let record = Record { address, process, time, tier, store, vcpu, latency, weight };
            prop_assert_eq!(Record::unpack(record.pack()), record);
        }

        #[test]
        fn what_does_not_fit_is_cut_and_harms_no_neighbour(latency: u32, weight: u32, vcpu: u8) {
            let process = Process::Tgid(1);
            let record =
                Record { address: 0, process, time: 0, tier: 3, store: true, vcpu, latency, weight };
            let back = Record::unpack(record.pack());
            let (latency, weight) = (latency.min(Record::MAX_LATENCY), weight.min(Record::MAX_WEIGHT));
            prop_assert_eq!(back, Record { latency, weight, vcpu: vcpu % 128, ..record });
        }
    }
}
