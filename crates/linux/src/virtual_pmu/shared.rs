//! One virtual PMU for several engines of this process, which a device for one user cannot serve otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use isotherm_core::{Nanos, Sampling, SamplingRate, Signal, Signals};

use super::VirtualPmuSource;
use crate::LinuxError;
use crate::process::Pid;
use crate::source::{Access, AccessSource, Prices, SourceStatistics};

/// Most accesses kept for an engine until it takes them; the rest is lost and counted.
const MAX_KEPT: usize = 1 << 18;

/// The open devices, by the root of their file system.
static DEVICES: Mutex<BTreeMap<PathBuf, Weak<Mutex<Device>>>> = Mutex::new(BTreeMap::new());

/// One engine's part of the virtual PMU: the samples of its processes. The device counts the whole machine,
/// so nobody has counters here, and it samples as often as the most eager engine asks.
pub struct SharedVirtualPmu {
    device: Arc<Mutex<Device>>,
    user: u64,
}

struct Device {
    source: VirtualPmuSource,
    users: BTreeMap<u64, User>,
    accesses: Vec<Access>,
}

#[derive(Default)]
struct User {
    followed: BTreeSet<Pid>,
    request: Option<Sampling>,
    accesses: Vec<Access>,
    statistics: SourceStatistics,
}

impl SharedVirtualPmu {
    /// # Errors
    /// As [`VirtualPmuSource::open`].
    pub fn open(root: &Path) -> Result<Self, LinuxError> {
        let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
        let device = match devices.get(root).and_then(Weak::upgrade) {
            Some(device) => device,
            None => {
                let source = VirtualPmuSource::open(root)?;
                let device = Device { source, users: BTreeMap::new(), accesses: Vec::new() };
                let device = Arc::new(Mutex::new(device));
                devices.insert(root.to_owned(), Arc::downgrade(&device));
                device
            }
        };
        let user = {
            let mut device = locked(&device);
            let user = device.users.last_key_value().map_or(0, |last| last.0 + 1);
            device.users.insert(user, User::default());
            user
        };
        Ok(Self { device, user })
    }

    fn with<T>(&self, act: impl FnOnce(&mut VirtualPmuSource, &mut User) -> T) -> T {
        let mut device = locked(&self.device);
        let Device { source, users, .. } = &mut *device;
        act(source, users.entry(self.user).or_default())
    }
}

fn locked(device: &Mutex<Device>) -> MutexGuard<'_, Device> {
    device.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Orders requests by how many samples they ask for.
fn eagerness(request: &Sampling) -> (u8, u64) {
    match request.rate {
        SamplingRate::Off => (0, 0),
        SamplingRate::Frequency(hertz) => (1, hertz),
        SamplingRate::Period(period) => (2, u64::MAX - period),
    }
}

impl Device {
    fn request(&mut self) -> Result<(), LinuxError> {
        let requests = self.users.values().filter_map(|user| user.request);
        let Some(most) = requests.max_by_key(eagerness) else { return Ok(()) };
        self.source.request(&most)
    }

    fn distribute(&mut self) {
        for access in self.accesses.drain(..) {
            let user = self.users.values_mut().find(|user| user.followed.contains(&access.process));
            match user {
                Some(user) if user.accesses.len() < MAX_KEPT => {
                    user.accesses.push(access);
                    user.statistics.delivered += 1;
                }
                Some(user) => user.statistics.lost += 1,
                None => {}
            }
        }
    }
}

impl AccessSource for SharedVirtualPmu {
    fn name(&self) -> &'static str {
        "virtual-pmu"
    }

    fn offers(&self) -> Signals {
        [Signal::LoadSamples, Signal::StoreSamples, Signal::SampleLatency]
            .into_iter()
            .fold(Signals::NONE, Signals::with)
    }

    fn follow(&mut self, process: Pid) -> Result<(), LinuxError> {
        self.with(|source, user| {
            user.followed.insert(process);
            source.follow(process)
        })
    }

    fn forget(&mut self, process: Pid) {
        self.with(|source, user| {
            user.followed.remove(&process);
            source.forget(process);
        });
    }

    fn request(&mut self, sampling: &Sampling) -> Result<(), LinuxError> {
        let mut device = locked(&self.device);
        device.users.entry(self.user).or_default().request = Some(*sampling);
        device.request()
    }

    fn drain(&mut self, accesses: &mut Vec<Access>) -> Result<(), LinuxError> {
        let mut device = locked(&self.device);
        let Device { source, accesses: found, .. } = &mut *device;
        let drained = source.drain(found);
        device.distribute();
        accesses.append(&mut device.users.entry(self.user).or_default().accesses);
        drained
    }

    fn clock(&self) -> Option<Nanos> {
        locked(&self.device).source.clock()
    }

    fn prices(&self) -> Option<Prices> {
        locked(&self.device).source.prices()
    }

    fn statistics(&self) -> SourceStatistics {
        self.with(|source, user| {
            let all = source.statistics();
            let each = all.program_time.0.checked_div(all.delivered).unwrap_or(0);
            SourceStatistics {
                program_time: Nanos(each * user.statistics.delivered),
                memory: all.memory,
                ..user.statistics
            }
        })
    }
}

impl Drop for SharedVirtualPmu {
    fn drop(&mut self) {
        let mut device = locked(&self.device);
        if let Some(user) = device.users.remove(&self.user) {
            user.followed.into_iter().for_each(|process| device.source.forget(process));
        }
        // A plugin that does not answer is noticed at the next drain.
        let _ = device.request();
    }
}
