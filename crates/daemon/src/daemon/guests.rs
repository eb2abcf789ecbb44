//! Runs of `isotherm run` that have joined: each has an engine of its own and gets a share as a group does.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use isotherm_core::machine_status::{GroupStatus, ProgramStatus};
use isotherm_core::{Bytes, Pages};
use isotherm_linux::process::census::Program;
use isotherm_shares::{Claim, Curve};
use serde::{Deserialize, Serialize};

use super::PAGE_SHIFT;

/// Silence after which a run counts as ended; it speaks every second.
const SILENCE: Duration = Duration::from_secs(5);
/// Most runs at a time.
const MAX_GUESTS: usize = 64;

/// The state that a run tells with each claim.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GuestClaim {
    /// The run as a group; its name, mode and share are set by the daemon.
    pub group: GroupStatus,
    /// Memory on the fast tier and in all, in bytes.
    pub used: Bytes,
    /// Memory in use.
    pub mapped: Bytes,
    /// Points of the curve: pages, and the hit ratio with as many fast.
    pub curve: Vec<(f64, f64)>,
    /// How many times longer it takes with all memory slow.
    pub slow: f64,
}

/// The daemon's answer to a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claimed(pub Bytes);

impl std::str::FromStr for Claimed {
    type Err = String;

    fn from_str(answer: &str) -> Result<Self, String> {
        let number = answer.trim().strip_prefix("ok\nfast ").and_then(|text| text.parse().ok());
        number.map(|bytes| Self(Bytes(bytes))).ok_or_else(|| answer.trim().to_owned())
    }
}

struct Guest {
    claim: GuestClaim,
    heard: Instant,
    share: Bytes,
}

#[derive(Default)]
pub(super) struct Guests {
    guests: BTreeMap<u32, Guest>,
    /// Fast memory that nobody used at the last division: a run that has just joined begins with it.
    spare: Bytes,
}

impl Guests {
    /// Takes the line `join PID CLAIM`, with the claim as JSON; answers with the share.
    pub(super) fn renew(&mut self, pid: &str, line: &str) -> Result<String, String> {
        let number: u32 = pid.parse().map_err(|_| format!("expected a process's number, found '{pid}'"))?;
        let claim = line.split_once(pid).map_or("", |(_, rest)| rest.trim());
        let claim: GuestClaim = serde_json::from_str(claim).map_err(|error| format!("join: {error}"))?;
        if self.guests.len() >= MAX_GUESTS && !self.guests.contains_key(&number) {
            return Err(format!("{MAX_GUESTS} runs have joined already"));
        }
        let begin = || claim.used + std::mem::take(&mut self.spare);
        let share = self.guests.get(&number).map(|guest| guest.share).unwrap_or_else(begin);
        self.guests.insert(number, Guest { claim, heard: Instant::now(), share });
        Ok(format!("fast {}", share.0))
    }

    pub(super) fn set_spare(&mut self, spare: Bytes) {
        self.spare = spare;
    }

    pub(super) fn expire(&mut self) {
        self.guests.retain(|_, guest| guest.heard.elapsed() < SILENCE);
    }

    pub(super) fn claims(&self) -> impl Iterator<Item = Claim> {
        self.guests.values().map(|Guest { claim, .. }| {
            let pages = |bytes: Bytes| Pages(bytes.0 >> PAGE_SHIFT);
            let mapped = pages(claim.mapped);
            let curve =
                Curve::of_points(claim.curve.iter().copied()).unwrap_or_else(|| Curve::uniform(mapped));
            Claim { held: pages(claim.used), slow: claim.slow.clamp(1.0, 100.0), ..Claim::new(mapped, curve) }
        })
    }

    pub(super) fn used(&self) -> impl Iterator<Item = Bytes> {
        self.guests.values().map(|guest| guest.claim.used)
    }

    /// Whether a program belongs to a run.
    pub(super) fn has(&self, pid: u32) -> bool {
        self.guests.values().any(|guest| guest.claim.group.programs.iter().any(|program| program.pid == pid))
    }

    /// Sets the runs' shares, in the order of their claims; returns their states, with the names and cgroups
    /// of programs from `known`.
    pub(super) fn take<'a>(
        &mut self,
        shares: impl Iterator<Item = Bytes>,
        known: impl Fn(u32) -> Option<&'a Program>,
    ) -> Vec<GroupStatus> {
        let told = self.guests.iter_mut().zip(shares).map(|((pid, guest), share)| {
            guest.share = share;
            let programs = guest.claim.group.programs.iter().map(|program| {
                let known = known(program.pid);
                let text = |of: fn(&Program) -> &String| known.map(of).cloned().unwrap_or_default();
                ProgramStatus {
                    command: text(|program| &program.command),
                    cgroup: text(|program| &program.cgroup),
                    ..program.clone()
                }
            });
            GroupStatus {
                programs: programs.collect(),
                name: format!("run-{pid}"),
                mode: "run".into(),
                weight: 1.0,
                share_bytes: share,
                ..guest.claim.group.clone()
            }
        });
        told.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_a_share_from_its_claim_to_its_silence() {
        let mut guests = Guests::default();
        let own = ProgramStatus { pid: 8, accesses: 5, ..ProgramStatus::default() };
        let group = GroupStatus { programs: vec![own], ..GroupStatus::default() };
        let claim = GuestClaim {
            used: Bytes(8192),
            mapped: Bytes(1 << 20),
            slow: 2.0,
            group,
            ..GuestClaim::default()
        };
        let line = format!("join 7 {}", serde_json::to_string(&claim).expect("plain data"));
        guests.set_spare(Bytes(4096));
        assert_eq!(guests.renew("7", &line), Ok("fast 12288".into()), "what it has and what is free");
        assert_eq!(guests.renew("7", &line), Ok("fast 12288".into()), "until the next division");
        assert_eq!(guests.claims().next().expect("one").mapped, Pages(256));
        assert!(guests.has(8) && !guests.has(7));
        let program = Program {
            pid: isotherm_linux::process::Pid(8),
            start: 1,
            cgroup: "/a.slice".into(),
            user: 0,
            command: "redis".into(),
            resident: Bytes(0),
        };
        let states = guests.take([Bytes(65536)].into_iter(), |pid| (pid == 8).then_some(&program));
        let shown = &states[0].programs[0];
        assert_eq!((&*shown.command, &*shown.cgroup, shown.accesses), ("redis", "/a.slice", 5));
        assert_eq!((states[0].name.as_str(), states[0].share_bytes), ("run-7", Bytes(65536)));
        let answer = format!("ok\n{}\n\n", guests.renew("7", &line).expect("known"));
        assert_eq!(answer.parse(), Ok(Claimed(Bytes(65536))));
        assert!("error: no".parse::<Claimed>().is_err());
        for wrong in ["join 7", "join 7 {", "join x {}"] {
            let pid = wrong.split(' ').nth(1).expect("a word");
            guests.renew(pid, wrong).expect_err(wrong);
        }
        guests.guests.get_mut(&7).expect("known").heard -= SILENCE;
        guests.expire();
        assert_eq!(guests.claims().count(), 0);
    }
}
