use std::io::Cursor;

use isotherm_core::Bytes;
use isotherm_core::cache::Geometry;
use isotherm_trace::import;
use proptest::prelude::*;

use crate::packing::{Holds, gzip, is_whole, rows, xz, zip};
use crate::{Imported, collect, damaged, is_judged};

pub(crate) fn champsim(bytes: &[u8]) -> Imported {
    let geometry = Geometry::new(Bytes(1 << 20), 4).expect("a geometry");
    collect(|sink| import::champsim(Cursor::new(bytes), geometry, sink))
}

/// Returns a record of an instruction that reads and writes these registers, loads and stores.
pub(crate) fn instruction(written: &[u8], read: &[u8], loads: &[u64], stores: &[u64]) -> Vec<u8> {
    let mut record = [0; 64];
    record[..8].copy_from_slice(&0x40_1000_u64.to_le_bytes());
    record[10..10 + written.len()].copy_from_slice(written);
    record[12..12 + read.len()].copy_from_slice(read);
    for (place, addresses) in [(16, stores), (32, loads)] {
        for (index, address) in addresses.iter().enumerate() {
            record[place + 8 * index..][..8].copy_from_slice(&address.to_le_bytes());
        }
    }
    record.to_vec()
}

const A: u8 = 3;
const B: u8 = 4;
const STACK: u8 = 6;
const FLAGS: u8 = 25;

/// Runs instructions, and returns the rows' lines, instructions, stores and dependences.
fn run(instructions: &[Vec<u8>]) -> Vec<(u64, u32, bool, u8)> {
    let (rows, summary) = champsim(&instructions.concat()).expect("rows");
    assert_eq!(summary.lines, instructions.len() as u64);
    rows.iter().map(|row| (row.line, row.instructions, row.store, row.dependence)).collect()
}

/// The dependences of the rows.
fn dependences(instructions: &[Vec<u8>]) -> Vec<u8> {
    run(instructions).into_iter().map(|(.., dependence)| dependence).collect()
}

#[test]
fn instructions_are_counted_and_accesses_pass_the_cache_loads_first() {
    let instructions = [
        instruction(&[A], &[B], &[], &[]),
        instruction(&[FLAGS], &[A, B], &[0x1000, 0x2000], &[0x2008, 0x3000]),
        instruction(&[], &[], &[0x1038], &[]),
        instruction(&[], &[], &[], &[0x4000]),
    ];
    let expected = [(0x40, 2, false, 0), (0x80, 0, false, 0), (0xc0, 0, true, 0), (0x100, 2, true, 0)];
    assert_eq!(run(&instructions), expected);
    assert_eq!(champsim(&instructions.concat()).expect("rows").1.accesses, 6);
}

#[test]
fn a_chase_depends_on_the_load_before_and_two_chains_on_the_one_before_that() {
    let chase = |register, page: u64| instruction(&[register], &[register], &[page << 12], &[]);
    assert_eq!(dependences(&[chase(A, 1), chase(A, 2), chase(A, 3)]), [0, 1, 1]);
    assert_eq!(dependences(&[chase(A, 1), chase(B, 2), chase(A, 3), chase(B, 4)]), [0, 0, 2, 2]);
}

#[test]
fn values_pass_through_registers_and_lines_in_flight_but_no_further_than_the_window() {
    let load = |written, read, address| instruction(&[written], &[read], &[address], &[]);
    let add = instruction(&[B, FLAGS], &[A, B], &[], &[]);
    assert_eq!(dependences(&[load(A, 9, 0x1000), add.clone(), load(A, B, 0x2000)]), [0, 1]);
    // The second word of a node, whose first one missed.
    let node = [load(9, 8, 0x1000), load(A, 8, 0x1008), load(B, A, 0x2000)];
    assert_eq!(dependences(&node), [0, 1]);
    for (between, expected) in [(511, 1), (512, 0)] {
        let mut far = vec![load(A, 9, 0x1000)];
        far.extend(vec![instruction(&[], &[], &[], &[]); between]);
        far.push(load(A, A, 0x2000));
        assert_eq!(dependences(&far), [0, expected]);
    }
}

#[test]
fn an_address_of_which_the_record_does_not_tell_the_registers_is_independent() {
    let load = |written: &[u8], read: &[u8], address| instruction(written, read, &[address], &[]);
    // A sum, whose register is read beside the address.
    let sum = |address| load(&[A, FLAGS], &[A, B], address);
    assert_eq!(dependences(&[sum(0x1000), sum(0x2000)]), [0, 0]);
    let store = instruction(&[], &[A], &[], &[0x2000]);
    assert_eq!(dependences(&[load(&[A], &[B], 0x1000), store]), [0, 0]);
    // Popping writes the stack's pointer, whose value does not come from memory.
    let pop = |written, address| load(&[written, STACK], &[STACK], address);
    assert_eq!(dependences(&[pop(A, 0x1000), pop(B, 0x2000), load(&[A], &[A], 0x3000)]), [0, 0, 2]);
    // Of two registers, one may be the address, moved on.
    assert_eq!(dependences(&[load(&[A, B], &[B], 0x1000), load(&[A, B], &[B], 0x2000)]), [0, 0]);
}

#[test]
fn traces_are_unpacked_and_others_are_refused() {
    let bytes: Vec<u8> = (1..200).flat_map(|page| instruction(&[A], &[A], &[page << 12], &[])).collect();
    let plain = rows(champsim(&bytes));
    assert_eq!(plain.len(), 199);
    for packed in [xz(&bytes), gzip(&bytes), zip(&[(&bytes, Holds::Deflated)])] {
        assert!(packed.len() < bytes.len() / 4);
        assert_eq!(rows(champsim(&packed)), plain);
    }
    assert_eq!(rows(champsim(&[])).len(), 0);
    let refused = |bytes: &[u8]| champsim(bytes).expect_err("no trace").to_string();
    let truncated = "record 1: 63 bytes of 64; expected a whole record: the file is truncated";
    assert_eq!(refused(&bytes[..127]), truncated);
    let mut other = bytes.clone();
    other[64 + 9] = 2;
    let expected = "ChampSim's record of 64 bytes, in which two bytes that tell a branch are 0 or 1";
    assert_eq!(refused(&other), format!("record 1: a branch of 2; expected {expected}"));
    let early = "record 0: cannot read: the gzip data end early; expected a whole file";
    assert_eq!(refused(&gzip(&bytes)[..40]), early);
}

#[test]
fn a_trace_that_is_cut_off_is_refused() {
    is_whole(champsim, &instruction(&[A], &[A], &[0x1000], &[]));
    let bytes = [instruction(&[A], &[A], &[0x1000], &[]), instruction(&[], &[], &[], &[0x2000])].concat();
    is_whole(champsim, &xz(&bytes));
    is_whole(champsim, &gzip(&bytes));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn damage_gives_rows_or_an_error(
        bytes in {
            let bytes: Vec<u8> = (1..9).flat_map(|page| instruction(&[A], &[A], &[page << 12], &[64])).collect();
            prop_oneof![
                damaged(bytes.clone()),
                damaged(xz(&bytes)),
                damaged(gzip(&bytes)),
                damaged(zip(&[(&bytes, Holds::DeflatedUnsized(true)), (&bytes, Holds::Stored)])),
                prop::collection::vec(any::<u8>(), 0..300),
            ]
        }
    ) {
        is_judged(champsim, &bytes)?;
    }
}
