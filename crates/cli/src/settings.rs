//! Parses `--set GROUP.KEY=VALUE` and assigns each setting to its group.

use isotherm_core::parameters::Parameters;

use crate::failure::Failure;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting<'a> {
    /// A policy, a workload or `machine`.
    pub(crate) group: &'a str,
    pub(crate) key: &'a str,
    pub(crate) value: &'a str,
}

pub(crate) fn parse(texts: &[String]) -> Result<Vec<Setting<'_>>, Failure> {
    texts.iter().map(|text| parse_one(text)).collect()
}

fn parse_one(text: &str) -> Result<Setting<'_>, Failure> {
    let invalid =
        || Failure::Usage(format!("--set {text}: expected GROUP.KEY=VALUE, such as freqtier.batch=50000"));
    let (path, value) = text.split_once('=').ok_or_else(invalid)?;
    let (group, key) = path.trim().split_once('.').ok_or_else(invalid)?;
    if group.is_empty() || key.is_empty() {
        return Err(invalid());
    }
    Ok(Setting { group, key, value: value.trim() })
}

/// Applies the settings of one group and removes them from `settings`.
pub(crate) fn apply(settings: &mut Vec<Setting<'_>>, parameters: &mut Parameters) -> Result<(), Failure> {
    let group = parameters.group().to_owned();
    let (ours, others) = std::mem::take(settings).into_iter().partition(|setting| setting.group == group);
    *settings = others;
    let ours: Vec<Setting<'_>> = ours;
    ours.iter().try_for_each(|setting| parameters.set(setting.key, setting.value).map_err(Failure::usage))
}

/// Fails if no group took a setting.
pub(crate) fn finish(settings: &[Setting<'_>]) -> Result<(), Failure> {
    match settings.first() {
        None => Ok(()),
        Some(setting) => Err(Failure::Usage(format!(
            "--set {}.{}: '{}' is not a policy, workload or machine of this run",
            setting.group, setting.key, setting.group
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_split_at_the_first_dot_and_equals_sign() {
        let text = ["machine.tier.1.latency=200ns".to_owned()];
        let expected = Setting { group: "machine", key: "tier.1.latency", value: "200ns" };
        assert_eq!(parse(&text).ok(), Some(vec![expected]));
    }

    #[test]
    fn malformed_settings_are_refused() {
        for text in ["batch=1", "freqtier.batch", ".x=1", "x.=1"] {
            assert!(parse(&[text.to_owned()]).is_err(), "{text}");
        }
    }

    #[test]
    fn a_setting_of_an_unknown_group_is_an_error() {
        let text = ["nobody.batch=1".to_owned()];
        assert!(finish(&parse(&text).unwrap_or_default()).is_err());
    }
}
