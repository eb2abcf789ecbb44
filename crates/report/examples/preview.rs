//! Writes the page of a made-up report, to look at it: `cargo run -p isotherm-report --example preview -- FILE.html [1]`,
//! where `1` keeps one size of the fast tier.

#[path = "../tests/support/mod.rs"]
mod support;

fn main() -> std::io::Result<()> {
    let mut report = support::report();
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "preview.html".into());
    if arguments.next().is_some() {
        report.runs.retain(|run| run.fast == "1:8");
    }
    std::fs::write(path, isotherm_report::html(&report))
}
