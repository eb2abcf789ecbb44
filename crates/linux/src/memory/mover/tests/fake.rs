//! A kernel for tests of the mover.

use std::io;

use super::super::*;
use crate::memory::{BASE, HUGE};

/// A kernel of two nodes with injected errors. Like Linux, a call isolates pages and moves them together; the
/// batch ends at a page that cannot be isolated, and the call ends when isolated pages do not move.
#[derive(Default)]
pub(super) struct Fake {
    /// Address and node of each present page.
    pub(super) pages: std::collections::BTreeMap<u64, i32>,
    /// Addresses that cannot be isolated, with the error and how often.
    pub(super) fail: std::collections::BTreeMap<u64, (i32, u32)>,
    /// Addresses that are isolated and then do not move, and how often.
    pub(super) stuck: std::collections::BTreeMap<u64, u32>,
    /// Pages that node 0 takes until ENOMEM.
    pub(super) room: Option<u64>,
    /// Huge pages by first address.
    pub(super) huge: std::collections::BTreeSet<u64>,
    /// Errors of the next moving calls, 0 for none, and of every query.
    pub(super) errors: Vec<i32>,
    pub(super) query_error: i32,
    /// Addresses of each moving call.
    pub(super) calls: Vec<usize>,
    /// Most pages that were on their way at once.
    pub(super) most: usize,
    pub(super) paused: u64,
}

impl Fake {
    pub(super) fn on_slow(pages: u64) -> Self {
        Self { pages: (0..pages).map(|page| (page * BASE, 1)).collect(), ..Self::default() }
    }

    fn head(&self, address: u64) -> u64 {
        let head = address & !(HUGE - 1);
        if self.huge.contains(&head) { head } else { address }
    }

    fn shift(&mut self, head: u64, node: i32) {
        let size = if self.huge.contains(&head) { HUGE } else { BASE };
        self.pages.range_mut(head..head + size).for_each(|(_, place)| *place = node);
    }

    /// Moves the isolated pages. An error or a count of failures ends the call.
    fn flush(&mut self, aside: &mut Vec<(usize, u64)>, node: i32, status: &mut [i32]) -> Result<u64, i32> {
        let mut failed = 0;
        let all = std::mem::take(aside);
        self.most = self.most.max(all.len());
        for &(_, head) in &all {
            if let Some(left) = self.stuck.get_mut(&head).filter(|left| **left > 0) {
                *left -= 1;
                failed += 1;
                continue;
            }
            if let Some(room) = self.room.as_mut().filter(|_| node == 0) {
                *room = room.checked_sub(1).ok_or(libc::ENOMEM)?;
            }
            self.shift(head, node);
        }
        if failed == 0 {
            all.iter().for_each(|&(index, _)| status[index] = node);
        }
        Ok(failed)
    }

    fn answer(&mut self, addresses: &[u64], nodes: &[i32], status: &mut [i32]) -> Result<u64, i32> {
        let (mut aside, mut taken): (Vec<(usize, u64)>, Vec<u64>) = (Vec::new(), Vec::new());
        for (index, &address) in addresses.iter().enumerate() {
            let head = self.head(address);
            let error = match (self.pages.get(&address), self.fail.get_mut(&address)) {
                (None, _) => -libc::ENOENT,
                (_, Some((error, left))) if *left > 0 => {
                    *left -= 1;
                    -*error
                }
                (Some(&place), _) if place == nodes[index] => place,
                _ if taken.contains(&head) => -libc::EBUSY,
                _ => {
                    aside.push((index, head));
                    taken.push(head);
                    continue;
                }
            };
            status[index] = error;
            let failed = self.flush(&mut aside, nodes[index], status)?;
            taken.clear();
            if failed > 0 {
                return Ok(failed + (addresses.len() - index) as u64);
            }
        }
        self.flush(&mut aside, nodes[0], status)
    }
}

impl MovePages for &mut Fake {
    fn move_pages(
        &mut self,
        _pid: Pid,
        addresses: &[u64],
        nodes: Option<&[i32]>,
        status: &mut [i32],
        _all: bool,
    ) -> io::Result<u64> {
        let Some(nodes) = nodes else {
            if self.query_error != 0 {
                return Err(io::Error::from_raw_os_error(self.query_error));
            }
            let place = |address: &u64| self.pages.get(address).copied().unwrap_or(-libc::ENOENT);
            status.iter_mut().zip(addresses).for_each(|(status, address)| *status = place(address));
            return Ok(0);
        };
        self.calls.push(addresses.len());
        let error = if self.errors.is_empty() { 0 } else { self.errors.remove(0) };
        let result = if error == 0 { self.answer(addresses, nodes, status) } else { Err(error) };
        result.map_err(io::Error::from_raw_os_error)
    }

    fn pause(&mut self, time: Nanos) {
        self.paused += time.0;
    }
}
