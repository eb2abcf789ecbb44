//! A range of addresses that can be copied, unlike `std::ops::Range`.

/// Addresses from `start` up to, not including, `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Range64 {
    pub start: u64,
    pub end: u64,
}

impl Range64 {
    pub(crate) fn new(start: u64, length: u64) -> Self {
        Self { start, end: start.saturating_add(length) }
    }

    pub(crate) fn length(self) -> u64 {
        self.end - self.start
    }

    pub(crate) fn contains(self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    pub(crate) fn covers(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    pub(crate) fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// Returns what is left without `gone`, which overlaps it: two parts; empty ones are all zero and last.
    pub(crate) fn without(self, gone: Self) -> [Self; 2] {
        let part = |start: u64, end: u64| if start < end { Self { start, end } } else { Self::default() };
        let (left, right) = (part(self.start, gone.start), part(gone.end, self.end));
        if left.end == 0 { [right, left] } else { [left, right] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_leaves_nothing_one_part_or_two() {
        let range = |start, end| Range64 { start, end };
        let (whole, none) = (range(10, 50), Range64::default());
        assert_eq!(whole.without(range(10, 50)), [none, none]);
        assert_eq!(whole.without(range(0, 90)), [none, none]);
        assert_eq!(whole.without(range(0, 20)), [range(20, 50), none]);
        assert_eq!(whole.without(range(40, 90)), [range(10, 40), none]);
        assert_eq!(whole.without(range(20, 30)), [range(10, 20), range(30, 50)]);
    }
}
