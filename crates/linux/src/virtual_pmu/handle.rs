//! Requests to the plugin: writes them, rings the doorbell and waits for the answer.

use std::path::Path;

use isotherm_core::Nanos;
use isotherm_virtual_pmu::layout::MAX_TIERS;
use isotherm_virtual_pmu::{Control, Driver, Prices, Record, Snapshot};

use super::{device, mailbox};
use crate::files::Tree;
use crate::sys::mmap::SharedWords;
use crate::{LinuxError, clock};

/// Time for the plugin to answer, which it does at the next access of user-mode code, such as this wait.
const PATIENCE: Nanos = Nanos::SECOND;
/// Checks of the answer between two reads of the clock.
const LOOKS: usize = 64;

/// Virtual PMU of this virtual machine. Only one user at a time may take its samples. Every request fails if
/// the plugin does not answer.
#[derive(Debug)]
pub struct VirtualPmu {
    driver: Driver<SharedWords>,
    /// In force.
    pub(super) periods: [u64; MAX_TIERS],
}

impl VirtualPmu {
    /// Opens the device below `root` and tells the plugin where processes are kept. Samples that an earlier
    /// user left in the ring are dropped; its other requests stay in force.
    ///
    /// # Errors
    /// If there is no device, or it may not be used, the kernel reveals too little, or no answer comes.
    pub fn open(root: &Path) -> Result<Self, LinuxError> {
        let mut driver = device::open(root)?;
        driver.clear();
        Self::with(driver, root)
    }

    fn with(driver: Driver<SharedWords>, root: &Path) -> Result<Self, LinuxError> {
        driver.set_mailbox(mailbox::find(Tree::new(root))?);
        let mut pmu = Self { periods: driver.control().periods, driver };
        pmu.sync()?;
        Ok(pmu)
    }

    /// Begins an epoch for a process and its descendants and returns its number. Samples, periods and counts
    /// of another user of the device stay as they are.
    pub fn measure(root: &Path, tgid: u32) -> Result<u64, LinuxError> {
        let mut pmu = Self::with(device::open(root)?, root)?;
        if !pmu.counts(tgid) {
            pmu.set_scope(&[tgid])?;
        }
        pmu.begin_epoch()
    }

    /// Returns what tiering costs on the modelled machine.
    pub(super) fn prices(&self) -> Prices {
        self.driver.prices()
    }

    /// Returns whether a user of the device chose the process by name, and it is counted.
    pub(super) fn counts(&self, tgid: u32) -> bool {
        self.driver.control().counting && self.driver.filter().any(|chosen| chosen == tgid)
    }

    /// Rings and waits for the answer; requests are then in force and counters current.
    fn sync(&mut self) -> Result<(), LinuxError> {
        let doorbell = self.driver.ring();
        let started = clock::monotonic();
        while !(0..LOOKS).any(|_| self.driver.is_answered(doorbell)) {
            if clock::monotonic() - started > PATIENCE {
                return Err(LinuxError::Unsupported {
                    what: "the virtual PMU",
                    remedy: "its plugin does not answer: QEMU must run with -plugin and TCG".into(),
                });
            }
        }
        Ok(())
    }

    /// Begins an epoch: resets every counter and starts counting. Returns its number.
    pub fn begin_epoch(&mut self) -> Result<u64, LinuxError> {
        let epoch = self.driver.next_epoch();
        self.driver.set_counting(Control { counting: true, ..self.driver.control() });
        self.sync()?;
        Ok(epoch)
    }

    /// Counts and samples these thread groups and later descendants; returns how many the filter cannot hold.
    pub fn set_scope(&mut self, tgids: &[u32]) -> Result<usize, LinuxError> {
        // An empty filter means all processes.
        let counting = !tgids.is_empty();
        self.driver.set_counting(Control { counting, children: true, ..Control::default() });
        let left_out = self.driver.set_filter(tgids);
        self.sync()?;
        Ok(left_out)
    }

    /// Excludes a thread from counting and sampling, whatever its process; 0 excludes none.
    pub fn leave_out(&mut self, thread: u32) -> Result<(), LinuxError> {
        self.driver.leave_out(thread);
        self.sync()
    }

    /// Samples every n-th miss among `events` ([`Control::event`]): by one event with the first period, or by
    /// one event for `each_tier`. A period of 0 samples nothing. `exact` periods are not dithered.
    pub fn sample(
        &mut self,
        periods: [u64; MAX_TIERS],
        events: u64,
        each_tier: bool,
        exact: bool,
    ) -> Result<(), LinuxError> {
        self.periods = periods;
        self.driver.set_sampling(Control { periods, events, each_tier, exact, ..Control::default() });
        self.sync()
    }

    pub fn counters(&mut self) -> Result<Snapshot, LinuxError> {
        self.sync()?;
        Ok(self.driver.snapshot().unwrap_or_default())
    }

    /// Returns the counters handed over last, at most a block of misses ago.
    pub fn recent_counters(&self) -> Option<Snapshot> {
        self.driver.snapshot()
    }

    pub fn pop(&mut self) -> Option<Record> {
        self.driver.pop()
    }

    /// Returns the samples that found the ring full since the machine's start.
    pub fn lost(&self) -> u64 {
        self.driver.lost()
    }

    pub fn tiers(&self) -> usize {
        self.driver.tiers()
    }

    pub fn vcpus(&self) -> u64 {
        self.driver.vcpus()
    }

    pub fn capacity(&self) -> u64 {
        self.driver.capacity()
    }
}
