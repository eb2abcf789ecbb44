//! Memory whose tier is beyond doubt: by its rate it is hotter than the fast tier's border, or colder.
//!
//! The border is the rate of the page that just fits into the fast tier when pages are ranked by rate. A page
//! with n touches in an exposure e is settled if both ends of its rate's interval lie on one side of it:
//!
//! ```text
//! hot:   (sqrt(n)     - 1)^2 / e > border       two standard errors: the square root of a Poisson count has
//! cold:  (sqrt(n + 1) + 1)^2 / e < border       one of about 1/2
//! ```
//!
//! A hot page has [`KNOWN`] touches at least: fewer windows must not leave its rate unknown, and what its
//! touches stand for.
//!
//! Sources spend fewer windows on it ([`isotherm_linux::source::AccessSource::set_settled`]).

use std::ops::Range;

const KNOWN: f64 = 16.0;

/// Pages with one rate: a page, or a huge one.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub(super) pages: Range<u32>,
    pub(super) touches: f64,
    /// Nanoseconds without a touch.
    pub(super) exposed: f64,
    /// Expected touches per nanosecond.
    pub(super) rate: f64,
}

impl Unit {
    fn is_settled(&self, border: f64) -> bool {
        let bound = |root: f64| root * root / self.exposed;
        let hot = self.touches >= KNOWN && bound(self.touches.sqrt() - 1.0) > border;
        hot || bound((self.touches + 1.0).sqrt() + 1.0) < border
    }
}

/// Returns the settled units' pages where so many of them fit into the fast tier, those first on which most
/// touches are spent.
pub(super) fn settled(mut units: Vec<Unit>, fast: u64) -> Vec<Range<u32>> {
    units.sort_unstable_by(|one, other| other.rate.total_cmp(&one.rate));
    let mut above = 0;
    let border = units.iter().find(|unit| {
        above += unit.pages.len() as u64;
        above > fast
    });
    // Without a border all fits, and nothing is to be decided.
    let Some(border) = border.map(|unit| unit.rate) else { return Vec::new() };
    units.retain(|unit| unit.is_settled(border));
    units.sort_unstable_by_key(|unit| unit.pages.start);
    let mut runs: Vec<(Range<u32>, f64)> = Vec::new();
    for unit in units {
        match runs.last_mut() {
            Some((run, touches)) if run.end == unit.pages.start => {
                (run.end, *touches) = (unit.pages.end, *touches + unit.touches);
            }
            _ => runs.push((unit.pages, unit.touches)),
        }
    }
    runs.sort_by(|one, other| other.1.total_cmp(&one.1).then(other.0.len().cmp(&one.0.len())));
    runs.into_iter().map(|(run, _)| run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(page: u32, touches: f64, exposed: f64) -> Unit {
        Unit { pages: page..page + 1, touches, exposed, rate: touches / exposed }
    }

    #[test]
    fn pages_near_the_border_are_not_settled() {
        // Rates 16, 1.2, 1, 0.8 and 0 in a time of 100: two of the pages fit.
        let touches = [1600.0, 120.0, 100.0, 80.0, 0.0];
        let units = |parts: f64| {
            touches.iter().enumerate().map(|(at, n)| unit(at as u32, n * parts, 100.0 * parts)).collect()
        };
        assert_eq!(settled(units(1.0), 2), [0..1, 4..5]);
        // With ten times the evidence all others are, too.
        assert_eq!(settled(units(10.0), 2), [0..2, 3..5]);
        // With little nothing is.
        assert_eq!(settled(units(0.001), 2), []);
    }

    #[test]
    fn without_a_border_nothing_is_settled() {
        assert_eq!(settled(vec![unit(0, 900.0, 1.0), unit(1, 0.0, 100.0)], 2), []);
        assert_eq!(settled(Vec::new(), 0), []);
    }

    #[test]
    fn neighbours_are_one_run_and_those_with_most_touches_come_first() {
        let mut units: Vec<Unit> = (0..8).map(|page| unit(page, 0.0, 1e6)).collect();
        units.extend([unit(20, 400.0, 100.0), unit(21, 900.0, 100.0), unit(30, 15.0, 10.0)]);
        assert_eq!(settled(units, 2), [20..22, 0..8]);
    }
}
