//! `isotherm score`: the papers' comparisons beside what the simulator makes of them.

use std::path::Path;
use std::time::Instant;

use isotherm_score::{Mode, Plan, Progress, Request, Scoreboard, compare};

use crate::args::ScoreArgs;
use crate::commands::{listing, print};
use crate::date::today;
use crate::failure::Failure;

/// Where the page goes if nothing else is said.
const DEFAULT_FOLDER: &str = "docs";
/// The scoreboard for programs, there.
const JSON: &str = "scoreboard.json";

/// Runs the verb.
pub(crate) fn run(args: &ScoreArgs) -> Result<(), Failure> {
    let mode = Mode { quick: args.quick, seed: args.seed };
    let mut request =
        Request::new(args.paper.as_deref(), args.only.as_deref(), mode).map_err(Failure::usage)?;
    // What is put beside entries of a whole board has the margins that it would have there.
    request.noise |= args.update;
    if args.list {
        return list(&request);
    }
    let folder =
        args.output.as_deref().or((!request.partial || args.update).then_some(Path::new(DEFAULT_FOLDER)));
    if let Some(folder) = folder {
        // Before the runs: an hour later is too late to hear that nothing can be written.
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::usage(format!("{}: {error}", folder.display())))?;
    }
    let older = match folder {
        Some(folder) if args.update => Some(read(&folder.join(JSON))?),
        _ => None,
    };
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
    let part = compare(&request, env!("CARGO_PKG_VERSION"), &mut progress);
    let board = match older {
        Some(mut board) => {
            board.update(part, &today()).map_err(Failure::usage)?;
            board
        }
        None => part,
    };
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

/// A scoreboard that was written before.
fn read(path: &Path) -> Result<Scoreboard, Failure> {
    let refused = |error: &dyn std::fmt::Display| Failure::usage(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| refused(&error))?;
    isotherm_report::score_from_json(&text).map_err(|error| refused(&format!("no scoreboard: {error}")))
}

fn write(args: &ScoreArgs, folder: Option<&Path>, board: &Scoreboard) -> Result<(), Failure> {
    let write = |path: &Path, text: String| {
        std::fs::write(path, text).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
    };
    if let Some(folder) = folder {
        write(&folder.join("scoreboard.md"), isotherm_report::score_markdown(board))?;
        write(&folder.join(JSON), isotherm_report::score_json(board) + "\n")?;
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
