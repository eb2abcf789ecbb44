//! One row group of a part while it is read: six columns, decoded in step into flat vectors.

use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{BoolType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;

use crate::format::Column;
use crate::part_reader::Part;
use crate::{Rows, TraceError};

pub(crate) struct GroupReader {
    process: ColumnReaderImpl<Int32Type>,
    thread: ColumnReaderImpl<Int32Type>,
    instructions: ColumnReaderImpl<Int32Type>,
    line: ColumnReaderImpl<Int64Type>,
    store: ColumnReaderImpl<BoolType>,
    dependence: ColumnReaderImpl<Int32Type>,
    rows_left: u64,
    levels: Vec<i16>,
    narrow: Vec<i32>,
}

impl GroupReader {
    pub(crate) fn open(part: &Part, index: usize) -> Result<Self, TraceError> {
        Ok(Self {
            process: part.column(index, Column::Process)?,
            thread: part.column(index, Column::Thread)?,
            instructions: part.column(index, Column::Instructions)?,
            line: part.column(index, Column::Line)?,
            store: part.column(index, Column::Store)?,
            dependence: part.column(index, Column::Dependence)?,
            rows_left: part.group_rows(index),
            levels: Vec::new(),
            narrow: Vec::new(),
        })
    }

    /// Replaces `rows` by at most `limit` rows; fewer only at the end of the row group, none after it.
    pub(crate) fn read(&mut self, part: &Part, limit: usize, rows: &mut Rows) -> Result<(), TraceError> {
        rows.clear();
        let count = self.rows_left.min(limit as u64) as usize;
        let unsigned = i32::cast_unsigned;
        let mut read = Step { part, count, levels: &mut self.levels };
        read.recast(Column::Process, &mut self.process, &mut rows.process, unsigned)?;
        read.recast(Column::Thread, &mut self.thread, &mut rows.thread, unsigned)?;
        read.recast(Column::Instructions, &mut self.instructions, &mut rows.instructions, unsigned)?;
        read.recast(Column::Line, &mut self.line, &mut rows.line, i64::cast_unsigned)?;
        read.recast(Column::Store, &mut self.store, &mut rows.store, u8::from)?;
        self.narrow.clear();
        read.column(Column::Dependence, &mut self.dependence, &mut self.narrow)?;
        narrow(part, &self.narrow, &mut rows.dependence)?;
        self.rows_left -= count as u64;
        Ok(())
    }
}

struct Step<'a> {
    part: &'a Part,
    count: usize,
    levels: &'a mut Vec<i16>,
}

impl Step<'_> {
    /// Appends the step's values of a column.
    fn column<T: DataType>(
        &mut self,
        column: Column,
        reader: &mut ColumnReaderImpl<T>,
        values: &mut Vec<T::T>,
    ) -> Result<(), TraceError> {
        self.levels.clear();
        let (count, levels) = (self.count, &mut *self.levels);
        let mut got = 0;
        self.part.attempt(column, || {
            while got < count {
                let (records, present, _) = reader.read_records(count - got, Some(levels), None, values)?;
                if present != records {
                    return Err(ParquetError::General("a value is null".into()));
                }
                if records == 0 {
                    return Err(ParquetError::General(format!("{} rows too few", count - got)));
                }
                got += records;
            }
            Ok(())
        })
    }

    /// Reads a column whose values are as wide in memory as decoded: recasts the vector in place.
    fn recast<T: DataType, V>(
        &mut self,
        column: Column,
        reader: &mut ColumnReaderImpl<T>,
        values: &mut Vec<V>,
        cast: impl Fn(T::T) -> V,
    ) -> Result<(), TraceError> {
        // The vector is empty; only its memory is reused.
        let mut decoded: Vec<T::T> = std::mem::take(values).into_iter().map(|_| T::T::default()).collect();
        self.column(column, reader, &mut decoded)?;
        *values = decoded.into_iter().map(cast).collect();
        Ok(())
    }
}

fn narrow(part: &Part, wide: &[i32], narrow: &mut Vec<u8>) -> Result<(), TraceError> {
    // Unlike a search, this looks at many at once.
    let bits = wide.iter().fold(0, |bits, distance| bits | distance);
    if u8::try_from(bits).is_err() {
        let too_far = wide.iter().find(|&&distance| u8::try_from(distance).is_err()).unwrap_or(&bits);
        let problem = format!("holds {too_far}");
        return Err(part.wrong(Column::Dependence, problem, "distances of at most 255".into()));
    }
    narrow.extend(wide.iter().map(|&distance| distance as u8));
    Ok(())
}
