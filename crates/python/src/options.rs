//! The options of Python's functions as command lines.

use std::ffi::OsString;

use isotherm_cli::VerbOption;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyMapping};

fn of_verb(verb: &str) -> PyResult<Vec<VerbOption>> {
    isotherm_cli::options(verb).ok_or_else(|| PyValueError::new_err(format!("there is no verb '{verb}'")))
}

/// Returns the options of a verb: name, whether it is a flag, default (empty without one), meaning.
#[pyfunction]
pub(crate) fn options(verb: &str) -> PyResult<Vec<(String, bool, String, String)>> {
    let told = |option: VerbOption| (option.name, option.flag, option.default, option.help);
    Ok(of_verb(verb)?.into_iter().map(told).collect())
}

/// Returns a verb's command line from options by name. `None` leaves one at its default.
#[pyfunction]
pub(crate) fn line(verb: &str, given: &Bound<'_, PyDict>) -> PyResult<Vec<OsString>> {
    let known = of_verb(verb)?;
    if let Some(name) = given.keys().iter().map(|key| key.to_string()).find(|name| !is_known(&known, name)) {
        return Err(PyTypeError::new_err(format!("{verb}() has no option '{name}'")));
    }
    let (mut words, mut operands) = (Vec::new(), Vec::new());
    for option in &known {
        let Some(value) = given.get_item(&option.name)?.filter(|value| !value.is_none()) else { continue };
        let Some(long) = &option.long else {
            operands.extend(words_of(&value)?);
            continue;
        };
        let name = format!("--{long}");
        if option.flag {
            if value.is_truthy()? {
                words.push(name.into());
            }
            continue;
        }
        let mut add = |value: OsString| {
            // In one word, so that a value may begin with a dash.
            let mut word = OsString::from(format!("{name}="));
            word.push(value);
            words.push(word);
        };
        match option.delimiter {
            _ if option.repeats && option.delimiter.is_none() => words_of(&value)?.into_iter().for_each(add),
            Some(delimiter) => {
                let delimiter = OsString::from(delimiter.to_string());
                add(words_of(&value)?.join(&delimiter));
            }
            None => add(word(&value)?),
        }
    }
    if !operands.is_empty() {
        words.push("--".into());
        words.extend(operands);
    }
    Ok(words)
}

fn is_known(known: &[VerbOption], name: &str) -> bool {
    known.iter().any(|option| option.name == name)
}

/// Returns one value or several as words; a mapping's items as `KEY=VALUE`.
fn words_of(value: &Bound<'_, PyAny>) -> PyResult<Vec<OsString>> {
    if let Ok(mapping) = value.cast::<PyMapping>() {
        return mapping
            .items()?
            .iter()
            .map(|item| {
                let (key, value): (String, Bound<'_, PyAny>) = item.extract()?;
                let mut text = OsString::from(format!("{key}="));
                text.push(word(&value)?);
                Ok(text)
            })
            .collect();
    }
    let several =
        value.is_instance_of::<pyo3::types::PyList>() || value.is_instance_of::<pyo3::types::PyTuple>();
    if several { value.try_iter()?.map(|value| word(&value?)).collect() } else { Ok(vec![word(value)?]) }
}

fn word(value: &Bound<'_, PyAny>) -> PyResult<OsString> {
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(if flag.is_true() { "true" } else { "false" }.into());
    }
    if value.hasattr("__fspath__")? {
        return Ok(value.extract::<std::path::PathBuf>()?.into_os_string());
    }
    Ok(value.str()?.to_string().into())
}
