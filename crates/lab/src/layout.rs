//! Places of a virtual machine's nodes in the guest's physical memory.

use std::ops::Range;

use crate::machine::{Machine, NodeKind};

/// Size from which QEMU's q35 splits the memory below 4 GiB, since PCI devices need the rest.
const HOLE_FROM: u64 = 0xb000_0000;
/// End of the low memory if it is split.
const LOW_END: u64 = 0x8000_0000;
const FOUR_GIB: u64 = 1 << 32;
/// Alignment of CXL windows, which follow the host bridges' registers, which follow the memory.
const CXL_ALIGN: u64 = 256 << 20;
const CXL_REGISTERS: u64 = 1 << 20;

/// Returns the physical ranges of each node, in ascending order.
pub fn physical_ranges(machine: &Machine) -> Vec<Vec<Range<u64>>> {
    let plain = machine.plain_memory().0;
    let mut start = 0;
    let range = |node: &crate::machine::Node| match node.kind {
        NodeKind::Plain => {
            let ranges = place(plain, start..start + node.size.0);
            start += node.size.0;
            ranges
        }
        NodeKind::Cxl => {
            let window = cxl_window(plain);
            std::iter::once(window..window + node.size.0).collect()
        }
    };
    machine.nodes.iter().map(range).collect()
}

/// Returns the places of a part of the memory, which has `total` bytes.
fn place(total: u64, part: Range<u64>) -> Vec<Range<u64>> {
    if total < HOLE_FROM {
        return std::iter::once(part).collect();
    }
    let low = part.start.min(LOW_END)..part.end.min(LOW_END);
    let high = part.start.max(LOW_END) - LOW_END + FOUR_GIB..part.end.max(LOW_END) - LOW_END + FOUR_GIB;
    [low, high].into_iter().filter(|range| !range.is_empty()).collect()
}
fn cxl_window(plain: u64) -> u64 {
    let above = if plain < HOLE_FROM { 0 } else { plain - LOW_END };
    (FOUR_GIB + above + CXL_REGISTERS).next_multiple_of(CXL_ALIGN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_memory_lies_in_one_piece() {
        assert_eq!(place(0x6000_0000, 0x2000_0000..0x6000_0000).first(), Some(&(0x2000_0000..0x6000_0000)));
    }

    #[test]
    fn more_memory_goes_around_the_hole() {
        let total = 0x1_0000_0000;
        assert_eq!(place(total, 0..0x4000_0000).first(), Some(&(0..0x4000_0000)));
        let around = [0x4000_0000..0x8000_0000, 0x1_0000_0000..0x1_8000_0000];
        assert_eq!(place(total, 0x4000_0000..0x1_0000_0000), around);
        assert_eq!(place(total, 0x8000_0000..0xc000_0000).first(), Some(&(0x1_0000_0000..0x1_4000_0000)));
    }

    #[test]
    fn nodes_follow_each_other_and_a_device_has_a_window() -> Result<(), crate::LabError> {
        let one = |range: Range<u64>| std::iter::once(range).collect::<Vec<_>>();
        let small = physical_ranges(&Machine::builtin("small")?);
        assert_eq!(small, [one(0..0x1800_0000), one(0x1800_0000..0x3800_0000)]);
        let cxl = physical_ranges(&Machine::builtin("cxl")?);
        assert_eq!(cxl, [one(0..0x2000_0000), one(0x1_1000_0000..0x1_3000_0000)]);
        Ok(())
    }
}
