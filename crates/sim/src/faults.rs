//! Hint faults: when pages were armed, who faulted, and the faults not yet delivered.

use isotherm_core::{HintFault, Nanos, Operation, PageId, TierId};

use crate::stream::Access;

/// The faults of a run. Its arrays are allocated when the first page is armed, which most policies never do.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    armed: Vec<Nanos>,
    /// Thread that last faulted on each page.
    threads: Vec<u16>,
    waiting: Vec<HintFault>,
}

impl Faults {
    pub(crate) fn arm(&mut self, page: PageId, pages: usize, now: Nanos) {
        if self.armed.is_empty() {
            self.armed = vec![Nanos(0); pages];
            self.threads = vec![u16::MAX; pages];
        }
        self.armed[page.index()] = now;
    }

    pub(crate) fn take(&mut self, access: &Access, tier: usize, time: Nanos) {
        let page = PageId(access.page);
        self.threads[page.index()] = access.thread;
        self.waiting.push(HintFault {
            time,
            page,
            latency: time - self.armed[page.index()],
            tier: TierId(tier as u8),
            operation: if access.store() == 0 { Operation::Load } else { Operation::Store },
        });
    }

    pub(crate) fn thread(&self, page: PageId) -> Option<u16> {
        self.threads.get(page.index()).copied().filter(|&thread| thread != u16::MAX)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn drain(&mut self, faults: &mut Vec<HintFault>) {
        faults.append(&mut self.waiting);
    }
}
