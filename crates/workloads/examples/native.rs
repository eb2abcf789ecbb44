//! Runs a workload on its own values, as an ordinary program, for a recorder to look at:
//!
//! `cargo run --release -p isotherm-workloads --example native -- MAP NAME [KEY=VALUE]...` (seed 1)
//!
//! At the end it writes one line to MAP for each allocation that real values back, in the order of
//! allocation: its start and bytes in the workload's address space, and its real address, in decimal,
//! separated by spaces.
//!
//! With `+` for MAP it makes every access that the workload reports to memory of its own, so that a workload
//! whose data are not kept, as embedding tables, uses real memory too; it prints a checksum of what it read.
//!
//! With `-` for MAP it prints the number of accesses that the workload reports and a checksum of their
//! addresses. Accesses follow from the values read before, so that the line tells whether its memory was
//! intact.

use std::fmt::Write;

use isotherm_workloads::{Memory, NativeMemory, Token, find};

const SEED: u64 = 1;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(map), Some(name)) = (arguments.next(), arguments.next()) else {
        return Err("expected MAP NAME [KEY=VALUE]...".into());
    };
    let workload = find(&name)?;
    let mut parameters = workload.parameters();
    for argument in arguments {
        let (key, value) = argument.split_once('=').ok_or("expected KEY=VALUE")?;
        parameters.set(key, value)?;
    }
    let mut memory = NativeMemory::default();
    let program = workload.build(&parameters, SEED)?;
    if map == "-" {
        let mut sum = Checksum { memory, accesses: 0, checksum: 0 };
        program.run(&mut sum);
        println!("{name}: {} accesses, checksum {:016x}", sum.accesses, sum.checksum);
        return Ok(());
    }
    if map == "+" {
        let mut real = Real { memory, blocks: Vec::new(), sum: 0 };
        program.run(&mut real);
        println!("{name}: checksum {:016x}", real.sum);
        return Ok(());
    }
    program.run(&mut memory);
    let mut lines = String::new();
    for (allocation, real) in memory.allocations() {
        writeln!(lines, "{} {} {real}", allocation.start, allocation.bytes)?;
    }
    std::fs::write(map, lines)?;
    Ok(())
}

/// Native memory in which each reported access is one of real memory.
struct Real {
    memory: NativeMemory,
    /// Where each allocation starts, in order, and its words.
    blocks: Vec<(u64, Vec<u64>)>,
    sum: u64,
}

impl Real {
    fn words(&mut self, address: u64, bytes: u64) -> &mut [u64] {
        let block = self.blocks.partition_point(|&(start, _)| start <= address) - 1;
        let (start, words) = &mut self.blocks[block];
        let first = ((address - *start) / 8) as usize;
        &mut words[first..first + bytes.div_ceil(8) as usize]
    }
}

impl Memory for Real {
    fn allocate(&mut self, bytes: u64, context: &'static str) -> u64 {
        let start = self.memory.allocate(bytes, context);
        self.blocks.push((start, vec![0; bytes as usize / 8 + 2]));
        start
    }

    fn load(&mut self, address: u64, after: Token) -> Token {
        self.load_range(address, 8, after)
    }

    fn store(&mut self, address: u64, after: Token) {
        self.store_range(address, 8, after);
    }

    fn load_range(&mut self, address: u64, bytes: u64, _after: Token) -> Token {
        // One load a line, as vector registers of a line's width have.
        let words = self.words(address, bytes).iter().step_by(8);
        let sum = words.fold(0, |sum: u64, &word| sum.wrapping_add(word));
        self.sum = self.sum.rotate_left(1).wrapping_add(sum);
        Token::NONE
    }

    fn store_range(&mut self, address: u64, bytes: u64, _after: Token) {
        let value = self.sum.wrapping_add(address);
        self.words(address, bytes).fill(value);
    }

    fn reads_ahead(&self) -> bool {
        false
    }
}

/// Native memory with a checksum of the reported accesses.
struct Checksum {
    memory: NativeMemory,
    accesses: u64,
    checksum: u64,
}

impl Checksum {
    fn add(&mut self, address: u64) {
        self.accesses += 1;
        self.checksum = (self.checksum.rotate_left(5) ^ address).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Memory for Checksum {
    fn allocate(&mut self, bytes: u64, context: &'static str) -> u64 {
        self.memory.allocate(bytes, context)
    }

    fn load(&mut self, address: u64, _after: Token) -> Token {
        self.add(address);
        Token::NONE
    }

    fn store(&mut self, address: u64, _after: Token) {
        self.add(address);
    }

    fn reads_ahead(&self) -> bool {
        false
    }
}
