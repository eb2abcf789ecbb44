//! The distribution of misses over pages.

/// Misses of each 4 KiB page.
#[derive(Debug, Clone, Default)]
pub struct PageProfile {
    first: Option<u64>,
    counts: Vec<u64>,
    touched: Vec<bool>,
}

impl PageProfile {
    /// Counts `misses` misses of the page of a line (address >> 6); with 0 the page is known to exist.
    pub fn count(&mut self, line: u64, misses: u64) {
        let page = line >> 6;
        let first = *self.first.get_or_insert(page);
        if page < first {
            let grown = (first - page) as usize;
            self.counts.splice(0..0, std::iter::repeat_n(0, grown));
            self.touched.splice(0..0, std::iter::repeat_n(false, grown));
            self.first = Some(page);
        }
        let index = (page - self.first.unwrap_or(page)) as usize;
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
            self.touched.resize(index + 1, false);
        }
        self.counts[index] += misses;
        self.touched[index] = true;
    }

    /// Returns the number of pages known to exist.
    pub fn pages(&self) -> usize {
        self.touched.iter().filter(|&&touched| touched).count()
    }

    /// Misses of all pages.
    pub fn misses(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns, for each of `shares` (0 to 1), the share of all misses that the hottest pages of that share
    /// take.
    pub fn shares_of_hottest(&self, shares: &[f64]) -> Vec<f64> {
        let mut counts = self.counts.clone();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let (pages, total) = (self.pages() as f64, self.misses().max(1) as f64);
        let part =
            |share: &f64| counts.iter().take((pages * share).round() as usize).sum::<u64>() as f64 / total;
        shares.iter().map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hottest_share_of_pages_is_taken_by_count_not_by_address() {
        let mut profile = PageProfile::default();
        for (page, misses) in [(9u64, 10), (5, 60), (7, 0), (6, 30)] {
            profile.count(page << 6, misses);
        }
        assert_eq!(profile.pages(), 4);
        assert_eq!(profile.misses(), 100);
        assert_eq!(profile.shares_of_hottest(&[0.25, 0.5, 0.75, 1.0]), [0.6, 0.9, 1.0, 1.0]);
    }
}
