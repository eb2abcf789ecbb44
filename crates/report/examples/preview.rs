//! Writes the page of a made-up report: `cargo run -p isotherm-report --example preview -- FILE.html
//! [1|live|size|full]`. `1` keeps one size of the fast tier, `live` takes a live run, `size` a sizing, `full`
//! every policy.

#[path = "../tests/support/mod.rs"]
mod support;

fn main() -> std::io::Result<()> {
    let mut report = support::report();
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "preview.html".into());
    let page = match arguments.next().as_deref() {
        Some("live") => isotherm_report::live_html(&support::live::live()),
        Some("size") => isotherm_report::size_html(&support::sized::sizing(0.3), &Default::default()),
        Some("full") => isotherm_report::html(&support::full_report()),
        Some(_) => {
            report.runs.retain(|run| run.fast == "1:8");
            isotherm_report::html(&report)
        }
        None => isotherm_report::html(&report),
    };
    std::fs::write(path, page)
}
