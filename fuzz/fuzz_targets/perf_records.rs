//! Any bytes as the two parts of a perf ring give records, samples and accesses, and never a panic.

#![no_main]

use isotherm_core::TierId;
use isotherm_linux::perf::data_source::{Memory, TierMap};
use isotherm_linux::perf::decode::{Decoded, Decoder};
use isotherm_linux::perf::events::{EventSpec, Format};
use isotherm_linux::perf::record::{Content, for_each};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, u16, &[u8])| {
    let (kind, turn, bytes) = input;
    let format = [Format::Plain, Format::DataSource, Format::Ibs][usize::from(kind % 3)];
    let spec = EventSpec { format, ..EventSpec::page_faults() };
    let period = (kind & 4 != 0).then_some(17);
    let tiers = TierMap::default().with(Memory::LocalDram, TierId(0)).with(Memory::LocalCxl, TierId(1));
    let decoder = Decoder::new(&spec, period, tiers, 3_000).expect("known fields");
    let (first, second) = bytes.split_at(usize::from(turn).min(bytes.len()));
    let mut seen = 0;
    let damaged = for_each(first, second, &mut Vec::new(), |record| {
        seen += record.body.len() + 8;
        let _ = record.identifier();
        if let Content::Sample(body) = record.content()
            && let Decoded::Access(access) = decoder.decode(body)
        {
            assert!(access.weight > 0 && access.address != 0);
        }
    });
    assert!(seen + damaged <= bytes.len(), "no byte is read twice");
});
