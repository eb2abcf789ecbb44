//! Kinds of numbers in a profile: their units, ranges and text.

#[derive(Debug, Clone, Copy)]
pub(super) struct Quantity {
    /// Name with its article: `a duration`.
    what: &'static str,
    /// Unit suffixes with their factors, smallest first.
    units: &'static [(&'static str, f64)],
    range: (f64, f64),
    /// Whether the base unit is indivisible.
    whole: bool,
}

const DURATION: &[(&str, f64)] = &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
const BANDWIDTH: &[(&str, f64)] =
    &[("B/s", 1.0), ("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9), ("TB/s", 1e12)];
const FREQUENCY: &[(&str, f64)] = &[("MHz", 1e6), ("GHz", 1e9)];
const SIZE: &[(&str, f64)] = &[
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
];

impl Quantity {
    pub(super) const fn count(low: u32, high: u32) -> Self {
        Self { what: "a whole number", units: &[("", 1.0)], range: (low as f64, high as f64), whole: true }
    }

    pub(super) const fn ratio(low: f64, high: f64) -> Self {
        Self { what: "a number", units: &[("", 1.0)], range: (low, high), whole: false }
    }

    /// Returns a percentage below `high`, held as a share.
    pub(super) const fn percent(high: f64) -> Self {
        Self { what: "a percentage", units: &[("%", 0.01)], range: (0.0, high), whole: false }
    }

    /// Returns a duration in nanoseconds from `low` to one second.
    pub(super) const fn duration(low: u32) -> Self {
        Self { what: "a duration", units: DURATION, range: (low as f64, 1e9), whole: true }
    }

    /// Returns a decimal bandwidth in bytes per second, from 1 MB/s to 1000 TB/s.
    pub(super) const fn bandwidth() -> Self {
        Self { what: "a bandwidth", units: BANDWIDTH, range: (1e6, 1e15), whole: true }
    }

    /// Returns a frequency in hertz, from 1 MHz to 1000 GHz.
    pub(super) const fn frequency() -> Self {
        Self { what: "a frequency", units: FREQUENCY, range: (1e6, 1e12), whole: true }
    }

    /// Returns a size in bytes, from 4 KiB to 1024 TiB.
    pub(super) const fn size() -> Self {
        Self { what: "a size", units: SIZE, range: (4096.0, 1_125_899_906_842_624.0), whole: true }
    }

    /// Parses a number with its unit; returns `None` if it is not valid for this quantity.
    pub(super) fn parse(&self, text: &str) -> Option<f64> {
        let text = text.trim();
        let end = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '_')).unwrap_or(text.len());
        let number = text[..end].replace('_', "").parse::<f64>().ok()?;
        let unit = text[end..].trim_start();
        let (_, factor) = self.units.iter().find(|(name, _)| *name == unit)?;
        let value = number * factor;
        let value = if self.whole { whole(value)? } else { value };
        (self.range.0..=self.range.1).contains(&value).then_some(value)
    }

    /// Formats a value in the largest unit that leaves at least 1 before the point.
    pub(super) fn format(&self, value: f64) -> String {
        let fits = |unit: &&(&str, f64)| value >= unit.1;
        let (name, factor) =
            self.units.iter().rev().find(fits).or(self.units.first()).copied().unwrap_or(("", 1.0));
        // Nine digits hide the error of dividing by a decimal factor.
        format!("{}{name}", (value / factor * 1e9).round() / 1e9)
    }

    /// Returns the nearest value that this quantity can have.
    pub(super) fn fit(&self, value: f64) -> f64 {
        let value = if self.whole { value.round() } else { value };
        value.clamp(self.range.0, self.range.1)
    }

    #[cfg(test)]
    pub(super) fn range(&self) -> (f64, f64) {
        self.range
    }

    pub(super) fn expected(&self) -> String {
        format!("{} from {} to {}", self.what, self.format(self.range.0), self.format(self.range.1))
    }
}

/// Rounds away the last bits that decimal fractions such as 1.1us lose; `None` if `value` is not whole.
fn whole(value: f64) -> Option<f64> {
    let nearest = value.round();
    ((value - nearest).abs() <= 1e-9 * nearest.max(1.0)).then_some(nearest)
}
