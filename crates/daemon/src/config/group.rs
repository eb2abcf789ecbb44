//! One group of programs.

use isotherm_core::Bytes;
use isotherm_live::policy_run::PolicyRun;
use serde::Deserialize;
use toml::Spanned;

use super::Mistake;
use super::value::{self, Size, Texts};
use crate::groups::{Pattern, Rule};

/// Longest name: it is a label of every metric.
const MAX_NAME: usize = 64;

/// How a group's memory is tiered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// By the group's policy, within its share.
    #[default]
    Tiered,
    /// All of it stays fast, up to the group's limit, before any other group gets memory.
    Pinned,
    /// Isotherm does not look at these programs.
    Excluded,
}

/// A group of programs that share fast memory under one engine.
#[derive(Debug, Clone)]
pub struct Group {
    /// Its name: letters, digits, `-` and `_`.
    pub name: String,
    /// Which programs belong to it.
    pub rule: Rule,
    /// How their memory is tiered.
    pub mode: Mode,
    /// The policy of its engine.
    pub policy: PolicyRun,
    /// Settings of the policy that differ from its defaults, as `KEY=VALUE`.
    pub settings: Vec<String>,
    /// Least fast memory that pressure of others never takes.
    pub protect: Size,
    /// Most fast memory; no limit if `None`.
    pub limit: Option<Size>,
    /// How much a slowdown of this group counts beside those of others.
    pub weight: f64,
    /// Share of their time that the programs may lose to being observed.
    pub overhead: Option<f64>,
    /// Limit of migration in bytes a second.
    pub rate: Option<Bytes>,
}

/// A group as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    pub(super) name: Spanned<String>,
    cgroup: Option<Spanned<Texts>>,
    user: Option<Spanned<Texts>>,
    command: Option<Spanned<Texts>>,
    #[serde(default)]
    mode: Mode,
    policy: Option<Spanned<String>>,
    set: Option<Spanned<Texts>>,
    protect: Option<Spanned<String>>,
    limit: Option<Spanned<String>>,
    weight: Option<Spanned<f64>>,
    overhead: Option<Spanned<String>>,
    rate: Option<Spanned<String>>,
}

impl Written {
    /// Checks the group; `policy` and `overhead` are those of all groups.
    pub(super) fn check(&self, policy: &PolicyRun, overhead: Option<f64>) -> Result<Group, Mistake> {
        let name = self.name.as_ref();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(plain) {
            return Err(Mistake::at(
                &self.name,
                format!("name: expected at most {MAX_NAME} letters, digits, '-' or '_', found '{name}'"),
            ));
        }
        let mut policy = self.policy.as_ref().map_or_else(|| Ok(policy.clone()), self::policy)?;
        let settings = self.set.as_ref().map_or_else(|| Ok(Vec::new()), |set| apply(set, &mut policy))?;
        let protect = self.protect.as_ref().map(|text| value::size(text, "protect")).transpose()?;
        let limit = self.limit.as_ref().map(|text| value::size(text, "limit")).transpose()?;
        if let (Some(protect), Some(limit), Some(place)) = (protect, limit, &self.limit)
            && exceeds(protect, limit)
        {
            let (protect, limit) = (self.protect.as_ref().map(Spanned::as_ref), place.as_ref());
            let protect = protect.map_or("", String::as_str);
            return Err(Mistake::at(
                place,
                format!("limit: {limit} is below the group's protection, {protect}"),
            ));
        }
        Ok(Group {
            name: name.clone(),
            rule: Rule {
                cgroups: patterns(self.cgroup.as_ref(), "cgroup", |text| text.starts_with(['/', '*']))?,
                users: texts(self.user.as_ref()).map(str::to_owned).collect(),
                commands: patterns(self.command.as_ref(), "command", |_| true)?,
            },
            mode: self.mode,
            policy,
            settings,
            protect: protect.unwrap_or(Size::Bytes(Bytes(0))),
            limit,
            weight: self.weight.as_ref().map_or(Ok(1.0), weight)?,
            overhead: self.overhead.as_ref().map(value::overhead).transpose()?.or(overhead),
            rate: self.rate.as_ref().map(rate).transpose()?,
        })
    }
}

fn exceeds(protect: Size, limit: Size) -> bool {
    match (protect, limit) {
        (Size::Bytes(protect), Size::Bytes(limit)) => protect > limit,
        (Size::Share(protect), Size::Share(limit)) => protect > limit,
        // Which is larger depends on the machine; the limit counts there.
        _ => false,
    }
}

fn texts(texts: Option<&Spanned<Texts>>) -> impl Iterator<Item = &str> {
    texts.into_iter().flat_map(|texts| texts.get_ref().all()).map(String::as_str)
}

fn patterns(
    written: Option<&Spanned<Texts>>,
    key: &str,
    valid: impl Fn(&str) -> bool,
) -> Result<Vec<Pattern>, Mistake> {
    let Some(place) = written else { return Ok(Vec::new()) };
    let parse = |text: &str| match valid(text) && !text.is_empty() {
        true => Ok(Pattern::new(text)),
        false => {
            Err(Mistake::at(place, format!("{key}: expected a path such as /system.slice/*, found '{text}'")))
        }
    };
    texts(written).map(parse).collect()
}

fn weight(weight: &Spanned<f64>) -> Result<f64, Mistake> {
    let value = *weight.get_ref();
    let valid = (0.001..=1000.0).contains(&value);
    let wrong =
        || Mistake::at(weight, format!("weight: expected a number from 0.001 to 1000, found {value}"));
    valid.then_some(value).ok_or_else(wrong)
}

fn rate(text: &Spanned<String>) -> Result<Bytes, Mistake> {
    let wrong =
        |_| Mistake::at(text, format!("rate: expected bytes a second such as 1G, found '{}'", text.as_ref()));
    text.as_ref().parse().map_err(wrong)
}

/// Finds a policy that runs live.
pub(super) fn policy(name: &Spanned<String>) -> Result<PolicyRun, Mistake> {
    let entry = isotherm_policies::find(name.as_ref())
        .map_err(|error| Mistake::at(name, format!("policy: {error}")))?;
    let run = PolicyRun::new(entry);
    run.needs().map_err(|error| Mistake::at(name, error))?;
    Ok(run)
}

/// Applies settings of the form `POLICY.KEY=VALUE`; returns them without the policy.
fn apply(set: &Spanned<Texts>, policy: &mut PolicyRun) -> Result<Vec<String>, Mistake> {
    let mut settings = Vec::new();
    for setting in set.get_ref().all() {
        let own = setting.strip_prefix(policy.entry.name).and_then(|rest| rest.strip_prefix('.'));
        let (key, value) = own.and_then(|rest| rest.split_once('=')).ok_or_else(|| {
            Mistake::at(set, format!("set: expected {}.KEY=VALUE, found '{setting}'", policy.entry.name))
        })?;
        policy.parameters.set(key, value).map_err(|error| Mistake::at(set, format!("set: {error}")))?;
        settings.push(format!("{key}={value}"));
    }
    policy.needs().map_err(|error| Mistake::at(set, format!("set: {error}")))?;
    Ok(settings)
}
