//! Algorithm 2: watermarks, the resumed scan, its wrap around the end.

use super::*;

/// Scans for `wanted` cold pages in batches of 50; pages sampled in `hot` have counts above the threshold.
struct Scanner {
    scan: DemotionScan,
    policy: FreqTier,
    view: TestView,
}

impl Scanner {
    fn new(hot: impl IntoIterator<Item = u32>) -> Self {
        let mut policy = policy(&[]);
        hot.into_iter().for_each(|page| _ = policy.filter.increase(page, 9));
        Self { scan: DemotionScan::new(50), policy, view: machine() }
    }

    fn run(&mut self, wanted: u64) -> (Scan, Vec<u32>) {
        let (mut plan, mut work) = (Plan::default(), Work::default());
        let FreqTier { filter, threshold, counts, .. } = &mut self.policy;
        let choose = |pages: &[u32], limit, moves: &mut Vec<Move>, work: &mut Work| {
            choose_cold(&**filter, threshold, counts, pages, limit, moves, work);
        };
        let end = self.scan.run(wanted, &mut self.view, &mut plan.moves, &mut work, choose);
        self.view.carry_out(&plan);
        (end, demoted(&plan))
    }
}

#[test]
fn cold_fast_pages_are_demoted_and_hot_or_slow_ones_are_not() {
    let mut scanner = Scanner::new((0..FAST as u32).filter(|page| page % 2 == 0));
    scanner.view.put(1, TierId(1));
    let (end, pages) = scanner.run(3);
    assert_eq!((end, pages), (Scan::Enough, vec![3, 5, 7]));
}

#[test]
fn the_scan_resumes_where_it_stopped() {
    let mut scanner = Scanner::new([]);
    assert_eq!(scanner.run(5).1, [0, 1, 2, 3, 4]);
    assert_eq!(scanner.run(5).1, [5, 6, 7, 8, 9], "inside the same batch of the page table");
    assert_eq!(scanner.view.walks, [PageId(0), PageId(5)]);
}

#[test]
fn the_scan_wraps_around_the_end_and_meets_new_cold_pages() {
    let mut scanner = Scanner::new(0..155);
    assert_eq!(scanner.run(5).1, [155, 156, 157, 158, 159]);
    scanner.view.put(20, TierId(1));
    scanner.policy.filter.age();
    scanner.policy.filter.age();
    scanner.view.walks.clear();
    assert_eq!(scanner.run(3).1, [0, 1, 2], "9 has aged to 2");
    assert_eq!(scanner.view.walks.first(), Some(&PageId(160)));
    assert_eq!(scanner.view.walks.last(), Some(&PageId(0)));
}

#[test]
fn one_round_meets_each_page_once_and_ends_where_it_began() {
    let mut scanner = Scanner::new([]);
    scanner.run(25);
    let (end, pages) = scanner.run(10_000);
    assert_eq!(end, Scan::Short);
    assert_eq!(pages, (25..FAST as u32).collect::<Vec<_>>(), "no page twice in a plan");
    scanner.view.walks.clear();
    scanner.run(1);
    assert_eq!(scanner.view.walks.first(), Some(&PageId(25)));
}

#[test]
fn a_round_without_a_cold_page_is_empty() {
    let mut scanner = Scanner::new(0..FAST as u32);
    assert_eq!(scanner.run(1), (Scan::Empty, vec![]));
    assert_eq!(scanner.run(1), (Scan::Empty, vec![]), "it ends, wherever it begins");
}

/// Every batch size against every start: a batch may span the whole address space or end at its last page.
#[test]
fn a_round_ends_for_any_batch_and_start() {
    for batch in [1, 7, 250, 999, 1000, 1001, 5000] {
        for start in [0, 1, 159, 160, 999, 1000] {
            let mut scanner = Scanner::new(0..FAST as u32);
            scanner.scan = DemotionScan::new(batch);
            scanner.policy.filter.age();
            scanner.policy.filter.age();
            (0..FAST as u32)
                .filter(|page| page % 2 == 0)
                .for_each(|page| _ = scanner.policy.filter.increase(page, 9));
            scanner.scan.begin_at(PageId(start));
            let (end, mut pages) = scanner.run(10_000);
            pages.sort_unstable();
            assert_eq!(end, Scan::Short);
            let odd: Vec<_> = (1..FAST as u32).step_by(2).collect();
            assert_eq!(pages, odd, "batches of {batch} from {start}");
        }
    }
}

#[test]
fn an_empty_address_space_ends_the_scan() {
    let mut scanner = Scanner::new([]);
    scanner.view = TestView::new(&[Pages(4), Pages(4)], 0);
    assert_eq!(scanner.run(1), (Scan::Empty, vec![]));
}

#[test]
fn nothing_is_demoted_while_the_promotion_watermark_is_free() {
    let (mut policy, mut view) = (policy(&[]), machine());
    view.put(0, TierId(1));
    view.put(1, TierId(1));
    let (plan, _) = act(&mut policy, &mut view, &[]);
    assert!(!plan.moves_pages(), "2 of 160 pages are 1.25 %");
}

#[test]
fn below_it_pages_are_demoted_until_more_than_the_demotion_watermark_is_free() {
    let (mut policy, mut view) = (policy(&[]), machine());
    view.put(0, TierId(1));
    let (plan, _) = act(&mut policy, &mut view, &[]);
    assert_eq!(demoted(&plan).len(), 8);
    assert_eq!(view.free(TierId::FAST), Pages(9), "more than 5 %");
    assert!(!act(&mut policy, &mut view, &[]).0.moves_pages());
}

#[test]
fn a_scan_that_fell_short_rests_until_something_has_changed() {
    let (mut policy, mut view) = (policy(&[("ageing_samples_per_page", "10")]), machine());
    act(&mut policy, &mut view, &[]); // 0 to 8 leave.
    (0..8).for_each(|page| view.put(page, TierId::FAST));
    (9..FAST as u32).for_each(|page| _ = policy.filter.increase(page, 9));
    let (plan, _) = act(&mut policy, &mut view, &[]);
    assert_eq!(demoted(&plan), (0..8).collect::<Vec<_>>(), "all cold ones");
    (0..8).for_each(|page| view.put(page, TierId::FAST));
    view.walks.clear();
    policy.resting = true;
    act(&mut policy, &mut view, &[]);
    assert!(view.walks.is_empty(), "resting");
    policy.age();
    act(&mut policy, &mut view, &[]);
    assert!(!view.walks.is_empty(), "aged");
}

/// In the lab, it rested for two thirds of a phase while half of its hot pages were on the slow node.
#[test]
fn regression_a_scan_rests_no_longer_when_hot_pages_are_left_out() {
    let (mut policy, mut view) = (policy(&[]), machine());
    let hot: Vec<u32> = (FAST as u32..FAST as u32 + 10).collect();
    hot.iter().for_each(|&page| _ = policy.filter.increase(page, 15));
    policy.resting = true;
    act(&mut policy, &mut view, &hot[..1]);
    assert!(view.walks.is_empty(), "one is fewer than the watermark");
    act(&mut policy, &mut view, &hot[1..]);
    act(&mut policy, &mut view, &[]);
    assert!(!view.walks.is_empty(), "{} were left out", policy.left_out);
}

/// In the lab, an empty scan just after an ageing ended promotion at 0.585 hits of 0.909, for good.
#[test]
fn regression_an_empty_scan_just_after_an_ageing_does_not_end_promotion() {
    let (mut policy, mut view) = (policy(&[]), machine());
    (0..FAST as u32).for_each(|page| _ = policy.filter.increase(page, 15));
    let known: Vec<u32> = (0..FAST as u32).collect();
    act(&mut policy, &mut view, &known);
    policy.intensity.state = State::Promoting(Level::High);
    policy.age();
    view.walks.clear();
    act(&mut policy, &mut view, &[]);
    assert!(!view.walks.is_empty(), "it looked");
    assert_eq!(policy.intensity.state, State::Promoting(Level::High));
    policy.resting = false;
    act(&mut policy, &mut view, &known);
    let at_rest = State::Promoting(Level::Low);
    assert_eq!(policy.intensity.state, at_rest, "one sample per fast page later; no hits are counted");
}
