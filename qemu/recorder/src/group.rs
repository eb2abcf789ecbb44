//! Finds the *groups* of a block: accesses that one call reports.
//!
//! Calls are the recorder's main cost, and accesses such as those of a function's pushes come in rows. So
//! consecutive accesses at known distances from each other, over at most 64 bytes, form a group, and the one
//! at the lowest address reports all. Where their one or two cache lines are in the thread's filter, none of
//! them changes anything. Otherwise they are made one by one in program order, as if each had called. Two
//! exceptions: where an instruction of a group faults, the whole group is made or nothing of it; and another
//! thread's access between the members comes before or after them all.

use crate::address::Address;
use crate::summary::{Found, Summary, Touch};

const WIDEST: i64 = 64;

#[derive(Debug, Clone, Copy)]
struct Group {
    first: usize,
    last: usize,
    teller: usize,
    low: Address,
    /// Distance after the last byte.
    high: i64,
}

impl Group {
    /// Makes a group of the access of `reach + 1` bytes at `low`.
    fn new(index: usize, low: Address, reach: u8) -> Self {
        let high = low.distance.saturating_add(i64::from(reach) + 1);
        Self { first: index, last: index, teller: index, low, high }
    }

    /// Returns the group with the access of `reach + 1` bytes at `place` added, if that belongs to it.
    fn joined(self, index: usize, place: Address, reach: u8) -> Option<Self> {
        let high = self.high.max(place.distance.saturating_add(i64::from(reach) + 1));
        let (low, teller) = match place.distance < self.low.distance {
            true => (place, index),
            false => (self.low, self.teller),
        };
        let near = high.saturating_sub(low.distance) <= WIDEST;
        (near && place.sum == self.low.sum).then_some(Self { last: index, teller, low, high, ..self })
    }

    fn tell(&self, block: &mut [Found]) {
        let mut group_origins = 0;
        for found in &mut block[self.first..=self.last] {
            if let Some(place) = found.place {
                found.summary.offset = (place.distance - self.low.distance) as u8;
                found.tells = false;
                group_origins |= found.summary.origins;
            }
        }
        let Found { summary, tells, .. } = &mut block[self.teller];
        let (first, last) = (self.first as u16, self.last as u16);
        let span = (self.high - self.low.distance - 1) as u8;
        (*summary, *tells) = (Summary { first, last, span, group_origins, ..*summary }, true);
    }
}

pub(crate) fn find(block: &mut [Found]) {
    let mut group: Option<Group> = None;
    for index in 0..block.len() {
        let Found { summary, place, .. } = &mut block[index];
        if summary.touches == Touch::Nothing {
            continue;
        }
        let (place, reach) = (*place, summary.reach);
        let (first, last, group_origins) = (index as u16, index as u16, summary.origins);
        *summary = Summary { first, last, span: reach, group_origins, ..*summary };
        block[index].tells = true;
        match group.zip(place).and_then(|(group, place)| group.joined(index, place, reach)) {
            Some(joined) => {
                joined.tell(block);
                group = Some(joined);
            }
            None => group = place.map(|low| Group::new(index, low, reach)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{Summarizer, place};

    /// Returns for each reporting instruction the group's first and last instruction, span and members'
    /// offsets.
    fn groups(code: &[&[u8]]) -> Vec<(u16, u16, u8, Vec<u8>)> {
        let mut summarizer = Summarizer::default();
        let mut block: Vec<_> = code.iter().map(|bytes| summarizer.summarize(bytes, 0x1000)).collect();
        place(&mut block);
        find(&mut block);
        let summaries: Vec<_> = block.iter().map(|found| found.summary).collect();
        let tell = block.iter().zip(&summaries).filter(|(found, _)| found.tells);
        let group = |summary: &Summary| summary.group().map(|member| member.offset).collect();
        tell.map(|(_, summary)| (summary.first, summary.last, summary.span, group(summary))).collect()
    }

    const PUSH_RBX: &[u8] = &[0x53];
    const PUSH_RSP: &[u8] = &[0x54];
    const POP_RAX: &[u8] = &[0x58];
    const POP_RSP: &[u8] = &[0x5c];
    const LOAD: &[u8] = &[0x48, 0x8b, 0x03];
    const LOAD_NEXT: &[u8] = &[0x48, 0x8b, 0x43, 0x08];
    const LOAD_FAR: &[u8] = &[0x48, 0x8b, 0x43, 0x40];
    const LOAD_STACK: &[u8] = &[0x48, 0x8b, 0x44, 0x24, 0x08];
    const NEW_RBX: &[u8] = &[0x48, 0x31, 0xc3];
    const ADD_RBX_8: &[u8] = &[0x48, 0x83, 0xc3, 0x08];
    const SUB_RSP_16: &[u8] = &[0x48, 0x83, 0xec, 0x10];
    const ADD_TO_RBX: &[u8] = &[0x48, 0x01, 0x03];

    #[test]
    fn pushes_are_told_of_by_the_last_and_pops_by_the_first() {
        assert_eq!(groups(&[PUSH_RBX, NEW_RBX, PUSH_RBX, PUSH_RBX]), [(0, 3, 23, vec![16, 8, 0])]);
        assert_eq!(groups(&[POP_RAX, POP_RAX, &[0xc3]]), [(0, 2, 23, vec![0, 8, 16])]);
        assert_eq!(groups(&[PUSH_RBX, SUB_RSP_16, LOAD_STACK]), [(0, 2, 15, vec![8, 0])]);
    }

    #[test]
    fn accesses_at_distances_that_are_not_known_stay_apart() {
        assert_eq!(groups(&[LOAD, LOAD_NEXT]), [(0, 1, 15, vec![0, 8])]);
        assert_eq!(groups(&[LOAD_NEXT, ADD_RBX_8, LOAD]), [(0, 2, 7, vec![0, 0])]);
        let apart = [(0, 0, 7, vec![0]), (2, 2, 7, vec![0])];
        assert_eq!(groups(&[LOAD, NEW_RBX, LOAD_NEXT]), apart, "another rbx");
        assert_eq!(groups(&[POP_RAX, POP_RSP, POP_RAX])[1..], apart[1..], "another rsp");
        let apart = [(0, 0, 7, vec![0]), (1, 1, 7, vec![0])];
        assert_eq!(groups(&[LOAD, LOAD_FAR]), apart, "72 bytes");
        assert_eq!(groups(&[LOAD, &[0x48, 0x8b, 0x04, 0xcb]]), apart, "mov rax, [rbx+rcx*8]");
        assert_eq!(groups(&[LOAD, &[0x64, 0x48, 0x8b, 0x03]]), apart, "mov rax, fs:[rbx]");
        assert_eq!(groups(&[LOAD, &[0x67, 0x48, 0x8b, 0x03]]), apart, "mov rax, [ebx]");
    }

    #[test]
    fn another_access_between_keeps_them_apart() {
        let between = groups(&[LOAD, PUSH_RSP, LOAD_NEXT]);
        assert_eq!(between, [(0, 0, 7, vec![0]), (1, 1, 7, vec![0]), (2, 2, 7, vec![0])]);
        let between = groups(&[LOAD, ADD_TO_RBX, LOAD_NEXT]);
        assert_eq!(between, [(0, 0, 7, vec![0]), (1, 1, 0, vec![0]), (2, 2, 7, vec![0])]);
    }
}
