//! Typed, documented parameters of policies and workloads.
//!
//! A module declares its parameters as a struct, with [`parameters!`](crate::parameters!):
//!
//! ```
//! use isotherm_core::parameters::Parameters;
//! use isotherm_core::{Nanos, choices, parameters};
//!
//! choices! {
//!     /// The values of `order`, and the words for them.
//!     pub enum Order { Forward = "forward", Backward = "backward" }
//! }
//!
//! parameters! {
//!     /// What a user may set.
//!     pub struct Settings {
//!         /// Samples that are handled at once.
//!         batch: usize = count(1, 1_000_000, "100k").unit("samples").source("section 4").scaled(),
//!         /// Time between two rounds.
//!         period: Nanos = interval("10s").source("ours: often enough").scaled(),
//!         /// Order in which pages are visited.
//!         order: Order = choice("forward").source("Fig. 2"),
//!     }
//! }
//!
//! let mut parameters = Parameters::new("example", Settings::SPECS);
//! parameters.set("order", "backward").unwrap();
//! let settings = Settings::read(&parameters);
//! assert_eq!((settings.batch, settings.order), (100_000, Order::Backward));
//! ```
//!
//! - The field's name is the parameter's name, and its doc comment the help text. The type decides which
//!   builder fits: [`count`](build::count) any unsigned integer that holds its bounds,
//!   [`number`](build::number) `f64`, [`flag`](build::flag) `bool`, [`duration`](build::duration) and
//!   [`interval`](build::interval) [`Nanos`], [`size`](build::size) [`Bytes`], [`choice`](build::choice) an
//!   enum. The builders are in scope inside the macro.
//! - Parameters that groups share are constants such as `const THREADS: Builder<u64> = count(..)`, with a
//!   `help`: `threads: u64 = THREADS,` or `threads: u64 = THREADS.default("16"),`.
//! - A field without `=` embeds another group: `layout: Layout,` lists the parameters of `Layout` there.
//! - `Settings::SPECS` goes to [`Parameters::new`] or a registry; `Settings::read` returns the values, also
//!   of a group within a larger one, such as one that [`Parameters::and`] appended.

mod preset;
mod typed;

use std::error::Error;
use std::fmt;

#[cfg(feature = "host")]
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::units::{parse_count, parse_number};
use crate::{Bytes, Nanos};
pub use preset::{DEFAULT_PRESET, PRESET_KEY, Preset};
pub use typed::{Builder, Choice, Counted, Setting};

/// The builders of parameters, which [`parameters!`](crate::parameters!) brings into scope.
pub mod build {
    pub use super::typed::{
        Builder, Reader, choice, count, duration, flag, interval, join, number, size, total,
    };
}

/// The type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A whole number between two bounds, both inclusive.
    Count(u64, u64),
    /// A number between two bounds, both inclusive.
    Number(f64, f64),
    /// `true` or `false`.
    Flag,
    /// A duration between two bounds, both inclusive.
    Duration(Nanos, Nanos),
    /// A size between two bounds, both inclusive.
    Size(Bytes, Bytes),
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// The description of a parameter.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// A name in snake case, unique in its group.
    pub name: &'static str,
    /// Its type and range.
    pub kind: Kind,
    /// The default, as a user writes it.
    pub default: &'static str,
    /// The unit, for people: `"samples"`, `"pages"`, `""`.
    pub unit: &'static str,
    /// The source of the default: a paper's section, an artifact, or "ours" with the reason.
    pub source: &'static str,
    /// The help text.
    pub help: &'static str,
    /// Whether the value stands for a footprint of the paper's size: it is divided by the run's [`Scale`].
    pub scaled: bool,
    /// Whether it is an amount for each of a scaled duration: both are divided so that their ratio stays.
    pub rate: bool,
}

/// A parameter's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// See [`Kind::Count`].
    Count(u64),
    /// See [`Kind::Number`].
    Number(f64),
    /// See [`Kind::Flag`].
    Flag(bool),
    /// See [`Kind::Duration`].
    Duration(Nanos),
    /// See [`Kind::Size`].
    Size(Bytes),
    /// See [`Kind::Choice`].
    Choice(&'static str),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Flag(value) => value.fmt(f),
            Self::Duration(value) => value.fmt(f),
            Self::Size(value) => value.fmt(f),
            Self::Choice(value) => value.fmt(f),
        }
    }
}

#[cfg(feature = "host")]
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(value) => serializer.serialize_u64(*value),
            Self::Number(value) => serializer.serialize_f64(*value),
            Self::Flag(value) => serializer.serialize_bool(*value),
            Self::Duration(value) => serializer.serialize_str(&value.to_string()),
            Self::Size(value) => serializer.serialize_u64(value.0),
            Self::Choice(value) => serializer.serialize_str(value),
        }
    }
}

/// An error for an unknown parameter or a value out of its range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParameterError {
    /// No parameter has that name.
    Unknown {
        /// Policy or workload.
        group: String,
        /// The unknown name.
        key: String,
        /// All known names.
        known: String,
    },
    /// The text is not a valid value of the parameter.
    Invalid {
        /// Policy or workload.
        group: String,
        /// The parameter.
        key: &'static str,
        /// The text.
        text: String,
        /// A description of the valid values.
        expected: String,
    },
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { group, key, known } => {
                write!(f, "{group} has no parameter '{key}'; it has {known}")
            }
            Self::Invalid { group, key, text, expected } => {
                write!(f, "{group}.{key}: '{text}' is not {expected}")
            }
        }
    }
}

impl Error for ParameterError {}

impl Spec {
    /// Describes the values that are valid, for an error or help text.
    pub fn expected(&self) -> String {
        match self.kind {
            Kind::Count(low, high) => format!("a whole number from {low} to {high}"),
            Kind::Number(low, high) => format!("a number from {low} to {high}"),
            Kind::Flag => "true or false".into(),
            Kind::Duration(low, high) => format!("a duration from {low} to {high}"),
            Kind::Size(low, high) => format!("a size from {low} to {high}"),
            Kind::Choice(words) => format!("one of {}", words.join(", ")),
        }
    }

    /// Reads a value; `None` where the text is not valid for this parameter.
    pub fn parse(&self, text: &str) -> Option<Value> {
        fn within<T: PartialOrd>(value: T, low: T, high: T) -> Option<T> {
            (value >= low && value <= high).then_some(value)
        }
        Some(match self.kind {
            Kind::Count(low, high) => Value::Count(within(parse_count(text).ok()?, low, high)?),
            Kind::Number(low, high) => Value::Number(within(parse_number(text).ok()?, low, high)?),
            Kind::Flag => Value::Flag(text.parse().ok()?),
            Kind::Duration(low, high) => Value::Duration(within(text.parse().ok()?, low, high)?),
            Kind::Size(low, high) => Value::Size(within(text.parse().ok()?, low, high)?),
            Kind::Choice(words) => Value::Choice(words.iter().find(|&&word| word == text)?),
        })
    }
}

/// The factor by which a run is smaller than the one that parameters are given for: every window holds as
/// many samples a page as in the paper. How long they take to come depends on the threads too.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Divides counts of samples and sizes.
    pub footprint: f64,
    /// Divides durations.
    pub time: f64,
}

impl Scale {
    /// The paper's size.
    pub const NONE: Self = Self { footprint: 1.0, time: 1.0 };

    /// Returns the divisor of an amount that comes in a duration divided by `times` instead of `time`.
    pub fn rates(self, times: f64) -> f64 {
        self.footprint * (times / self.time)
    }

    /// Returns how much smaller a run is than `reference`, with `threads` for each of the paper's, all
    /// sampled at the policy's rate; a source that samples less densely counts as fewer threads.
    pub fn of(footprint: Bytes, reference: Bytes, threads: f64) -> Self {
        let footprint = (reference.0 as f64 / footprint.0.max(1) as f64).max(1.0).round();
        let time = (footprint * threads).max(1.0).round();
        Self { footprint, time }
    }
}

/// The default footprint that policies' parameters are given for: FreqTier's CacheLib (Table I).
pub const REFERENCE_FOOTPRINT: Bytes = Bytes(267_000_000_000);
/// The threads that they are given for (FreqTier, section VI-C).
pub const REFERENCE_THREADS: f64 = 16.0;

/// The parameters of one policy or workload, with their values.
#[derive(Debug, Clone, Default)]
pub struct Parameters {
    group: String,
    specs: Vec<&'static Spec>,
    presets: &'static [Preset],
    preset: Option<&'static Preset>,
    values: Vec<Value>,
    set: Vec<bool>,
}

impl Parameters {
    /// Returns every parameter at its default.
    /// Panics if a default is not valid: a mistake in the table, which any test finds.
    pub fn new(group: &str, specs: &'static [Spec]) -> Self {
        Self::with_presets(group, specs, &[])
    }

    /// Returns every parameter at the value that another copy of this program has for it, in the order of
    /// `specs`; `None` if there are more or fewer values than parameters.
    pub fn with_values(group: &str, specs: &'static [Spec], values: Vec<Value>) -> Option<Self> {
        let set = vec![true; values.len()];
        let specs: Vec<&'static Spec> = specs.iter().collect();
        (specs.len() == values.len()).then(|| Self {
            group: group.into(),
            specs,
            values,
            set,
            ..Self::default()
        })
    }

    /// Returns their policy or workload.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Sets one parameter, or the preset, from text. Before [`Parameters::scale`].
    pub fn set(&mut self, key: &str, text: &str) -> Result<(), ParameterError> {
        if key == PRESET_KEY && !self.presets.is_empty() {
            return self.choose_preset(text);
        }
        let Some(index) = self.specs.iter().position(|spec| spec.name == key) else {
            let preset = (!self.presets.is_empty()).then_some(PRESET_KEY);
            let known = self.specs.iter().map(|spec| spec.name).chain(preset).collect::<Vec<_>>().join(", ");
            let known = if known.is_empty() { "none".into() } else { known };
            return Err(ParameterError::Unknown { group: self.group.clone(), key: key.into(), known });
        };
        let spec = self.specs[index];
        self.values[index] = spec.parse(text).ok_or_else(|| ParameterError::Invalid {
            group: self.group.clone(),
            key: spec.name,
            text: text.into(),
            expected: spec.expected(),
        })?;
        self.set[index] = true;
        Ok(())
    }

    /// Sets one parameter as a paper gives it: [`Parameters::scale`] divides it as it does a default.
    pub fn set_as_published(&mut self, key: &str, text: &str) -> Result<(), ParameterError> {
        self.set(key, text)?;
        if let Some(index) = self.specs.iter().position(|spec| spec.name == key) {
            self.set[index] = false;
        }
        Ok(())
    }

    /// Divides every `scaled` parameter that the user did not set, down to its lower bound.
    pub fn scale(&mut self, scale: Scale) {
        self.scale_to(scale, scale.time);
    }

    /// Divides as [`Self::scale`] does, but durations by `times` only. Rates are the same by either.
    pub fn scale_to(&mut self, scale: Scale, times: f64) {
        let rates = scale.rates(times);
        for ((value, spec), set) in self.values.iter_mut().zip(&self.specs).zip(&self.set) {
            if !spec.scaled || *set {
                continue;
            }
            let amounts = if spec.rate { rates } else { scale.footprint };
            let shrink = |value: u64, low: u64, by: f64| ((value as f64 / by).round() as u64).max(low);
            *value = match (*value, spec.kind) {
                (Value::Count(value), Kind::Count(low, _)) => Value::Count(shrink(value, low, amounts)),
                (Value::Duration(value), Kind::Duration(low, _)) => {
                    Value::Duration(Nanos(shrink(value.0, low.0, times)))
                }
                (Value::Size(value), Kind::Size(low, _)) => {
                    Value::Size(Bytes(shrink(value.0, low.0, amounts)))
                }
                (value, _) => value,
            };
        }
    }

    /// Returns the longest duration that scaling divides or, among `all`, the user set; with its name.
    pub fn longest(&self, all: bool) -> Option<(&'static str, Nanos)> {
        let durations = self.iter().zip(&self.set).filter_map(|((spec, value), &set)| match value {
            Value::Duration(value) if spec.scaled && (all || !set) => Some((spec.name, value)),
            _ => None,
        });
        durations.max_by_key(|&(name, value)| (value, std::cmp::Reverse(name)))
    }

    /// Returns a parameter's value, if there is one of that name. Code reads its settings typed instead.
    pub fn value(&self, name: &str) -> Option<Value> {
        self.iter().find(|(spec, _)| spec.name == name).map(|(_, value)| value)
    }

    /// Returns every parameter with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Spec, Value)> + '_ {
        self.specs.iter().copied().zip(self.values.iter().copied())
    }
}

/// An object `name: value`, in the table's order, behind the preset where there are presets.
#[cfg(feature = "host")]
impl Serialize for Parameters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let preset = self.preset();
        let mut map = serializer.serialize_map(Some(self.specs.len() + usize::from(preset.is_some())))?;
        if let Some(preset) = preset {
            map.serialize_entry(PRESET_KEY, preset)?;
        }
        for (spec, value) in self.iter() {
            map.serialize_entry(spec.name, &value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const SPECS: &[Spec] = &[
        Spec {
            name: "batch",
            kind: Kind::Count(64, 10_000_000),
            default: "100k",
            unit: "samples",
            source: "test",
            help: "Samples a batch.",
            scaled: true,
            rate: false,
        },
        Spec {
            name: "window",
            kind: Kind::Duration(Nanos(1), Nanos(u64::MAX)),
            default: "60s",
            unit: "",
            source: "test",
            help: "A window.",
            scaled: true,
            rate: false,
        },
        Spec {
            name: "counter_bits",
            kind: Kind::Choice(&["4", "8"]),
            default: "4",
            unit: "bits",
            source: "test",
            help: "Width.",
            scaled: false,
            rate: false,
        },
    ];

    #[test]
    fn values_are_set_from_text_and_read_typed() {
        let mut parameters = Parameters::new("test", SPECS);
        parameters.set("batch", "2000").expect("in range");
        assert_eq!(parameters.value("batch"), Some(Value::Count(2000)));
        assert_eq!(parameters.value("window"), Some(Value::Duration(Nanos(60_000_000_000))));
        assert_eq!(parameters.value("counter_bits"), Some(Value::Choice("4")));
    }

    #[test]
    fn unknown_keys_and_values_out_of_range_are_named() {
        let mut parameters = Parameters::new("test", SPECS);
        let unknown = parameters.set("bach", "1").expect_err("no such key").to_string();
        assert_eq!(unknown, "test has no parameter 'bach'; it has batch, window, counter_bits");
        let invalid = parameters.set("batch", "3").expect_err("below the range").to_string();
        assert_eq!(invalid, "test.batch: '3' is not a whole number from 64 to 10000000");
    }

    #[test]
    fn scaling_divides_what_stands_for_the_footprint_and_leaves_what_the_user_set() {
        let mut parameters = Parameters::new("test", SPECS);
        parameters.set("window", "10s").expect("in range");
        parameters.scale(Scale { footprint: 1000.0, time: 10.0 });
        assert_eq!(parameters.value("batch"), Some(Value::Count(100)));
        assert_eq!(parameters.value("window"), Some(Value::Duration(Nanos(10_000_000_000))));
        parameters.scale(Scale { footprint: 1000.0, time: 10.0 });
        assert_eq!(parameters.value("batch"), Some(Value::Count(64)), "never below the range");
        let mut published = Parameters::new("test", SPECS);
        published.set_as_published("batch", "2M").expect("in range");
        published.scale(Scale { footprint: 1000.0, time: 10.0 });
        assert_eq!(
            published.value("batch"),
            Some(Value::Count(2000)),
            "a paper's value is scaled as a default is"
        );
        let mut untouched = Parameters::new("test", SPECS);
        untouched.scale(Scale { footprint: 1000.0, time: 10.0 });
        assert_eq!(
            untouched.value("window"),
            Some(Value::Duration(Nanos(6_000_000_000))),
            "times have a factor of their own"
        );
    }
}
