//! `isotherm compare`: two results side by side.

use std::path::Path;

use isotherm_report::Comparison;

use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::{input, output};

/// Maximum bytes of a result: all policies at ten sizes over time have a tenth.
const RESULT: u64 = 256 << 20;

pub(crate) fn run(args: &CompareArgs) -> Result<(), Failure> {
    let page = output::open(args.report.as_ref())?;
    let read = |path: &Path| Ok((path.display().to_string(), input::read_text_up_to(path, RESULT)?));
    let [(a, before), (b, after)] = [read(&args.a)?, read(&args.b)?];
    let comparison = Comparison::new((&a, &before), (&b, &after)).map_err(Failure::usage)?;
    output::write(page, || isotherm_report::compare_html(&comparison))?;
    if args.json {
        return output::print(&format!("{}\n", isotherm_report::compare_json(&comparison)));
    }
    output::print(&isotherm_report::compare_text(&comparison))?;
    output::name_report(args.report.as_deref(), args.quiet);
    Ok(())
}
