//! The state machine of Fig. 6: each of its entries and exits, first alone, then through the policy.

use isotherm_core::SamplingScope;

use super::*;
use intensity::{Intensity, Level, State};

const WINDOW: u64 = 60 * Nanos::SECOND.0;
const INTERVAL: u64 = 10 * Nanos::SECOND.0;
/// Loads of a window: enough for chance to be nothing.
const LOADS: u64 = 1_000_000_000;

/// A state machine with its clock and counters.
struct Script {
    machine: Intensity,
    now: u64,
    hits: (u64, u64),
}

impl Script {
    fn new() -> Self {
        let mut machine = Intensity::new(Nanos(WINDOW), Nanos(INTERVAL), 0.005);
        machine.advance(Nanos(0));
        Self { machine, now: 0, hits: (0, 0) }
    }

    /// Lets `time` pass with this hit ratio over `loads` loads.
    fn pass(&mut self, time: u64, ratio: f64, loads: u64) -> State {
        self.hits = (self.hits.0 + (ratio * loads as f64) as u64, self.hits.1 + loads);
        self.now += time;
        self.machine.count(self.hits);
        self.machine.advance(Nanos(self.now));
        self.machine.state
    }

    /// Returns a window in which pages were promoted.
    fn window(&mut self, ratio: f64) -> State {
        self.machine.promoted(1);
        self.pass(WINDOW, ratio, LOADS)
    }

    fn interval(&mut self, ratio: f64) -> State {
        self.pass(INTERVAL, ratio, LOADS)
    }

    /// Creates a run in monitoring mode by the plateau, at this hit ratio.
    fn monitoring(ratio: f64) -> Self {
        let mut script = Self::new();
        assert_eq!(script.pass(WINDOW, ratio, LOADS), State::Monitoring);
        script
    }
}

const HIGH: State = State::Promoting(Level::High);
const MIDDLE: State = State::Promoting(Level::Middle);
const LOW: State = State::Promoting(Level::Low);

#[test]
fn it_starts_promoting_at_the_highest_level_and_the_first_window_has_nothing_to_compare_with() {
    let mut script = Script::new();
    assert_eq!(script.machine.state, HIGH);
    assert_eq!(script.window(0.7), HIGH);
}

#[test]
fn a_stable_hit_ratio_leads_down_level_by_level_and_then_into_monitoring() {
    let mut script = Script::new();
    let states = [0.700, 0.704, 0.701, 0.703].map(|ratio| script.window(ratio));
    assert_eq!(states, [HIGH, MIDDLE, LOW, State::Monitoring]);
}

#[test]
fn an_unstable_hit_ratio_leads_up_level_by_level() {
    let mut script = Script::new();
    let states = [0.7, 0.7, 0.7, 0.72, 0.69, 0.8].map(|ratio| script.window(ratio));
    assert_eq!(states, [HIGH, MIDDLE, LOW, MIDDLE, HIGH, HIGH]);
}

#[test]
fn half_a_point_is_stable_and_more_is_not() {
    for (second, state) in [(0.7049, MIDDLE), (0.6951, MIDDLE), (0.7052, HIGH), (0.6948, HIGH)] {
        let mut script = Script::new();
        script.window(0.7);
        assert_eq!(script.window(second), state, "{second}");
    }
}

#[test]
fn a_window_without_promotions_is_a_plateau_at_any_level_and_however_unstable() {
    for stable in 0..3 {
        let mut script = Script::new();
        (0..=stable).for_each(|_| _ = script.window(0.7));
        assert_eq!(script.pass(WINDOW, 0.2, LOADS), State::Monitoring, "after {stable} stable windows");
    }
}

#[test]
fn promotions_of_an_earlier_window_do_not_count() {
    let mut script = Script::new();
    script.machine.promoted(1000);
    assert_eq!(script.pass(WINDOW, 0.7, LOADS), HIGH);
    assert_eq!(script.pass(WINDOW, 0.9, LOADS), State::Monitoring);
}

#[test]
fn an_empty_demotion_scan_leads_into_monitoring_at_once() {
    let mut script = Script::new();
    script.machine.count((1, 2));
    assert_eq!(script.machine.found_nothing_cold(Nanos(5)), State::Monitoring);
}

#[test]
fn windows_are_judged_when_they_have_passed_and_not_before() {
    let mut script = Script::new();
    assert_eq!(script.pass(WINDOW - 1, 0.7, LOADS), HIGH);
    assert_eq!(script.pass(1, 0.7, LOADS), State::Monitoring);
}

#[test]
fn monitoring_goes_on_while_the_hit_ratio_stays() {
    let mut script = Script::monitoring(0.7);
    assert!((0..20).all(|i| script.interval(0.7 + f64::from(i % 3) * 0.002) == State::Monitoring));
}

#[test]
fn a_sudden_change_in_either_direction_ends_monitoring_at_the_highest_level() {
    for changed in [0.3, 0.9] {
        let mut script = Script::monitoring(0.7);
        script.interval(0.7);
        assert_eq!(script.interval(changed), HIGH, "{changed}");
    }
}

#[test]
fn a_change_right_at_the_entry_is_noticed_as_well() {
    assert_eq!(Script::monitoring(0.7).interval(0.3), HIGH);
}

#[test]
fn a_slow_slide_ends_monitoring_too() {
    let mut script = Script::monitoring(0.7);
    let left = (1..10).position(|step| script.interval(0.7 - 0.0012 * f64::from(step)) == HIGH);
    assert_eq!(left, Some(4), "when it has lost more than half a point in all");
}

#[test]
fn after_an_empty_scan_the_first_interval_is_the_reference() {
    let mut script = Script::new();
    script.window(0.5);
    script.machine.found_nothing_cold(Nanos(script.now));
    assert_eq!(
        [0.7, 0.7, 0.6].map(|ratio| script.interval(ratio)),
        [State::Monitoring, State::Monitoring, HIGH]
    );
}

#[test]
fn after_resuming_the_levels_start_anew() {
    let mut script = Script::monitoring(0.7);
    assert_eq!(script.interval(0.3), HIGH);
    assert_eq!([0.5, 0.5].map(|ratio| script.window(ratio)), [HIGH, MIDDLE]);
}

#[test]
fn a_change_is_noticed_within_30_seconds_wherever_it_falls() {
    for offset in 0..10 {
        let mut script = Script::monitoring(0.7);
        script.interval(0.7);
        let before = f64::from(offset) / 10.0;
        let mixed = 0.7 * before + 0.4 * (1.0 - before);
        let first = script.interval(mixed) == HIGH;
        assert!(first || script.interval(0.4) == HIGH, "at {offset} s of an interval of 10 s");
    }
}

#[test]
fn without_loads_there_is_nothing_to_judge() {
    let mut script = Script::monitoring(0.7);
    assert_eq!(script.pass(INTERVAL, 0.0, 0), State::Monitoring);
    assert_eq!(script.interval(0.3), HIGH, "the reference was kept");
    script.window(0.5);
    script.machine.promoted(1);
    assert_eq!(script.pass(WINDOW, 0.0, 0), HIGH);
}

#[test]
fn regression_without_hit_counters_sampling_never_ends() {
    let mut script = Script::new();
    assert_eq!(script.pass(WINDOW, 0.0, 0), LOW, "a plateau");
    script.machine.promoted(1);
    assert_eq!(script.pass(WINDOW, 0.0, 0), LOW);
    assert_eq!(script.machine.found_nothing_cold(Nanos(script.now)), LOW);
}

#[test]
fn a_difference_that_chance_explains_is_none() {
    let mut script = Script::new();
    script.machine.promoted(1);
    script.pass(WINDOW, 0.50, 1000);
    script.machine.promoted(1);
    assert_eq!(script.pass(WINDOW, 0.54, 1000), MIDDLE, "one standard deviation is 2.2 points");
    script.machine.promoted(1);
    assert_eq!(script.pass(WINDOW, 0.70, 1000), HIGH);
}

/// A policy and its machine, with windows scripted by counters.
struct Run {
    policy: FreqTier,
    view: TestView,
    now: u64,
    hits: (u64, u64),
}

impl Run {
    fn new() -> Self {
        let (mut policy, mut view) = (policy(&[]), machine());
        act(&mut policy, &mut view, &[]);
        Self { policy, view, now: 1, hits: (0, 0) }
    }

    fn pass(&mut self, time: u64, ratio: f64, pages: &[u32]) -> Plan {
        self.now += time;
        self.hits = (self.hits.0 + (ratio * 1e9) as u64, self.hits.1 + LOADS);
        let batch = batch_of(&self.view, pages, self.hits);
        turn(&mut self.policy, &mut self.view, &batch, Nanos(self.now)).0
    }

    fn level(&self) -> f64 {
        let mut gauges = Vec::new();
        self.policy.gauges(&mut gauges);
        gauges.iter().find(|gauge| gauge.name == "sampling-level").expect("it is shown").value
    }
}

#[test]
fn the_policy_asks_for_the_frequencies_of_its_levels_and_for_none_in_monitoring() {
    let mut run = Run::new();
    let first = run.policy.sampling();
    assert_eq!((first.rate, first.scope), (SamplingRate::Frequency(100_000), SamplingScope::EachTier));
    assert!(!first.stores);
    let mut rates = Vec::new();
    for page in 500..505 {
        // A page is promoted in each window, before its last moment.
        run.pass(1, 0.7, &samples([page], 5));
        let plan = run.pass(WINDOW, 0.7, &[]);
        rates.push(plan.sampling.map(|request| request.rate));
    }
    let [middle, low] = [10_000, 1_000].map(|hertz| Some(SamplingRate::Frequency(hertz)));
    assert_eq!(rates, [None, middle, low, Some(SamplingRate::Off), None]);
    assert_eq!(run.level(), 3.0);
    assert_eq!(run.policy.sampling().tick, Nanos(INTERVAL), "it goes on looking");
}

#[test]
fn monitoring_moves_nothing() {
    let mut run = Run::new();
    run.pass(WINDOW, 0.7, &[]);
    assert_eq!(run.level(), 3.0);
    (0..9).for_each(|page| run.view.put(page, TierId::FAST));
    let plan = run.pass(1, 0.7, &samples([700], 9));
    assert!(!plan.moves_pages(), "neither for samples still in the ring nor for the watermark");
}

#[test]
fn a_changed_hit_ratio_resumes_promotion_and_ages_the_counters() {
    let mut run = Run::new();
    run.pass(1, 0.7, &samples([50], 12));
    run.pass(WINDOW, 0.7, &[]);
    run.pass(INTERVAL, 0.7, &[]);
    assert_eq!(run.level(), 3.0);
    let plan = run.pass(INTERVAL, 0.2, &[]);
    assert_eq!(plan.sampling, Some(run.policy.request(HIGH)));
    assert_eq!(run.policy.filter.get(50), 6);
    assert_eq!(plan.work.swept, 64 << 10);
    assert_eq!(promoted(&run.pass(1, 0.2, &samples([800], 9))), [800]);
}

#[test]
fn a_fast_tier_full_of_hot_pages_leads_into_monitoring() {
    let mut run = Run::new();
    // The first turn freed nine pages; hot ones take their place, and all others become hot too.
    run.pass(1, 0.7, &samples(500..508, 9));
    let mut threshold = threshold_settings(&run.policy);
    run.policy.threshold = HotThreshold::new(threshold, 15);
    (9..FAST as u32).for_each(|page| _ = run.policy.filter.increase(page, 9));
    assert_eq!(run.view.free(TierId::FAST), Pages(1));
    run.pass(1, 0.7, &[]);
    assert_eq!(run.level(), 0.0, "the distribution is not known yet");
    run.policy.resting = false;
    threshold.warmup = 0;
    run.policy.threshold = HotThreshold::new(threshold, 15);
    let plan = run.pass(1, 0.7, &[]);
    assert_eq!(plan.sampling.map(|request| request.rate), Some(SamplingRate::Off));
    assert_eq!(run.level(), 3.0);
}
