//! Any bytes as an AUX area give operations (SPE, IBS) and hot units (CHMU's perf driver), and never a panic.

#![no_main]

use isotherm_linux::devices::perf_chmu::hot_list;
use isotherm_linux::perf::ibs;
use isotherm_linux::perf::spe::{Records, Sources};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u16, &[u8])| {
    let (turn, bytes) = input;
    let mut records = Records::new(bytes);
    let mut count = 0;
    for record in records.by_ref() {
        let _ = (record.served(Sources::Neoverse), record.served(Sources::AmpereOne));
        count += 1;
    }
    assert!(count <= bytes.len() && records.damaged <= bytes.len(), "every record takes bytes");
    let _ = ibs::Op::decode(bytes);
    let (first, second) = bytes.split_at(usize::from(turn).min(bytes.len()));
    let mut units = 0;
    let tally = hot_list::decode(first, second, &mut Vec::new(), |_unit, _count| units += 1);
    assert_eq!(units, tally.entries);
});
