//! Static summary of an instruction: the registers that make its addresses and its values, and those that it
//! writes. It is made once, when QEMU translates the block, so that running costs a few bit operations.
//!
//! A register is a bit: 0-15 for general, 16-31 for vector registers. Flags are left out, since branches are
//! predicted and do not delay an address; so are x87 and MMX registers, which hardly ever make an address.

use std::ffi::c_void;
use std::num::NonZero;

use iced_x86::{
    CpuidFeature, Decoder, DecoderOptions, Instruction, InstructionInfo, InstructionInfoFactory, OpAccess,
    OpKind, Register, UsedMemory,
};

use crate::address::{Address, Registers, writes};

/// Registers of an instruction, and its place in the block and in its group ([`crate::group`]).
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Registers that make its memory addresses.
    pub(crate) address: u32,
    /// Registers whose values flow into the written ones.
    pub(crate) sources: u32,
    pub(crate) destinations: u32,
    /// Registers whose values at the block's begin flow into its address and its sources.
    pub(crate) origins: u32,
    /// Those of the group's members, for the one that reports it.
    pub(crate) group_origins: u32,
    /// Registers that the block uses before it writes them.
    pub(crate) block_sources: u32,
    /// Registers that the block writes.
    pub(crate) block_destinations: u32,
    pub(crate) index: u16,
    /// Number of instructions after it in the block.
    pub(crate) behind: u16,
    /// Number of the block's instructions that make exactly one access.
    pub(crate) once: u16,
    /// Index in the block of the first instruction of the group that this one reports.
    pub(crate) first: u16,
    pub(crate) last: u16,
    /// Bytes of the group after its lowest one, which is this instruction's lowest.
    pub(crate) span: u8,
    /// Distance of this instruction's access from the group's lowest byte.
    pub(crate) offset: u8,
    /// Bytes of this instruction's access after its first.
    pub(crate) reach: u8,
    pub(crate) touches: Touch,
}

impl Summary {
    #[inline(always)]
    pub(crate) fn block_length(&self) -> u64 {
        u64::from(self.index) + u64::from(self.behind) + 1
    }

    /// Returns the members of the group that this one reports. It must lie in a block's array of summaries.
    #[inline(always)]
    pub(crate) fn group(&self) -> impl Iterator<Item = &Self> {
        let back = usize::from(self.index - self.first);
        let length = usize::from(self.last - self.first) + 1;
        // SAFETY: the summaries of a block lie in one array, each at its index; `first` and `last` are two of
        // its indices.
        let group = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).sub(back), length) };
        group.iter().filter(|member| member.touches != Touch::Nothing)
    }
}

/// Facts that a callback needs while all accesses hit, in the 64 bits that QEMU gives it: reading its
/// instruction's summary would often miss the processor's cache.
///
/// Bits 0-4 are the accesses to count at the block's begin, 5 whether the reported ones may store, 6-47 the
/// summary's address, 48-57 the number of the block's instructions, 58-63 the bytes to look at after the
/// access's first.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

const ADDRESS: u64 = (1 << 48) - ALIGNMENT;
const ALIGNMENT: u64 = align_of::<Summary>() as u64;
const STORES: u64 = ALIGNMENT / 2;
/// Most accesses that a ticket counts.
pub(crate) const COUNTED: u16 = STORES as u16 - 1;

impl Ticket {
    /// Makes the ticket of an instruction whose accesses lie in `reach + 1` bytes. The kernel gives a process
    /// addresses of at most 48 bits, unless it asks for more.
    pub(crate) fn new(summary: &Summary, reach: u8, stores: bool) -> Self {
        let address = std::ptr::from_ref(summary).expose_provenance() as u64 & ADDRESS;
        let (length, once) = (summary.block_length().min(1023), summary.once.min(COUNTED));
        let stores = if stores { STORES } else { 0 };
        Self(u64::from(reach) << 58 | length << 48 | address | stores | u64::from(once))
    }

    pub(crate) fn data(self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.0 as usize)
    }

    #[inline(always)]
    pub(crate) fn of(data: *mut c_void) -> Self {
        Self(data.addr() as u64)
    }

    #[inline(always)]
    pub(crate) fn reach(self) -> u64 {
        self.0 >> 58
    }

    #[inline(always)]
    pub(crate) fn block_length(self) -> u64 {
        self.0 >> 48 & 1023
    }

    #[inline(always)]
    pub(crate) fn once(self) -> u64 {
        self.0 & (STORES - 1)
    }

    #[inline(always)]
    pub(crate) fn stores(self) -> bool {
        self.0 & STORES != 0
    }

    /// # Safety
    /// The summary is alive.
    #[inline(always)]
    pub(crate) unsafe fn summary<'a>(self) -> &'a Summary {
        // SAFETY: the caller's contract; the address is that of a summary.
        unsafe { &*std::ptr::with_exposed_provenance((self.0 & ADDRESS) as usize) }
    }
}

/// Returns whether an instruction in 64-bit mode is one of AVX-512, of which QEMU has read no more than the
/// first bytes: nothing else begins so (Intel's manual, volume 2, section 2.7).
pub(crate) fn is_avx512(bytes: &[u8]) -> bool {
    const PREFIXES: [u8; 11] = [0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3];
    bytes.iter().find(|byte| !PREFIXES.contains(byte)) == Some(&0x62)
}

const RAX: u32 = 1;
const RSP: u32 = 1 << 4;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Touch {
    #[default]
    Nothing,
    Loads,
    Stores,
    Both,
}

pub(crate) struct Summarizer {
    factory: InstructionInfoFactory,
    registers: Registers,
}

impl Default for Summarizer {
    fn default() -> Self {
        Self { factory: InstructionInfoFactory::new(), registers: Registers::default() }
    }
}

impl Summarizer {
    /// Summarizes the block's next instruction. Bytes that do not decode may do anything, with no registers.
    pub(crate) fn summarize(&mut self, bytes: &[u8], address: u64) -> Found {
        let instruction = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
        if instruction.is_invalid() {
            return self.unknown();
        }
        let info = self.factory.info(&instruction);
        let (reached, touches) = addresses(info);
        let mut summary = Summary { touches, ..registers(&instruction, info, reached) };
        restrict(&instruction, &mut summary);
        let (mut once, mut place) = (false, None);
        if let Some(memory) = only_access(&instruction, info) {
            (once, place) = (true, self.registers.address(memory));
            summary.reach = (memory.memory_size().size() - 1) as u8;
        }
        self.registers.execute(&instruction, info);
        Found { summary, once, place, tells: false }
    }

    pub(crate) fn unknown(&mut self) -> Found {
        self.registers.forget();
        let summary = Summary { touches: Touch::Both, ..Summary::default() };
        Found { summary, once: false, place: None, tells: false }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    /// Its registers; its place in the block and in a group come later.
    pub(crate) summary: Summary,
    /// Whether QEMU makes exactly one access whenever it runs.
    pub(crate) once: bool,
    /// Address of that access, where it is plain.
    pub(crate) place: Option<Address>,
    /// Whether its access calls, for itself or for a group.
    pub(crate) tells: bool,
}

/// Writes into each instruction its place in the block, and what is true of the block.
pub(crate) fn place(block: &mut [Found]) {
    let last = block.len().saturating_sub(1);
    let once = block.iter().filter(|found| found.once).count() as u16;
    let (mut block_sources, mut block_destinations) = (0, 0);
    let mut origins: [u32; 32] = std::array::from_fn(|register| 1 << register);
    for Found { summary, .. } in &mut *block {
        block_sources |= (summary.address | summary.sources) & !block_destinations;
        block_destinations |= summary.destinations;
        let sources = bits(summary.address | summary.sources);
        summary.origins = sources.fold(0, |all, register| all | origins[register]);
        bits(summary.destinations).for_each(|register| origins[register] = summary.origins);
    }
    for (index, Found { summary, .. }) in block.iter_mut().enumerate() {
        let (index, behind) = (index as u16, (last - index) as u16);
        *summary = Summary { block_sources, block_destinations, index, behind, once, ..*summary };
    }
}

/// Returns the memory operand if QEMU makes exactly one access for it: of a plain instruction on general
/// registers, which always moves at most 8 bytes in one direction. QEMU splits larger ones, and string
/// instructions repeat.
fn only_access<'a>(instruction: &Instruction, info: &'a InstructionInfo) -> Option<&'a UsedMemory> {
    use CpuidFeature::{INTEL186, INTEL386, INTEL8086, X64};
    let [memory] = info.used_memory() else { return None };
    // The instructions of these features use general registers only.
    let is_base = |feature: &CpuidFeature| matches!(feature, INTEL8086 | INTEL186 | INTEL386 | X64);
    let plain = matches!(memory.access(), OpAccess::Read | OpAccess::Write)
        && (1..=8).contains(&memory.memory_size().size())
        && instruction.cpuid_features().iter().all(is_base)
        && !instruction.is_string_instruction();
    plain.then_some(memory)
}

/// Returns the numbers of the registers in a mask.
pub(crate) fn bits(mut registers: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let number = NonZero::new(registers)?.trailing_zeros();
        registers &= registers - 1;
        Some(number as usize)
    })
}

fn bit(register: Register) -> u32 {
    let full = register.full_register();
    if full.is_gpr() {
        1 << (full.number() & 15)
    } else if full.is_vector_register() {
        1 << (16 + (full.number() & 15))
    } else {
        0
    }
}

fn reads(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

/// Returns the registers of the addresses that are really accessed (`lea` accesses none), and how.
fn addresses(info: &InstructionInfo) -> (u32, Touch) {
    let (mut mask, mut loads, mut stores) = (0, false, false);
    for memory in info.used_memory() {
        let (read, written) = (reads(memory.access()), writes(memory.access()));
        if read || written {
            mask |= bit(memory.base()) | bit(memory.index());
        }
        (loads, stores) = (loads | read, stores | written);
    }
    let touch = match (loads, stores) {
        (false, false) => Touch::Nothing,
        (true, false) => Touch::Loads,
        (false, true) => Touch::Stores,
        (true, true) => Touch::Both,
    };
    (mask, touch)
}

fn registers(instruction: &Instruction, info: &InstructionInfo, address: u32) -> Summary {
    let (mut read, mut written) = (0, 0);
    for used in info.used_registers() {
        let mask = bit(used.register());
        // A write of 8 or 16 bits, or one that may not happen, keeps part of the old value.
        let merges = used.register().size() < 4 || used.access() == OpAccess::CondWrite;
        if reads(used.access()) || (writes(used.access()) && merges) {
            read |= mask;
        }
        if writes(used.access()) {
            written |= mask;
        }
    }
    // An address's register is a source of the value only if it is an operand too: `mov [rax], rax`.
    let operands = (0..instruction.op_count())
        .filter(|&operand| instruction.op_kind(operand) == OpKind::Register && reads(info.op_access(operand)))
        .fold(0, |mask, operand| mask | bit(instruction.op_register(operand)));
    Summary { address, sources: read & !address | operands, destinations: written, ..Summary::default() }
}

/// Removes flows that the masks would invent: a pushed value does not reach the stack pointer, and a copied
/// one does not reach the pointers of a string instruction.
fn restrict(instruction: &Instruction, summary: &mut Summary) {
    if instruction.is_stack_instruction() {
        summary.sources &= !RSP;
        summary.destinations &= !RSP;
    } else if instruction.is_string_instruction() {
        summary.sources &= RAX;
        summary.destinations &= RAX;
    } else if matches!(instruction.mnemonic(), iced_x86::Mnemonic::Syscall) {
        summary.destinations |= RAX;
    }
}

#[cfg(test)]
mod tests {
    use super::Touch::{Both, Loads, Nothing, Stores};
    use super::*;

    const RBX: u32 = 1 << 3;
    const RCX: u32 = 1 << 1;
    const XMM1: u32 = 1 << 17;

    fn of(bytes: &[u8]) -> (u32, u32, u32, Touch) {
        let Found { summary, .. } = Summarizer::default().summarize(bytes, 0x1000);
        (summary.address, summary.sources, summary.destinations, summary.touches)
    }

    #[test]
    fn instructions_of_avx512_are_told_by_their_first_byte() {
        // vaddps zmm0, zmm0, zmm0; what QEMU has read of it; with an address-size prefix.
        for bytes in [&[0x62, 0xf1, 0x7c, 0x48, 0x58, 0xc0][..], &[0x62], &[0x67, 0x62]] {
            assert!(is_avx512(bytes), "{bytes:x?}");
        }
        // vaddps ymm0, ymm0, ymm0; add rax, rcx; mov al, 0x62; nothing.
        for bytes in [&[0xc5, 0xfc, 0x58, 0xc0][..], &[0x48, 0x01, 0xc8], &[0xb0, 0x62], &[]] {
            assert!(!is_avx512(bytes), "{bytes:x?}");
        }
    }

    #[test]
    fn loads_stores_and_arithmetic_flow_as_written() {
        assert_eq!(of(&[0x48, 0x8b, 0x03]), (RBX, 0, RAX, Loads), "mov rax, [rbx]");
        assert_eq!(of(&[0x48, 0x89, 0x03]), (RBX, RAX, 0, Stores), "mov [rbx], rax");
        assert_eq!(of(&[0x48, 0x89, 0x00]), (RAX, RAX, 0, Stores), "mov [rax], rax");
        assert_eq!(of(&[0x48, 0x8b, 0x04, 0xcb]), (RBX | RCX, 0, RAX, Loads), "mov rax, [rbx+rcx*8]");
        assert_eq!(of(&[0x48, 0x01, 0xd8]), (0, RAX | RBX, RAX, Nothing), "add rax, rbx");
        assert_eq!(of(&[0x48, 0x8d, 0x04, 0x0b]), (0, RBX | RCX, RAX, Nothing), "lea rax, [rbx+rcx]");
        assert_eq!(of(&[0x66, 0x48, 0x0f, 0x6e, 0xc8]), (0, RAX, XMM1, Nothing), "movq xmm1, rax");
        assert_eq!(of(&[0x48, 0x0f, 0x44, 0xc3]), (0, RAX | RBX, RAX, Nothing), "cmove rax, rbx");
    }

    #[test]
    fn zeroing_has_no_source_and_partial_writes_keep_the_old_value() {
        assert_eq!(of(&[0x31, 0xc0]), (0, 0, RAX, Nothing), "xor eax, eax");
        assert_eq!(of(&[0xb0, 0x01]), (0, RAX, RAX, Nothing), "mov al, 1");
        assert_eq!(of(&[0xb8, 1, 0, 0, 0]), (0, 0, RAX, Nothing), "mov eax, 1");
    }

    #[test]
    fn stack_and_string_instructions_do_not_taint_their_pointers() {
        assert_eq!(of(&[0x50]), (RSP, RAX, 0, Stores), "push rax");
        assert_eq!(of(&[0x58]), (RSP, 0, RAX, Loads), "pop rax");
        let (address, sources, destinations, touches) = of(&[0xf3, 0x48, 0xa5]);
        assert_eq!((address, sources, destinations, touches), (1 << 6 | 1 << 7, 0, 0, Both), "rep movsq");
        assert_eq!(of(&[0x06]), (0, 0, 0, Both), "not an instruction");
    }

    #[test]
    fn only_plain_moves_of_at_most_eight_bytes_are_one_access() {
        let once = |bytes: &[u8]| {
            let found = Summarizer::default().summarize(bytes, 0x1000);
            (found.once, found.summary.reach)
        };
        for (bytes, reach) in
            [(&[0x48, 0x8b, 0x03][..], 7), (&[0x8b, 0x03], 3), (&[0x88, 0x03], 0), (&[0x50], 7)]
        {
            assert_eq!(once(bytes), (true, reach), "mov rax, [rbx]; mov eax, [rbx]; mov [rbx], al; push rax");
        }
        assert_eq!(once(&[0x48, 0x01, 0x03]), (false, 0), "add [rbx], rax: two");
        assert_eq!(once(&[0x0f, 0x28, 0x03]), (false, 0), "movaps xmm0, [rbx]: may be split");
        assert_eq!(once(&[0xf3, 0x48, 0xab]), (false, 0), "rep stosq: any number");
        assert_eq!(once(&[0xff, 0x33]), (false, 0), "push [rbx]: two");
        assert_eq!(once(&[0x48, 0x01, 0xd8]), (false, 0), "add rax, rbx: none");
    }

    #[test]
    fn instructions_know_their_places_in_the_block() {
        let mut summarizer = Summarizer::default();
        let mut block = [&[0x50][..], &[0x48, 0x01, 0xd8], &[0x48, 0x01, 0x03]]
            .map(|bytes| summarizer.summarize(bytes, 0));
        place(&mut block);
        let places = block.map(|found| (found.summary.index, found.summary.behind, found.summary.once));
        assert_eq!(places, [(0, 2, 1), (1, 1, 1), (2, 0, 1)]);
    }

    #[test]
    fn a_ticket_tells_what_it_was_made_of() {
        for (index, once, reach, stores) in [(0, 0, 0, false), (3, 7, 15, true), (511, 500, 63, true)] {
            let summary = Summary { index, behind: 511 - index, once, ..Summary::default() };
            let ticket = Ticket::of(Ticket::new(&summary, reach, stores).data());
            assert_eq!((ticket.block_length(), ticket.reach(), ticket.stores()), (512, reach.into(), stores));
            assert_eq!(ticket.once(), u64::from(once.min(COUNTED)));
            // SAFETY: the summary is alive.
            assert!(std::ptr::eq(unsafe { ticket.summary() }, &raw const summary));
        }
    }

    #[test]
    fn instructions_know_where_their_addresses_and_stored_values_come_from() {
        let mut summarizer = Summarizer::default();
        // mov rax, [rbx]; lea rcx, [rax+rdx]; xor edx, edx; mov [rcx], rdx.
        let code = [&[0x48, 0x8b, 0x03][..], &[0x48, 0x8d, 0x0c, 0x10], &[0x31, 0xd2], &[0x48, 0x89, 0x11]];
        let mut block = code.map(|bytes| summarizer.summarize(bytes, 0));
        place(&mut block);
        let rdx = 1 << 2;
        assert_eq!(block.map(|found| found.summary.origins), [RBX, RBX | rdx, 0, RBX | rdx]);
        let Summary { block_sources, block_destinations, .. } = block[0].summary;
        assert_eq!((block_sources, block_destinations), (RBX | rdx, RAX | RCX | rdx));
    }
}
