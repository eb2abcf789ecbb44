//! One group and its engine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use isotherm_core::live_result::Traffic;
use isotherm_core::machine_status::{GroupStatus, MappingStatus, ProgramStatus};
use isotherm_core::{Bytes, Nanos, Pages};
use isotherm_linux::process::census::Program;
use isotherm_live::control::Requests;
use isotherm_live::host::{HostReport, Share};
use isotherm_live::policy_run::PolicyRun;
use isotherm_live::session::{Members, Session, SessionConfig, Target};
use isotherm_shares::{Claim, Curve};

use super::{Machine, PAGE_SHIFT};
use crate::config::{Group, Mode};
use crate::journal::{self, Journal, Priority};

/// Time before an engine that has failed is started again.
const AGAIN: Duration = Duration::from_secs(30);
/// The policy of a group whose memory stays where it was first placed.
const PINNED: &str = "first-touch";

/// A group, with its engine while it has had programs.
pub(super) struct Engine {
    pub(super) group: Group,
    journal: Journal,
    running: Option<Running>,
    /// The memory of programs that wait for an engine, which starts as soon as their share is known.
    waiting: Option<Bytes>,
    /// Why the engine could not run, and when.
    failed: Option<(Instant, String)>,
    share: Bytes,
    /// The report at the last division.
    last: Option<(Instant, HostReport)>,
    activity: f64,
    moves_per_s: f64,
    saved: f64,
    /// Warnings of the engine that the journal has.
    told: Vec<String>,
    /// Counts of engines that have ended, which later ones go on from.
    ended: Counted,
}

struct Running {
    members: Members,
    share: Share,
    requests: Requests,
    thread: JoinHandle<Result<(), String>>,
}

/// Counts that never fall.
#[derive(Debug, Clone, Default)]
struct Counted {
    hits: Vec<u64>,
    traffic: Traffic,
    samples: u64,
    lost: u64,
    running: Nanos,
    observing: Nanos,
    engine: Nanos,
}

impl Counted {
    fn plus(&self, report: &HostReport) -> Self {
        let (a, b) = (self.traffic, report.traffic);
        let mut hits: Vec<u64> = report.tiers.iter().map(|tier| tier.hits).collect();
        hits.iter_mut().zip(&self.hits).for_each(|(hits, before)| *hits += before);
        let mut refused = a.refused;
        refused.no_room += b.refused.no_room;
        refused.busy += b.refused.busy;
        refused.gone += b.refused.gone;
        refused.swapped += b.refused.swapped;
        refused.denied += b.refused.denied;
        Self {
            hits,
            traffic: Traffic {
                promotions: a.promotions + b.promotions,
                demotions: a.demotions + b.demotions,
                reclaimed: a.reclaimed + b.reclaimed,
                bytes_moved: a.bytes_moved + b.bytes_moved,
                splits: a.splits + b.splits,
                collapses: a.collapses + b.collapses,
                refused,
            },
            samples: self.samples + report.samples,
            lost: self.lost + report.lost,
            running: self.running + report.running,
            observing: self.observing + report.observing,
            engine: self.engine + report.engine,
        }
    }
}

impl Engine {
    pub(super) fn new(group: Group, journal: Journal) -> Self {
        Self {
            group,
            journal,
            running: None,
            waiting: None,
            failed: None,
            share: Bytes(0),
            last: None,
            activity: 1.0,
            moves_per_s: 0.0,
            saved: 0.0,
            told: Vec::new(),
            ended: Counted::default(),
        }
    }

    /// Returns the engine with other settings. It keeps what it has learned, unless it must be started again:
    /// then it begins with its share.
    pub(super) fn with(mut self, group: Group) -> Self {
        let before = &self.group;
        let same =
            before.mode == group.mode && before.overhead == group.overhead && before.rate == group.rate;
        let policy = before.policy.entry.name == group.policy.entry.name && before.settings == group.settings;
        self.failed = None;
        self.group = group;
        if !same {
            self.stop();
        } else if !policy {
            self.replace_policy();
        }
        self
    }

    /// Changes the policy or the limit; the values have been checked.
    pub(super) fn change(&mut self, what: &str, value: &str) {
        if what == "limit" {
            self.group.limit = super::limit(value).unwrap_or(self.group.limit);
        } else if let Ok(entry) = isotherm_policies::find(value) {
            self.group.policy = PolicyRun::new(entry);
            self.group.settings.clear();
            self.replace_policy();
        }
        let message = format!("group {}: {what} {value} until the next reload", self.group.name);
        self.tell(Priority::Info, &message);
    }

    fn replace_policy(&self) {
        if let Some(running) = self.running.as_ref().filter(|_| self.group.mode == Mode::Tiered) {
            let settings: String = self.group.settings.iter().map(|setting| format!(" {setting}")).collect();
            // The engine answers at its next step; what cannot run here is among the group's warnings.
            drop(running.requests.ask(format!("policy {}{settings}", self.group.policy.entry.name)));
        }
    }

    /// Sets the programs of the group.
    pub(super) fn set_members(&mut self, programs: &[&Program]) {
        if self.running.as_ref().is_some_and(|running| running.thread.is_finished()) {
            self.stop();
        }
        let rests = self.failed.as_ref().is_some_and(|(since, _)| since.elapsed() < AGAIN);
        let waits = self.running.is_none() && !programs.is_empty() && !rests;
        self.waiting = waits.then(|| programs.iter().map(|program| program.resident).sum());
        self.tell_members(programs);
    }

    fn tell_members(&self, programs: &[&Program]) {
        if let Some(running) = &self.running {
            running.members.set(programs.iter().map(|program| (program.pid, program.start)).collect());
        }
    }

    fn start(&mut self, machine: &Machine) {
        let mut policy = self.group.policy.clone();
        if self.group.mode == Mode::Pinned
            && let Ok(entry) = isotherm_policies::find(PINNED)
        {
            policy = PolicyRun::new(entry);
        }
        let (members, share, requests) = (Members::default(), Share::new(self.share), Requests::default());
        let mut config = SessionConfig {
            tiers: machine.tiers.clone(),
            rate: self.group.rate,
            requests: Some(requests.clone()),
            share: Some(share.clone()),
            ..SessionConfig::new(policy)
        };
        config.overhead = self.group.overhead.unwrap_or(config.overhead);
        let target = Target::Group { members: members.clone() };
        let run = move || {
            let session = Session::open(config, target).map_err(|error| error.to_string())?;
            let running = session.start().map_err(|error| error.to_string())?;
            running.run().result.map(drop).map_err(|error| error.to_string())
        };
        match std::thread::Builder::new().name(format!("group-{}", self.group.name)).spawn(run) {
            Ok(thread) => {
                let message = format!("group {}: an engine has started", self.group.name);
                self.tell(Priority::Info, &message);
                self.running = Some(Running { members, share, requests, thread });
            }
            Err(error) => self.fail(error.to_string()),
        }
    }

    /// Ends the engine and waits for it; the programs run on.
    fn stop(&mut self) {
        let Some(running) = self.running.take() else { return };
        running.members.end();
        let ended = running.thread.join().unwrap_or_else(|_| Err("the engine has panicked".into()));
        self.failed = None;
        match ended {
            Ok(()) => self.tell(Priority::Info, &format!("group {}: its engine has ended", self.group.name)),
            Err(error) => self.fail(error),
        }
        self.told.clear();
        if let Some(report) = running.share.report() {
            self.ended = self.ended.plus(&report);
        }
        self.last = None;
    }

    fn fail(&mut self, why: String) {
        let message = format!("group {}: {why}; next attempt in {} s", self.group.name, AGAIN.as_secs());
        self.tell(Priority::Error, &message);
        self.failed = Some((Instant::now(), why));
    }

    fn tell(&self, priority: Priority, message: &str) {
        let policy = self.group.policy.entry.name;
        let fields = [(journal::GROUP, self.group.name.as_str()), ("ISOTHERM_POLICY", policy)];
        self.journal.write(priority, message, &fields);
    }

    /// Tells each of the engine's warnings once.
    fn warn(&mut self, report: &HostReport) {
        for warning in report.warnings.iter().skip(self.told.len()) {
            self.tell(Priority::Warning, &format!("group {}: {warning}", self.group.name));
        }
        self.told.clone_from(&report.warnings);
    }

    /// Asks the engine to end, without waiting for it.
    pub(super) fn tell_end(&self) {
        self.running.iter().for_each(|running| running.members.end());
    }

    pub(super) fn end(mut self) {
        self.stop();
    }

    /// Returns the fast memory in use.
    pub(super) fn used(&self) -> Bytes {
        let report = self.running.as_ref().and_then(|running| running.share.report());
        report.and_then(|report| report.tiers.first().map(|tier| tier.resident)).unwrap_or_default()
    }

    /// Has the next report look at the memory by address.
    pub(super) fn watch(&self) {
        self.running.iter().for_each(|running| running.share.watch());
    }

    /// Returns the memory of the programs by address as of when it was looked at last.
    pub(super) fn mappings(&self) -> Arc<Vec<MappingStatus>> {
        let report = self.running.as_ref().and_then(|running| running.share.report());
        report.map(|report| report.mappings.clone()).unwrap_or_default()
    }

    /// Returns the group's claim on the fast memory, of which there is so much for all.
    pub(super) fn claim(&self, fast: Bytes) -> Claim {
        let report = self.running.as_ref().and_then(|running| running.share.report());
        let pages = |bytes: Bytes| Pages(bytes.0 >> PAGE_SHIFT);
        let limit = self.group.limit.map_or(Pages(u64::MAX), |limit| pages(limit.of(fast)));
        let protect = match self.group.mode {
            Mode::Pinned => limit,
            Mode::Tiered => pages(self.group.protect.of(fast)),
            Mode::Excluded => Pages(0),
        };
        // A group without programs gets nothing.
        let limit = if self.running.is_some() || self.waiting.is_some() { limit } else { Pages(0) };
        let (mapped, curve, slow) = match &report {
            Some(report) => {
                let mapped = pages(report.tiers.iter().map(|tier| tier.resident).sum());
                let latency = |tier: Option<&_>| {
                    tier.map_or(1.0, |tier: &isotherm_live::host::TierReport| tier.latency.0.max(1) as f64)
                };
                let slow = latency(report.tiers.last()) / latency(report.tiers.first());
                (mapped, report.curve.clone(), slow)
            }
            None => {
                let mapped = pages(self.waiting.unwrap_or_default());
                (mapped, Curve::uniform(mapped), 2.0)
            }
        };
        Claim {
            protect,
            limit,
            weight: self.group.weight,
            held: pages(self.used()),
            activity: self.activity,
            slow,
            ..Claim::new(mapped, curve)
        }
    }

    /// Takes the group's share, starts the engine if programs wait for it, and returns the group's state.
    pub(super) fn take(
        &mut self,
        share: Bytes,
        fast: Bytes,
        programs: &[&Program],
        machine: &Machine,
    ) -> GroupStatus {
        self.share = share;
        if self.waiting.take().is_some() {
            self.start(machine);
            self.tell_members(programs);
        }
        let report = self.running.as_ref().and_then(|running| {
            running.share.set_fast(share);
            running.share.report()
        });
        if let Some(report) = &report {
            self.compare(report);
            self.warn(report);
        }
        let refused = self.running.as_ref().map(|running| running.members.refused()).unwrap_or_default();
        self.describe(report.as_deref(), fast, programs, &refused)
    }

    /// Learns from what has come since the last division.
    fn compare(&mut self, report: &HostReport) {
        let now = Instant::now();
        let Some((then, before)) = self.last.replace((now, report.clone())) else { return };
        if report.time <= before.time {
            self.last = Some((then, before));
            return;
        }
        let passed = (report.time - before.time).as_seconds();
        let running = (report.running - before.running).as_seconds();
        self.activity = (running / passed).min(1.0);
        let moves = |traffic: Traffic| traffic.promotions + traffic.demotions + traffic.reclaimed;
        self.moves_per_s = (moves(report.traffic) - moves(before.traffic)) as f64 / passed;
        self.saved += report.saved_since(Some(&before));
    }

    fn describe(
        &self,
        report: Option<&HostReport>,
        fast: Bytes,
        programs: &[&Program],
        refused: &BTreeMap<isotherm_linux::process::Pid, String>,
    ) -> GroupStatus {
        let counted = report.map_or_else(|| self.ended.clone(), |report| self.ended.plus(report));
        let program = |program: &&Program| {
            let known =
                report.and_then(|report| report.processes.iter().find(|one| one.process == program.pid));
            ProgramStatus {
                pid: program.pid.0,
                command: program.command.clone(),
                cgroup: program.cgroup.clone(),
                resident_bytes: known.map(|one| one.resident.clone()).unwrap_or_default(),
                swapped_bytes: known.map_or(Bytes(0), |one| one.swapped),
                accesses: known.map_or(0, |one| one.accesses),
                refused: refused.get(&program.pid).cloned(),
            }
        };
        let policy = if self.group.mode == Mode::Pinned { PINNED } else { self.group.policy.entry.name };
        let known = report.map_or_else(
            || GroupStatus { policy: policy.into(), ..GroupStatus::default() },
            |report| report.group(policy),
        );
        let failed = self.failed.iter().map(|(_, why)| why.clone());
        GroupStatus {
            name: self.group.name.clone(),
            mode: format!("{:?}", self.group.mode).to_lowercase(),
            protect_bytes: self.group.protect.of(fast),
            limit_bytes: self.group.limit.map(|limit| limit.of(fast)),
            weight: self.group.weight,
            share_bytes: self.share,
            hits: counted.hits,
            traffic: counted.traffic,
            moves_per_s: self.moves_per_s,
            samples: counted.samples,
            lost: counted.lost,
            running_ns: counted.running,
            observing_ns: counted.observing,
            engine_ns: counted.engine,
            saved_ns: Nanos((self.saved.max(0.0) * 1e9) as u64),
            programs: programs.iter().map(program).collect(),
            warnings: failed.chain(known.warnings.clone()).collect(),
            ..known
        }
    }
}
