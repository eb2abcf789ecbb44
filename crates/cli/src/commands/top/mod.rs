//! `isotherm top`: the groups and programs of the daemon, or of one run at its control socket.

mod draw;
mod feed;
mod rows;
mod view;

#[cfg(test)]
mod tests;

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use isotherm_core::machine_status::MachineStatus;
use isotherm_daemon::daemon::Client;
use isotherm_report::machine_text;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{Event, KeyEventKind, poll, read};

use crate::args::TopArgs;
use crate::failure::Failure;
use crate::output::print;
use feed::Feed;
use view::{Action, View};

/// Longest wait for a key before signals and answers are looked at.
const LOOK: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &TopArgs) -> Result<(), Failure> {
    let mut client = Client::connect(&args.socket).map_err(Failure::failed)?;
    let answer = client.ask("status json").map_err(Failure::failed)?;
    if args.json {
        return print(&format!("{answer}\n"));
    }
    let status = parse(&answer).map_err(Failure::failed)?;
    if args.once || !io::stdout().is_terminal() {
        return print(&machine_text(&status, true));
    }
    let failed = |error: io::Error| Failure::failed(format!("the terminal: {error}"));
    let ended = Arc::new(AtomicBool::new(false));
    let noted = ended.clone();
    ctrlc::set_handler(move || noted.store(true, Relaxed)).map_err(Failure::failed)?;
    let feed = Feed::start(args.socket.clone(), client).map_err(failed)?;
    let mut screen = Screen::open().map_err(failed)?;
    watch(&mut screen.0, View::new(status), &feed, &ended).map_err(failed)
}

fn parse(answer: &str) -> Result<MachineStatus, String> {
    serde_json::from_str(answer).map_err(|error| format!("not the status of an engine: {error}"))
}

/// The terminal while the view has it: put back on drop, and by the panic hook.
struct Screen(DefaultTerminal);

impl Screen {
    fn open() -> io::Result<Self> {
        ratatui::try_init().map(Self).inspect_err(|_| ratatui::restore())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Shows the view until a key or a signal ends it.
fn watch(terminal: &mut DefaultTerminal, mut view: View, feed: &Feed, ended: &AtomicBool) -> io::Result<()> {
    let mut changed = true;
    while !ended.load(Relaxed) {
        if std::mem::take(&mut changed) {
            terminal.draw(|frame| draw::draw(frame, &view))?;
        }
        if poll(LOOK)? {
            changed = true;
            match read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match view.key(key) {
                    Action::None => {}
                    Action::Quit => return Ok(()),
                    Action::Order(line) => feed.order(line),
                    Action::Watch(request) => feed.watch(request),
                },
                _ => {}
            }
        }
        for news in feed.news() {
            changed = true;
            view.take(news);
        }
    }
    Ok(())
}
