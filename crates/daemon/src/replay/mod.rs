//! A past hour of a log of operations, in the views of the daemon: its page, and `isotherm top` at a socket.
//!
//! A log tells several daemons after one another, as they were started again. They become one: times are
//! since the start of the first, sums begin again with each.

mod perfetto;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use isotherm_core::Nanos;
use isotherm_core::machine_status::{MachineStatus, MappingStatus};
use isotherm_linux::LinuxError;
use isotherm_live::control::Control;

use crate::daemon::history::History;
use crate::daemon::web::Web;
use crate::log::{Kind, LogError, LogReader, Row};
pub use perfetto::perfetto;

/// Time between two looks at the socket.
const LOOK: Duration = Duration::from_millis(100);

/// Why a replay ends before it is told to.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The log.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The page cannot be served.
    #[error("--listen {0}")]
    Listen(String),
    /// The socket.
    #[error(transparent)]
    Socket(#[from] LinuxError),
}

/// Where a replay is shown.
#[derive(Debug, Clone, Copy)]
pub enum View<'a> {
    /// As a page.
    Page(SocketAddr),
    /// At a socket, for `isotherm top`.
    Socket(&'a Path),
}

/// A log up to a moment.
pub struct Replay {
    reader: LogReader,
    next_us: i64,
    status: Arc<RwLock<Arc<MachineStatus>>>,
    history: Arc<Mutex<History>>,
    mappings: BTreeMap<String, Vec<MappingStatus>>,
    /// The moment whose groups are being read.
    moment: Option<MachineStatus>,
    /// Sum of the moment's figures.
    figures: f64,
    lives: Lives,
}

/// The daemons of the log.
#[derive(Default)]
struct Lives {
    /// Starts of the first and the latest, in seconds since 1970.
    starts: Option<(u64, u64)>,
    /// Processor time of those before the latest, and of the latest so far.
    cpu: (Nanos, Nanos),
}

impl Lives {
    /// Counts a state's time, and processor time, from the first daemon's start on.
    fn join(&mut self, status: &mut MachineStatus) {
        let (first, latest) = self.starts.unwrap_or((status.started_unix_s, status.started_unix_s));
        if status.started_unix_s != latest {
            self.cpu = (Nanos(self.cpu.0.0.saturating_add(self.cpu.1.0)), Nanos(0));
        }
        self.starts = Some((first, status.started_unix_s));
        self.cpu.1 = status.cpu_ns;
        let since = status.started_unix_s.saturating_sub(first).saturating_mul(Nanos::SECOND.0);
        status.time_ns = Nanos(status.time_ns.0.saturating_add(since));
        status.cpu_ns = Nanos(self.cpu.0.0.saturating_add(status.cpu_ns.0));
        status.started_unix_s = first;
    }
}

impl Replay {
    /// Begins at a time in microseconds since 1970.
    pub fn new(reader: LogReader, from_us: i64) -> Self {
        Self {
            reader,
            next_us: from_us,
            status: Arc::default(),
            history: Arc::default(),
            mappings: BTreeMap::new(),
            moment: None,
            figures: 0.0,
            lives: Lives::default(),
        }
    }

    /// Goes on to a time. Returns whether there was any moment so far.
    ///
    /// # Errors
    /// A log that cannot be read.
    pub fn advance(&mut self, to_us: i64) -> Result<bool, LogError> {
        let reader = std::mem::take(&mut self.reader);
        let read = reader.read(self.next_us, to_us, |row| self.take(row));
        self.reader = reader;
        read?;
        self.commit();
        self.next_us = to_us.saturating_add(1);
        Ok(self.lives.starts.is_some())
    }

    fn take(&mut self, row: &Row) -> Result<(), String> {
        match row.kind {
            Kind::Machine => {
                self.commit();
                self.figures = 0.0;
                let mut status: MachineStatus = row.parse(&mut self.figures)?;
                status.groups.clear();
                self.lives.join(&mut status);
                self.moment = Some(status);
            }
            Kind::Group => {
                let group = row.parse(&mut self.figures)?;
                if let Some(moment) = &mut self.moment {
                    moment.groups.push(group);
                }
            }
            Kind::Heat => {
                let mappings: Vec<MappingStatus> = row.parse(&mut self.figures)?;
                self.commit();
                let time = self.state().time_ns;
                self.past().take_heat(&row.group, time, &mappings);
                self.mappings.insert(row.group.clone(), mappings);
            }
            Kind::Event => {}
        }
        Ok(())
    }

    /// Shows the moment that has been read.
    fn commit(&mut self) {
        let Some(status) = self.moment.take() else { return };
        self.past().take(&status);
        self.mappings.retain(|name, _| status.groups.iter().any(|group| group.name == *name));
        *self.status.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(status);
    }

    fn state(&self) -> Arc<MachineStatus> {
        self.status.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn past(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows the log up to a time until `ended`: at once, or played so many times as fast as it was. Sets
    /// `ready` once the view can be reached.
    ///
    /// # Errors
    /// A log that cannot be read, an address or a socket that cannot be used.
    pub fn serve(
        mut self,
        to_us: i64,
        speed: Option<f64>,
        view: View<'_>,
        ready: &AtomicBool,
        ended: &AtomicBool,
    ) -> Result<(), ReplayError> {
        let _web = match view {
            View::Page(address) => {
                let web = Web::start(address, self.status.clone(), self.history.clone());
                Some(web.map_err(ReplayError::Listen)?)
            }
            View::Socket(_) => None,
        };
        let mut control = match view {
            View::Page(_) => None,
            View::Socket(path) => Some(Control::open(path)?),
        };
        ready.store(true, Relaxed);
        let (from_us, began) = (self.next_us, Instant::now());
        while !ended.load(Relaxed) {
            if self.next_us <= to_us {
                let played =
                    |speed: f64| from_us.saturating_add((began.elapsed().as_micros() as f64 * speed) as i64);
                self.advance(speed.map_or(to_us, played).min(to_us))?;
            }
            if let Some(control) = &mut control {
                control.serve(|line| self.answer(line));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn answer(&self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        let json = match words[..] {
            ["status", ..] => serde_json::to_string(&*self.state()),
            ["mappings", group] => {
                serde_json::to_string(self.mappings.get(group).map_or(&[][..], |all| &all[..]))
            }
            _ => return "error: a replay cannot be changed".into(),
        };
        json.map_or_else(|error| format!("error: {error}"), |json| format!("ok\n{json}"))
    }
}

#[cfg(test)]
mod tests;
