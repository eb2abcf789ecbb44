//! The log while it is written.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use isotherm_core::machine_status::{GroupStatus, LogStatus, MachineStatus, MappingStatus};
use isotherm_core::{Bytes, Nanos};
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use serde::Serialize;

use super::{Event, FORMAT_VERSION, GROUP, KIND, Kind, STATE, TIME, VERSION_KEY, begin, file_name};
use crate::daemon::history::{COLUMNS, Moment, NEAR, moment};
use crate::journal::{Priority, Told};

/// Time between two files of a daemon.
pub(crate) const EVERY: Duration = Duration::from_secs(60);
/// Bytes of text that make a file before its time.
const FULL: usize = 4 << 20;
/// Name of a file that is not complete yet.
const UNFINISHED: &str = ".isotherm.tmp";
/// File that the daemon that writes here holds a lock on.
const LOCK: &str = ".lock";

/// Where the log is and how much of it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) directory: PathBuf,
    pub(crate) size: Bytes,
    pub(crate) age: Nanos,
}

/// A row before it is written.
pub(super) struct Raw {
    pub(super) time_us: i64,
    pub(super) kind: Kind,
    pub(super) group: String,
    pub(super) figures: Moment,
    pub(super) state: String,
}

/// The log of a daemon. Rows wait here for the thread that writes them.
pub(crate) struct Log {
    pub(super) rows: Vec<Raw>,
    bytes: usize,
    since: Instant,
    moment_s: f64,
    /// Start of the daemon in seconds since 1970.
    started_unix_s: u64,
    time_us: i64,
    /// Programs of the last moment: group and name by process.
    programs: BTreeMap<u32, (String, String)>,
    /// Whether the journal has been told that rows cannot be written.
    failed: bool,
    every: Duration,
    state: Arc<Mutex<LogStatus>>,
    sender: Option<SyncSender<Vec<Raw>>>,
    thread: Option<JoinHandle<()>>,
}

impl Log {
    /// Starts the thread that writes a file `every` so often.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub(crate) fn start(bounds: Bounds, every: Duration) -> io::Result<Self> {
        let directory = bounds.directory.display().to_string();
        let state = Arc::new(Mutex::new(LogStatus { directory, ..LogStatus::default() }));
        let shared = state.clone();
        // One file may wait while another is written.
        let (sender, receiver) = sync_channel(1);
        let write = move || write_files(&bounds, &shared, &receiver);
        let thread = std::thread::Builder::new().name("log".into()).spawn(write)?;
        Ok(Self {
            rows: Vec::new(),
            bytes: 0,
            since: Instant::now(),
            moment_s: f64::NEG_INFINITY,
            started_unix_s: 0,
            time_us: 0,
            programs: BTreeMap::new(),
            failed: false,
            every,
            state,
            sender: Some(sender),
            thread: Some(thread),
        })
    }

    pub(crate) fn status(&self) -> LogStatus {
        lock(&self.state).clone()
    }

    /// Returns a message for the journal, once when rows can no longer be written and once when they can.
    pub(crate) fn news(&mut self) -> Option<(Priority, String)> {
        let LogStatus { directory, bytes, dropped_rows, failure, .. } = self.status();
        let failed = std::mem::replace(&mut self.failed, failure.is_some());
        match failure {
            Some(why) if !failed => {
                let message = format!("log: {directory}: {why}; rows are lost until it can be written again");
                Some((Priority::Warning, message))
            }
            None if failed => {
                let message = format!("log: {directory}: goes on ({bytes}); {dropped_rows} rows are lost");
                Some((Priority::Info, message))
            }
            _ => None,
        }
    }

    /// Takes the state of all groups and what was told since the last moment. Returns whether this is one:
    /// moments are a second apart, however often memory is divided.
    pub(crate) fn take(&mut self, status: &mut MachineStatus, told: impl FnOnce() -> Vec<Told>) -> bool {
        let seconds = status.time_ns.as_seconds();
        if seconds - self.moment_s < NEAR {
            return false;
        }
        if self.bytes >= FULL || self.since.elapsed() >= self.every {
            self.hand_over();
        }
        self.moment_s = seconds;
        self.started_unix_s = status.started_unix_s;
        self.time_us = (status.started_unix_s * 1_000_000 + status.time_ns.0 / 1000).cast_signed();
        let groups = std::mem::take(&mut status.groups);
        self.push(Kind::Machine, "", None, status);
        for group in &groups {
            self.push(Kind::Group, &group.name, Some(moment(group, status.time_ns)), group);
        }
        for Told { priority, message, group } in told() {
            let what = format!("{priority:?}").to_lowercase();
            self.push(Kind::Event, &group, None, &Event { what, message, pid: None });
        }
        self.follow(&groups);
        status.groups = groups;
        true
    }

    /// Takes a group's memory by address, of the last moment.
    pub(crate) fn take_heat(&mut self, group: &str, mappings: &[MappingStatus]) {
        self.push(Kind::Heat, group, None, mappings);
    }

    /// Notes which programs have come and gone.
    fn follow(&mut self, groups: &[GroupStatus]) {
        let all = groups.iter().flat_map(|group| group.programs.iter().map(move |program| (group, program)));
        let now: BTreeMap<u32, (String, String)> = all
            .map(|(group, program)| (program.pid, (group.name.clone(), program.command.clone())))
            .collect();
        let before = std::mem::take(&mut self.programs);
        let changed = |one: &BTreeMap<_, _>, other: &BTreeMap<u32, (String, String)>, what: &'static str| {
            let only = one.iter().filter(|&(pid, program)| other.get(pid) != Some(program));
            let event = |(&pid, (group, command)): (&u32, &(String, String))| {
                (group.clone(), Event { what: what.into(), message: command.clone(), pid: Some(pid) })
            };
            only.map(event).collect::<Vec<_>>()
        };
        for (group, event) in changed(&before, &now, "went").into_iter().chain(changed(&now, &before, "came"))
        {
            self.push(Kind::Event, &group, None, &event);
        }
        self.programs = now;
    }

    fn push(&mut self, kind: Kind, group: &str, figures: Option<Moment>, state: &(impl Serialize + ?Sized)) {
        // Plain data is always JSON.
        let state = serde_json::to_string(state).unwrap_or_default();
        self.bytes += state.len();
        let figures = figures.unwrap_or_default();
        self.rows.push(Raw { time_us: self.time_us, kind, group: group.into(), figures, state });
    }

    /// Hands the rows over to the thread; drops them if it is two files behind.
    fn hand_over(&mut self) {
        (self.bytes, self.since) = (0, Instant::now());
        let rows = std::mem::take(&mut self.rows);
        let Some(sender) = self.sender.as_ref().filter(|_| !rows.is_empty()) else { return };
        if let Err(TrySendError::Full(rows) | TrySendError::Disconnected(rows)) = sender.try_send(rows) {
            fail(&mut lock(&self.state), rows.len(), "the disk does not keep up".into());
        }
    }
}

impl Drop for Log {
    /// Writes what is left.
    fn drop(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        if let Some(sender) = self.sender.take() {
            // The thread may have ended: then nothing can be written.
            let _ = sender.send(rows);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock(state: &Mutex<LogStatus>) -> MutexGuard<'_, LogStatus> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn fail(state: &mut LogStatus, rows: usize, why: String) {
    state.dropped_rows += rows as u64;
    state.failure = Some(why);
}

/// Writes each list of rows as a file. A directory that cannot be used is tried again with the next one.
fn write_files(bounds: &Bounds, state: &Mutex<LogStatus>, receiver: &Receiver<Vec<Raw>>) {
    let open = |rows: usize| Shelf::open(bounds, state).map_err(|why| fail(&mut lock(state), rows, why)).ok();
    // What is wrong with the directory is told at once.
    let mut shelf = open(0);
    for rows in receiver {
        shelf = shelf.or_else(|| open(rows.len()));
        shelf.iter_mut().for_each(|shelf| shelf.put(&rows));
    }
}

/// The files of the directory.
struct Shelf<'a> {
    bounds: &'a Bounds,
    state: &'a Mutex<LogStatus>,
    /// Beginning and size of each, oldest first.
    files: VecDeque<(i64, u64)>,
    _lock: File,
}

impl<'a> Shelf<'a> {
    /// Makes the directory unless it is there. Errors are one line.
    fn open(bounds: &'a Bounds, state: &'a Mutex<LogStatus>) -> Result<Self, String> {
        let text = |error: io::Error| error.to_string();
        fs::create_dir_all(&bounds.directory).map_err(text)?;
        let lock = File::create(bounds.directory.join(LOCK)).map_err(text)?;
        lock.try_lock().map_err(|_| "another daemon writes there")?;
        let mut files = Vec::new();
        for entry in fs::read_dir(&bounds.directory).map_err(text)? {
            let entry = entry.map_err(text)?;
            let begin = entry.file_name().to_str().and_then(begin);
            files.extend(begin.and_then(|begin| Some((begin, entry.metadata().ok()?.len()))));
        }
        files.sort_unstable();
        Ok(Self { bounds, state, files: files.into(), _lock: lock })
    }

    /// Writes rows as a file. What cannot be written is lost, and told.
    fn put(&mut self, rows: &[Raw]) {
        let Some(first) = rows.first() else { return };
        let written = encode(rows).map_err(|error| error.to_string()).and_then(|bytes| {
            self.make_room(first.time_us, bytes.len() as u64);
            self.write(first.time_us, &bytes).map_err(|error| error.to_string())
        });
        let mut state = lock(self.state);
        match written {
            Ok(()) => {
                state.written_rows += rows.len() as u64;
                state.failure = None;
            }
            Err(why) => fail(&mut state, rows.len(), why),
        }
        state.bytes = self.bytes();
    }

    fn bytes(&self) -> Bytes {
        self.files.iter().map(|&(_, bytes)| Bytes(bytes)).sum()
    }

    /// Removes the oldest files, so that another one fits.
    fn make_room(&mut self, now_us: i64, bytes: u64) {
        let oldest = now_us.saturating_sub_unsigned(self.bounds.age.0 / 1000);
        while let Some(&(begin, _)) = self.files.front()
            && (begin < oldest || self.bytes().0 + bytes > self.bounds.size.0)
        {
            // A file that somebody has removed is gone too.
            let _ = fs::remove_file(self.bounds.directory.join(file_name(begin)));
            self.files.pop_front();
        }
    }

    fn write(&mut self, begin: i64, bytes: &[u8]) -> io::Result<()> {
        let unfinished = self.bounds.directory.join(UNFINISHED);
        let written = write_and_name(&unfinished, &self.bounds.directory.join(file_name(begin)), bytes);
        match &written {
            Ok(()) => self.files.push_back((begin, bytes.len() as u64)),
            // A full disk needs its space.
            Err(_) => drop(fs::remove_file(&unfinished)),
        }
        written
    }
}

/// Writes a file under another name first, so that it is complete when it has its own.
fn write_and_name(unfinished: &Path, finished: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(unfinished, finished)
}

fn schema() -> Result<TypePtr, ParquetError> {
    let field = |name: &str, physical, logical| {
        let field = Type::primitive_type_builder(name, physical).with_repetition(Repetition::REQUIRED);
        field.with_logical_type(logical).build().map(Arc::new)
    };
    let text = |name| field(name, Physical::BYTE_ARRAY, Some(LogicalType::String));
    let time = LogicalType::timestamp(true, TimeUnit::MICROS);
    let mut fields = vec![field(TIME, Physical::INT64, Some(time))?, text(KIND)?, text(GROUP)?];
    for name in &COLUMNS[1..] {
        fields.push(field(name, Physical::DOUBLE, None)?);
    }
    fields.push(text(STATE)?);
    Type::group_type_builder("operations").with_fields(fields).build().map(Arc::new)
}

/// Encodes rows as a file.
pub(super) fn encode(rows: &[Raw]) -> Result<Vec<u8>, ParquetError> {
    let version = KeyValue::new(VERSION_KEY.into(), FORMAT_VERSION.to_owned());
    let properties = WriterProperties::builder()
        .set_created_by("isotherm-operations version 1.0.0".into())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        // States differ from one another, if little.
        .set_column_dictionary_enabled(STATE.into(), false)
        .set_key_value_metadata(Some(vec![version]))
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema()?, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    column::<Int64Type>(&mut group, rows.iter().map(|row| row.time_us))?;
    column::<ByteArrayType>(&mut group, rows.iter().map(|row| row.kind.name().into()))?;
    column::<ByteArrayType>(&mut group, rows.iter().map(|row| row.group.as_str().into()))?;
    for figure in 1..COLUMNS.len() {
        column::<DoubleType>(&mut group, rows.iter().map(|row| row.figures[figure]))?;
    }
    column::<ByteArrayType>(&mut group, rows.iter().map(|row| ByteArray::from(row.state.as_str())))?;
    group.close()?;
    writer.into_inner()
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: impl Iterator<Item = T::T>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("the schema has too few columns".into()));
    };
    column.typed::<T>().write_batch(&values.collect::<Vec<_>>(), None, None)?;
    column.close()
}
