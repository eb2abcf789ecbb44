//! Typed settings: the builders of parameters and the macros `parameters!` and `choices!`.

use std::marker::PhantomData;

use super::{Kind, Parameters, Spec, Value};
use crate::{Bytes, Nanos, SamplingScope};

/// A type that a parameter's value is read as.
pub trait Setting: Sized {
    /// Converts a value.
    /// Panics if the value is of another kind. [`parameters!`](crate::parameters!) rules that out.
    fn from_value(value: Value) -> Self;
}

/// An unsigned integer that a [`Kind::Count`] fits.
pub trait Counted: Setting {
    /// The largest value.
    const MAX: u64;
}

/// An enum that a [`Kind::Choice`] selects from. [`choices!`](crate::choices!) implements it.
pub trait Choice: Copy + PartialEq + 'static {
    /// The words that a user writes.
    const WORDS: &'static [&'static str];
    /// The words' values, in the same order.
    const VALUES: &'static [Self];

    /// Returns the word of this value.
    fn word(self) -> &'static str {
        let index = Self::VALUES.iter().position(|&value| value == self);
        Self::WORDS[index.expect("every value has a word")]
    }
}

#[cold]
fn mismatch(value: Value, expected: &str) -> ! {
    panic!("{value:?} is not {expected}")
}

macro_rules! counted {
    ($($type:ty),*) => {$(
        impl Setting for $type {
            fn from_value(value: Value) -> Self {
                let Value::Count(value) = value else { mismatch(value, "a count") };
                value as Self
            }
        }
        impl Counted for $type {
            const MAX: u64 = <$type>::MAX as u64;
        }
    )*};
}
counted!(u8, u16, u32, u64, usize);

macro_rules! setting {
    ($($type:ty: $kind:ident),*) => {$(
        impl Setting for $type {
            fn from_value(value: Value) -> Self {
                let Value::$kind(value) = value else { mismatch(value, stringify!($kind)) };
                value
            }
        }
    )*};
}
setting!(f64: Number, bool: Flag, Nanos: Duration, Bytes: Size);

impl<T: Choice> Setting for T {
    fn from_value(value: Value) -> Self {
        let Value::Choice(word) = value else { mismatch(value, "a choice") };
        let index = T::WORDS.iter().position(|&known| known == word);
        T::VALUES[index.expect("a choice is one of its words")]
    }
}

impl Choice for SamplingScope {
    const WORDS: &'static [&'static str] = &["each-tier", "all-tiers"];
    const VALUES: &'static [Self] = &[Self::EachTier, Self::AllTiers];
}

/// A parameter read as `T`, without its name; made by [`count`], [`number`], [`flag`], [`duration`],
/// [`interval`], [`size`] and [`choice`].
#[derive(Debug, Clone, Copy)]
pub struct Builder<T> {
    spec: Spec,
    of: PhantomData<fn() -> T>,
}

impl<T> Builder<T> {
    const fn new(kind: Kind, default: &'static str, unit: &'static str) -> Self {
        let spec = Spec { name: "", kind, default, unit, source: "", help: "", scaled: false, rate: false };
        Self { spec, of: PhantomData }
    }

    /// Sets the unit. Without it a size has "bytes", and other kinds have no unit.
    pub const fn unit(mut self, unit: &'static str) -> Self {
        self.spec.unit = unit;
        self
    }

    /// Sets where the default comes from. Every parameter needs it.
    pub const fn source(mut self, source: &'static str) -> Self {
        self.spec.source = source;
        self
    }

    /// Sets the help of a parameter that several groups share. A doc comment on the field replaces it.
    pub const fn help(mut self, help: &'static str) -> Self {
        self.spec.help = help;
        self
    }

    /// Replaces the default of a shared parameter.
    pub const fn default(mut self, default: &'static str) -> Self {
        self.spec.default = default;
        self
    }

    /// Sets [`Spec::scaled`].
    pub const fn scaled(mut self) -> Self {
        self.spec.scaled = true;
        self
    }

    /// Sets [`Spec::scaled`] and [`Spec::rate`].
    pub const fn scaled_rate(mut self) -> Self {
        self.spec.rate = true;
        self.scaled()
    }

    /// Returns the parameter `name`, explained by `doc` if there is any.
    pub const fn named(self, name: &'static str, doc: &'static str) -> Spec {
        let mut spec = self.spec;
        spec.name = name;
        if !doc.is_empty() {
            spec.help = doc.trim_ascii();
        }
        assert!(!spec.help.is_empty(), "a parameter needs a doc comment");
        assert!(!spec.source.is_empty(), "a parameter needs a source");
        spec
    }
}

/// Returns a whole number between two bounds, both inclusive.
pub const fn count<T: Counted>(low: u64, high: u64, default: &'static str) -> Builder<T> {
    assert!(low <= high && high <= T::MAX, "the bounds do not fit the type");
    Builder::new(Kind::Count(low, high), default, "")
}

/// Returns a number between two bounds, both inclusive.
pub const fn number(low: f64, high: f64, default: &'static str) -> Builder<f64> {
    Builder::new(Kind::Number(low, high), default, "")
}

/// Returns `true` or `false`.
pub const fn flag(default: &'static str) -> Builder<bool> {
    Builder::new(Kind::Flag, default, "")
}

/// Returns a duration between two bounds, both inclusive.
pub const fn duration(low: Nanos, high: Nanos, default: &'static str) -> Builder<Nanos> {
    Builder::new(Kind::Duration(low, high), default, "")
}

/// Returns a duration of at least a microsecond, so long at most that four of them do not overflow.
pub const fn interval(default: &'static str) -> Builder<Nanos> {
    duration(Nanos(1_000), Nanos(u64::MAX / 4), default)
}

/// Returns a size between two bounds in bytes, both inclusive.
pub const fn size(low: u64, high: u64, default: &'static str) -> Builder<Bytes> {
    Builder::new(Kind::Size(Bytes(low), Bytes(high)), default, "bytes")
}

/// Returns one of the words of `T`.
pub const fn choice<T: Choice>(default: &'static str) -> Builder<T> {
    assert!(T::WORDS.len() == T::VALUES.len(), "every word needs a value");
    Builder::new(Kind::Choice(T::WORDS), default, "")
}

/// Returns the number of parameters in all parts.
pub const fn total(parts: &[&[Spec]]) -> usize {
    let (mut sum, mut index) = (0, 0);
    while index < parts.len() {
        sum += parts[index].len();
        index += 1;
    }
    sum
}

/// Returns the parameters of all parts, which have `N` of them.
pub const fn join<const N: usize>(parts: &[&[Spec]]) -> [Spec; N] {
    let mut all = [count::<u64>(0, 0, "0").source("placeholder").named("", "placeholder"); N];
    let (mut next, mut part) = (0, 0);
    while part < parts.len() {
        let mut index = 0;
        while index < parts[part].len() {
            all[next] = parts[part][index];
            next += 1;
            index += 1;
        }
        part += 1;
    }
    all
}

/// A cursor over the values of a [`Parameters`].
#[derive(Debug)]
pub struct Reader<'a> {
    parameters: &'a Parameters,
    next: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the parameter that comes first in `specs`.
    /// Panics if `parameters` lacks it: they are another group's.
    pub fn new(parameters: &'a Parameters, specs: &[Spec]) -> Self {
        let first = |name| {
            let index = parameters.specs.iter().position(|spec| spec.name == name);
            index.unwrap_or_else(|| panic!("{} has no parameter {name}", parameters.group))
        };
        Self { parameters, next: specs.first().map_or(0, |spec| first(spec.name)) }
    }

    /// Returns the next value, which belongs to the parameter `name`.
    pub fn next<T: Setting>(&mut self, name: &str) -> T {
        debug_assert_eq!(self.parameters.specs[self.next].name, name, "{}", self.parameters.group);
        self.next += 1;
        T::from_value(self.parameters.values[self.next - 1])
    }
}

/// Declares a group of parameters as a struct; see [`crate::parameters`](mod@crate::parameters).
#[macro_export]
macro_rules! parameters {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $($(#[doc = $doc:literal])* $field:ident: $type:ty $(= $builder:expr)?),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone)]
        $vis struct $name {
            $($(#[doc = $doc])* $vis $field: $type,)*
        }

        #[allow(dead_code)]
        impl $name {
            /// The parameters, in the order of the fields.
            $vis const SPECS: &'static [$crate::parameters::Spec] = {
                #[allow(unused_imports)]
                use $crate::parameters::build::*;
                const PARTS: &[&[$crate::parameters::Spec]] =
                    &[$($crate::parameters!(@specs $field ($($doc)*) $type $(= $builder)?)),*];
                &$crate::parameters::build::join::<{ $crate::parameters::build::total(PARTS) }>(PARTS)
            };

            /// Reads the values that the user, a preset or the defaults give.
            $vis fn read(parameters: &$crate::parameters::Parameters) -> Self {
                Self::take(&mut $crate::parameters::build::Reader::new(parameters, Self::SPECS))
            }

            #[doc(hidden)]
            $vis fn take(reader: &mut $crate::parameters::build::Reader<'_>) -> Self {
                Self { $($field: $crate::parameters!(@take reader $field $type $(= $builder)?),)* }
            }
        }
    };
    (@specs $field:ident ($($doc:literal)*) $type:ty = $builder:expr) => {
        &[$crate::parameters::build::Builder::<$type>::named($builder, stringify!($field), concat!($($doc),*))]
    };
    (@specs $field:ident ($($doc:literal)*) $type:ty) => {
        <$type>::SPECS
    };
    (@take $reader:ident $field:ident $type:ty = $builder:expr) => {
        $reader.next::<$type>(stringify!($field))
    };
    (@take $reader:ident $field:ident $type:ty) => {
        <$type>::take($reader)
    };
}

/// Declares an enum whose values are words of a parameter; see [`crate::parameters`](mod@crate::parameters).
#[macro_export]
macro_rules! choices {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident {
            $($(#[doc = $doc:literal])* $variant:ident = $word:literal),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $vis enum $name {
            $($(#[doc = $doc])* $variant,)*
        }

        impl $crate::parameters::Choice for $name {
            const WORDS: &'static [&'static str] = &[$($word),*];
            const VALUES: &'static [Self] = &[$(Self::$variant),*];
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    choices! {
        /// A width.
        enum Width {
            /// Four bits.
            Four = "4",
            Eight = "8",
        }
    }

    const SEED: Builder<u64> = count(0, u64::MAX, "1").source("test").help("A shared seed.");

    parameters! {
        /// An embedded group.
        struct Inner {
            /// A window.
            window: Nanos = interval("60s").source("test").scaled(),
            /// A share.
            share: f64 = number(0.0, 1.0, "5%").unit("of all").source("test"),
        }
    }

    parameters! {
        /// A group.
        struct Outer {
            /// Samples a batch, on two lines.
            batch: usize = count(64, 10_000_000, "100k").unit("samples").source("test").scaled(),
            inner: Inner,
            /// Width.
            width: Width = choice("4").source("test"),
            /// On or off.
            on: bool = flag("true").source("test"),
            seed: u64 = SEED.default("7"),
            /// A budget.
            budget: Bytes = size(0, 1 << 40, "1M").source("test"),
        }
    }

    #[test]
    fn fields_are_parameters_in_their_order_with_their_doc_comments_as_help() {
        let names: Vec<_> = Outer::SPECS.iter().map(|spec| spec.name).collect();
        assert_eq!(names, ["batch", "window", "share", "width", "on", "seed", "budget"]);
        let batch = Outer::SPECS[0];
        assert_eq!(
            (batch.help, batch.unit, batch.scaled),
            ("Samples a batch, on two lines.", "samples", true)
        );
        assert_eq!((Outer::SPECS[5].help, Outer::SPECS[5].default), ("A shared seed.", "7"));
        assert_eq!((Outer::SPECS[6].unit, Outer::SPECS[3].kind), ("bytes", Kind::Choice(&["4", "8"])));
    }

    #[test]
    fn values_are_read_typed_groups_included() {
        let mut parameters = Parameters::new("test", Outer::SPECS);
        for (key, text) in [("share", "0.5"), ("width", "8"), ("on", "false")] {
            parameters.set(key, text).expect("valid");
        }
        let outer = Outer::read(&parameters);
        assert_eq!(
            (outer.batch, outer.inner.window, outer.inner.share),
            (100_000, Nanos(60_000_000_000), 0.5)
        );
        assert_eq!((outer.width, outer.width.word(), outer.on, outer.seed), (Width::Eight, "8", false, 7));
        assert_eq!(outer.budget, Bytes(1 << 20));
    }

    #[test]
    fn a_group_is_found_within_a_larger_one() {
        let parameters = Parameters::new("test", Outer::SPECS);
        assert_eq!(Inner::read(&parameters).share, 0.05);
    }

    #[test]
    #[should_panic(expected = "test has no parameter window")]
    fn parameters_of_another_group_are_refused() {
        const OTHER: &[Spec] = &[SEED.named("seed", "")];
        Inner::read(&Parameters::new("test", OTHER));
    }
}
