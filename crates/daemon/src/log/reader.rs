//! The log while it is read: files that anybody may have written.

use std::fs;
use std::path::{Path, PathBuf};

use isotherm_trace::guarded::{GuardedParquet, Refusal, attempt};
use parquet::basic::{Compression, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{FORMAT_VERSION, GROUP, KIND, Kind, STATE, TIME, VERSION_KEY, begin};

/// Most rows of a row group: a daemon with 256 groups writes 40,000.
const MAX_ROWS: i64 = 1 << 20;
/// Most bytes of text of a row group.
const MAX_TEXT: usize = 256 << 20;
/// Largest sum of all whole numbers of a moment: then no view's sum of some overflows.
const MOST: f64 = (1_u64 << 62) as f64;
/// Values that are read at once.
const BATCH: usize = 4096;

/// Reason why a log cannot be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum LogError {
    #[error("{}: cannot {action}: {source}", path.display())]
    Io { path: PathBuf, action: &'static str, source: std::io::Error },
    #[error("{}: not a log of the daemon: {reason}; expected a file or directory that it wrote", path.display())]
    Foreign { path: PathBuf, reason: String },
    #[error("{}: truncated: {reason}", path.display())]
    Truncated { path: PathBuf, reason: String },
    #[error("{}: holds no file of a log; expected isotherm-*.parquet", path.display())]
    Empty { path: PathBuf },
    #[error("{}: column '{column}' {problem}; expected what the daemon writes", path.display())]
    Column { path: PathBuf, column: &'static str, problem: String },
    #[error("{}: row {row}: {problem}; expected what the daemon writes", path.display())]
    Row { path: PathBuf, row: usize, problem: String },
}

/// A row of the log.
#[derive(Debug, Clone)]
pub struct Row {
    /// Microseconds since 1970.
    pub time_us: i64,
    /// Subject.
    pub kind: Kind,
    /// The group's name.
    pub group: String,
    /// JSON, by the kind.
    pub state: String,
}

impl Row {
    /// Parses the state, and adds its whole numbers to `figures`, from which no sum may overflow. The error
    /// says what was wrong.
    pub fn parse<T: DeserializeOwned>(&self, figures: &mut f64) -> Result<T, String> {
        let wrong = |error| format!("its state is no {}: {error}", self.kind.name());
        let value: Value = serde_json::from_str(&self.state).map_err(wrong)?;
        *figures += sum(&value);
        if *figures > MOST {
            return Err("its figures are larger than any machine's".into());
        }
        serde_json::from_value(value).map_err(wrong)
    }
}

/// Reader of a log: a file, or the directory with the time at which each of its files begins.
#[derive(Debug, Default)]
pub struct LogReader {
    path: PathBuf,
    files: Vec<(Option<i64>, PathBuf)>,
}

impl LogReader {
    /// Opens a file or a directory.
    ///
    /// # Errors
    /// A path that cannot be read, or a directory without a log.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        let io = |action| move |source| LogError::Io { path: path.into(), action, source };
        let mut files = Vec::new();
        if fs::metadata(path).map_err(io("open"))?.is_dir() {
            for entry in fs::read_dir(path).map_err(io("list"))? {
                let entry = entry.map_err(io("list"))?;
                let begin = entry.file_name().to_str().and_then(begin);
                files.extend(begin.map(|begin| (Some(begin), entry.path())));
            }
            files.sort_unstable();
        } else {
            files.push((None, path.to_owned()));
        }
        match files.is_empty() {
            true => Err(LogError::Empty { path: path.into() }),
            false => Ok(Self { path: path.into(), files }),
        }
    }

    /// Returns the times of the first and the last row.
    ///
    /// # Errors
    /// A file that cannot be read, or one without rows.
    pub fn span(&self) -> Result<(i64, i64), LogError> {
        let (first, last) = (&self.files[0].1, &self.files[self.files.len() - 1].1);
        let begin = LogFile::open(first)?.span()?.map(|span| span.0);
        let end = LogFile::open(last)?.span()?.map(|span| span.1);
        begin.zip(end).ok_or_else(|| LogError::Empty { path: self.path.clone() })
    }

    /// Hands each row from a time up to another one, both included, to `take` in the order of the log.
    ///
    /// # Errors
    /// A file that cannot be read, or what `take` finds wrong with a row.
    pub fn read(
        &self,
        from_us: i64,
        to_us: i64,
        mut take: impl FnMut(&Row) -> Result<(), String>,
    ) -> Result<(), LogError> {
        for (place, (begin, path)) in self.files.iter().enumerate() {
            let next = self.files.get(place + 1).and_then(|next| next.0);
            if begin.is_some_and(|begin| begin > to_us) || next.is_some_and(|next| next <= from_us) {
                continue;
            }
            let file = LogFile::open(path)?;
            let mut before = 0;
            for group in 0..file.parquet.groups().len() {
                let rows = file.rows(group)?;
                let wanted = |(_, row): &(usize, &Row)| (from_us..=to_us).contains(&row.time_us);
                for (number, row) in rows.iter().enumerate().filter(wanted) {
                    let wrong = |problem| LogError::Row { path: path.clone(), row: before + number, problem };
                    take(row).map_err(wrong)?;
                }
                before += rows.len();
            }
        }
        Ok(())
    }
}

fn sum(value: &Value) -> f64 {
    match value {
        Value::Number(number) if !number.is_f64() => number.as_f64().unwrap_or_default().abs(),
        Value::Array(values) => values.iter().map(sum).sum(),
        Value::Object(values) => values.values().map(sum).sum(),
        _ => 0.0,
    }
}

struct LogFile<'a> {
    path: &'a Path,
    parquet: GuardedParquet,
}

impl<'a> LogFile<'a> {
    fn open(path: &'a Path) -> Result<Self, LogError> {
        let foreign = |reason: String| LogError::Foreign { path: path.into(), reason };
        let parquet = GuardedParquet::open(path).map_err(|refusal| match refusal {
            Refusal::Io(action, source) => LogError::Io { path: path.into(), action, source },
            Refusal::Foreign(reason) => foreign(reason),
            Refusal::Truncated(reason) => LogError::Truncated { path: path.into(), reason },
        })?;
        match parquet.key(VERSION_KEY) {
            Some(FORMAT_VERSION) => Ok(Self { path, parquet }),
            Some(other) => {
                let other: String = other.escape_default().take(40).collect();
                Err(foreign(format!("{VERSION_KEY} is '{other}', not {FORMAT_VERSION}")))
            }
            None => Err(foreign(format!("it lacks the key {VERSION_KEY}"))),
        }
    }

    /// Returns the earliest and the latest time; `None` without rows.
    fn span(&self) -> Result<Option<(i64, i64)>, LogError> {
        let (mut span, mut times) = (None, Vec::new());
        for group in 0..self.parquet.groups().len() {
            times.clear();
            self.column::<Int64Type>(group, TIME, Physical::INT64, &mut times, |_| 0)?;
            for &time in &times {
                let (first, last) = span.unwrap_or((time, time));
                span = Some((time.min(first), time.max(last)));
            }
        }
        Ok(span)
    }

    fn rows(&self, group: usize) -> Result<Vec<Row>, LogError> {
        let (mut times, mut kinds, mut groups, mut states) = (vec![], vec![], vec![], vec![]);
        self.column::<Int64Type>(group, TIME, Physical::INT64, &mut times, |_| 0)?;
        for (name, values) in [(KIND, &mut kinds), (GROUP, &mut groups), (STATE, &mut states)] {
            self.column::<ByteArrayType>(group, name, Physical::BYTE_ARRAY, values, ByteArray::len)?;
        }
        let text = |column, value: &ByteArray| {
            let text = std::str::from_utf8(value.data()).map(str::to_owned);
            text.map_err(|_| self.wrong(column, "is no UTF-8".into()))
        };
        let row = |(((time_us, kind), group), state): (((i64, ByteArray), ByteArray), ByteArray)| {
            let known = Kind::parse(kind.data());
            let unknown = || {
                let found: String = kind.data().escape_ascii().take(40).map(char::from).collect();
                self.wrong(KIND, format!("is '{found}'"))
            };
            Ok(Row {
                time_us,
                kind: known.ok_or_else(unknown)?,
                group: text(GROUP, &group)?,
                state: text(STATE, &state)?,
            })
        };
        times.into_iter().zip(kinds).zip(groups).zip(states).map(row).collect()
    }

    fn wrong(&self, column: &'static str, problem: String) -> LogError {
        LogError::Column { path: self.path.into(), column, problem }
    }

    /// Appends the values of a column, which must be as many as the row group has rows.
    fn column<T: DataType>(
        &self,
        group: usize,
        name: &'static str,
        physical: Physical,
        values: &mut Vec<T::T>,
        length: impl Fn(&T::T) -> usize,
    ) -> Result<(), LogError> {
        let wrong = |problem| self.wrong(name, problem);
        let position = self.parquet.position(name, physical).map_err(wrong)?;
        let metadata = &self.parquet.groups()[group];
        let chunk = metadata.columns().get(position).ok_or_else(|| wrong("is missing".into()))?;
        if !matches!(chunk.compression(), Compression::UNCOMPRESSED | Compression::ZSTD(_)) {
            return Err(wrong(format!("is compressed with {}", chunk.compression_codec())));
        }
        let rows = metadata.num_rows();
        if !(0..=MAX_ROWS).contains(&rows) || chunk.num_values() != rows {
            return Err(wrong(format!("has {} values for {rows} rows", chunk.num_values())));
        }
        if GuardedParquet::end(chunk).map_err(wrong)? > self.parquet.bytes() {
            return Err(wrong("ends behind the file".into()));
        }
        let width = if physical == Physical::INT64 { 8 } else { 4 };
        let (wanted, first) = (rows as usize, values.len());
        let mut text = 0;
        let read = || {
            let mut reader = self.parquet.column::<T>(group, position, width)?;
            while values.len() - first < wanted {
                let (from, left) = (values.len(), wanted - (values.len() - first));
                let mut levels = Vec::new();
                let (records, present, _) =
                    reader.read_records(left.min(BATCH), Some(&mut levels), None, values)?;
                text += values[from..].iter().map(&length).sum::<usize>();
                let problem = match () {
                    () if present != records => Some("a value is null"),
                    () if records == 0 => Some("rows are missing"),
                    () if text > MAX_TEXT => Some("its texts are too long"),
                    () => None,
                };
                if let Some(problem) = problem {
                    return Err(ParquetError::General(problem.into()));
                }
            }
            Ok(())
        };
        attempt(read).map_err(|reason| wrong(format!("is unreadable ({reason})")))
    }
}
