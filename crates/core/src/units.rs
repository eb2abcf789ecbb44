//! Units: nanoseconds, bytes, pages and cycles, and their text forms.

use std::error::Error;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

#[cfg(feature = "host")]
use serde::{Deserialize, Serialize};

/// An error for a text that is not a quantity of the expected unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseUnitError {
    /// The text.
    pub text: String,
    /// The expected form, with an example.
    pub expected: &'static str,
}

impl fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not {}", self.text, self.expected)
    }
}

impl Error for ParseUnitError {}

macro_rules! units {
    ($($(#[$doc:meta])* $name:ident),*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "host", derive(Serialize, Deserialize), serde(transparent))]
        #[repr(transparent)]
        pub struct $name(pub u64);

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }

        /// Saturates at zero: a difference of measurements is never negative.
        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
                items.fold(Self(0), Add::add)
            }
        }
    )*};
}

units! {
    /// A time or a duration in nanoseconds of the host's time: modelled, the guest's or the clock's.
    Nanos,
    /// A number of bytes.
    Bytes,
    /// A number of pages of the run's page size.
    Pages,
    /// A number of processor cycles.
    Cycles
}

impl Nanos {
    /// One second.
    pub const SECOND: Self = Self(1_000_000_000);
    /// One millisecond.
    pub const MILLISECOND: Self = Self(1_000_000);

    /// Returns the duration in seconds.
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

/// Splits `"2.5GiB"` into `2.5` and `"GiB"`.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '_'))).unwrap_or(text.len());
    let number = text[..end].replace('_', "").parse::<f64>().ok()?;
    number.is_finite().then_some((number, text[end..].trim()))
}

/// Scales to an integer; `None` if it does not fit.
fn scaled(number: f64, factor: f64) -> Option<u64> {
    let value = (number * factor).round();
    (0.0..9.2e18).contains(&value).then_some(value as u64)
}

impl FromStr for Nanos {
    type Err = ParseUnitError;

    /// Reads `250ns`, `10us`, `20ms`, `5s`, `2min` or `1h`; a bare number is nanoseconds.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let error =
            || ParseUnitError { text: text.into(), expected: "a duration such as 250ns, 20ms, 5s or 1h" };
        let (number, suffix) = split(text).ok_or_else(error)?;
        let factor = match suffix {
            "" | "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" | "min" => 60e9,
            "h" => 3600e9,
            _ => return Err(error()),
        };
        scaled(number, factor).map(Self).ok_or_else(error)
    }
}

impl FromStr for Bytes {
    type Err = ParseUnitError;

    /// Reads `4096`, `512K`, `64M`, `2G` or `1T`, with `B` or `iB` behind if wished: powers of 1024.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let error = || ParseUnitError { text: text.into(), expected: "a size such as 4096, 512K, 64M or 2G" };
        let (number, suffix) = split(text).ok_or_else(error)?;
        let factor = match suffix.trim_end_matches("iB").trim_end_matches('B') {
            "" => 1.0,
            "K" | "k" => 1024.0,
            "M" => 1024f64.powi(2),
            "G" => 1024f64.powi(3),
            "T" => 1024f64.powi(4),
            _ => return Err(error()),
        };
        scaled(number, factor).map(Self).ok_or_else(error)
    }
}

/// Reads a plain count, with `_` between digits or a decimal suffix: `100_000`, `100k`, `2M`, `1e6`.
pub fn parse_count(text: &str) -> Result<u64, ParseUnitError> {
    let error = || ParseUnitError { text: text.into(), expected: "a whole number such as 100000 or 100k" };
    if let Ok(value) = text.trim().parse::<f64>()
        && value.fract() == 0.0
    {
        return scaled(value, 1.0).ok_or_else(error);
    }
    let (number, suffix) = split(text).ok_or_else(error)?;
    let factor = match suffix {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        _ => return Err(error()),
    };
    let whole = (number * factor).fract() == 0.0;
    scaled(number, factor).filter(|_| whole).ok_or_else(error)
}

/// Reads a finite number, also as a percentage: `0.9`, `90%`.
pub fn parse_number(text: &str) -> Result<f64, ParseUnitError> {
    let error = || ParseUnitError { text: text.into(), expected: "a number such as 0.9 or 90%" };
    let trimmed = text.trim();
    let (digits, factor) = trimmed.strip_suffix('%').map_or((trimmed, 1.0), |digits| (digits, 0.01));
    let value = digits.parse::<f64>().map_err(|_| error())? * factor;
    if value.is_finite() { Ok(value) } else { Err(error()) }
}

/// Reads the share of a ratio such as `1:8` (fast to slow: one ninth) or a percentage such as `25%`.
pub fn parse_share(text: &str) -> Option<f64> {
    if let Some((fast, slow)) = text.split_once(':') {
        let (fast, slow) = (fast.trim().parse::<f64>().ok()?, slow.trim().parse::<f64>().ok()?);
        let valid = fast.is_finite() && slow.is_finite() && fast >= 0.0 && slow >= 0.0 && fast + slow > 0.0;
        return valid.then(|| fast / (fast + slow));
    }
    let percent = text.strip_suffix('%')?.trim().parse::<f64>().ok()?;
    (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
}

/// Writes `value` with the largest suffix of `steps` that leaves at least 1 before the point.
fn with_suffix(f: &mut fmt::Formatter<'_>, value: u64, steps: &[(u64, &str)]) -> fmt::Result {
    for &(size, suffix) in steps {
        if value >= size && size > 1 {
            if value.is_multiple_of(size) {
                return write!(f, "{}{suffix}", value / size);
            }
            return write!(f, "{:.2}{suffix}", value as f64 / size as f64);
        }
    }
    write!(f, "{value}{}", steps.last().map_or("", |step| step.1))
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_suffix(f, self.0, &[(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")])
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_suffix(f, self.0, &[(1 << 40, "T"), (1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K"), (1, "B")])
    }
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pages", self.0)
    }
}

impl fmt::Display for Cycles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cycles", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_sizes_and_counts_are_read_with_their_suffixes() {
        assert_eq!("20ms".parse(), Ok(Nanos(20_000_000)));
        assert_eq!("1.5us".parse(), Ok(Nanos(1_500)));
        assert_eq!("2G".parse(), Ok(Bytes(2 << 30)));
        assert_eq!("4KiB".parse(), Ok(Bytes(4096)));
        assert_eq!(parse_count("100k"), Ok(100_000));
        assert_eq!(parse_count("1_000"), Ok(1_000));
        assert_eq!(parse_number("5%"), Ok(0.05));
    }

    #[test]
    fn nonsense_is_refused_with_what_was_expected() {
        for text in ["", "abc", "5 parsecs", "-1s", "1e999s", "nan", "."] {
            let error = text.parse::<Nanos>().expect_err(text);
            assert!(error.to_string().contains("duration"), "{error}");
        }
        assert!("99999999999T".parse::<Bytes>().is_err());
        assert!(parse_count("1.5").is_err());
        assert!(parse_number("inf").is_err());
    }

    #[test]
    fn shares_are_fast_of_all_not_fast_of_slow() {
        assert_eq!(parse_share("1:3"), Some(0.25));
        assert_eq!(parse_share("25%"), Some(0.25));
        assert_eq!(parse_share("1:-3"), None);
        assert_eq!(parse_share("101%"), None);
    }

    #[test]
    fn display_round_trips_whole_values() {
        for nanos in [Nanos(1), Nanos(1_000), Nanos(20_000_000), Nanos(60_000_000_000)] {
            assert_eq!(nanos.to_string().parse(), Ok(nanos));
        }
        for bytes in [Bytes(0), Bytes(4096), Bytes(3 << 20), Bytes(5 << 30)] {
            assert_eq!(bytes.to_string().parse(), Ok(bytes));
        }
    }
}
