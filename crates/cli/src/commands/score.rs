//! `isotherm score`: the papers' comparisons beside the simulator's results.

use std::path::Path;
use std::time::Instant;

use isotherm_score::{Mode, Plan, Progress, Request, Scoreboard, compare};

use crate::args::ScoreArgs;
use crate::date::today;
use crate::failure::Failure;
use crate::input::read_text;
use crate::memory::Memory;
use crate::output::{self, Output, listing, print, say};

const DEFAULT_FOLDER: &str = "docs/generated";
const JSON: &str = "scoreboard.json";

pub(crate) fn run(args: &ScoreArgs) -> Result<(), Failure> {
    let mode = Mode { quick: args.quick, seed: args.seed };
    let mut request =
        Request::new(args.paper.as_deref(), args.only.as_deref(), mode).map_err(Failure::usage)?;
    // Entries beside those of a full board need the same margins.
    request.noise |= args.update;
    if args.list {
        return list(&request);
    }
    let folder =
        args.output.as_deref().or((!request.partial || args.update).then_some(Path::new(DEFAULT_FOLDER)));
    if let Some(folder) = folder {
        std::fs::create_dir_all(folder).map_err(|error| Failure::usage_at(folder, error))?;
    }
    let older = match folder {
        Some(folder) if args.update => Some(read(&folder.join(JSON))?),
        _ => None,
    };
    let files = Files::open(args, folder)?;
    let plan = Plan::new(&request);
    let need = plan.memory().map_err(Failure::failed)?;
    Memory::new(&args.memory, args.quiet).say("the largest stream and its runs", need, "--quick")?;
    let start = Instant::now();
    if !args.quiet {
        let (runs, streams) = (plan.runs(), plan.streams());
        say(&format!("{runs} runs over {streams} streams, then the runs that probe violated orderings\n"));
    }
    let mut progress = |progress: Progress<'_>| {
        if !args.quiet {
            say(&format!("{}\n", line(progress, start.elapsed().as_secs_f64())));
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
    files.save(&board)?;
    if args.json {
        return print(&format!("{}\n", isotherm_report::score_json(&board)));
    }
    print(&isotherm_report::score_summary(&board))
}

/// Describes the next stream and the time left at the pace so far.
fn line(progress: Progress<'_>, elapsed: f64) -> String {
    let Progress { workload, stream, streams, done, total } = progress;
    let rest = (done > 0).then(|| elapsed * (total - done) as f64 / done as f64);
    let rest = rest.map_or(String::new(), |rest| format!(", about {rest:.0} s to go"));
    format!("{}/{streams} {workload}: {elapsed:.0} s{rest}", stream + 1)
}

fn read(path: &Path) -> Result<Scoreboard, Failure> {
    isotherm_report::score_from_json(&read_text(path)?)
        .map_err(|error| Failure::usage_at(path, format!("not a scoreboard: {error}")))
}

/// The files of a scoreboard, opened before the runs, which take an hour.
struct Files {
    markdown: Option<Output>,
    json: Option<Output>,
    page: Option<Output>,
}

impl Files {
    fn open(args: &ScoreArgs, folder: Option<&Path>) -> Result<Self, Failure> {
        let file = |name: &str| output::open(folder.map(|folder| folder.join(name)).as_ref());
        Ok(Self {
            markdown: file("scoreboard.md")?,
            json: file(JSON)?,
            page: output::open(args.report.as_ref())?,
        })
    }

    fn save(self, board: &Scoreboard) -> Result<(), Failure> {
        output::write(self.markdown, || isotherm_report::score_markdown(board))?;
        output::write(self.json, || isotherm_report::score_json(board) + "\n")?;
        output::write(self.page, || isotherm_report::score_html(board))
    }
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
