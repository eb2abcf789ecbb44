//! The settings of an engine inside a program, read from the environment variables that `docs/guide/live.md`
//! lists.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use isotherm_core::{Nanos, PageSize, parse_number};
use isotherm_policies::Entry;

use crate::policy_run::PolicyRun;
use crate::session::{SessionConfig, TierRequest};

/// Latencies of the tiers unless `ISOTHERM_LATENCIES` or the firmware says otherwise: those of the machine
/// `sapphire-rapids`.
const DEFAULT_LATENCIES: [Nanos; 2] = [Nanos(115), Nanos(250)];

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Standard error (`-`).
    Errors,
    File(PathBuf),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: {problem}; the program runs without an engine")]
pub struct SettingError {
    pub variable: &'static str,
    pub problem: String,
}

#[derive(Debug, Clone)]
pub struct Settings {
    pub session: SessionConfig,
    pub json: Option<Output>,
    pub report: Option<Output>,
}

struct Variables<G>(G);

impl<G: Fn(&str) -> Option<OsString>> Variables<G> {
    /// Returns a variable's text, or `None` if it is unset or empty.
    fn text(&self, variable: &'static str) -> Result<Option<String>, SettingError> {
        let Some(value) = (self.0)(variable).filter(|value| !value.is_empty()) else { return Ok(None) };
        let text = value.into_string();
        text.map(Some).map_err(|value| problem(variable, format!("{} is not UTF-8 text", value.display())))
    }

    /// Parses a variable's value; `expected` describes valid values in the error.
    fn value<T>(
        &self,
        variable: &'static str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, SettingError> {
        let Some(text) = self.text(variable)? else { return Ok(None) };
        let wrong = || problem(variable, format!("expected {expected}, found '{text}'"));
        parse(&text).map(Some).ok_or_else(wrong)
    }

    fn output(&self, variable: &str) -> Option<Output> {
        let value = (self.0)(variable).filter(|value| !value.is_empty())?;
        Some(if value == OsStr::new("-") { Output::Errors } else { Output::File(with_number(value)) })
    }
}

fn problem(variable: &'static str, problem: String) -> SettingError {
    SettingError { variable, problem }
}

/// Replaces `%p` in a path by the process's number.
fn with_number(path: OsString) -> PathBuf {
    match path.to_str() {
        Some(text) => text.replace("%p", &std::process::id().to_string()).into(),
        None => path.into(),
    }
}

impl Settings {
    /// Reads the variables; returns `None` if they name no policy.
    ///
    /// # Errors
    /// If a value is invalid.
    pub fn read(get: impl Fn(&str) -> Option<OsString>) -> Result<Option<Self>, SettingError> {
        let variables = Variables(get);
        let Some(name) = variables.text("ISOTHERM_POLICY")? else { return Ok(None) };
        let entry =
            isotherm_policies::find(&name).map_err(|error| problem("ISOTHERM_POLICY", error.to_string()))?;
        let seed = variables.value("ISOTHERM_SEED", "a whole number", |text| text.parse().ok())?;
        let share = |text: &str| parse_number(text).ok().filter(|share| (0.0..=0.5).contains(share));
        let page_size = |text: &str| match text {
            "base" => Some(PageSize::Base),
            "huge" => Some(PageSize::Huge),
            _ => None,
        };
        let switch = |text: &str| match text {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        };
        let latencies = |text: &str| text.split(',').map(|part| part.trim().parse().ok()).collect();
        let defaults = SessionConfig::new(policy_run(entry, seed, variables.text("ISOTHERM_SET")?)?);
        let tiers = TierRequest {
            nodes: variables.text("ISOTHERM_TIERS")?,
            fast: variables.value(
                "ISOTHERM_FAST",
                "a size (4G), a fast:slow ratio (1:8), the parts of all tiers (1:2:4) or a percentage (25%)",
                |text| text.parse().ok(),
            )?,
            shadow: variables.value("ISOTHERM_SHADOW", "0 or 1", switch)?.unwrap_or(false),
            latencies: variables
                .value("ISOTHERM_LATENCIES", "latencies such as 74ns,124ns", latencies)?
                .unwrap_or_else(|| DEFAULT_LATENCIES.to_vec()),
            bandwidths: Vec::new(),
        };
        let session = SessionConfig {
            tiers,
            source: variables.text("ISOTHERM_SOURCE")?,
            overhead: variables
                .value("ISOTHERM_OVERHEAD", "a share such as 2%, at most 50%", share)?
                .unwrap_or(defaults.overhead),
            rate: variables.value("ISOTHERM_RATE", "bytes a second such as 1G", |text| text.parse().ok())?,
            page_size: variables.value("ISOTHERM_PAGE_SIZE", "base or huge", page_size)?.unwrap_or_default(),
            ..defaults
        };
        let (json, report) = (variables.output("ISOTHERM_JSON"), variables.output("ISOTHERM_REPORT"));
        Ok(Some(Self { session, json, report }))
    }
}

/// Reads a policy's parameters (`ISOTHERM_SET`) and checks that it runs live.
fn policy_run(
    entry: &'static Entry,
    seed: Option<u64>,
    set: Option<String>,
) -> Result<PolicyRun, SettingError> {
    let mut run = PolicyRun::new(entry);
    run.seed = seed.unwrap_or(run.seed);
    for setting in set.iter().flat_map(|text| text.split_whitespace()) {
        let wrong = |text: String| problem("ISOTHERM_SET", text);
        let own = setting.strip_prefix(entry.name).and_then(|rest| rest.strip_prefix('.'));
        let (key, value) = own.and_then(|rest| rest.split_once('=')).ok_or_else(|| {
            wrong(format!("expected {}.KEY=VALUE, separated by blanks, found '{setting}'", entry.name))
        })?;
        run.parameters.set(key, value).map_err(|error| wrong(error.to_string()))?;
    }
    run.needs().map_err(|error| problem("ISOTHERM_POLICY", error.to_string()))?;
    Ok(run)
}

#[cfg(test)]
mod tests {
    use isotherm_core::parameters::Value;
    use isotherm_core::{Bytes, FastLimit};

    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<Settings>, SettingError> {
        Settings::read(|name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn without_a_policy_other_variables_are_ignored() {
        assert!(read(&[("ISOTHERM_FAST", "nonsense")]).expect("ignored").is_none());
        assert!(read(&[("ISOTHERM_POLICY", "")]).expect("ignored").is_none());
    }

    #[test]
    fn values_have_units() {
        let settings = read(&[
            ("ISOTHERM_POLICY", "hybridtier"),
            ("ISOTHERM_FAST", "1:3"),
            ("ISOTHERM_OVERHEAD", "5%"),
            ("ISOTHERM_RATE", "1G"),
            ("ISOTHERM_PAGE_SIZE", "huge"),
            ("ISOTHERM_LATENCIES", "100ns, 1us"),
            ("ISOTHERM_SET", "hybridtier.batch=5000  hybridtier.hashes=3"),
            ("ISOTHERM_JSON", "/tmp/%p.json"),
            ("ISOTHERM_REPORT", "-"),
        ]);
        let settings = settings.expect("valid values").expect("a policy");
        let session = &settings.session;
        assert_eq!((session.tiers.fast.clone(), session.overhead), (Some(FastLimit::Share(0.25)), 0.05));
        assert_eq!((session.rate, session.page_size), (Some(Bytes(1 << 30)), PageSize::Huge));
        assert_eq!(session.tiers.latencies, [Nanos(100), Nanos(1000)]);
        assert_eq!(session.policy.parameters.value("batch"), Some(Value::Count(5000)));
        let path = format!("/tmp/{}.json", std::process::id());
        assert_eq!(settings.json, Some(Output::File(path.into())));
        assert_eq!(settings.report, Some(Output::Errors));
    }

    #[test]
    fn every_bad_value_is_one_line_that_names_its_variable() {
        for (variable, value) in [
            ("ISOTHERM_FAST", "much"),
            ("ISOTHERM_SHADOW", "yes"),
            ("ISOTHERM_OVERHEAD", "60%"),
            ("ISOTHERM_RATE", "fast"),
            ("ISOTHERM_PAGE_SIZE", "4K"),
            ("ISOTHERM_SET", "freqtier.batch=1"),
            ("ISOTHERM_SET", "hybridtier.nothing=1"),
            ("ISOTHERM_SEED", "-1"),
            ("ISOTHERM_LATENCIES", "74ns,,"),
            ("ISOTHERM_POLICY", "belady"),
            ("ISOTHERM_POLICY", "hybridteir"),
        ] {
            let policy = if variable == "ISOTHERM_POLICY" { value } else { "hybridtier" };
            let error = read(&[("ISOTHERM_POLICY", policy), (variable, value)]).expect_err(value);
            assert_eq!(error.variable, variable);
            assert!(!error.to_string().contains('\n'), "{error}");
        }
    }
}
