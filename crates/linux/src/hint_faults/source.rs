//! The engine's end: an access source fed by the agents in programs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use isotherm_core::{Bytes, Nanos, Operation, Sampling, SamplingRate, Signal, Signals};

use super::connection::{Connection, Pending, Report};
use super::protocol::{self, Closed, Counter, Fault, Record, SOCKET_VARIABLE, UNBOUNDED};
use super::settings::HintFaultOptions;
use crate::LinuxError;
use crate::process::folder::Folder;
use crate::process::{Pid, socket};
use crate::source::{Access, AccessSource, Cause, Race, SETTLED_EVERY, SourceStatistics, Untouched};
use crate::sys::pages::PAGE;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HintFaultStatistics {
    pub agents: usize,
    pub armed: u64,
    pub faults: u64,
    /// Pages that could not be armed because the kernel held them, or children shared them.
    pub busy: u64,
    /// Windows whose mapping the program changed while they were armed.
    pub disturbed: u64,
    /// Pages that had to be copied back rather than moved.
    pub copied: u64,
    /// Requests of policies that were refused: no page there, or none that may be armed.
    pub refused: u64,
    /// Longest window time in force.
    pub window_time: Nanos,
    /// Costliest fault in force, as the agents estimate it.
    pub fault_cost: Nanos,
}

impl HintFaultStatistics {
    fn add(&mut self, report: &Report) {
        let count = |counter: Counter| report.counters[counter as usize];
        let add = |sum: &mut u64, counter: Counter| *sum = sum.saturating_add(count(counter));
        add(&mut self.armed, Counter::Armed);
        add(&mut self.faults, Counter::Faults);
        add(&mut self.busy, Counter::Busy);
        add(&mut self.disturbed, Counter::Disturbed);
        add(&mut self.copied, Counter::Copied);
        add(&mut self.refused, Counter::Refused);
        self.window_time = self.window_time.max(Nanos(count(Counter::WindowTime)));
        self.fault_cost = self.fault_cost.max(Nanos(count(Counter::FaultCost)));
    }
}

/// One drain in this many asks whether agents have come or gone: two calls, dearer than the rest.
const LOOKS: u32 = 8;
/// The socket's name in its folder.
const SOCKET: &str = "socket";

/// Hint faults in software: see the [module](super).
pub struct HintFaultSource {
    drains: u32,
    options: HintFaultOptions,
    /// The same within the policy's budget.
    allowed: HintFaultOptions,
    listener: UnixListener,
    folder: Folder,
    pending: Vec<Pending>,
    connections: BTreeMap<Pid, Connection>,
    /// Processes to sample, and since when.
    wanted: BTreeMap<Pid, Instant>,
    refusals: Vec<(Pid, String)>,
    /// Refusals that [`AccessSource::warnings`] has returned.
    told: usize,
    rate: u64,
    stores: bool,
    delivered: u64,
    /// Windows closed since they were last asked for.
    closed: Vec<Untouched>,
    /// Races run since they were last asked for.
    races: Vec<Race>,
    past: Report,
}

impl HintFaultSource {
    /// Creates the socket in a [`Folder`], for this user alone. Sampling is off until
    /// [`AccessSource::request`].
    ///
    /// # Errors
    /// Returns an error if the folder or the socket cannot be made, or an option is out of bounds.
    pub fn open(options: HintFaultOptions) -> Result<Self, LinuxError> {
        options.check()?;
        let folder = Folder::new()?;
        let path = folder.path(SOCKET);
        let listener = socket::listen(&path).map_err(|error| LinuxError::file(&path, error))?;
        Ok(Self {
            drains: 0,
            options,
            allowed: options,
            listener,
            folder,
            pending: Vec::new(),
            connections: BTreeMap::new(),
            wanted: BTreeMap::new(),
            refusals: Vec::new(),
            told: 0,
            rate: 0,
            stores: true,
            delivered: 0,
            closed: Vec::new(),
            races: Vec::new(),
            past: Report::default(),
        })
    }

    /// Returns variables for the environment of a program to be launched; `library` is `libisotherm.so`.
    /// Keeps other preloaded libraries of this process's own environment.
    pub fn environment(&self, library: &Path) -> Vec<(OsString, OsString)> {
        let mut preload = std::env::var_os("LD_PRELOAD").filter(|list| !list.is_empty()).unwrap_or_default();
        if !preload.is_empty() {
            preload.push(":");
        }
        preload.push(library);
        vec![("LD_PRELOAD".into(), preload), (SOCKET_VARIABLE.into(), self.socket().into_os_string())]
    }

    /// Returns the socket's path.
    pub fn socket(&self) -> PathBuf {
        self.folder.path(SOCKET)
    }

    /// Returns processes whose agent cannot work or was lost, with the reason and a remedy in one line each.
    pub fn refusals(&self) -> &[(Pid, String)] {
        &self.refusals
    }

    /// Returns processes followed for at least `time` without an agent: statically linked, or with more
    /// rights than their user (the loader ignores `LD_PRELOAD`), or not started by [`Self::environment`].
    pub fn without_agent(&self, time: Duration) -> Vec<Pid> {
        let wanted = self
            .wanted
            .iter()
            .filter(|(pid, since)| !self.connections.contains_key(pid) && since.elapsed() >= time);
        wanted.map(|(pid, _)| *pid).collect()
    }

    pub fn counted(&self) -> HintFaultStatistics {
        let mut total = HintFaultStatistics { agents: self.connections.len(), ..Default::default() };
        total.add(&self.past);
        for connection in self.connections.values() {
            total.add(&connection.report());
        }
        total
    }

    fn accept(&mut self) -> Result<(), LinuxError> {
        while let Some((socket, process)) =
            socket::accept(&self.listener).map_err(LinuxError::of_call("accept"))?
        {
            self.pending.extend(Pending::new(socket, process));
        }
        for pending in std::mem::take(&mut self.pending) {
            let process = pending.process;
            match pending.greet(&self.options) {
                Ok(Ok(connection)) => self.adopt(process, connection),
                Ok(Err(pending)) => self.pending.push(pending),
                Err(Some(reason)) => self.refusals.push((process, reason)),
                Err(None) => {}
            }
        }
        Ok(())
    }

    /// Records a process's agent; after an exec, its new one.
    fn adopt(&mut self, process: Pid, connection: Connection) {
        connection.set_pace(self.rate, &self.allowed);
        if self.wanted.contains_key(&process) {
            connection.want();
        }
        if let Some(old) = self.connections.insert(process, connection) {
            self.past.add(&old.report());
        }
    }
}

impl AccessSource for HintFaultSource {
    fn name(&self) -> &'static str {
        "hint-faults"
    }

    fn offers(&self) -> Signals {
        Signals::NONE.with(Signal::LoadSamples).with(Signal::StoreSamples).with(Signal::HintFaults)
    }

    fn follow(&mut self, process: Pid) -> Result<(), LinuxError> {
        self.accept()?;
        self.wanted.entry(process).or_insert_with(Instant::now);
        if let Some(connection) = self.connections.get(&process) {
            connection.want();
        }
        Ok(())
    }

    fn forget(&mut self, process: Pid) {
        self.wanted.remove(&process);
        // After an exec the agent is the new program's already, or ends by itself.
        if self.connections.get(&process).is_some_and(Connection::program_has_ended)
            && let Some(connection) = self.connections.remove(&process)
        {
            self.past.add(&connection.report());
        }
    }

    /// [`SamplingRate::Frequency`] limits the faults per second of each process; [`SamplingRate::Period`]
    /// does not apply to faults: the policy's budget bounds them, and the options' do.
    fn request(&mut self, sampling: &Sampling) -> Result<(), LinuxError> {
        let before = (self.rate, self.allowed);
        self.rate = match sampling.rate {
            SamplingRate::Off => 0,
            SamplingRate::Period(_) => UNBOUNDED,
            SamplingRate::Frequency(rate) => rate,
        };
        self.allowed = sampling.share().map_or(self.options, |share| self.options.within(share));
        self.stores = sampling.stores;
        if before != (self.rate, self.allowed) {
            for connection in self.connections.values() {
                connection.set_pace(self.rate, &self.allowed);
            }
        }
        Ok(())
    }

    fn drain(&mut self, accesses: &mut Vec<Access>) -> Result<(), LinuxError> {
        self.drains = (self.drains + 1) % LOOKS;
        let waiting = !self.pending.is_empty() || self.connections.len() < self.wanted.len();
        let looking = self.drains == 0;
        if looking || waiting {
            self.accept()?;
        }
        let before = accesses.len();
        self.connections.retain(|&process, connection| {
            // Ends are noticed before the last records are taken, so that none is lost.
            let ended = looking && !connection.is_there();
            connection.take(|record| match record {
                Record::Fault(fault) => accesses.extend(access(process, fault, self.stores)),
                Record::Closed(closed) => self.closed.push(untouched(process, closed)),
                Record::Race(protocol::Race { list, armed, first }) => {
                    self.races.push(Race { process, list, armed, first });
                }
            });
            if ended {
                self.past.add(&connection.report());
                self.refusals.extend(connection.end_program_if_lost().map(|reason| (process, reason)));
            } else if let Some(reason) = connection.new_refusal() {
                self.refusals.push((process, reason.to_owned()));
            } else if looking {
                self.refusals.extend(connection.new_silence().map(|reason| (process, reason)));
            }
            !ended
        });
        self.delivered += (accesses.len() - before) as u64;
        Ok(())
    }

    fn untouched(&mut self, windows: &mut Vec<Untouched>) {
        windows.append(&mut self.closed);
    }

    fn set_racers(&mut self, process: Pid, list: u32, addresses: &[u64]) {
        if let Some(connection) = self.connections.get(&process) {
            connection.set_racers(list, addresses);
        }
    }

    fn set_settled(&mut self, process: Pid, ranges: &[Range<u64>]) {
        if let Some(connection) = self.connections.get_mut(&process) {
            connection.set_settled(ranges);
        }
    }

    fn races(&mut self, races: &mut Vec<Race>) {
        races.append(&mut self.races);
    }

    /// Counts pages that cannot be armed ([`HintFaultStatistics::refused`]).
    fn arm(&mut self, process: Pid, addresses: &[u64]) -> Result<(), LinuxError> {
        if let Some(connection) = self.connections.get_mut(&process) {
            connection.arm(addresses);
        }
        Ok(())
    }

    fn hidden(&self, process: Pid) -> Vec<Range<u64>> {
        self.connections.get(&process).map(Connection::hidden).unwrap_or_default()
    }

    fn warnings(&mut self) -> Vec<String> {
        let new = &self.refusals[self.told..];
        self.told = self.refusals.len();
        new.iter().map(|(process, reason)| format!("process {}: {reason}", process.0)).collect()
    }

    fn statistics(&self) -> SourceStatistics {
        let mut total = self.past;
        for connection in self.connections.values() {
            total.add(&connection.report());
        }
        let present = |counter: Counter| Bytes(total.counters[counter as usize].saturating_mul(PAGE));
        SourceStatistics {
            delivered: self.delivered,
            lost: total.lost,
            throttled: 0,
            foreign: 0,
            agent_cpu: Nanos(total.agent_cpu),
            program_time: Nanos(total.program_time),
            memory: Bytes(self.connections.len() as u64 * Connection::MEMORY),
            observable: present(Counter::MayBeArmed),
            left_out: present(Counter::LeftOut),
        }
    }
}

#[cfg(fuzzing)]
pub fn fuzz(hello: &[u8], words: &[(u16, u64)]) {
    let report = super::connection::fuzz(hello, words);
    let mut total = HintFaultStatistics::default();
    (0..2).for_each(|_| total.add(&report));
}

fn untouched(process: Pid, closed: Closed) -> Untouched {
    let Closed { start, untouched, exposed, huge } = closed;
    Untouched { process, start, pages: untouched, huge, exposed: Nanos(exposed) }
}

fn access(process: Pid, record: Fault, stores: bool) -> Option<Access> {
    if record.store && !record.requested && !stores {
        return None;
    }
    let bounded = |time: u64| u32::try_from(time).unwrap_or(u32::MAX);
    let since_us = bounded(record.since / 1000);
    let exposed_ns = bounded(record.since);
    Some(Access {
        time: Nanos(record.time),
        process,
        address: record.address,
        weight: if record.settled { SETTLED_EVERY } else { 1 },
        latency: 0,
        tier: None,
        operation: if record.store { Operation::Store } else { Operation::Load },
        cause: if record.requested { Cause::Armed { since_us } } else { Cause::Touched { exposed_ns } },
    })
}
