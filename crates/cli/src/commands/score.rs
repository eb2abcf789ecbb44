//! `isotherm score`: the papers' comparisons beside what the simulator makes of them.

use std::path::Path;
use std::time::Instant;

use isotherm_score::{Mode, Plan, Progress, Request, Scoreboard, compare};

use crate::args::ScoreArgs;
use crate::commands::{listing, print};
use crate::failure::Failure;

/// Where the page goes if nothing else is said.
const DEFAULT_FOLDER: &str = "docs";

/// Runs the verb.
pub(crate) fn run(args: &ScoreArgs) -> Result<(), Failure> {
    let mode = Mode { quick: args.quick, seed: args.seed };
    let request = Request::new(args.paper.as_deref(), args.only.as_deref(), mode).map_err(Failure::usage)?;
    if args.list {
        return list(&request);
    }
    let folder = args.output.as_deref().or((!request.partial).then_some(Path::new(DEFAULT_FOLDER)));
    if let Some(folder) = folder {
        // Before the runs: an hour later is too late to hear that nothing can be written.
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::usage(format!("{}: {error}", folder.display())))?;
    }
    let plan = Plan::new(&request);
    let start = Instant::now();
    if !args.quiet {
        let (runs, streams) = (plan.runs(), plan.streams());
        eprintln!("{runs} runs over {streams} streams, then those that probe orderings that are not kept");
    }
    let mut progress = |progress: Progress<'_>| {
        if !args.quiet {
            eprintln!("{}", line(progress, start.elapsed().as_secs_f64()));
        }
    };
    let board = compare(&request, env!("CARGO_PKG_VERSION"), &mut progress);
    write(args, folder, &board)?;
    if args.json {
        return print(&format!("{}\n", isotherm_report::score_json(&board)));
    }
    print(&isotherm_report::score_summary(&board))
}

/// What is next, and how long the rest will take at the pace so far.
fn line(progress: Progress<'_>, elapsed: f64) -> String {
    let Progress { workload, stream, streams, done, total } = progress;
    let rest = (done > 0).then(|| elapsed * (total - done) as f64 / done as f64);
    let rest = rest.map_or(String::new(), |rest| format!(", about {rest:.0} s to go"));
    format!("{}/{streams} {workload}: {elapsed:.0} s{rest}", stream + 1)
}

fn write(args: &ScoreArgs, folder: Option<&Path>, board: &Scoreboard) -> Result<(), Failure> {
    let write = |path: &Path, text: String| {
        std::fs::write(path, text).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
    };
    if let Some(folder) = folder {
        write(&folder.join("scoreboard.md"), isotherm_report::score_markdown(board))?;
        write(&folder.join("scoreboard.json"), isotherm_report::score_json(board) + "\n")?;
    }
    args.report.as_deref().map_or(Ok(()), |path| write(path, isotherm_report::score_html(board)))
}

fn list(request: &Request) -> Result<(), Failure> {
    let mut table = listing(&["comparison", "where", "what is compared", "measured"]);
    for paper in &request.papers {
        for one in &paper.comparison {
            table.add_row([one.id.as_str(), &one.place, &one.title, one.metric.words()]);
        }
        for one in &paper.effect {
            table.add_row([one.id.as_str(), "effect", &one.title, one.metric.words()]);
        }
    }
    print(&format!("{table}\n"))
}
