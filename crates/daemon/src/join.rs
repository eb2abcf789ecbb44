//! How an `isotherm run` shares the machine: it keeps its engine and gets its fast memory from the daemon.
//! Without a daemon the engines of the machine get equal parts of the fast tier; their locks tell how many
//! they are.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use isotherm_core::Bytes;
use isotherm_core::machine_status::GroupStatus;
use isotherm_linux::process::lock::engines;
use isotherm_linux::process::{Pid, ProcRoot};
use isotherm_live::host::{HostReport, Share};

use crate::daemon::{Claimed, Client, GuestClaim};

/// Time between two claims.
const EVERY: Duration = Duration::from_secs(1);
/// Most points of a curve and most programs in a claim, which is a line of at most 64 KiB.
const MAX_POINTS: usize = 24;
const MAX_PROGRAMS: usize = 256;

/// Who else tiers programs on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// A daemon, which grants the run's fast memory.
    Daemon,
    /// Engines without a daemon. Each uses an equal part of the fast tier, as this run does.
    Engines(u64),
}

/// A run's place among the others, given up on drop.
#[derive(Debug)]
pub struct Joined {
    /// The others at the start.
    pub others: Others,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Joins the daemon at `socket`, or the engines that run without one; keeps `share` up to date until the
/// result is dropped. `fast` is the size of the fast tier; `None` in shadow mode, where only a daemon shares.
pub fn join(socket: &Path, policy: &str, fast: Option<Bytes>, share: &Share) -> Option<Joined> {
    let mut run = Run {
        socket: socket.to_owned(),
        policy: policy.to_owned(),
        fast,
        share: share.clone(),
        client: None,
    };
    let others = run.renew()?;
    let ending = Arc::new(AtomicBool::new(false));
    let ended = ending.clone();
    let renew = move || {
        while !ended.load(Relaxed) {
            std::thread::park_timeout(EVERY);
            run.renew();
        }
    };
    let thread = std::thread::Builder::new().name("join".into()).spawn(renew).ok()?;
    Some(Joined { others, ending, thread: Some(thread) })
}

struct Run {
    socket: PathBuf,
    policy: String,
    fast: Option<Bytes>,
    share: Share,
    client: Option<Client>,
}

impl Run {
    /// Sets the share. In shadow mode it stays as it was while the daemon is away.
    fn renew(&mut self) -> Option<Others> {
        if self.client.is_none() && self.socket.exists() {
            self.client = Client::connect(&self.socket).ok();
        }
        if let Some(client) = &mut self.client {
            match claim(client, &self.policy, &self.share) {
                Ok(fast) => {
                    self.share.set_fast(fast);
                    return Some(Others::Daemon);
                }
                Err(_) => self.client = None,
            }
        }
        let others = others();
        self.share.set_fast(Bytes(self.fast?.0 / (others + 1)));
        Some(Others::Engines(others))
    }
}

/// Returns how many engines other than this one tier programs.
fn others() -> u64 {
    let mut engines = engines(&ProcRoot::default()).unwrap_or_default();
    engines.remove(&Pid(std::process::id()));
    engines.len() as u64
}

fn claim(client: &mut Client, policy: &str, share: &Share) -> Result<Bytes, String> {
    let claim = share.report().map_or_else(
        || GuestClaim { slow: 1.0, ..GuestClaim::default() },
        |report| described(&report, policy),
    );
    let claim = serde_json::to_string(&claim).map_err(|error| error.to_string())?;
    let answer = client.ask(&format!("join {} {claim}", std::process::id()))?;
    format!("ok\n{answer}").parse().map(|Claimed(fast)| fast)
}

fn described(report: &HostReport, policy: &str) -> GuestClaim {
    // Texts may be of any length; the daemon knows the programs' names.
    let mut group = GroupStatus { warnings: Vec::new(), ..report.group(policy) };
    group.programs.sort_by_key(|program| std::cmp::Reverse(program.accesses));
    group.programs.truncate(MAX_PROGRAMS);
    let latency = |place: usize| report.tiers.get(place).map_or(1.0, |tier| tier.latency.0.max(1) as f64);
    let points = report.curve.points();
    let every = points.len().div_ceil(MAX_POINTS).max(1);
    let last = points.len().checked_sub(1);
    let kept =
        points.iter().enumerate().filter(|(place, _)| place % every == every - 1 || Some(*place) == last);
    GuestClaim {
        used: report.tiers.first().map_or(Bytes(0), |tier| tier.resident),
        mapped: report.tiers.iter().map(|tier| tier.resident).sum(),
        curve: kept.map(|(_, &point)| point).collect(),
        slow: latency(report.tiers.len().saturating_sub(1)) / latency(0),
        group,
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.ending.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
