//! `isotherm top`: the groups and programs of the daemon.

use std::io::IsTerminal;
use std::time::Duration;

use isotherm_core::machine_status::MachineStatus;
use isotherm_daemon::daemon::Client;
use isotherm_report::machine_text;

use crate::args::TopArgs;
use crate::failure::Failure;
use crate::output::print;

/// Clears the terminal and goes to its first place (ECMA-48).
const CLEAR: &str = "\x1b[H\x1b[2J";
/// Time between two looks.
const EVERY: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &TopArgs) -> Result<(), Failure> {
    let mut client = Client::connect(&args.socket).map_err(Failure::failed)?;
    let status = client.ask("status").map_err(Failure::failed)?;
    if args.json {
        return print(&format!("{status}\n"));
    }
    let mut text = machine_text(&parse(&status)?, true);
    if args.once || !std::io::stdout().is_terminal() {
        return print(&text);
    }
    loop {
        print(&format!("{CLEAR}{text}"))?;
        std::thread::sleep(EVERY);
        text = machine_text(&parse(&client.ask("status").map_err(Failure::failed)?)?, true);
    }
}

fn parse(status: &str) -> Result<MachineStatus, Failure> {
    serde_json::from_str(status).map_err(|error| Failure::failed(format!("the daemon's answer: {error}")))
}
