//! How an `isotherm run` joins a daemon: it keeps its engine and gets its fast memory from the daemon.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use isotherm_core::machine_status::GroupStatus;
use isotherm_core::Bytes;
use isotherm_live::host::{HostReport, Share};

use crate::daemon::{Claimed, Client, GuestClaim};

/// Time between two claims.
const EVERY: Duration = Duration::from_secs(1);
/// Most points of a curve in a claim: a line has at most 4096 bytes.
const MAX_POINTS: usize = 24;

/// A run's place among the daemon's groups, given up on drop.
#[derive(Debug)]
pub struct Joined {
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Joins the daemon at a socket; `None` where no daemon answers.
pub fn join(socket: &Path, policy: &str, share: &Share) -> Option<Joined> {
    let mut client = Client::connect(socket).ok()?;
    share.set_fast(claim(&mut client, policy, share).ok()?);
    let ending = Arc::new(AtomicBool::new(false));
    let (ended, socket, policy, share) =
        (ending.clone(), socket.to_owned(), policy.to_owned(), share.clone());
    let renew = move || renew(client, &socket, &policy, &share, &ended);
    let thread = std::thread::Builder::new().name("join".into()).spawn(renew).ok()?;
    Some(Joined { ending, thread: Some(thread) })
}

/// Claims again and again. While the daemon is away the share stays as it was.
fn renew(mut client: Client, socket: &Path, policy: &str, share: &Share, ended: &AtomicBool) {
    while !ended.load(Relaxed) {
        std::thread::park_timeout(EVERY);
        match claim(&mut client, policy, share) {
            Ok(fast) => share.set_fast(fast),
            Err(_) => {
                if let Ok(again) = Client::connect(socket) {
                    client = again;
                }
            }
        }
    }
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
        // A line has no room for the programs.
        group: GroupStatus { programs: Vec::new(), warnings: Vec::new(), ..report.group(policy) },
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
