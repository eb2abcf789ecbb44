//! Which addresses of a block differ by a constant, as far as that is known before the block runs.

use iced_x86::{Code, CodeSize, Instruction, InstructionInfo, Mnemonic, OpAccess, Register, UsedMemory};

/// Address as a distance from a sum of unknown register values; addresses compare where their sums are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) sum: Sum,
    pub(crate) distance: i64,
}

/// Sum of the values of a segment, a base, and an index times its scale; 0 stands for no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sum {
    segment: Register,
    base: u32,
    index: u32,
    scale: u32,
}

/// Content of a register: an unknown value, by its number, and a distance from it.
#[derive(Debug, Clone, Copy)]
struct Content {
    value: u32,
    distance: i64,
}

#[derive(Debug)]
pub(crate) struct Registers {
    contents: [Content; 16],
    values: u32,
}

impl Default for Registers {
    fn default() -> Self {
        let contents = std::array::from_fn(|number| Content { value: number as u32 + 1, distance: 0 });
        Self { contents, values: 16 }
    }
}

impl Registers {
    /// Returns the address that the next instruction accesses, unless it is not a plain 64-bit one.
    pub(crate) fn address(&self, memory: &UsedMemory) -> Option<Address> {
        let (base, index) = (self.content(memory.base())?, self.content(memory.index())?);
        let scale = if index.value == 0 { 0 } else { memory.scale() };
        let segment = match memory.segment() {
            segment @ (Register::FS | Register::GS) => segment,
            _ => Register::None,
        };
        let indexed = index.distance.wrapping_mul(i64::from(scale));
        let distance = base.distance.wrapping_add(indexed).wrapping_add(memory.displacement().cast_signed());
        let plain = memory.address_size() == CodeSize::Code64;
        plain.then_some(Address {
            sum: Sum { segment, base: base.value, index: index.value, scale },
            distance,
        })
    }

    /// Returns the content of an address's register; value 0 without a register.
    fn content(&self, register: Register) -> Option<Content> {
        match register {
            // The displacement is the whole address.
            Register::None | Register::RIP => Some(Content { value: 0, distance: 0 }),
            _ => register.is_gpr64().then(|| self.contents[register.number()]),
        }
    }

    /// Carries the contents through an instruction: a written register gets a new value or a known distance.
    pub(crate) fn execute(&mut self, instruction: &Instruction, info: &InstructionInfo) {
        let before = self.contents;
        for used in info.used_registers() {
            let full = used.register().full_register();
            if full.is_gpr() && writes(used.access()) {
                self.values += 1;
                let new = Content { value: self.values, distance: 0 };
                self.contents[full.number()] = moved(instruction, full, &before).unwrap_or(new);
            }
        }
    }

    pub(crate) fn forget(&mut self) {
        for content in &mut self.contents {
            self.values += 1;
            *content = Content { value: self.values, distance: 0 };
        }
    }
}

pub(crate) fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

/// Returns the new content of `register` where it is a known distance from a content `before`.
fn moved(instruction: &Instruction, register: Register, before: &[Content; 16]) -> Option<Content> {
    let far = |from: Register, distance: i64| {
        let content = before[from.number()];
        Some(Content { distance: content.distance.wrapping_add(distance), ..content })
    };
    let target = instruction.op0_register();
    let onto_stack =
        matches!(instruction.mnemonic(), Mnemonic::Push | Mnemonic::Pop | Mnemonic::Call | Mnemonic::Ret);
    if onto_stack && register == Register::RSP && target != Register::RSP {
        return far(Register::RSP, instruction.stack_pointer_increment().into());
    }
    if register != target {
        return None;
    }
    match instruction.code() {
        Code::Add_rm64_imm8 | Code::Add_rm64_imm32 => far(register, instruction.immediate(1).cast_signed()),
        Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 => {
            far(register, instruction.immediate(1).cast_signed().wrapping_neg())
        }
        Code::Mov_r64_rm64 | Code::Mov_rm64_r64 if instruction.op1_register().is_gpr64() => {
            far(instruction.op1_register(), 0)
        }
        Code::Lea_r64_m
            if instruction.memory_base().is_gpr64() && instruction.memory_index() == Register::None =>
        {
            far(instruction.memory_base(), instruction.memory_displacement64().cast_signed())
        }
        _ => None,
    }
}
