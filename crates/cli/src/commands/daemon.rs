//! `isotherm daemon`: tier all programs of the machine, in groups.

use isotherm_daemon::config::Config;
use isotherm_daemon::daemon::{Client, Daemon, DaemonError, Paths};

use crate::args::DaemonArgs;
use crate::commands::machines::load_profile;
use crate::failure::Failure;
use crate::output::print;

pub(crate) fn run(args: DaemonArgs) -> Result<(), Failure> {
    let DaemonArgs { config, socket, check, reload } = args;
    if reload {
        let answer = Client::connect(&socket).and_then(|mut client| client.ask("reload"));
        return answer.map(drop).map_err(Failure::usage);
    }
    if check {
        let groups = Config::read(&config).map_err(Failure::usage)?.groups.len();
        return print(&format!("{}: valid ({groups} groups)\n", config.display()));
    }
    let latencies = |machine: &str| {
        let profile = load_profile(machine).map_err(|error| error.to_string())?;
        Ok(profile.tiers.iter().map(|tier| tier.latency).collect())
    };
    let daemon = Daemon::start(Paths { config, socket }, latencies).map_err(failure)?;
    daemon.run().map_err(failure)
}

fn failure(error: DaemonError) -> Failure {
    match error {
        DaemonError::Config(_) | DaemonError::Listen(_) => Failure::usage(error),
        _ => Failure::failed(error),
    }
}
