//! Defines the columns, keys and file names of a trace, and how each column is encoded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr, WriterVersion};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

/// The version of the format that is written and read.
pub const FORMAT_VERSION: &str = "1";
/// The key of the format's version in a part's key-value metadata.
pub const VERSION_KEY: &str = "isotherm.trace.version";
/// The key of the provenance, as JSON, in a part's key-value metadata.
pub const PROVENANCE_KEY: &str = "isotherm.trace.provenance";

/// Who wrote the file, as Parquet wants it: the version is that of the format, since the program's stands in the provenance.
const CREATED_BY: &str = "isotherm-trace version 1.0.0";

/// Rows of a row group: enough for the encodings to pay, little enough to hold in memory.
pub(crate) const ROW_GROUP_ROWS: usize = 1 << 18;
/// Rows of a page: a reader decodes a page at a time, and a page of 8-byte values fits the second-level cache.
const PAGE_ROWS: usize = 1 << 17;
/// Bytes of a page, as a limit that `PAGE_ROWS` never reaches.
const PAGE_BYTES: usize = 4 << 20;
/// Values encoded at once.
const BATCH: usize = 8192;

/// A column of the trace, in the order of the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    Process,
    Thread,
    Instructions,
    Line,
    Store,
    Dependence,
}

impl Column {
    pub(crate) const ALL: [Self; 6] =
        [Self::Process, Self::Thread, Self::Instructions, Self::Line, Self::Store, Self::Dependence];

    /// The name on disk.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Thread => "thread",
            Self::Instructions => "instructions",
            Self::Line => "line",
            Self::Store => "store",
            Self::Dependence => "dependence",
        }
    }

    /// The physical type on disk.
    pub(crate) const fn physical(self) -> Physical {
        match self {
            Self::Line => Physical::INT64,
            Self::Store => Physical::BOOLEAN,
            _ => Physical::INT32,
        }
    }

    /// The width of the unsigned integer; `None` for a truth value.
    const fn bits(self) -> Option<i8> {
        match self {
            Self::Process | Self::Thread | Self::Instructions => Some(32),
            Self::Line => Some(64),
            Self::Store => None,
            Self::Dependence => Some(8),
        }
    }

    /// The type as a reader would call it.
    pub(crate) fn expected(self) -> String {
        self.bits().map_or_else(|| "a boolean".into(), |bits| format!("an unsigned integer of {bits} bits"))
    }

    /// Whether values are so varied that splitting their bytes beats a dictionary.
    const fn is_varied(self) -> bool {
        matches!(self, Self::Instructions | Self::Line)
    }

    fn field(self) -> Result<TypePtr, ParquetError> {
        let logical = self.bits().map(|bits| LogicalType::integer(bits, false));
        let field = Type::primitive_type_builder(self.name(), self.physical());
        let field = field.with_repetition(Repetition::REQUIRED).with_logical_type(logical);
        field.build().map(Arc::new)
    }
}

/// The schema that is written.
pub(crate) fn schema() -> Result<TypePtr, ParquetError> {
    let fields = Column::ALL.into_iter().map(Column::field).collect::<Result<_, _>>()?;
    Type::group_type_builder("trace").with_fields(fields).build().map(Arc::new)
}

/// How the columns are encoded.
pub(crate) fn properties() -> WriterPropertiesPtr {
    let mut builder = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_created_by(CREATED_BY.into())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_data_page_size_limit(PAGE_BYTES)
        .set_write_batch_size(BATCH);
    for column in Column::ALL.into_iter().filter(|column| column.is_varied()) {
        let path = ColumnPath::from(column.name());
        builder = builder
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::BYTE_STREAM_SPLIT);
    }
    Arc::new(builder.build())
}

/// The name of a finished part.
pub(crate) fn part_path(trace: &Path, number: usize) -> PathBuf {
    trace.join(format!("part-{number:05}.parquet"))
}

/// The name of a part while it is written: hidden, so that `*.parquet` and `*` pass it by.
pub(crate) fn unfinished_path(trace: &Path, number: usize) -> PathBuf {
    trace.join(format!(".part-{number:05}.tmp"))
}

/// The number of a finished part, from its file name.
pub(crate) fn part_number(name: &str) -> Option<usize> {
    let digits = name.strip_prefix("part-")?.strip_suffix(".parquet")?;
    (digits.len() >= 5 && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
}
