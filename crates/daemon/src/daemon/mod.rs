//! Runs an engine for each group, divides the fast memory among them, and answers requests.
//!
//! Requests at the socket are lines, answered as by [`isotherm_live::control`]; clients of other users than
//! the daemon's and root are turned away.
//!
//! | line | effect |
//! |---|---|
//! | `status`, `status json` | prints a [`MachineStatus`] as JSON on one line |
//! | `mappings GROUP` | prints a group's memory by address, likewise; the first answer is empty |
//! | `reload` | reads the configuration again; a file with a mistake changes nothing |
//! | `group NAME policy POLICY` | changes a group's policy until the next reload |
//! | `group NAME limit SIZE` | changes a group's limit, likewise; `none` removes it |
//! | `join PID CLAIM` | makes or renews the claim of an `isotherm run`, answered by `fast BYTES` |

mod client;
mod engine;
mod guests;
mod heat;
pub(crate) mod history;
pub(crate) mod web;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use isotherm_core::machine_status::{GroupStatus, MachineStatus};
use isotherm_core::{Bytes, Nanos, Pages};
use isotherm_doctor::{Area, Findings, State};
use isotherm_linux::process::census::{Census, users};
use isotherm_linux::process::raise_open_files;
use isotherm_linux::process::signals::Signals;
use isotherm_linux::process::{Pid, ProcRoot};
use isotherm_linux::{LinuxError, clock};
use isotherm_live::control::Control;
use isotherm_live::session::{TierPlan, TierPlanError, TierRequest};
use isotherm_shares::share;

use crate::config::{Config, ConfigError, Listen, Mode, Size};
use crate::journal::{Journal, Priority};
use crate::log::{EVERY, Log};
use crate::notify::{Notifier, watchdog};
pub use client::Client;
use engine::Engine;
use guests::Guests;
pub use guests::{Claimed, GuestClaim};
use history::{HEAT, History};

/// Time between two looks at the socket and at signals.
const LOOK: Duration = Duration::from_millis(100);
/// Time between two looks for rivals.
const RIVALS: Duration = Duration::from_secs(60);
/// `SIGHUP` of signal(7): asks for a reload.
const HANGUP: i32 = 1;
/// Fast memory where tiers are shadows and no size is set: a quarter of the machine's.
const SHADOW_SHARE: u64 = 4;
/// Size of the pages that are shared out.
const PAGE_SHIFT: u32 = 12;

/// Where a daemon reads and listens.
#[derive(Debug, Clone)]
pub struct Paths {
    /// The configuration.
    pub config: PathBuf,
    /// The socket for requests.
    pub socket: PathBuf,
}

/// Why a daemon cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The configuration has a mistake.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The machine's tiers cannot be read.
    #[error(transparent)]
    Tiers(#[from] TierPlanError),
    /// A file, a socket or a signal.
    #[error(transparent)]
    Linux(#[from] LinuxError),
    /// The page and the metrics cannot be served.
    #[error("listen: {0}")]
    Listen(String),
}

/// The machine's part of every session's configuration.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub(crate) tiers: TierRequest,
    pub(crate) shadow: bool,
}

/// A daemon.
pub struct Daemon {
    paths: Paths,
    config: Config,
    machine: Machine,
    signals: Signals,
    control: Control,
    notifier: Notifier,
    census: Census,
    users: BTreeMap<String, u32>,
    engines: Vec<Engine>,
    guests: Guests,
    rivals: (Option<Instant>, Vec<String>),
    status: Arc<RwLock<Arc<MachineStatus>>>,
    history: Arc<Mutex<History>>,
    next_heat: Instant,
    journal: Journal,
    log: Option<Log>,
    web: Option<web::Web>,
    started: Instant,
    started_unix_s: u64,
    /// Set by a request, since an answer cannot change what it is computed from.
    orders: Vec<String>,
}

impl Daemon {
    /// Reads the configuration and opens the socket; `latencies` returns those of a machine profile's tiers.
    ///
    /// # Errors
    /// A mistake in the configuration, another daemon at the socket, or tiers that cannot be read.
    pub fn start(
        paths: Paths,
        latencies: impl Fn(&str) -> Result<Vec<Nanos>, String>,
    ) -> Result<Self, DaemonError> {
        let config = Config::read(&paths.config)?;
        let notifier =
            Notifier::from_environment().map_err(|error| LinuxError::Call { call: "sd_notify", error })?;
        let signals = Signals::receive()?;
        // Each program takes some open files.
        raise_open_files().map_err(|error| LinuxError::Call { call: "setrlimit", error })?;
        let latencies = latencies(&config.machine).map_err(|reason| ConfigError {
            path: paths.config.clone(),
            line: None,
            reason: format!("machine: {reason}"),
        })?;
        let tiers = TierRequest {
            nodes: config.tiers.clone(),
            shadow: config.shadow,
            latencies,
            ..TierRequest::default()
        };
        let plan = TierPlan::read(Path::new("/"), &tiers)?;
        let control = Control::open(&paths.socket)?;
        let state_directory = std::env::var_os("STATE_DIRECTORY");
        let bounds = config.log.bounds(state_directory.as_deref());
        let thread = |error| LinuxError::Call { call: "clone", error };
        let log = bounds.map(|bounds| Log::start(bounds, EVERY)).transpose().map_err(thread)?;
        let journal = if log.is_some() { Journal::kept() } else { Journal::default() };
        let status = Arc::new(RwLock::new(Arc::new(MachineStatus::default())));
        let history = Arc::new(Mutex::new(History::default()));
        let web = match config.listen {
            Listen::Off => None,
            Listen::Address(address) => {
                Some(web::Web::start(address, status.clone(), history.clone()).map_err(DaemonError::Listen)?)
            }
        };
        Ok(Self {
            machine: Machine { tiers, shadow: plan.shadow },
            signals,
            control,
            notifier,
            census: Census::new(ProcRoot::default(), Pid(std::process::id())),
            users: read_users(),
            engines: config.groups.iter().map(|group| Engine::new(group.clone(), journal.clone())).collect(),
            guests: Guests::default(),
            rivals: (None, Vec::new()),
            status,
            history,
            next_heat: Instant::now() + HEAT,
            journal,
            log,
            web,
            started: Instant::now(),
            started_unix_s: clock::unix_seconds(),
            orders: Vec::new(),
            paths,
            config,
        })
    }

    /// Runs until a signal asks for the end. SIGHUP reloads the configuration.
    ///
    /// # Errors
    /// If the programs of the machine can no longer be read.
    pub fn run(mut self) -> Result<(), DaemonError> {
        let life = watchdog(|name| std::env::var(name).ok()).map(|time| time / 3);
        let (mut next, mut sign) = (Instant::now(), Instant::now());
        let mut ready = false;
        loop {
            while let Some(received) = self.signals.take() {
                if received.signal != HANGUP {
                    self.notifier.tell("STOPPING=1");
                    // All are told before the first is waited for.
                    self.engines.iter().for_each(Engine::tell_end);
                    self.engines.into_iter().for_each(Engine::end);
                    return Ok(());
                }
                self.orders.push("reload".into());
                self.obey();
            }
            if Instant::now() >= next {
                next = Instant::now() + Duration::from_nanos(self.config.interval.0);
                self.divide()?;
                if !std::mem::replace(&mut ready, true) {
                    self.notifier.tell("READY=1");
                }
            }
            self.serve();
            // A division that hangs is a daemon that hangs: then the manager hears nothing.
            if life.is_some() && Instant::now() >= sign {
                sign = Instant::now() + life.unwrap_or_default();
                self.notifier.tell("WATCHDOG=1");
            }
            std::thread::sleep(LOOK);
        }
    }

    fn serve(&mut self) {
        let status = self.status();
        let (orders, guests, engines) = (&mut self.orders, &mut self.guests, &self.engines);
        let config = &self.paths.config;
        self.control.serve(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let answer = match words[..] {
                ["status"] | ["status", "json"] => {
                    serde_json::to_string(&*status).map_err(|error| error.to_string())
                }
                ["reload"] => Config::read(config).map_err(|error| error.to_string()).map(|_| {
                    orders.push(line.into());
                    String::new()
                }),
                ["group", name, what @ ("policy" | "limit"), value] => checked(engines, name, what, value)
                    .map(|()| {
                        orders.push(line.into());
                        String::new()
                    }),
                ["mappings", name] => found(engines, name).and_then(|engine| {
                    engine.watch();
                    serde_json::to_string(&*engine.mappings()).map_err(|error| error.to_string())
                }),
                ["join", pid, ..] => guests.renew(pid, line),
                _ => Err("expected status, mappings GROUP, reload, group NAME policy POLICY or group NAME \
                          limit SIZE"
                    .into()),
            };
            match answer {
                Ok(text) => format!("ok\n{text}"),
                Err(why) => format!("error: {why}"),
            }
        });
        self.obey();
    }

    /// Carries out what requests have asked for.
    fn obey(&mut self) {
        for order in std::mem::take(&mut self.orders) {
            let words: Vec<&str> = order.split_whitespace().collect();
            match words[..] {
                ["reload"] => self.reload(),
                ["group", name, what, value] => {
                    if let Some(engine) = self.engines.iter_mut().find(|engine| engine.group.name == name) {
                        engine.change(what, value);
                    }
                }
                _ => {}
            }
        }
    }

    /// Takes over a configuration without mistakes. Engines of groups that remain keep what they know.
    fn reload(&mut self) {
        self.notifier.tell("RELOADING=1");
        match Config::read(&self.paths.config) {
            Ok(config) => {
                let mut before = std::mem::take(&mut self.engines);
                for group in config.groups.iter().cloned() {
                    let known = before.iter().position(|engine| engine.group.name == group.name);
                    self.engines.push(match known {
                        Some(place) => before.remove(place).with(group),
                        None => Engine::new(group, self.journal.clone()),
                    });
                }
                before.into_iter().for_each(Engine::end);
                // The socket, the address, the tiers and the log stay those of the start.
                self.config = config;
                self.users = read_users();
                let message = format!("{} is in force", self.paths.config.display());
                self.journal.write(Priority::Info, &message, &[]);
            }
            Err(error) => {
                let message = format!("{error}; the settings before stay in force");
                self.journal.write(Priority::Error, &message, &[]);
            }
        }
        self.notifier.tell("READY=1");
    }

    fn status(&self) -> Arc<MachineStatus> {
        self.status.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Assigns programs to groups and fast memory to both groups and guests.
    fn divide(&mut self) -> Result<(), DaemonError> {
        self.census.look()?;
        let mut members: Vec<Vec<&_>> = vec![Vec::new(); self.engines.len()];
        let mut left_alone = 0;
        for program in self.census.programs() {
            let fitting = |engine: &Engine| engine.group.rule.fits(program, &self.users);
            match self.engines.iter().position(fitting) {
                Some(place) if self.engines[place].group.mode != Mode::Excluded => {
                    members[place].push(program);
                }
                _ if self.guests.has(program.pid.0) => {}
                _ => left_alone += 1,
            }
        }
        for (engine, programs) in self.engines.iter_mut().zip(&members) {
            engine.set_members(programs);
        }
        self.guests.expire();
        let used: Bytes = self.engines.iter().map(Engine::used).chain(self.guests.used()).sum();
        let fast = self.fast(used)?;
        self.guests.set_spare(Bytes(fast.0.saturating_sub(used.0)));
        let groups = self.engines.iter().map(|engine| engine.claim(fast));
        let claims: Vec<_> = groups.chain(self.guests.claims()).collect();
        let mut shares = share(Pages(fast.0 >> PAGE_SHIFT), &claims).into_iter().map(bytes);
        let groups: Vec<GroupStatus> = self
            .engines
            .iter_mut()
            .zip(&members)
            .zip(shares.by_ref())
            .map(|((engine, programs), share)| engine.take(share, fast, programs, &self.machine))
            .collect();
        let guests = self.guests.take(shares, |pid| self.census.program(Pid(pid)));
        let mut status = MachineStatus {
            version: env!("CARGO_PKG_VERSION").into(),
            started_unix_s: self.started_unix_s,
            time_ns: Nanos(self.started.elapsed().as_nanos() as u64),
            shadow: self.machine.shadow,
            fast_bytes: fast,
            cpu_ns: clock::process_cpu(),
            left_alone,
            groups: groups.into_iter().chain(guests).collect(),
            rivals: self.rivals(),
            kernel: kernel_moves(),
            log: self.log.as_ref().map(Log::status),
        };
        self.remember(&mut status);
        *self.status.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(status);
        Ok(())
    }

    /// Keeps the state for the page and in the log, and now and then the memory by address.
    fn remember(&mut self, status: &mut MachineStatus) {
        if self.web.is_none() && self.log.is_none() {
            return;
        }
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.take(status);
        if let Some(log) = &mut self.log {
            if let Some((priority, message)) = log.news() {
                self.journal.write(priority, &message, &[]);
            }
            log.take(status, || self.journal.take());
        }
        let now = Instant::now();
        if now >= self.next_heat {
            self.next_heat = now + HEAT;
            for engine in &self.engines {
                let (name, mappings) = (&engine.group.name, engine.mappings());
                history.take_heat(name, status.time_ns, &mappings);
                self.log.iter_mut().for_each(|log| log.take_heat(name, &mappings));
            }
        } else if now + 2 * Duration::from_nanos(self.config.interval.0) >= self.next_heat {
            // What the engines report next is read the time after.
            self.engines.iter().for_each(Engine::watch);
        }
    }

    /// Returns the fast memory for all groups: what they use of the fast tier and what is free there, up to
    /// the limit.
    fn fast(&self, used: Bytes) -> Result<Bytes, DaemonError> {
        let plan = TierPlan::read(Path::new("/"), &self.machine.tiers)?;
        let tier = plan.tiers.first().map_or(Bytes(0), |tier| tier.size);
        if plan.shadow {
            let all = Bytes(tier.0 / SHADOW_SHARE);
            return Ok(self.config.fast.map_or(all, |size| size.of(tier)).min(tier));
        }
        let there = (used + plan.free).min(tier);
        Ok(self.config.fast.map_or(there, |size| size.of(tier)).min(there))
    }

    fn rivals(&mut self) -> Vec<String> {
        let (looked, known) = &mut self.rivals;
        if looked.is_none_or(|looked| looked.elapsed() >= RIVALS) {
            *looked = Some(Instant::now());
            let findings = Findings::live().findings.into_iter();
            // Engines are the daemon's own.
            let rival = findings.filter(|one| {
                one.area == Area::Conflicts && one.state == State::Warning && one.name != "engine"
            });
            let found: Vec<String> = rival.map(|one| format!("{}: {}", one.name, one.meaning)).collect();
            for rival in found.iter().filter(|rival| !known.contains(rival)) {
                self.journal.write(Priority::Warning, rival, &[("ISOTHERM_RIVAL", rival)]);
            }
            *known = found;
        }
        known.clone()
    }
}

fn bytes(pages: Pages) -> Bytes {
    Bytes(pages.0 << PAGE_SHIFT)
}

fn read_users() -> BTreeMap<String, u32> {
    users(&std::fs::read_to_string("/etc/passwd").unwrap_or_default())
}

/// Returns the engine of a group of the configuration.
fn found<'a>(engines: &'a [Engine], name: &str) -> Result<&'a Engine, String> {
    engines.iter().find(|engine| engine.group.name == name).ok_or_else(|| {
        let known: Vec<&str> = engines.iter().map(|engine| engine.group.name.as_str()).collect();
        format!("no group '{name}'; expected one of {}", known.join(", "))
    })
}

/// Checks a change of a group before it is carried out.
fn checked(engines: &[Engine], name: &str, what: &str, value: &str) -> Result<(), String> {
    found(engines, name)?;
    match what {
        "policy" => {
            let entry = isotherm_policies::find(value).map_err(|error| error.to_string())?;
            let run = isotherm_live::policy_run::PolicyRun::new(entry);
            run.needs().map(drop).map_err(|error| error.to_string())
        }
        _ => limit(value).map(drop),
    }
}

/// Parses a limit: a size, or `none`.
fn limit(text: &str) -> Result<Option<Size>, String> {
    match text {
        "none" => Ok(None),
        _ => Size::parse(text)
            .map(Some)
            .ok_or_else(|| format!("expected a size such as 4G or 25%, or none, found '{text}'")),
    }
}

/// Returns the kernel's counts of pages that it moved between tiers and nodes.
fn kernel_moves() -> Vec<(String, u64)> {
    let text = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let counts = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        let wanted = ["pgpromote_", "pgdemote_", "pgmigrate_"].iter().any(|start| name.starts_with(start));
        Some((wanted.then(|| name.to_owned())?, value.parse().ok()?))
    };
    text.lines().filter_map(counts).collect()
}
