//! Reads a machine from TOML, strictly, so that every error knows its field.

use isotherm_core::Bytes;
use isotherm_core::names::advice;
use isotherm_machine::Profile;
use toml::{Table, Value};

use super::{Compressor, Device, DeviceFault, DeviceKind, HugePages, Machine, Node, NodeKind, Zswap};
use crate::LabError;
use crate::error::shortened;

const PROCESSORS: u32 = 16;
const NODES: usize = 4;

pub(super) fn read(text: &str, file: &str) -> Result<Machine, LabError> {
    let table = text.parse::<Table>().map_err(|error| syntax(text, file, &error))?;
    let reader = Reader(file);
    reader.no_others(&table, "", &["title", "profile", "changes", "guest", "node", "device", "zswap"])?;
    let name = reader.text(&table, "profile", "the name of a machine profile (`isotherm machines`)")?;
    let mut profile = Profile::builtin(name).map_err(|error| reader.profile(error))?;
    // A simulation of a run's machine file has none either.
    let prefetcher = profile.set_from("core.l2_registers", "0", "the lab's plugin has no prefetchers");
    prefetcher.map_err(|error| reader.profile(error))?;
    reader.changes(&table, &mut profile)?;
    let guest = reader.table(&table, "guest")?;
    reader.no_others(guest, "guest.", &["processors", "huge_pages", "deterministic"])?;
    let machine = Machine {
        name: stem(file),
        title: reader.text(&table, "title", "one line that says what machine it is")?.into(),
        processors: reader.processors(guest)?,
        huge_pages: reader.choice(guest, "guest.huge_pages", HugePages::ALL)?,
        deterministic: reader.field(guest, "guest.deterministic", "true or false", Value::as_bool)?,
        nodes: reader.nodes(&table)?,
        device: reader.device(&table)?,
        zswap: reader.zswap(&table)?,
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

struct Reader<'a>(&'a str);

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
            let value = self.field(entry, &format!("{field}.value"), "a value", Some)?;
            profile.set(path, &plain(value)).map_err(|error| self.profile(error))?;
            let source = self.text(entry, &format!("{field}.source"), "where the number comes from")?;
            profile.sources.insert(path.clone(), source.into());
        }
        profile.check().map_err(|error| self.profile(error))
    }

    fn processors(&self, guest: &Table) -> Result<u32, LabError> {
        let expected = format!("a whole number from 1 to {PROCESSORS}");
        self.field(guest, "guest.processors", &expected, |value| {
            let number = value.as_integer().and_then(|number| u32::try_from(number).ok());
            number.filter(|number| (1..=PROCESSORS).contains(number))
        })
    }

    fn nodes(&self, table: &Table) -> Result<Vec<Node>, LabError> {
        let expected = format!("from 2 to {NODES} [[node]] tables, fastest first");
        let nodes = self.field(table, "node", &expected, |value| {
            value.as_array().filter(|nodes| (2..=NODES).contains(&nodes.len()))
        })?;
        nodes.iter().enumerate().map(|(index, node)| self.node(index, node)).collect()
    }

    fn node(&self, index: usize, value: &Value) -> Result<Node, LabError> {
        let path = format!("node.{index}");
        let table = value.as_table().ok_or_else(|| self.wrong(&path, value, "a [[node]]"))?;
        self.no_others(table, &format!("{path}."), &["kind", "size"])?;
        let kind = self.choice(table, &format!("{path}.kind"), NodeKind::ALL)?;
        Ok(Node { kind, size: self.size(table, &format!("{path}.size"))? })
    }

    fn zswap(&self, table: &Table) -> Result<Option<Zswap>, LabError> {
        if !table.contains_key("zswap") {
            return Ok(None);
        }
        let table = self.table(table, "zswap")?;
        self.no_others(table, "zswap.", &["compressor", "swap"])?;
        let compressor = self.choice(table, "zswap.compressor", Compressor::ALL)?;
        Ok(Some(Zswap { compressor, swap: self.size(table, "zswap.swap")? }))
    }

    fn size(&self, table: &Table, path: &str) -> Result<Bytes, LabError> {
        let expected = format!("a multiple of {} such as \"512MiB\"", Machine::GRAIN);
        self.field(table, path, &expected, |value| {
            let bytes = value.as_str().and_then(|text| text.parse::<Bytes>().ok());
            let whole = |bytes: &Bytes| bytes.0 > 0 && bytes.0.is_multiple_of(Machine::GRAIN.0);
            bytes.filter(|bytes| whole(bytes) && *bytes <= Machine::LARGEST)
        })
    }

    fn device(&self, table: &Table) -> Result<Option<Device>, LabError> {
        if !table.contains_key("device") {
            return Ok(None);
        }
        let table = self.table(table, "device")?;
        self.no_others(table, "device.", &["kind", "fault"])?;
        let fault = table.contains_key("fault").then(|| self.choice(table, "device.fault", DeviceFault::ALL));
        let fault = fault.transpose()?;
        Ok(Some(Device { kind: self.choice(table, "device.kind", DeviceKind::ALL)?, fault }))
    }

    fn check(&self, machine: &Machine) -> Result<(), LabError> {
        let (first, last) = (machine.nodes[0], machine.nodes[machine.nodes.len() - 1]);
        let (nodes, tiers) = (machine.nodes.len(), machine.profile.tiers.len());
        let sum: Bytes = machine.nodes.iter().map(|node| node.size).sum();
        let devices = machine.nodes.iter().filter(|node| node.kind == NodeKind::Cxl).count();
        let fail = |field: &str, problem: String, expected: &str| Err(self.problem(field, problem, expected));
        if first.kind != NodeKind::Plain || first.size < Machine::SMALLEST_FIRST {
            let found = format!("{} of {}", first.kind.name(), first.size);
            return fail("node.0", found, &format!("a plain node of at least {}", Machine::SMALLEST_FIRST));
        }
        if sum > Machine::LARGEST {
            return fail("node", format!("{sum} in all"), &format!("at most {}", Machine::LARGEST));
        }
        if devices > 1 {
            return fail("node", "more than one CXL device".into(), "at most one");
        }
        if devices > 0 && last.kind != NodeKind::Cxl {
            return fail("node", "a plain node after the CXL device".into(), "the CXL device last");
        }
        if machine.device.is_some() && nodes != 2 {
            let expected = "two nodes, with the device in front of the slow one";
            return fail("device", format!("{nodes} nodes"), expected);
        }
        if machine.device.is_some() && machine.profile.device.is_none() {
            let found = format!("the profile {} has no [device]", machine.profile.name);
            return fail("device", found, "a profile with the device's sizes, such as neomem");
        }
        if nodes != tiers {
            let found = format!("{nodes} nodes for the profile's {tiers} tiers");
            return fail("node", found, "one node for each tier");
        }
        Ok(())
    }

    fn choice<T: Copy>(&self, table: &Table, path: &str, all: &[(&str, T)]) -> Result<T, LabError> {
        let names: Vec<_> = all.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        let expected = names.join(" or ");
        self.field(table, path, &expected, |value| {
            all.iter().find(|(name, _)| value.as_str() == Some(name)).map(|(_, choice)| *choice)
        })
    }

    /// Reads a non-empty string of one line.
    fn text<'t>(&self, table: &'t Table, path: &str, expected: &str) -> Result<&'t str, LabError> {
        self.field(table, path, expected, |value| {
            let text = value.as_str().map(str::trim);
            text.filter(|text| !text.is_empty() && !text.contains(char::is_control))
        })
    }

    fn table<'t>(&self, table: &'t Table, key: &str) -> Result<&'t Table, LabError> {
        self.field(table, key, &format!("a section [{key}]"), Value::as_table)
    }

    fn no_others(&self, table: &Table, path: &str, known: &[&str]) -> Result<(), LabError> {
        let Some(other) = table.keys().find(|key| !known.contains(&key.as_str())) else { return Ok(()) };
        let expected = format!("one of {}; {}", known.join(", "), advice(other, known.iter().copied()));
        Err(self.problem(&format!("{path}{}", shortened(other)), "unknown field".into(), &expected))
    }

    /// Reads a field by `parse`, which accepts what `expected` describes. Its key is the path's last part.
    fn field<'t, T>(
        &self,
        table: &'t Table,
        path: &str,
        expected: &str,
        parse: impl FnOnce(&'t Value) -> Option<T>,
    ) -> Result<T, LabError> {
        let key = path.rsplit('.').next().unwrap_or(path);
        let value = table.get(key).ok_or_else(|| self.problem(path, "is missing".into(), expected))?;
        parse(value).ok_or_else(|| self.wrong(path, value, expected))
    }

    fn wrong(&self, path: &str, value: &Value, expected: &str) -> LabError {
        self.problem(path, format!("found '{}'", shortened(&plain(value))), expected)
    }

    fn problem(&self, path: &str, problem: String, expected: &str) -> LabError {
        let (file, field) = (shortened(self.0), path.into());
        LabError::Machine { file, field, problem, expected: expected.into() }
    }

    fn profile(&self, error: isotherm_machine::ProfileError) -> LabError {
        LabError::Profile { file: shortened(self.0), error: error.into() }
    }
}

/// Returns a value as the user wrote it, a string without its quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), Into::into)
}
