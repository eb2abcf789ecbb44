//! The estimates against simulated windows: pages accessed at random, each at its rate.

use isotherm_core::{Nanos, PageId};
use isotherm_linux::process::Pid;
use isotherm_linux::source::{Race, SETTLED_EVERY};

use super::rates::{Rates, UNRACED};
use super::ratio::{Observation, of_observations};

/// splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// Pages of a window.
const ARMED: usize = 32;
/// Nanoseconds of a window.
const WINDOW: f64 = 300_000.0;

struct World {
    /// Accesses of each page per nanosecond.
    rates: Vec<f64>,
    fast: Vec<bool>,
}

impl World {
    /// Zipf's law with this exponent, scattered; a page that windows saturate is rather fast.
    fn new(pages: usize, exponent: f64, random: &mut Random) -> Self {
        let weights: Vec<f64> = (1..=pages).map(|rank| (rank as f64).powf(-exponent)).collect();
        let all: f64 = weights.iter().sum();
        let mut rates: Vec<f64> = weights.iter().map(|weight| 0.005 * weight / all).collect();
        (1..pages).rev().for_each(|at| rates.swap(at, random.below(at + 1)));
        let fast =
            rates.iter().map(|rate| random.unit() < if rate * WINDOW > 0.5 { 0.8 } else { 0.4 }).collect();
        Self { rates, fast }
    }

    fn truth(&self) -> f64 {
        let fast = self.rates.iter().zip(&self.fast).filter(|page| *page.1).map(|page| page.0);
        fast.sum::<f64>() / self.rates.iter().sum::<f64>()
    }

    /// Arms every page once in each of so many passes; a touch is told `delay` nanoseconds late.
    fn observe(&self, passes: usize, delay: f64, random: &mut Random) -> (Rates, Vec<Observation>) {
        let mut rates = Rates::default();
        let seen = self.see(&mut rates, passes, delay, random);
        let observation = |(time, page): (f64, usize)| {
            let standing = rates.standing(PageId(page as u32), WINDOW);
            Observation {
                span: (time, time),
                part: 1.0,
                alike: 1.0,
                page: page as u32,
                weight: standing.accesses,
                value: f64::from(u8::from(self.fast[page])),
                variance: standing.variance,
                shared: standing.shared,
            }
        };
        let observations = seen.into_iter().map(observation).collect();
        (rates, observations)
    }

    /// Returns the time and page of each touch.
    fn see(&self, rates: &mut Rates, passes: usize, delay: f64, random: &mut Random) -> Vec<(f64, usize)> {
        let seen = (0..passes).flat_map(|pass| self.see_pass(rates, pass, delay, random));
        seen.map(|(time, page, _)| (time, page)).collect()
    }

    /// Returns the time and page of each touch in a pass, and the passes that it stands for.
    fn see_pass(
        &self,
        rates: &mut Rates,
        pass: usize,
        delay: f64,
        random: &mut Random,
    ) -> Vec<(f64, usize, u32)> {
        let mut seen = Vec::new();
        let windows = self.rates.len() / ARMED;
        for window in 0..windows {
            let time = pass as f64 + window as f64 / windows as f64;
            for page in window * ARMED..(window + 1) * ARMED {
                let settled = rates.is_settled(PageId(page as u32));
                if settled && !(page + pass).is_multiple_of(SETTLED_EVERY as usize) {
                    continue;
                }
                let weight = if settled { SETTLED_EVERY } else { 1 };
                let first = -random.unit().ln() / self.rates[page];
                if first < WINDOW {
                    rates.touched(PageId(page as u32), (first + delay).max(1.0) as u32, weight);
                    seen.push((time, page, weight));
                } else {
                    rates.untouched(PageId(page as u32), Nanos(WINDOW as u64));
                }
            }
            rates.closed(Nanos(WINDOW as u64));
        }
        seen
    }
}

/// Returns how many intervals contain the truth, and the mean errors of the estimate and of plain counts.
fn repeat(repetitions: u64, pages: usize, passes: usize, exponent: f64) -> (u64, f64, f64) {
    let (mut covered, mut errors, mut plain_errors) = (0, 0.0, 0.0);
    for repetition in 0..repetitions {
        let random = &mut Random(repetition);
        let world = World::new(pages, exponent, random);
        let (_, observations) = world.observe(passes, 0.0, random);
        let found = of_observations(&observations, 0.0, passes as f64).expect("samples");
        let truth = world.truth();
        let fast: f64 = observations.iter().map(|seen| seen.value).sum();
        covered += u64::from(found.low <= truth && truth <= found.high);
        errors += (found.value - truth).abs() / repetitions as f64;
        plain_errors += (fast / observations.len() as f64 - truth).abs() / repetitions as f64;
    }
    (covered, errors, plain_errors)
}

#[test]
fn intervals_contain_the_truth_in_nineteen_of_twenty_runs() {
    for (pages, passes, exponent) in [(1024, 6, 0.99), (1024, 12, 0.5), (1024, 6, 0.0)] {
        let (covered, error, plain) = repeat(1000, pages, passes, exponent);
        assert!(covered >= 930, "exponent {exponent}: {covered} of 1000, error {error:.3}, plain {plain:.3}");
    }
}

/// The share of the accesses that go to the pages chosen for half of the memory by their estimated rates,
/// once so many touches were seen.
fn chosen_share(world: &World, touches: usize, settling: bool, random: &mut Random) -> f64 {
    let pages = world.rates.len();
    let (mut rates, mut seen) = (Rates::default(), 0);
    for pass in 0.. {
        seen += world.see_pass(&mut rates, pass, 0.0, random).len();
        if seen >= touches {
            break;
        }
        if settling {
            rates.choose_settled(pages as u64 / 2, 512, &[], usize::MAX);
        }
    }
    let mut order: Vec<usize> = (0..pages).collect();
    let rate = |page: &usize| rates.standing(PageId(*page as u32), WINDOW).accesses;
    order.sort_by(|one, other| rate(other).total_cmp(&rate(one)));
    let fast: f64 = order[..pages / 2].iter().map(|&page| world.rates[page]).sum();
    fast / world.rates.iter().sum::<f64>()
}

#[test]
fn windows_spent_around_the_border_find_more_of_what_is_hot() {
    let mut missing = [0.0, 0.0];
    for repetition in 0..10 {
        let random = &mut Random(repetition);
        let world = World::new(4096, 0.99, random);
        let mut best = world.rates.clone();
        best.sort_unstable_by(|one, other| other.total_cmp(one));
        let best = best[..2048].iter().sum::<f64>() / world.rates.iter().sum::<f64>();
        for (missing, settling) in missing.iter_mut().zip([false, true]) {
            *missing += (best - chosen_share(&world, 150_000, settling, random)) / 10.0;
        }
    }
    assert!(missing[1] < 0.9 * missing[0], "{missing:.4?}");
}

#[test]
fn a_settled_page_counts_as_often_as_it_is_passed_over() {
    let random = &mut Random(9);
    let world = World::new(1024, 0.99, random);
    let mut rates = Rates::default();
    let mut sums = [0.0; 2];
    for pass in 0..400 {
        let seen = world.see_pass(&mut rates, pass, 0.0, random);
        let settled = |page: usize| rates.is_settled(PageId(page as u32));
        if pass >= 40 {
            for (_, page, weight) in seen.into_iter().filter(|seen| settled(seen.1)) {
                sums[0] += f64::from(weight) * rates.standing(PageId(page as u32), WINDOW).accesses;
            }
            sums[1] +=
                (0..1024).filter(|&page| settled(page)).map(|page| world.rates[page] * WINDOW).sum::<f64>();
        } else {
            rates.choose_settled(512, 512, &[], usize::MAX);
        }
    }
    assert!((sums[0] / sums[1] - 1.0).abs() < 0.05, "{sums:?}");
    // A pass is as long as it was.
    let passes = rates.pass(Nanos(400_000));
    assert!(passes.0.abs_diff(1000) < 30, "{passes:?}");
}

#[test]
fn neighbours_share_their_heat_as_far_as_they_are_alike() {
    // Blocks of 64 pages with one rate each, seen in two passes; and the same pages scattered.
    let mut errors = [[0.0; 2]; 2];
    for repetition in 0..10 {
        let random = &mut Random(repetition);
        let mut world = World::new(64, 0.99, random);
        world.rates = world.rates.iter().flat_map(|&rate| [0.1 * rate; 64]).collect();
        world.fast = vec![false; world.rates.len()];
        for error in &mut errors {
            let mut rates = Rates::default();
            world.see(&mut rates, 2, 0.0, random);
            let difference = |rates: &Rates| {
                let of = |page: usize| rates.standing(PageId(page as u32), WINDOW).accesses;
                let truth = |page: usize| {
                    let expected = world.rates[page] * WINDOW;
                    expected / -(-expected).exp_m1()
                };
                let pages = world.rates.len();
                (0..pages).map(|page| (of(page) / truth(page) - 1.0).powi(2)).sum::<f64>() / pages as f64
            };
            error[0] += difference(&rates);
            rates.choose_settled(u64::MAX, 512, &[], 0);
            error[1] += difference(&rates);
            (1..world.rates.len()).rev().for_each(|at| world.rates.swap(at, random.below(at + 1)));
        }
    }
    let [alike, scattered] = errors;
    assert!(alike[1] < 0.5 * alike[0], "{errors:?}");
    assert!(scattered[1] < 1.1 * scattered[0], "{errors:?}");
}

/// Runs races among the hottest pages, as the agent does: those armed are touched in proportion to their
/// rates, the first of them too early to count.
fn race(rates: &mut Rates, truth: &[f64], races: usize, random: &mut Random) {
    let process = Pid(1);
    for _ in 0..races {
        let chosen = rates.choose_racers(|_| Some(process)).swap_remove(0);
        let weights: Vec<f64> = chosen.pages.iter().map(|page| truth[page.index()]).collect();
        let mut armed = (1u128 << weights.len()) - 1;
        for lap in 0..17 {
            let on = |at: usize| if armed >> at & 1 != 0 { weights[at] } else { 0.0 };
            let mut left = random.unit() * (0..weights.len()).map(on).sum::<f64>();
            let first = (0..weights.len()).position(|at| {
                left -= on(at);
                left < 0.0
            });
            let first = first.expect("one is touched") as u8;
            if lap > 0 {
                rates.raced(&Race { process, list: chosen.list, armed, first });
            }
            armed &= !(1 << first);
        }
    }
}

#[test]
fn races_tell_pages_that_are_touched_sooner_than_a_window_can_tell() {
    const DELAY: f64 = 25_000.0;
    let mut errors = [0.0f64; 2];
    for repetition in 0..20 {
        let random = &mut Random(repetition);
        // Up to one access in 2.6 microseconds, and a touch is told 25 microseconds late.
        let world = World::new(4096, 0.99, random);
        let (mut rates, mut raced) = (Rates::default(), Rates::default());
        let share = |rates: &Rates| {
            let accesses = |page: usize| rates.standing(PageId(page as u32), WINDOW).accesses;
            let of = |page: &usize| accesses(*page) * (1.0 - (-world.rates[*page] * WINDOW).exp());
            let hot: f64 = (0..world.rates.len())
                .filter(|&page| world.rates[page] * DELAY > 1.0)
                .map(|at| of(&at))
                .sum();
            hot / (0..world.rates.len()).map(|at| of(&at)).sum::<f64>()
        };
        let truth = {
            let hot = world.rates.iter().filter(|&&rate| rate * DELAY > 1.0).sum::<f64>();
            hot / world.rates.iter().sum::<f64>()
        };
        for _ in 0..8 {
            world.see(&mut rates, 1, DELAY, random);
            world.see(&mut raced, 1, DELAY, random);
            race(&mut raced, &world.rates, 10, random);
        }
        for (error, rates) in errors.iter_mut().zip([&rates, &raced]) {
            *error += (share(rates) - truth).abs() / 20.0;
        }
    }
    assert!(errors[1] < 0.03 && errors[0] > 0.1, "{errors:.3?}");
}

/// Guards against a delay that grew, and rates with it, until all accesses seemed to go to the racers.
#[test]
fn racers_that_are_alike_are_no_hotter_than_the_others() {
    const PAGES: usize = 450;
    let random = &mut Random(3);
    // Each page is touched every 90 microseconds.
    let world = World::new(PAGES, 0.0, random);
    let mut rates = Rates::default();
    for _ in 0..30 {
        world.see(&mut rates, 1, 25_000.0, random);
        race(&mut rates, &world.rates, 5, random);
    }
    let accesses = |page: usize| rates.standing(PageId(page as u32), WINDOW).accesses;
    let mut found: Vec<f64> = (0..PAGES).map(accesses).collect();
    found.sort_unstable_by(f64::total_cmp);
    let (middle, most) = (found[PAGES / 2], found[PAGES - 5]);
    assert!(most < 2.5 * middle, "{middle} {most}");
}

#[test]
fn racers_that_are_gone_race_no_more_and_a_race_names_an_armed_page() {
    let random = &mut Random(1);
    let world = World::new(512, 0.99, random);
    let mut rates = Rates::default();
    world.see(&mut rates, 1, 0.0, random);
    let process = Pid(1);
    let list = rates.choose_racers(|_| Some(process)).swap_remove(0).list;
    for _ in 0..100 {
        rates.raced(&Race { process, list, armed: 0b110, first: 0 });
        rates.raced(&Race { process, list, armed: u128::MAX, first: 200 });
    }
    let racers = rates.choose_racers(|_| Some(process)).swap_remove(0);
    assert_eq!(racers.list, list, "the same racers are the same list");
    world.see(&mut rates, 2, 0.0, random);
    rates.choose_racers(|_| Some(process));
    let standing = rates.standing(racers.pages[0], WINDOW);
    assert_eq!(standing.shared, UNRACED, "no race was valid: {standing:?}");
    rates.forget(0..512, 0);
    let left = rates.choose_racers(|_| Some(process));
    assert!(left.len() == 1 && left[0].pages.is_empty() && left[0].list != list, "{left:?}");
}

#[test]
fn touches_alone_hide_what_the_hottest_pages_take() {
    let (_, error, plain) = repeat(100, 2048, 10, 0.99);
    assert!(error < 0.03 && plain > 3.0 * error, "{error:.3} {plain:.3}");
}

#[test]
fn a_rate_is_found_whether_windows_are_longer_or_shorter_than_the_time_between_accesses() {
    let random = &mut Random(5);
    for rate in [0.1, 1.0, 30.0] {
        let world = World { rates: vec![rate / WINDOW; ARMED], fast: vec![true; ARMED] };
        let (rates, _) = world.observe(200, 0.0, random);
        let seen = 1.0 - f64::exp(-rate);
        for page in 0..ARMED as u32 {
            let found = rates.standing(PageId(page), WINDOW).accesses;
            assert!((found * seen / rate - 1.0).abs() < 0.35, "{rate}: {found}");
        }
    }
}

#[test]
fn few_samples_of_one_kind_are_no_certainty() {
    let seen = |at: u32| Observation {
        span: (f64::from(at), f64::from(at)),
        part: 1.0,
        alike: 1.0,
        page: at,
        weight: 1.0,
        value: 1.0,
        variance: 0.0,
        shared: 0.0,
    };
    let observations: Vec<Observation> = (0..32).map(seen).collect();
    let found = of_observations(&observations, 0.0, 32.0).expect("samples");
    assert!(found.value == 1.0 && found.low < 0.9, "{found:?}: 32 samples gave \"100.0 %\"");
    assert_eq!(of_observations(&[], 0.0, 1.0), None);
}

/// Of a region of 1000 pages, of which one at a time was looked at, 32 looks are no more than 32 samples.
#[test]
fn samples_of_a_region_are_worth_its_looks() {
    let width = |samples: u32, alike: f64| {
        let seen = |at: u32| Observation {
            span: (f64::from(at % 32), f64::from(at % 32)),
            part: 1.0,
            alike,
            page: at,
            weight: 1.0,
            value: 1.0,
            variance: 0.0,
            shared: 0.0,
        };
        let observations: Vec<Observation> = (0..samples).map(seen).collect();
        let found = of_observations(&observations, 0.0, 32.0).expect("samples");
        assert_eq!(found.value, 1.0);
        found.high - found.low
    };
    assert_eq!(width(32_000, 1000.0), width(32, 1.0));
    assert!(width(32_000, 1.0) < width(32, 1.0) / 100.0);
}

/// Long stretches differ where something changes slowly: half of the run is slow, half is fast.
#[test]
fn a_placement_that_is_still_learned_widens_the_interval() {
    let run = |fast: &dyn Fn(u32) -> bool| {
        let seen = |at: u32| {
            let value = f64::from(u8::from(fast(at)));
            Observation {
                span: (f64::from(at), f64::from(at)),
                part: 1.0,
                alike: 1.0,
                page: at % 997,
                weight: 1.0,
                value,
                variance: 0.0,
                shared: 0.0,
            }
        };
        let observations: Vec<Observation> = (0..20_000).map(seen).collect();
        let found = of_observations(&observations, 0.0, 20_000.0).expect("samples");
        found.high - found.low
    };
    let (even, learned) = (run(&|at| at % 2 == 0), run(&|at| at > 10_000));
    assert!(even < 0.02 && learned > 0.5, "{even} {learned}");
}

/// Two pages that windows saturate, known to a third each: more touches of them tell no more.
#[test]
fn the_error_of_a_saturated_pages_rate_does_not_average_out() {
    let width = |variance| {
        let seen = |at: u32| {
            let page = at % 2;
            Observation {
                span: (f64::from(at), f64::from(at)),
                part: 1.0,
                alike: 1.0,
                page,
                weight: 50.0,
                value: page.into(),
                variance,
                shared: 0.0,
            }
        };
        let observations: Vec<Observation> = (0..20_000).map(seen).collect();
        let found = of_observations(&observations, 0.0, 20_000.0).expect("samples");
        found.high - found.low
    };
    assert!(width(0.0) < 0.02 && width(0.1) > 0.3, "{} {}", width(0.0), width(0.1));
}

proptest::proptest! {
    /// Whatever was seen, an estimate lies within its bounds, and these within 0 and 1.
    #[test]
    fn an_estimate_lies_within_its_bounds(
        seen in proptest::collection::vec((0.0..100.0f64, 0u32..50, 1.0..1e6f64, 0..=1u8, 0.0..1.0f64), 1..200),
    ) {
        let observations: Vec<Observation> = seen
            .into_iter()
            .map(|(time, page, weight, value, variance)| Observation {
                span: (time, time), part: 1.0, alike: 1.0, page, weight, value: value.into(), variance, shared: variance,
            })
            .collect();
        let found = of_observations(&observations, 0.0, 100.0).expect("samples");
        proptest::prop_assert!(0.0 <= found.low && found.low <= found.value + 1e-12);
        proptest::prop_assert!(found.value <= found.high + 1e-12 && found.high <= 1.0);
    }
}
