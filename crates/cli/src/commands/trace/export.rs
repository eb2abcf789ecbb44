//! `isotherm trace export`: writes a trace in another tool's format.

use std::fs::File;
use std::io::BufWriter;

use isotherm_core::Bytes;
use isotherm_trace::TraceReader;
use isotherm_trace::export::{ExportError, ORACLE_ROW_MEMORY, oracle_general};

use crate::args::{ExportArgs, ExportFormat};
use crate::failure::Failure;
use crate::memory::Memory;
use crate::output::say;

pub(super) fn run(args: &ExportArgs) -> Result<(), Failure> {
    let mut reader = TraceReader::open(&args.trace).map_err(Failure::usage)?;
    let need = Bytes(reader.rows().saturating_mul(ORACLE_ROW_MEMORY));
    let what = format!("{} rows", reader.rows());
    Memory::new(&args.memory, false).say(&what, need, "a shorter trace, or more memory")?;
    let file = File::create_new(&args.output).map_err(|error| Failure::usage_at(&args.output, error))?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let written = match args.to {
        ExportFormat::OracleGeneral => oracle_general(&mut reader, args.page_size.into(), &mut out),
    };
    let records = written.map_err(|error| {
        // A file that is not whole would be taken for one.
        let _ = std::fs::remove_file(&args.output);
        match error {
            ExportError::Trace(error) => Failure::usage(error),
            error @ ExportError::Row { .. } => Failure::usage_at(&args.trace, error),
            ExportError::Io(error) => Failure::failed_at(&args.output, error),
        }
    })?;
    say(&format!("{}: {records} records\n", args.output.display()));
    Ok(())
}
