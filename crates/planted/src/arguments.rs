//! The command line: a mode and options with values.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::Failure;

/// Options that take no value.
const FLAGS: [&str; 3] = ["own-mapping", "read-only", "skip-final-check"];

/// A mode and its options; each mode takes out those that it knows.
pub(crate) struct Arguments {
    pub(crate) mode: String,
    options: BTreeMap<String, String>,
}

/// A mode's end.
#[derive(Clone, Copy)]
pub(crate) enum Limit {
    /// After this much time.
    Time(Duration),
    /// After exactly this many operations.
    Operations(u64),
}

impl Limit {
    /// Returns whether a loop that began at `start` and has done `done` operations goes on. Reads the clock
    /// only now and then.
    pub(crate) fn goes_on(self, start: Instant, done: u64) -> bool {
        match self {
            Self::Time(time) => !done.is_multiple_of(256) || start.elapsed() < time,
            Self::Operations(operations) => done < operations,
        }
    }
}

impl Arguments {
    pub(crate) fn from_command_line() -> Result<Self, String> {
        let mut words = std::env::args().skip(1);
        let mode = words.next().ok_or("a mode is needed")?;
        let mut options = BTreeMap::new();
        while let Some(word) = words.next() {
            let name = word.strip_prefix("--").ok_or_else(|| format!("'{word}' is no option"))?.to_owned();
            let value = if FLAGS.contains(&name.as_str()) {
                String::new()
            } else {
                words.next().ok_or_else(|| format!("--{name} needs a value"))?
            };
            options.insert(name, value);
        }
        Ok(Self { mode, options })
    }

    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        self.options.remove(name)
    }

    pub(crate) fn flag(&mut self, name: &str) -> bool {
        self.options.remove(name).is_some()
    }

    pub(crate) fn number(&mut self, name: &str, default: u64) -> Result<u64, Failure> {
        self.parsed(name, default, |text| text.parse().ok())
    }

    /// Returns bytes, with an optional K, M or G; at least a page and at most 1 TiB.
    pub(crate) fn size(&mut self, name: &str, default: usize) -> Result<usize, Failure> {
        self.parsed(name, default, |text| {
            let (digits, shift) = match text.char_indices().last()? {
                (at, 'K') => (&text[..at], 10),
                (at, 'M') => (&text[..at], 20),
                (at, 'G') => (&text[..at], 30),
                _ => (text, 0),
            };
            let bytes = digits.parse::<usize>().ok()?.checked_mul(1 << shift)?;
            (4096..=1 << 40).contains(&bytes).then_some(bytes)
        })
    }

    /// Returns a percentage, as a fraction.
    pub(crate) fn share(&mut self, name: &str, default: f64) -> Result<f64, Failure> {
        self.parsed(name, default, |text| {
            let percent: f64 = text.strip_suffix('%').unwrap_or(text).parse().ok()?;
            (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
        })
    }

    /// Returns the end that `--operations N`, or else `--seconds S`, sets.
    pub(crate) fn limit(&mut self) -> Result<Limit, Failure> {
        let seconds = self.parsed("seconds", 2.0, |text| text.parse::<f64>().ok().filter(|s| *s >= 0.0))?;
        let time = Duration::try_from_secs_f64(seconds)
            .map_err(|_| Failure::Usage(format!("--seconds: '{seconds}' is too long")))?;
        match self.number("operations", u64::MAX)? {
            u64::MAX => Ok(Limit::Time(time)),
            operations => Ok(Limit::Operations(operations)),
        }
    }

    /// Refuses options that the mode did not take.
    pub(crate) fn finish(&self) -> Result<(), Failure> {
        match self.options.keys().next() {
            Some(name) => Err(Failure::Usage(format!("{} has no option --{name}", self.mode))),
            None => Ok(()),
        }
    }

    fn parsed<T>(&mut self, name: &str, default: T, parse: impl Fn(&str) -> Option<T>) -> Result<T, Failure> {
        let Some(text) = self.options.remove(name) else { return Ok(default) };
        parse(&text).ok_or_else(|| Failure::Usage(format!("--{name}: '{text}' is not a right value")))
    }
}
