//! Table 1, cell by cell: first the matrix, then through the policy.

use proptest::prelude::*;

use super::*;

/// High and low on each axis: a frequency threshold of 5, a momentum threshold of 3.
const CELLS: [(Counts, bool, Demotion); 4] = [
    (Counts { frequency: 5, momentum: 3 }, true, Demotion::NoAction),
    (Counts { frequency: 4, momentum: 3 }, true, Demotion::NoAction),
    (Counts { frequency: 5, momentum: 2 }, true, Demotion::SecondChance),
    (Counts { frequency: 4, momentum: 2 }, false, Demotion::Demote),
];

#[test]
fn each_cell_is_as_printed() {
    let thresholds = policy(&[]).hotness.thresholds;
    for (counts, promoted, demotion) in CELLS {
        assert_eq!(thresholds.promotes(PageId(1), counts), promoted, "{counts:?}");
        assert_eq!(thresholds.demotion(PageId(1), counts), demotion, "{counts:?}");
    }
}

#[test]
fn each_cell_promotes_a_slow_page_or_does_not() {
    for (counts, promoted, _) in CELLS {
        let (mut policy, mut view) = (policy(&[]), machine());
        // One sample is yet to come.
        policy.hotness.put(500, Counts { frequency: counts.frequency - 1, momentum: counts.momentum - 1 });
        let (plan, _) = act(&mut policy, &mut view, &[500]);
        assert_eq!(super::promoted(&plan) == [500], promoted, "{counts:?}");
    }
}

#[test]
fn each_cell_demotes_marks_or_keeps_a_fast_page() {
    for (counts, _, demotion) in CELLS {
        let (mut policy, mut view) = (policy(&[]), machine());
        // All but page 7 stay, whatever comes.
        (0..FAST as u32)
            .filter(|&page| page != 7)
            .for_each(|page| policy.hotness.put(page, super::counts(9, 9)));
        policy.hotness.put(7, counts);
        let (plan, _) = act(&mut policy, &mut view, &[]);
        assert_eq!(demoted(&plan) == [7], demotion == Demotion::Demote, "{counts:?}");
        assert_eq!(policy.chances.len() == 1, demotion == Demotion::SecondChance, "{counts:?}");
    }
}

#[test]
fn the_artifact_keeps_pages_with_any_momentum() {
    let mut artifact = policy(&[("preset", "artifact")]);
    assert_eq!(artifact.hotness.demotion(PageId(1), counts(4, 1)), Demotion::NoAction);
    assert_eq!(artifact.hotness.demotion(PageId(1), counts(4, 0)), Demotion::Demote);
    assert_eq!(artifact.hotness.demotion(PageId(1), counts(5, 0)), Demotion::SecondChance);
    assert!(!artifact.hotness.thresholds.promotes(PageId(1), counts(4, 2)));
}

proptest! {
    /// More samples never make a page colder: what is promoted stays so, and demotion only becomes milder.
    #[test]
    fn the_matrix_is_monotonic(frequency in 0u32..15, momentum in 0u32..15, more in 0u32..4, later in 0u32..4) {
        let thresholds = policy(&[]).hotness.thresholds;
        let (less, more) = (counts(frequency, momentum), counts(frequency + more, momentum + later));
        let rank = |counts| thresholds.demotion(PageId(3), counts) as u8;
        prop_assert!(thresholds.promotes(PageId(3), more) >= thresholds.promotes(PageId(3), less));
        prop_assert!(rank(more) <= rank(less));
        prop_assert_eq!(
            thresholds.promotes(PageId(3), less),
            thresholds.demotion(PageId(3), less) != Demotion::Demote,
            "with one threshold for both, what is demoted at once is what is not promoted"
        );
    }
}
