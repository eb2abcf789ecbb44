//! Rules from the call frame information in `.eh_frame` (Linux Standard Base, "Exception Frames").

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, NativeEndian, Pointer, RegisterRule, UnwindContext,
    UnwindContextStorage, UnwindSection, UnwindTableRow, X86_64,
};

use super::modules::Module;
use super::rules::Rule;

type Slice = gimli::EndianSlice<'static, NativeEndian>;

/// Stack storage for the decoder: a function has few rules and rarely saves them.
struct OnStack;

impl UnwindContextStorage<usize> for OnStack {
    type Rules = [(gimli::Register, RegisterRule<usize>); 24];
    type Stack = [UnwindTableRow<usize, Self>; 3];
}

pub(super) fn rule(module: &Module, address: usize) -> Option<Rule> {
    let header = module.bytes_from(module.frame_header?)?;
    let bases = BaseAddresses::default().set_eh_frame_hdr(header.as_ptr() as u64);
    let parsed = EhFrameHdr::new(header, NativeEndian).parse(&bases, 8).ok()?;
    let Pointer::Direct(start) = parsed.eh_frame_ptr() else { return None };
    let bytes = module.bytes_from(start as usize)?;
    let bases = bases.set_eh_frame(start);
    let frames: EhFrame<Slice> = EhFrame::new(bytes, NativeEndian);
    let table = parsed.table()?;
    let description =
        table.fde_for_address(&frames, &bases, address as u64, UnwindSection::cie_from_offset).ok()?;
    let mut context = UnwindContext::<usize, OnStack>::new_in();
    let row = description.unwind_info_for_address(&frames, &bases, &mut context, address as u64);
    Some(row.ok().and_then(step).unwrap_or(Rule::Stop))
}

fn step(row: &UnwindTableRow<usize, OnStack>) -> Option<Rule> {
    let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else { return None };
    let from_frame_pointer = match *register {
        X86_64::RSP => false,
        X86_64::RBP => true,
        _ => return None,
    };
    // The outermost function declares its return address undefined.
    let Some(RegisterRule::Offset(-8)) = row.register(X86_64::RA) else { return None };
    let saved = match row.register(X86_64::RBP) {
        None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => 0,
        Some(RegisterRule::Offset(below)) => u16::try_from(below.checked_neg()?).ok()?,
        _ => return None,
    };
    Some(Rule::Step { from_frame_pointer, bytes: i32::try_from(*offset).ok()?, saved })
}
