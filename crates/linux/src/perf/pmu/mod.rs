//! PMUs as sysfs describes them: type, formats of events, named events.
//!
//! The files are those of `Documentation/ABI/testing/sysfs-bus-event_source-devices-*`.

use crate::LinuxError;
use crate::files::{Tree, decimal, format_error, hexadecimal, list};

pub(crate) const DEVICES: &str = "/sys/bus/event_source/devices";

/// Event in a PMU's own terms, such as `event=0xd3,umask=0x1`.
pub type Terms<'a> = &'a [(&'a str, u64)];

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Encoding {
    pub kind: u32,
    /// `config`, `config1`, `config2` and `config3`.
    pub config: [u64; 4],
}

/// Bits of a configuration word that a term fills, lowest first.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Format {
    term: String,
    word: usize,
    /// First and last bit of each range.
    ranges: Vec<(u32, u32)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pmu {
    pub name: String,
    pub kind: u32,
    /// Processors on which events of an uncore PMU are opened; empty for the processor's own.
    pub cpus: Vec<u32>,
    formats: Vec<Format>,
    events: Vec<(String, String)>,
}

/// Parses `config1:0-7,32-35`.
fn parse_format(text: &str) -> Option<(usize, Vec<(u32, u32)>)> {
    let (word, bits) = text.split_once(':')?;
    let word = match word.strip_prefix("config")? {
        "" => 0,
        number => decimal(number).filter(|number| (1..4).contains(number))?,
    };
    let ranges = bits.split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (decimal(first)?, decimal(last)?);
        (first <= last && last < 64).then_some((first, last))
    });
    Some((word, ranges.collect::<Option<_>>()?))
}

/// Parses `event=0xcd,umask=0x1,edge`, where a term without a value is 1.
pub(crate) fn parse_terms(text: &str) -> Option<Vec<(&str, u64)>> {
    let term = |part| match str::split_once(part, '=') {
        None => Some((part, 1)),
        Some((name, value)) if value.starts_with("0x") => Some((name, hexadecimal(value)?)),
        Some((name, value)) => Some((name, decimal(value)?)),
    };
    text.split(',').map(str::trim).map(term).collect()
}

impl Format {
    /// Spreads `value` over the bits; `None` if it does not fit.
    fn place(&self, value: u64) -> Option<u64> {
        let (mut placed, mut rest) = (0, value);
        for &(first, last) in &self.ranges {
            let width = last - first + 1;
            let mask = u64::MAX >> (64 - width);
            placed |= (rest & mask) << first;
            rest = if width == 64 { 0 } else { rest >> width };
        }
        (rest == 0).then_some(placed)
    }
}

impl Pmu {
    /// Reads the PMU `name` below `root`; `None` if it does not exist.
    pub(crate) fn read(root: Tree<'_>, name: &str) -> Result<Option<Self>, LinuxError> {
        let at = |file: &str| format!("{DEVICES}/{name}/{file}");
        let Some(kind) = root.parsed_if_there(&at("type"), "a PMU number", decimal)? else { return Ok(None) };
        let cpus = root.parsed_if_there(&at("cpumask"), "a list of processors", list)?.unwrap_or_default();
        let mut pmu = Self { name: name.into(), kind, cpus, formats: Vec::new(), events: Vec::new() };
        for term in root.names(&at("format"))? {
            let expected = "bits of a configuration word, such as config:0-7";
            let (word, ranges) = root.parsed(&at(&format!("format/{term}")), expected, parse_format)?;
            pmu.formats.push(Format { term, word, ranges });
        }
        for event in root.names(&at("events"))? {
            // `NAME.scale`, `NAME.unit` and `NAME.snapshot` only describe an event.
            if !event.contains('.') {
                let text = root.text(&at(&format!("events/{event}")))?;
                pmu.events.push((event, text));
            }
        }
        Ok(Some(pmu))
    }

    /// Reads the PMUs `PREFIX` and `PREFIX_number` below `root`, such as all `uncore_cha`.
    pub(crate) fn all(root: Tree<'_>, prefix: &str) -> Result<Vec<Self>, LinuxError> {
        let numbered = root.numbered(DEVICES, &format!("{prefix}_"))?;
        let names = numbered.iter().map(|number| format!("{prefix}_{number}"));
        let mut pmus = Vec::new();
        for name in std::iter::once(prefix.to_owned()).chain(names) {
            pmus.extend(Self::read(root, &name)?);
        }
        Ok(pmus)
    }

    pub fn has(&self, term: &str) -> bool {
        self.formats.iter().any(|format| format.term == term)
    }

    /// Encodes an event; `None` if this PMU lacks a term or bits for its value.
    pub fn encode(&self, terms: Terms<'_>) -> Option<Encoding> {
        let mut encoding = Encoding { kind: self.kind, config: [0; 4] };
        for &(term, value) in terms {
            let format = self.formats.iter().find(|format| format.term == term)?;
            encoding.config[format.word] |= format.place(value)?;
        }
        Some(encoding)
    }

    /// Encodes the event of that name; `Ok(None)` if the PMU names none so.
    pub(crate) fn event(&self, root: Tree<'_>, name: &str) -> Result<Option<Encoding>, LinuxError> {
        let Some((_, text)) = self.events.iter().find(|(event, _)| event == name) else { return Ok(None) };
        let encoding = parse_terms(text).and_then(|terms| self.encode(&terms));
        let path = root.path(&format!("{DEVICES}/{}/events/{name}", self.name));
        encoding.map(Some).ok_or_else(|| format_error(&path, "terms of this PMU's formats", text))
    }
}

#[cfg(fuzzing)]
pub fn fuzz(text: &str) {
    if let Some((word, ranges)) = parse_format(text) {
        let _ = Format { term: String::new(), word, ranges }.place(u64::MAX);
    }
    let _ = parse_terms(text);
}

#[cfg(test)]
pub(crate) mod tests;
