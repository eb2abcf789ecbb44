//! `isotherm policies [NAME]`.

use isotherm_policies::{ALL, Entry};

use crate::args::NameArgs;
use crate::failure::Failure;
use crate::output::{listing, parameter_table, preset_json, preset_lines, print};
use crate::policies::find;

pub(crate) fn run(args: &NameArgs) -> Result<(), Failure> {
    match &args.name {
        Some(name) => explain(find(name)?, args.json),
        None => list(args.json),
    }
}

fn json(entry: &Entry) -> serde_json::Value {
    serde_json::json!({
        "name": entry.name,
        "title": entry.title,
        "paper": entry.paper,
        "hosts": entry.hosts.names().collect::<Vec<_>>(),
        "help": entry.help,
        "parameters": entry.parameters(),
        "presets": entry.presets.iter().map(preset_json).collect::<Vec<_>>(),
    })
}

fn list(as_json: bool) -> Result<(), Failure> {
    if as_json {
        return print(&format!("{:#}\n", serde_json::Value::from_iter(ALL.iter().map(json))));
    }
    let mut table = listing(&["policy", "proved on", "what it does"]);
    for entry in ALL {
        table.add_row([entry.name, &entry.hosts.to_string(), entry.help]);
    }
    print(&format!("{table}\n"))
}

fn explain(entry: &Entry, as_json: bool) -> Result<(), Failure> {
    if as_json {
        return print(&format!("{:#}\n", json(entry)));
    }
    let parameters = entry.parameters();
    let table = match entry.specs {
        [] => "no parameters\n".to_owned(),
        _ => parameter_table(parameters.iter()),
    };
    let presets = preset_lines(entry.name, &parameters);
    print(&format!(
        "{} (proved on: {})\n{}\n{}\n\n{table}{presets}",
        entry.title, entry.hosts, entry.paper, entry.help
    ))
}
