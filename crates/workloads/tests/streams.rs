//! The accesses of every workload stay the same: golden numbers and the scoreboard depend on them.
//!
//! A change that makes a generator faster must not change a row of `STREAMS`; one that changes a workload on
//! purpose takes the new row from the test's message. The runs at defaults take minutes: `make streams`.

use isotherm_workloads::{ALL, AddressSpace, Memory, TEST_PRESET, Token, Workload};

const SEED: u64 = 42;

/// Workload, fingerprint of its test preset, fingerprint at its defaults.
const STREAMS: &[(&str, u64, u64)] = &[
    ("masim", 0x67da_7cae_0e8f_262c, 0x56b8_b5ff_cfe0_cb29),
    ("gups", 0x62d8_53fb_8b19_88b3, 0xccc0_16a1_96f6_f132),
    ("cachelib-cdn", 0x51c0_b06a_dae4_f8c2, 0x03bc_d0cf_2444_44a5),
    ("cachelib-social", 0xdcf1_6365_bc27_5142, 0x9412_b6b8_2bf4_776c),
    ("btree", 0xe5bc_1af3_16c4_e4af, 0x754e_f306_e973_05a8),
    ("silo", 0x2d4a_10af_6b7a_e77c, 0x87a1_ecbe_21b3_4bf1),
    ("flexkvs", 0xc570_a30b_b603_cbf4, 0xd814_e66c_4ca2_581c),
    ("redis", 0xc2f7_7598_364e_5b15, 0x07b2_ecf8_8fe3_0dec),
    ("social-network", 0x0f6c_573b_8d81_c0e9, 0x9666_2e52_92de_4317),
    ("gapbs-bfs-kron", 0xa03e_c404_46ee_4829, 0xc8f9_174a_0c3a_3fb8),
    ("gapbs-bfs-urand", 0xd999_c72d_8abd_b062, 0x3c26_af50_3ec4_c02a),
    ("gapbs-cc-kron", 0x767f_d83e_960b_15a4, 0x3ba3_0aec_7d2c_b95f),
    ("gapbs-cc-urand", 0x7492_a8d7_9aef_628f, 0x4902_983a_b0b6_f94c),
    ("gapbs-pr-kron", 0x4880_f4c4_a6bb_53fd, 0x0b0f_b0d8_3eaa_b353),
    ("gapbs-pr-urand", 0x02a8_1c7a_1022_470f, 0xcd50_e02f_ec20_c9ca),
    ("gapbs-bc-kron", 0xd892_7645_1772_3fe7, 0x42c0_c3b0_9c07_fa4a),
    ("gapbs-bc-urand", 0x9541_6e66_47c9_1e0d, 0xd7f5_7ff1_25e1_a330),
    ("gapbs-sssp-kron", 0x0d59_9511_fcd3_1242, 0x56c7_6597_8de2_2cab),
    ("gapbs-sssp-urand", 0xcea8_0f1c_fc81_1aab, 0xc7e1_0253_341f_d28d),
    ("gapbs-tc-kron", 0x75a6_290b_3726_2b19, 0x71e6_1361_8300_bf26),
    ("gapbs-tc-urand", 0xb803_8594_122b_a9b8, 0xe3de_dc40_27a7_8de3),
    ("graph500", 0xabab_b10f_4ed2_6f21, 0x9800_0df2_c83f_d996),
    ("xsbench", 0xf263_3bcd_2324_c415, 0xd195_936d_8691_7988),
    ("xgboost", 0x4ea7_3b94_a8ad_8c48, 0x6712_a86d_7927_0839),
    ("liblinear", 0xacac_307d_97a5_e878, 0xe74f_fa12_89c7_0c91),
    ("bwaves", 0x0990_1618_fb92_b403, 0xdf3f_2949_fbaf_397b),
    ("roms", 0xbf36_42ef_1737_3d45, 0x7c4a_8d56_a3c7_50e9),
    ("gpt2", 0xbcaf_c8a7_f53b_8f9b, 0x2287_edc6_4d2f_7350),
    ("dlrm", 0x2dbe_2123_6fc0_f0bc, 0x61bf_abec_dffb_4143),
    ("deepsjeng", 0x037d_a706_d9e2_339a, 0x05dd_c894_c35f_2f9a),
    ("xz", 0x4b21_4a75_dce2_b059, 0xb682_5f91_5c71_9b77),
];

/// Folds everything that a recorder sees of a run into one number.
#[derive(Default)]
struct Fingerprint {
    /// Whether values are observed, which forbids reading ahead.
    observed: bool,
    space: AddressSpace,
    thread: usize,
    process: u16,
    /// By thread: instructions since its access before, and its accesses.
    threads: Vec<(u64, u64)>,
    folded: u64,
}

impl Fingerprint {
    fn fold(&mut self, value: u64) {
        self.folded = (self.folded ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    fn access(&mut self, address: u64, store: bool, after: Token) -> Token {
        let (instructions, accesses) = &mut self.threads[self.thread];
        let passed = std::mem::take(instructions);
        *accesses += 1;
        let own = Token((self.thread as u64) << 48 | *accesses);
        self.fold(address ^ after.0.rotate_left(17));
        self.fold(own.0 ^ passed << 20 ^ u64::from(store) << 47);
        own
    }

    fn finish(mut self) -> u64 {
        for thread in 0..self.threads.len() {
            self.fold(self.threads[thread].0);
        }
        self.folded
    }
}

impl Memory for Fingerprint {
    fn allocate(&mut self, bytes: u64, context: &'static str) -> u64 {
        self.fold(bytes);
        context.bytes().for_each(|byte| self.fold(u64::from(byte)));
        self.space.allocate(bytes, context)
    }

    fn thread(&mut self, thread: u16) {
        self.thread = usize::from(thread);
        self.threads.resize(self.threads.len().max(self.thread + 1), (0, 0));
    }

    fn process(&mut self, process: u16) {
        if self.process != process {
            self.fold(u64::from(process));
            self.process = process;
        }
    }

    fn compute(&mut self, instructions: u32) {
        self.threads[self.thread].0 += u64::from(instructions);
    }

    fn load(&mut self, address: u64, after: Token) -> Token {
        self.access(address, false, after)
    }

    fn store(&mut self, address: u64, after: Token) {
        self.access(address, true, after);
    }

    fn reads_ahead(&self) -> bool {
        !self.observed
    }
}

fn fingerprint(workload: &Workload, preset: Option<&str>, observed: bool) -> u64 {
    let mut parameters = workload.parameters();
    preset.iter().for_each(|preset| parameters.set("preset", preset).expect("every workload has it"));
    let mut memory = Fingerprint { observed, ..Fingerprint::default() };
    memory.thread(0);
    workload.build(&parameters, SEED).expect("consistent settings").run(&mut memory);
    memory.finish()
}

fn compare(preset: Option<&str>, observed: bool, expected: impl Fn(&(&str, u64, u64)) -> u64) {
    let mut changed = String::new();
    for workload in ALL {
        let found = fingerprint(workload, preset, observed);
        if STREAMS.iter().find(|row| row.0 == workload.name).map(&expected) != Some(found) {
            changed += &format!("\n{} now has {found:#018x}", workload.name);
        }
    }
    assert!(changed.is_empty(), "{changed}");
}

#[test]
fn the_accesses_at_the_test_size_are_what_they_were() {
    compare(Some(TEST_PRESET), false, |row| row.1);
}

#[test]
fn what_is_read_ahead_or_taken_by_shorter_ways_changes_no_access() {
    compare(Some(TEST_PRESET), true, |row| row.1);
}

#[test]
#[ignore = "minutes: full runs of every workload (make streams)"]
fn the_accesses_at_the_defaults_are_what_they_were() {
    compare(None, false, |row| row.2);
}
