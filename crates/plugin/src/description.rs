//! A policy's description, read from its library's table.

use std::collections::BTreeSet;

use isotherm_core::parameters::{Kind, Spec};
use isotherm_core::{Bytes, Nanos};
use isotherm_policy::abi::{Parameter, Table, Text, kinds};

/// The most characters of a name.
const LONGEST_NAME: usize = 40;

/// A library's words on its policy.
pub(crate) struct Description {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) paper: &'static str,
    pub(crate) help: &'static str,
    pub(crate) specs: &'static [Spec],
}

/// Reads and checks a description. Fails with the problem.
///
/// # Safety
/// All texts and slices of the table are valid for ever.
pub(crate) unsafe fn read(table: &'static Table) -> Result<Description, String> {
    // SAFETY: by this function's contract.
    let text = |from: Text, of: &str| unsafe { text(from, of) };
    let name = text(table.name, "the policy's name")?;
    check_name(name, '-', "the policy's name")?;
    // SAFETY: by this function's contract.
    let parameters = unsafe { table.parameters.get() };
    // SAFETY: likewise.
    let specs =
        parameters.iter().map(|parameter| unsafe { spec(parameter) }).collect::<Result<Vec<_>, _>>()?;
    let mut names = BTreeSet::new();
    if let Some(twice) = specs.iter().find(|spec| !names.insert(spec.name)) {
        return Err(format!("parameter {}: declared twice", twice.name));
    }
    Ok(Description {
        name,
        title: text(table.title, "its title")?,
        paper: text(table.paper, "its paper")?,
        help: text(table.help, "its help")?,
        specs: specs.leak(),
    })
}

/// Reads a parameter.
///
/// # Safety
/// All its texts and words are valid for ever.
unsafe fn spec(parameter: &Parameter) -> Result<Spec, String> {
    // SAFETY: by this function's contract.
    let text = |from: Text, of: &str| unsafe { text(from, of) };
    let name = text(parameter.name, "a parameter's name")?;
    check_name(name, '_', "a parameter's name")?;
    // SAFETY: by this function's contract.
    let words = unsafe { parameter.words.get() }.iter();
    let words = words.map(|&word| text(word, "a parameter's word")).collect::<Result<Vec<_>, _>>()?;
    let Parameter { low, high, .. } = *parameter;
    let kind = match parameter.kind {
        kinds::COUNT => Kind::Count(low, high),
        kinds::NUMBER => Kind::Number(f64::from_bits(low), f64::from_bits(high)),
        kinds::FLAG => Kind::Flag,
        kinds::DURATION => Kind::Duration(Nanos(low), Nanos(high)),
        kinds::SIZE => Kind::Size(Bytes(low), Bytes(high)),
        kinds::CHOICE => Kind::Choice(words.leak()),
        other => return Err(format!("parameter {name}: {other} is no kind of parameters")),
    };
    let spec = Spec {
        name,
        kind,
        default: text(parameter.default, "a parameter's default")?,
        unit: text(parameter.unit, "a parameter's unit")?,
        source: text(parameter.source, "a parameter's source")?,
        help: text(parameter.help, "a parameter's help")?,
        scaled: parameter.scaled != 0,
        rate: parameter.rate != 0,
    };
    match spec.parse(spec.default) {
        Some(_) => Ok(spec),
        None => Err(format!("parameter {name}: its default '{}' is not {}", spec.default, spec.expected())),
    }
}

/// Reads a text that is valid for ever.
///
/// # Safety
/// It is.
unsafe fn text(from: Text, of: &str) -> Result<&'static str, String> {
    // SAFETY: by this function's contract.
    std::str::from_utf8(unsafe { from.get() }).map_err(|_| format!("{of} is not UTF-8 text"))
}

fn check_name(name: &str, joint: char, of: &str) -> Result<(), String> {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == joint;
    let valid = name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(inner);
    if valid && name.len() <= LONGEST_NAME {
        return Ok(());
    }
    Err(format!(
        "{of} '{name}': expected a lower-case letter, then letters, digits and '{joint}', at most {LONGEST_NAME}"
    ))
}
