//! Finds the charting library (Chart.js) in its package, for `include_str!` by the report.
//!
//! `ISOTHERM_CHART_JS` names another file, for systems whose package puts it elsewhere.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Where Debian's package `libjs-chart.js` puts it: version 3, and the name that version 4 uses.
const PACKAGED: [&str; 2] =
    ["/usr/share/javascript/chart.js/chart.min.js", "/usr/share/javascript/chart.js/chart.umd.js"];

fn main() {
    println!("cargo::rerun-if-env-changed=ISOTHERM_CHART_JS");
    println!("cargo::rerun-if-changed=build.rs");
    if let Err(problem) = embed() {
        println!("cargo::error={problem}");
    }
}

/// Copies the library to `OUT_DIR/chart.js`.
fn embed() -> Result<(), String> {
    let out = env::var_os("OUT_DIR").ok_or("OUT_DIR is not set: run this through cargo")?;
    let source = find()?;
    println!("cargo::rerun-if-changed={}", source.display());
    let script = fs::read_to_string(&source).map_err(|error| format!("{}: {error}", source.display()))?;
    if !script.contains("Chart.js v") || script.contains("</script") {
        return Err(format!("{}: this is not a build of Chart.js that can be inlined", source.display()));
    }
    fs::write(Path::new(&out).join("chart.js"), script).map_err(|error| format!("OUT_DIR: {error}"))
}

fn find() -> Result<PathBuf, String> {
    if let Some(given) = env::var_os("ISOTHERM_CHART_JS") {
        return Ok(given.into());
    }
    let found = PACKAGED.iter().map(PathBuf::from).find(|path| path.exists());
    found.ok_or_else(|| {
        "Chart.js is missing: run `make setup` (it installs Debian's libjs-chart.js), or set ISOTHERM_CHART_JS to a chart.min.js"
            .into()
    })
}
