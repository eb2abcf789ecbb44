//! A log as a trace for <https://ui.perfetto.dev>, in the JSON that Chrome traces with.
//!
//! Each group is a process with counters, a track of its engine's policies, one of its phases, one of its
//! moves, and one for each program. What happened is an instant.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use isotherm_core::machine_status::GroupStatus;
use serde_json::{Value, json};

use crate::log::{Event, Kind, LogError, LogReader, Row};

/// Tracks of a group; programs have the numbers of their processes, which are above.
const POLICY: u32 = 1;
const PHASE: u32 = 2;
const MOVES: u32 = 3;
/// Share of the time that a program runs, below which its group sleeps.
const ASLEEP: f64 = 0.001;

/// Returns the rows of a time in microseconds since 1970 as a trace.
///
/// # Errors
/// A log that cannot be read.
pub fn perfetto(reader: &LogReader, from_us: i64, to_us: i64) -> Result<String, LogError> {
    let mut trace = Trace::default();
    reader.read(from_us, to_us, |row| trace.take(row))?;
    trace.end();
    Ok(trace.json + "\n]}\n")
}

#[derive(Default)]
struct Trace {
    json: String,
    begin_us: Option<i64>,
    end_us: i64,
    groups: BTreeMap<String, Track>,
}

/// A group so far.
struct Track {
    number: usize,
    last: Option<(i64, GroupStatus)>,
    /// The names that its tracks show now, and since when.
    open: BTreeMap<u32, (String, i64)>,
}

impl Trace {
    fn take(&mut self, row: &Row) -> Result<(), String> {
        self.begin_us.get_or_insert(row.time_us);
        self.end_us = row.time_us;
        match row.kind {
            Kind::Group => {
                let group: GroupStatus = row.parse(&mut 0.0)?;
                self.group(row.time_us, group);
            }
            Kind::Event => {
                let event: Event = row.parse(&mut 0.0)?;
                self.event(row, &event);
            }
            Kind::Machine | Kind::Heat => {}
        }
        Ok(())
    }

    fn write(&mut self, event: &Value) {
        let begin = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
        let before = if self.json.is_empty() { begin } else { ",\n" };
        // Writing to a string does not fail.
        let _ = write!(self.json, "{before}{event}");
    }

    /// Returns microseconds since the trace's begin.
    fn time(&self, time_us: i64) -> i64 {
        time_us.saturating_sub(self.begin_us.unwrap_or(time_us))
    }

    /// Returns a group's number, which names it and its tracks when it is new.
    fn number(&mut self, name: &str) -> usize {
        if let Some(track) = self.groups.get(name) {
            return track.number;
        }
        let number = self.groups.len() + 1;
        self.groups.insert(name.into(), Track { number, last: None, open: BTreeMap::new() });
        let shown = if name.is_empty() { "machine" } else { name };
        self.write(&json!({ "ph": "M", "name": "process_name", "pid": number, "args": { "name": shown } }));
        if !name.is_empty() {
            for (track, name) in [(POLICY, "policy"), (PHASE, "phase"), (MOVES, "moves")] {
                self.name_track(number, track, name);
            }
        }
        number
    }

    fn name_track(&mut self, number: usize, track: u32, name: &str) {
        self.write(&json!({ "ph": "M", "name": "thread_name", "pid": number, "tid": track, "args": { "name": name } }));
    }

    /// Shows something else on a track from now on.
    fn show(&mut self, group: &str, track: u32, what: Option<String>, now: i64) {
        let Some(known) = self.groups.get_mut(group) else { return };
        if known.open.get(&track).map(|open| &open.0) == what.as_ref() {
            return;
        }
        let number = known.number;
        let before = match what {
            Some(what) => known.open.insert(track, (what, now)),
            None => known.open.remove(&track),
        };
        if let Some((name, since)) = before {
            let (ts, dur) = (self.time(since), now.saturating_sub(since));
            self.write(
                &json!({ "ph": "X", "name": name, "pid": number, "tid": track, "ts": ts, "dur": dur }),
            );
        }
    }

    fn group(&mut self, now: i64, group: GroupStatus) {
        let number = self.number(&group.name);
        let (ts, name) = (self.time(now), group.name.clone());
        let mut count = |what: &str, args: Value| {
            self.write(&json!({ "ph": "C", "name": what, "pid": number, "ts": ts, "args": args }));
        };
        count("memory (bytes)", json!({ "fast": group.fast(), "slow": group.slow() }));
        count("share (bytes)", json!({ "share": group.share_bytes }));
        let before = self.groups.get_mut(&name).and_then(|track| track.last.take());
        let counted = before.filter(|(_, last)| last.samples <= group.samples);
        let phase = match counted {
            Some((then, last)) => self.moves(number, (then, &last), (now, &group)),
            None => "starting",
        };
        let programs: BTreeMap<u32, &str> =
            group.programs.iter().map(|program| (program.pid, program.command.as_str())).collect();
        let phase = if programs.is_empty() { None } else { Some(phase.to_owned()) };
        self.show(&name, POLICY, phase.as_ref().map(|_| group.policy.clone()), now);
        self.show(&name, PHASE, phase, now);
        let shown = self.groups.get(&name).map(|track| track.open.keys().copied().collect::<Vec<_>>());
        for pid in shown.unwrap_or_default() {
            if pid > MOVES && !programs.contains_key(&pid) {
                self.show(&name, pid, None, now);
            }
        }
        for (pid, command) in programs {
            if pid > MOVES && self.groups.get(&name).is_some_and(|track| !track.open.contains_key(&pid)) {
                self.name_track(number, pid, command);
            }
            self.show(&name, pid, Some(command.to_owned()), now);
        }
        if let Some(track) = self.groups.get_mut(&name) {
            track.last = Some((now, group));
        }
    }

    /// Shows what has come since the moment before; returns the phase.
    fn moves(
        &mut self,
        number: usize,
        (then, last): (i64, &GroupStatus),
        (now, group): (i64, &GroupStatus),
    ) -> &'static str {
        let (ts, passed) = (self.time(now), now.saturating_sub(then).max(1));
        let new = |of: fn(&GroupStatus) -> u64| of(group).saturating_sub(of(last));
        let promoted = new(|group| group.traffic.promotions);
        let demoted =
            new(|group| group.traffic.demotions).saturating_add(new(|group| group.traffic.reclaimed));
        let rate = |pages: u64| pages as f64 * 1e6 / passed as f64;
        let hits = |tier: usize| {
            let of = |group: &GroupStatus| group.hits.get(tier).copied().unwrap_or(0);
            of(group).saturating_sub(of(last)) as f64
        };
        let all: f64 = (0..group.hits.len()).map(hits).sum();
        if all > 0.0 {
            let args = json!({ "fast": 100.0 * hits(0) / all });
            self.write(&json!({ "ph": "C", "name": "hit ratio (%)", "pid": number, "ts": ts, "args": args }));
        }
        let args = json!({ "promoted": rate(promoted), "demoted": rate(demoted) });
        self.write(&json!({ "ph": "C", "name": "moves (pages/s)", "pid": number, "ts": ts, "args": args }));
        if promoted > 0 || demoted > 0 {
            let args = json!({ "promoted": promoted, "demoted": demoted });
            let name = format!("{promoted} up, {demoted} down");
            let begin = self.time(then);
            self.write(&json!({ "ph": "X", "name": name, "pid": number, "tid": MOVES, "ts": begin, "dur": passed, "args": args }));
            return "moving";
        }
        let ran = group.running_ns.0.saturating_sub(last.running_ns.0) as f64 / 1e3;
        if ran < ASLEEP * passed as f64 { "asleep" } else { "steady" }
    }

    fn event(&mut self, row: &Row, event: &Event) {
        let number = self.number(&row.group);
        let name = match (event.what.as_str(), event.pid) {
            (what @ ("came" | "went"), Some(pid)) => format!("{} ({pid}) {what}", event.message),
            _ => event.message.clone(),
        };
        let ts = self.time(row.time_us);
        self.write(&json!({ "ph": "i", "s": "p", "cat": event.what, "name": name, "pid": number, "tid": PHASE, "ts": ts }));
    }

    /// Closes what is still shown.
    fn end(&mut self) {
        let open: Vec<(String, u32)> = self
            .groups
            .iter()
            .flat_map(|(name, track)| track.open.keys().map(|&track| (name.clone(), track)))
            .collect();
        open.into_iter().for_each(|(group, track)| self.show(&group, track, None, self.end_us));
        if self.json.is_empty() {
            self.number("");
        }
    }
}
