//! Columns, keys, encodings and file names of a trace.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr, WriterVersion};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

/// Version of the format that is written and read.
pub const FORMAT_VERSION: &str = "1";
/// Key of the format's version in a part's key-value metadata.
pub const VERSION_KEY: &str = "isotherm.trace.version";
/// Key of the provenance, as JSON, in a part's key-value metadata.
pub const PROVENANCE_KEY: &str = "isotherm.trace.provenance";

/// Parquet's name of the writer, with the format's version. The program's version is in the provenance.
const CREATED_BY: &str = "isotherm-trace version 1.0.0";

/// Rows per row group: many enough for the encodings to pay, few enough to hold in memory.
pub(crate) const ROW_GROUP_ROWS: usize = 1 << 18;
/// Rows per page. A reader decodes a page at a time, and a page of 8-byte values fits the second-level cache.
const PAGE_ROWS: usize = 1 << 17;
/// Maximum bytes per page, which `PAGE_ROWS` never reaches.
const PAGE_BYTES: usize = 4 << 20;
const BATCH: usize = 8192;

/// Column of the trace, in the order of the schema.
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

    /// Returns the name, the type on disk, and the width of the unsigned integer; `None` for a boolean.
    const fn facts(self) -> (&'static str, Physical, Option<i8>) {
        match self {
            Self::Process => ("process", Physical::INT32, Some(32)),
            Self::Thread => ("thread", Physical::INT32, Some(32)),
            Self::Instructions => ("instructions", Physical::INT32, Some(32)),
            Self::Line => ("line", Physical::INT64, Some(64)),
            Self::Store => ("store", Physical::BOOLEAN, None),
            Self::Dependence => ("dependence", Physical::INT32, Some(8)),
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        self.facts().0
    }

    pub(crate) const fn physical(self) -> Physical {
        self.facts().1
    }

    const fn bits(self) -> Option<i8> {
        self.facts().2
    }

    pub(crate) fn expected(self) -> String {
        self.bits().map_or_else(|| "a boolean".into(), |bits| format!("an unsigned integer of {bits} bits"))
    }

    /// Returns whether values vary so much that splitting their bytes beats a dictionary.
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

pub(crate) fn schema() -> Result<TypePtr, ParquetError> {
    let fields = Column::ALL.into_iter().map(Column::field).collect::<Result<_, _>>()?;
    Type::group_type_builder("trace").with_fields(fields).build().map(Arc::new)
}

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

pub(crate) fn part_path(trace: &Path, number: usize) -> PathBuf {
    trace.join(format!("part-{number:05}.parquet"))
}

/// Returns the path of an unfinished part: hidden, so that `*.parquet` and `*` do not match it.
pub(crate) fn unfinished_path(trace: &Path, number: usize) -> PathBuf {
    trace.join(format!(".part-{number:05}.tmp"))
}

pub(crate) fn part_number(name: &str) -> Option<usize> {
    let digits = name.strip_prefix("part-")?.strip_suffix(".parquet")?;
    (digits.len() >= 5 && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
}
