//! Reads a machine from TOML, strictly, so that every error knows its field.

use isotherm_core::Bytes;
use isotherm_core::names::advice;
use isotherm_machine::Profile;
use toml::{Table, Value};

use super::{HugePages, Machine, NeoProf, NeoProfFault, NeoProfModel, Node, NodeKind};
use crate::LabError;
use crate::error::shortened;

/// Maximum number of virtual processors.
const PROCESSORS: u32 = 16;
/// Maximum number of nodes.
const NODES: usize = 4;

/// Reads a whole file and checks it.
pub(super) fn read(text: &str, file: &str) -> Result<Machine, LabError> {
    let table = text.parse::<Table>().map_err(|error| syntax(text, file, &error))?;
    let reader = Reader { file };
    reader.no_others(&table, "", &["title", "profile", "changes", "guest", "node", "neoprof"])?;
    let name = reader.text(&table, "profile", "the name of a machine profile (`isotherm machines`)")?;
    let mut profile = Profile::builtin(name).map_err(|error| reader.profile(error))?;
    reader.changes(&table, &mut profile)?;
    let guest = reader.table(&table, "guest")?;
    reader.no_others(guest, "guest.", &["processors", "huge_pages", "deterministic"])?;
    let machine = Machine {
        name: stem(file),
        title: reader.text(&table, "title", "one line that says what machine it is")?.into(),
        processors: reader.processors(guest)?,
        huge_pages: reader.choice(guest, "guest.huge_pages", HugePages::ALL)?,
        deterministic: reader.truth(guest, "guest.deterministic")?,
        nodes: reader.nodes(&table)?,
        neoprof: reader.neoprof(&table)?,
        profile,
    };
    reader.check(&machine)?;
    Ok(machine)
}

/// Returns the machine's name: `cxl` for `lab/machines/cxl.toml`.
fn stem(file: &str) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    shortened(name.strip_suffix(".toml").unwrap_or(name))
}

fn syntax(text: &str, file: &str, error: &toml::de::Error) -> LabError {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
    LabError::Syntax { file: shortened(file), line, message: shortened(error.message()) }
}

struct Reader<'a> {
    file: &'a str,
}

impl Reader<'_> {
    /// Applies `[changes]` to the profile: paths with a value and its source.
    fn changes(&self, table: &Table, profile: &mut Profile) -> Result<(), LabError> {
        let Some(changes) = table.get("changes") else { return Ok(()) };
        let changes =
            changes.as_table().ok_or_else(|| self.wrong("changes", changes, "a section [changes]"))?;
        for (path, entry) in changes {
            let field = format!("changes.\"{}\"", shortened(path));
            let expected = "a table such as { value = \"90ns\", source = \"where it comes from\" }";
            let entry = entry.as_table().ok_or_else(|| self.wrong(&field, entry, expected))?;
            self.no_others(entry, &format!("{field}."), &["value", "source"])?;
            let value =
                entry.get("value").ok_or_else(|| self.missing(&format!("{field}.value"), "a value"))?;
            profile.set(path, &plain(value)).map_err(|error| self.profile(error))?;
            let source = self.text(entry, &format!("{field}.source"), "where the number comes from")?;
            profile.sources.insert(path.clone(), source.into());
        }
        profile.check().map_err(|error| self.profile(error))
    }

    fn processors(&self, guest: &Table) -> Result<u32, LabError> {
        let expected = format!("a whole number from 1 to {PROCESSORS}");
        let value = guest.get("processors").ok_or_else(|| self.missing("guest.processors", &expected))?;
        let number = value.as_integer().and_then(|number| u32::try_from(number).ok());
        number
            .filter(|number| (1..=PROCESSORS).contains(number))
            .ok_or_else(|| self.wrong("guest.processors", value, &expected))
    }

    fn nodes(&self, table: &Table) -> Result<Vec<Node>, LabError> {
        let expected = format!("from 2 to {NODES} [[node]] tables, fastest first");
        let value = table.get("node").ok_or_else(|| self.missing("node", &expected))?;
        let nodes = value.as_array().filter(|nodes| (2..=NODES).contains(&nodes.len()));
        let nodes = nodes.ok_or_else(|| self.wrong("node", value, &expected))?;
        nodes.iter().enumerate().map(|(index, node)| self.node(index, node)).collect()
    }

    fn node(&self, index: usize, value: &Value) -> Result<Node, LabError> {
        let path = format!("node.{index}");
        let table = value.as_table().ok_or_else(|| self.wrong(&path, value, "a [[node]]"))?;
        self.no_others(table, &format!("{path}."), &["kind", "size"])?;
        let kind = self.choice(table, &format!("{path}.kind"), NodeKind::ALL)?;
        let (path, grain) = (format!("{path}.size"), Machine::GRAIN.0);
        let expected = format!("a multiple of {} such as \"512MiB\"", Machine::GRAIN);
        let size = table.get("size").ok_or_else(|| self.missing(&path, &expected))?;
        let bytes = size.as_str().and_then(|text| text.parse::<Bytes>().ok());
        let valid = bytes.filter(|bytes| bytes.0 > 0 && bytes.0 % grain == 0 && *bytes <= Machine::LARGEST);
        Ok(Node { kind, size: valid.ok_or_else(|| self.wrong(&path, size, &expected))? })
    }

    fn neoprof(&self, table: &Table) -> Result<Option<NeoProf>, LabError> {
        if !table.contains_key("neoprof") {
            return Ok(None);
        }
        let table = self.table(table, "neoprof")?;
        self.no_others(table, "neoprof.", &["model", "fault"])?;
        let fault =
            table.contains_key("fault").then(|| self.choice(table, "neoprof.fault", NeoProfFault::ALL));
        let fault = fault.transpose()?;
        Ok(Some(NeoProf { model: self.choice(table, "neoprof.model", NeoProfModel::ALL)?, fault }))
    }

    /// Checks the fields against each other.
    fn check(&self, machine: &Machine) -> Result<(), LabError> {
        let (first, sum) = (machine.nodes[0], machine.nodes.iter().map(|node| node.size.0).sum::<u64>());
        let problem = |field: &str, problem: String, expected: String| {
            Err(LabError::Machine { file: shortened(self.file), field: field.into(), problem, expected })
        };
        if first.kind != NodeKind::Plain || first.size < Machine::SMALLEST_FIRST {
            let found = format!("{} of {}", first.kind.name(), first.size);
            return problem("node.0", found, format!("a plain node of at least {}", Machine::SMALLEST_FIRST));
        }
        if sum > Machine::LARGEST.0 {
            return problem(
                "node",
                format!("{} in all", Bytes(sum)),
                format!("at most {}", Machine::LARGEST),
            );
        }
        if machine.nodes[1..].iter().filter(|node| node.kind == NodeKind::Cxl).count() > 1 {
            return problem("node", "more than one CXL device".into(), "at most one".into());
        }
        if machine.has_cxl() && machine.nodes.last().is_some_and(|last| last.kind != NodeKind::Cxl) {
            return problem("node", "a plain node after the CXL device".into(), "the CXL device last".into());
        }
        if machine.neoprof.is_some() && machine.nodes.len() != 2 {
            let found = format!("{} nodes", machine.nodes.len());
            return problem("neoprof", found, "two nodes, with the device in front of the slow one".into());
        }
        if machine.neoprof.is_some() && machine.profile.device.is_none() {
            let found = format!("the profile {} has no [device]", machine.profile.name);
            return problem("neoprof", found, "a profile with the device's sizes, such as neomem".into());
        }
        if machine.nodes.len() != machine.profile.tiers.len() {
            let tiers = machine.profile.tiers.len();
            let found = format!("{} nodes for the profile's {tiers} tiers", machine.nodes.len());
            return problem("node", found, "one node for each tier".into());
        }
        Ok(())
    }

    fn truth(&self, table: &Table, path: &str) -> Result<bool, LabError> {
        let value = table.get(key(path)).ok_or_else(|| self.missing(path, "true or false"))?;
        value.as_bool().ok_or_else(|| self.wrong(path, value, "true or false"))
    }

    fn choice<T: Copy>(&self, table: &Table, path: &str, all: &[(&str, T)]) -> Result<T, LabError> {
        let names: Vec<_> = all.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        let expected = names.join(" or ");
        let value = table.get(key(path)).ok_or_else(|| self.missing(path, &expected))?;
        let found = all.iter().find(|(name, _)| value.as_str() == Some(name));
        found.map(|(_, choice)| *choice).ok_or_else(|| self.wrong(path, value, &expected))
    }

    /// Reads a non-empty string of one line; the key is the path's last part.
    fn text<'t>(&self, table: &'t Table, path: &str, expected: &str) -> Result<&'t str, LabError> {
        let value = table.get(key(path)).ok_or_else(|| self.missing(path, expected))?;
        match value.as_str().map(str::trim) {
            Some(text) if !text.is_empty() && !text.contains(char::is_control) => Ok(text),
            _ => Err(self.wrong(path, value, expected)),
        }
    }

    fn table<'t>(&self, table: &'t Table, key: &str) -> Result<&'t Table, LabError> {
        let expected = format!("a section [{key}]");
        let value = table.get(key).ok_or_else(|| self.missing(key, &expected))?;
        value.as_table().ok_or_else(|| self.wrong(key, value, &expected))
    }

    fn no_others(&self, table: &Table, path: &str, known: &[&str]) -> Result<(), LabError> {
        let Some(other) = table.keys().find(|key| !known.contains(&key.as_str())) else { return Ok(()) };
        Err(LabError::Machine {
            file: shortened(self.file),
            field: format!("{path}{}", shortened(other)),
            problem: "unknown field".into(),
            expected: format!("one of {}; {}", known.join(", "), advice(other, known.iter().copied())),
        })
    }

    fn missing(&self, path: &str, expected: &str) -> LabError {
        let (file, problem) = (shortened(self.file), "is missing".into());
        LabError::Machine { file, field: path.into(), problem, expected: expected.into() }
    }

    fn wrong(&self, path: &str, value: &Value, expected: &str) -> LabError {
        let (file, problem) = (shortened(self.file), format!("found '{}'", shortened(&plain(value))));
        LabError::Machine { file, field: path.into(), problem, expected: expected.into() }
    }

    fn profile(&self, error: isotherm_machine::ProfileError) -> LabError {
        LabError::Profile { file: shortened(self.file), error: error.into() }
    }
}

/// Returns the last part of a path.
fn key(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// Returns a value as the user wrote it, a string without its quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), Into::into)
}
