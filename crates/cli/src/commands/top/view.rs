//! The state of the view, and how keys and answers change it.

use std::collections::{BTreeMap, VecDeque};

use isotherm_core::machine_status::{GroupStatus, MachineStatus, MappingStatus, ProgramStatus};
use isotherm_policies::{ALL, Kind};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::feed::News;
use super::rows::{self, GROUPS, MAPPINGS, PROGRAMS, Row};

/// Hit ratios of a group that are kept, one for each look.
const HISTORY: usize = 120;
/// Longest text that can be typed.
const MAX_TYPED: usize = 64;

/// The table that is shown: all groups, a group's programs, or a program's mappings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Groups,
    Group(String),
    Program(String, u32),
}

/// The consequence of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    None,
    Quit,
    Order(String),
    /// Mappings are wanted from now on, by this request, or no longer.
    Watch(Option<String>),
}

/// A change of a group that is being typed.
#[derive(Debug)]
pub(super) struct Dialog {
    /// `policy` or `limit`.
    pub(super) what: &'static str,
    pub(super) group: String,
    pub(super) typed: String,
    /// Whether only the confirmation is missing.
    pub(super) ready: bool,
}

/// A group's figures between looks.
#[derive(Default)]
struct Track {
    hits: Vec<u64>,
    moves: u64,
    time_s: f64,
    ratios: VecDeque<Option<f64>>,
    moves_per_s: f64,
}

pub(super) struct View {
    pub(super) status: MachineStatus,
    pub(super) mappings: Vec<MappingStatus>,
    pub(super) place: Place,
    pub(super) dialog: Option<Dialog>,
    /// The outcome of the last order, or why there is no answer.
    pub(super) message: Option<String>,
    /// Column that orders the rows, if any, and whether it is turned round; for each kind of table.
    sorts: [(Option<usize>, bool); 3],
    chosen: [String; 3],
    tracks: BTreeMap<String, Track>,
}

impl View {
    pub(super) fn new(status: MachineStatus) -> Self {
        let mut view = Self {
            status: MachineStatus::default(),
            mappings: Vec::new(),
            place: Place::Groups,
            dialog: None,
            message: None,
            sorts: [(None, false); 3],
            chosen: Default::default(),
            tracks: BTreeMap::new(),
        };
        view.take(News::Status(status));
        view
    }

    pub(super) fn take(&mut self, news: News) {
        match news {
            News::Status(status) => self.look(status),
            News::Mappings(mappings) => self.mappings = mappings,
            News::Ordered(Ok(line)) => self.message = Some(format!("{line}: taken over")),
            News::Ordered(Err(why)) | News::Lost(why) => self.message = Some(why),
        }
    }

    fn look(&mut self, status: MachineStatus) {
        let time_s = status.time_ns.as_seconds();
        self.tracks.retain(|name, _| status.groups.iter().any(|group| group.name == *name));
        for group in &status.groups {
            let track = self.tracks.entry(group.name.clone()).or_default();
            track.look(group, time_s);
        }
        self.status = status;
    }

    /// Returns whether this is one run at its control socket.
    pub(super) fn alone(&self) -> bool {
        self.status.groups.iter().any(|group| group.mode == "alone")
    }

    fn kind(&self) -> usize {
        match self.place {
            Place::Groups => 0,
            Place::Group(_) => 1,
            Place::Program(..) => 2,
        }
    }

    pub(super) fn header(&self) -> &'static [&'static str] {
        [&GROUPS[..], &PROGRAMS, &MAPPINGS][self.kind()]
    }

    pub(super) fn sort(&self) -> (Option<usize>, bool) {
        self.sorts[self.kind()]
    }

    /// Returns the group that is shown, or chosen among all.
    pub(super) fn group(&self) -> Option<&GroupStatus> {
        let name = match &self.place {
            Place::Groups => self.rows().into_iter().nth(self.selected())?.key,
            Place::Group(name) | Place::Program(name, _) => name.clone(),
        };
        self.status.groups.iter().find(|group| group.name == name)
    }

    pub(super) fn program(&self) -> Option<&ProgramStatus> {
        let Place::Program(_, pid) = self.place else { return None };
        self.group()?.programs.iter().find(|program| program.pid == pid)
    }

    pub(super) fn ratios(&self, group: &str) -> Vec<Option<f64>> {
        self.tracks.get(group).map(|track| track.ratios.iter().copied().collect()).unwrap_or_default()
    }

    pub(super) fn moves_per_s(&self, group: &GroupStatus) -> f64 {
        // Only the daemon's own engines are told about their moves each second.
        let measured = ["run", "alone"].contains(&group.mode.as_str());
        let track = self.tracks.get(&group.name).filter(|_| measured);
        track.map_or(group.moves_per_s, |track| track.moves_per_s)
    }

    /// Returns the table's rows, in their order.
    pub(super) fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = match &self.place {
            Place::Groups => self.status.groups.iter().map(|group| rows::group(self, group)).collect(),
            Place::Group(name) => {
                let group = self.status.groups.iter().find(|group| group.name == *name);
                group.iter().flat_map(|group| &group.programs).map(rows::program).collect()
            }
            Place::Program(_, pid) => {
                self.mappings.iter().filter(|one| one.pid == *pid).map(rows::mapping).collect()
            }
        };
        if let (Some(column), turned) = self.sort() {
            rows.sort_by(|one, other| {
                let order = one.cells[column].compare(&other.cells[column]);
                if turned { order.reverse() } else { order }
            });
        }
        rows
    }

    /// Returns the number of the chosen row; the first if what was chosen is gone.
    pub(super) fn selected(&self) -> usize {
        let chosen = &self.chosen[self.kind()];
        self.rows().iter().position(|row| row.key == *chosen).unwrap_or(0)
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Action {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return if key.code == KeyCode::Char('c') { Action::Quit } else { Action::None };
        }
        self.message = None;
        if let Some(dialog) = self.dialog.take() {
            return self.answer(dialog, key.code);
        }
        match key.code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Up | KeyCode::Char('k') => self.choose(-1),
            KeyCode::Down | KeyCode::Char('j') => self.choose(1),
            KeyCode::PageUp => self.choose(-10),
            KeyCode::PageDown => self.choose(10),
            KeyCode::Left | KeyCode::Char('<') => self.sort_by(-1),
            KeyCode::Right | KeyCode::Char('>') => self.sort_by(1),
            KeyCode::Char('r') => self.sorts[self.kind()].1 ^= true,
            KeyCode::Char('p') => self.ask_for("policy"),
            KeyCode::Char('l') => self.ask_for("limit"),
            KeyCode::Enter => return self.enter(),
            KeyCode::Esc | KeyCode::Backspace => return self.leave(),
            _ => {}
        }
        Action::None
    }

    fn choose(&mut self, step: isize) {
        let rows = self.rows();
        let last = rows.len().saturating_sub(1);
        let to = self.selected().saturating_add_signed(step).min(last);
        if let Some(row) = rows.get(to) {
            self.chosen[self.kind()].clone_from(&row.key);
        }
    }

    /// Chooses the next column, or the one before, to order by; its last cell may be a picture.
    fn sort_by(&mut self, step: isize) {
        let columns = self.header().len() - usize::from(self.header() != PROGRAMS);
        let (column, turned) = &mut self.sorts[self.kind()];
        *column = match *column {
            Some(0) if step < 0 => None,
            None if step < 0 => Some(columns - 1),
            None => Some(0),
            Some(column) => Some(column.saturating_add_signed(step)).filter(|&column| column < columns),
        };
        *turned = false;
    }

    fn ask_for(&mut self, what: &'static str) {
        let Some(group) = self.group() else { return };
        if let Some(why) = elsewhere(group) {
            self.message = Some(why);
            return;
        }
        let typed = match what {
            "policy" => group.policy.clone(),
            _ => group.limit_bytes.map_or_else(|| "none".into(), |limit| limit.to_string()),
        };
        self.dialog = Some(Dialog { what, group: group.name.clone(), typed, ready: false });
    }

    /// Takes a key while a change is being typed, or awaits its confirmation.
    fn answer(&mut self, mut dialog: Dialog, key: KeyCode) -> Action {
        match key {
            _ if dialog.ready => {
                return match key {
                    KeyCode::Char('y') => Action::Order(self.order(&dialog)),
                    _ => {
                        self.message = Some("nothing changed".into());
                        Action::None
                    }
                };
            }
            KeyCode::Esc => return Action::None,
            KeyCode::Enter => dialog.ready = !dialog.typed.is_empty(),
            KeyCode::Backspace => drop(dialog.typed.pop()),
            KeyCode::Up | KeyCode::Down if dialog.what == "policy" => {
                dialog.typed = next_policy(&dialog.typed, key == KeyCode::Down).into();
            }
            KeyCode::Char(letter) if letter.is_ascii_graphic() && dialog.typed.len() < MAX_TYPED => {
                dialog.typed.push(letter);
            }
            _ => {}
        }
        self.dialog = Some(dialog);
        Action::None
    }

    fn order(&self, Dialog { what, group, typed, .. }: &Dialog) -> String {
        if self.alone() { format!("{what} {typed}") } else { format!("group {group} {what} {typed}") }
    }

    fn enter(&mut self) -> Action {
        let selected = self.selected();
        let Some(key) = self.rows().into_iter().nth(selected).map(|row| row.key) else { return Action::None };
        match &self.place {
            Place::Groups => self.place = Place::Group(key),
            Place::Group(group) => {
                let Ok(pid) = key.parse() else { return Action::None };
                let request = if self.alone() { "mappings".into() } else { format!("mappings {group}") };
                self.mappings.clear();
                self.place = Place::Program(group.clone(), pid);
                return Action::Watch(Some(request));
            }
            Place::Program(..) => {}
        }
        Action::None
    }

    fn leave(&mut self) -> Action {
        match &self.place {
            Place::Groups => Action::None,
            Place::Group(_) => {
                self.place = Place::Groups;
                Action::None
            }
            Place::Program(group, _) => {
                self.place = Place::Group(group.clone());
                Action::Watch(None)
            }
        }
    }
}

impl Track {
    fn look(&mut self, group: &GroupStatus, time_s: f64) {
        let moves = group.traffic.promotions + group.traffic.demotions + group.traffic.reclaimed;
        let passed = time_s - self.time_s;
        let first = self.time_s == 0.0;
        if !first && passed <= 0.0 {
            return;
        }
        if !first {
            let new = |tier: usize| {
                group.hits[tier].saturating_sub(self.hits.get(tier).copied().unwrap_or(0)) as f64
            };
            let all: f64 = (0..group.hits.len()).map(new).sum();
            self.ratios.push_back((all > 0.0).then(|| new(0) / all));
            self.moves_per_s = moves.saturating_sub(self.moves) as f64 / passed;
        }
        if self.ratios.len() > HISTORY {
            self.ratios.pop_front();
        }
        (self.moves, self.time_s) = (moves, time_s);
        self.hits.clone_from(&group.hits);
    }
}

/// Says where a run that has joined is looked at and changed.
pub(super) fn elsewhere(group: &GroupStatus) -> Option<String> {
    let joined = group.mode == "run";
    joined.then(|| format!("{} has an engine of its own: isotherm top --socket CONTROL", group.name))
}

/// Returns the registry's policy behind one, or before it.
fn next_policy(name: &str, forward: bool) -> &'static str {
    let names: Vec<&str> =
        ALL.iter().filter(|entry| matches!(entry.kind, Kind::Policy(_))).map(|entry| entry.name).collect();
    let step = if forward { 1 } else { names.len() - 1 };
    let at = names.iter().position(|known| *known == name);
    names[at.map_or(0, |at| (at + step) % names.len())]
}
