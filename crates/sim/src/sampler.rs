//! Simulated PMU sampling: one event per thread and tier, in period or frequency mode, and the ring.

use std::collections::VecDeque;

use isotherm_core::{Nanos, Record, Sample, Sampling, SamplingRate, SamplingScope, TierId};
use isotherm_machine::{Costs, MAX_TIERS};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Weight of the old estimate of an event's rate in each block: perf adapts over several ticks too.
const RATE_MEMORY: f64 = 0.75;
/// The kernel's tick, in which perf counts an event's samples: 250 a second, as distributions' servers have.
const TICK: Nanos = Nanos(4_000_000);

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Drained {
    /// Samples that were still in the ring.
    pub(crate) read: usize,
    /// Samples lost to a full ring since the last delivery.
    pub(crate) lost: u64,
}

/// The sampling state of the whole machine; the threads hold the countdowns.
#[derive(Debug)]
pub(crate) struct Sampler {
    request: Sampling,
    /// Current period of each event; 0 while off.
    periods: [u64; MAX_TIERS],
    rates: [f64; MAX_TIERS],
    ring: VecDeque<Sample>,
    /// Number of first samples that have left the ring and take no room in it.
    read: usize,
    ring_limit: usize,
    lost: u64,
    /// Samples that take an interrupt each.
    interrupting: Rule,
    /// Samples that the processor buffers.
    buffered: Rule,
    record: Record,
    throttled: u64,
    random: Xoshiro256PlusPlus,
}

/// Cost and limit of a kind of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rule {
    cost: Nanos,
    of_tick: u64,
}

impl Rule {
    /// As `perf_sample_event_took` has it: where a sample takes more than its share of the time between two
    /// at the highest rate, the kernel lowers the rate to what fits with a quarter to spare.
    fn interrupting(costs: &Costs) -> Self {
        let cost = costs.sample;
        let ticks = Nanos::SECOND.0 / TICK.0;
        let rate = u64::from(costs.sample_rate_limit);
        let allowed = |time: u64| (time as f64 * costs.sample_time_limit) as u64;
        let of_tick = if cost <= Nanos(allowed(Nanos::SECOND.0 / rate.max(1))) || !limits(costs) {
            rate.div_ceil(ticks)
        } else {
            (allowed(TICK.0) / (cost.0 + cost.0 / 4)).max(1)
        };
        Self { cost, of_tick }
    }

    /// The kernel counts an interrupt with all of its records as one sample: the share of time alone limits.
    fn buffered(costs: &Costs) -> Self {
        let cost = costs.buffered_sample;
        let of_tick = match (TICK.0 as f64 * costs.sample_time_limit) as u64 {
            time if limits(costs) && cost.0 > 0 => (time / cost.0).max(1),
            _ => u64::MAX,
        };
        Self { cost, of_tick }
    }
}

/// The kernel takes 0 and 100 % for no limit.
fn limits(costs: &Costs) -> bool {
    costs.sample_time_limit > 0.0 && costs.sample_time_limit < 1.0
}

impl Sampler {
    pub(crate) fn new(ring_limit: u64, seed: u64, costs: &Costs) -> Self {
        let never = Nanos(u64::MAX);
        Self {
            request: Sampling::loads(SamplingRate::Off, SamplingScope::AllTiers, usize::MAX, never),
            periods: [0; MAX_TIERS],
            rates: [0.0; MAX_TIERS],
            ring: VecDeque::new(),
            read: 0,
            ring_limit: usize::try_from(ring_limit).unwrap_or(usize::MAX),
            lost: 0,
            interrupting: Rule::interrupting(costs),
            buffered: Rule::buffered(costs),
            record: Record::default(),
            throttled: 0,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    pub(crate) fn request(&self) -> Sampling {
        self.request
    }

    /// Returns whether the events count stores beside loads.
    #[inline]
    pub(crate) fn counts_stores(&self) -> bool {
        self.request.stores
    }

    /// Changes the request. perf starts a frequency at a period of 1 and adapts; this keeps the known rates.
    pub(crate) fn set(&mut self, request: Sampling, threads: usize) {
        self.request = request;
        self.adapt(threads);
    }

    /// Sets what the records hold.
    pub(crate) fn set_record(&mut self, record: Record) {
        self.record = record;
    }

    fn rule(&self) -> Rule {
        let buffers = matches!(self.request.rate, SamplingRate::Period(_)) && self.record == Record::Plain;
        if buffers { self.buffered } else { self.interrupting }
    }

    /// Returns what a sample costs its thread.
    pub(crate) fn cost(&self) -> Nanos {
        self.rule().cost
    }

    /// Returns whether the kernel lets an event take a sample at `time`; `tick` is the event's last tick and
    /// its samples in it. A throttled event stands still until the next tick.
    pub(crate) fn admit(&mut self, tick: &mut (u64, u64), time: Nanos) -> bool {
        let now = time.0 / TICK.0;
        if tick.0 != now {
            *tick = (now, 0);
        }
        let admitted = tick.1 < self.rule().of_tick;
        tick.1 += u64::from(admitted);
        self.throttled += u64::from(!admitted);
        admitted
    }

    /// Returns the samples not taken because their event was throttled.
    pub(crate) fn throttled(&self) -> u64 {
        self.throttled
    }

    pub(crate) fn is_on(&self) -> bool {
        self.request.rate != SamplingRate::Off
    }

    #[inline]
    pub(crate) fn event(&self, tier: usize) -> usize {
        if self.request.scope == SamplingScope::AllTiers { 0 } else { tier }
    }

    /// Updates the rates by each tier's accesses in a block of `nanoseconds`, and adapts the periods.
    pub(crate) fn block(&mut self, accesses: &[u64; MAX_TIERS], nanoseconds: f64, threads: usize) {
        if !self.is_on() || nanoseconds <= 0.0 {
            return;
        }
        let mut events = [0; MAX_TIERS];
        accesses.iter().enumerate().for_each(|(tier, &count)| events[self.event(tier)] += count);
        for (rate, count) in self.rates.iter_mut().zip(events) {
            *rate = *rate * RATE_MEMORY + count as f64 / nanoseconds * (1.0 - RATE_MEMORY);
        }
        self.adapt(threads);
    }

    fn adapt(&mut self, threads: usize) {
        let unsampled = usize::from(self.request.scope == SamplingScope::EachSlowTier);
        self.periods[..unsampled].fill(0);
        let each_tier = self.request.scope != SamplingScope::AllTiers;
        for (event, (period, rate)) in self.periods.iter_mut().zip(self.rates).enumerate().skip(unsampled) {
            *period = match self.request.rate_of(each_tier.then_some(TierId(event as u8))) {
                SamplingRate::Off => 0,
                SamplingRate::Period(period) => period.max(1),
                SamplingRate::Frequency(hertz) => {
                    let wanted = (hertz.max(1) * threads.max(1) as u64) as f64 / 1e9;
                    (rate / wanted).clamp(1.0, 1e9) as u64
                }
            };
        }
    }

    /// Returns the current period of an event; 0 while it is off.
    pub(crate) fn period(&self, event: usize) -> u64 {
        self.periods[event]
    }

    /// Returns the accesses until the event's next sample: the period, dithered by an eighth so that it
    /// cannot lock onto a program's rhythm (perf's adaptation and skid do the same).
    pub(crate) fn countdown(&mut self, event: usize) -> u64 {
        let period = self.periods[event];
        let dither = period / 8;
        if dither == 0 { period } else { self.random.random_range(period - dither..=period + dither) }
    }

    pub(crate) fn record(&mut self, sample: Sample) {
        if self.unread() < self.ring_limit {
            self.ring.push_back(sample);
        } else {
            self.lost += 1;
        }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.ring.len()
    }

    fn unread(&self) -> usize {
        self.ring.len() - self.read
    }

    /// Returns whether a reader of batches that exceed the ring is woken: half of the ring's room is taken.
    pub(crate) fn wakes(&self, batch: usize) -> bool {
        batch > self.ring_limit && 2 * self.unread() >= self.ring_limit.max(1)
    }

    /// Empties the ring ahead of delivery; returns how many samples were in it.
    pub(crate) fn read(&mut self) -> usize {
        let unread = self.unread();
        self.read += unread;
        unread
    }

    /// Moves up to `limit` samples to `samples`, and all that were read ahead.
    pub(crate) fn drain(&mut self, limit: usize, samples: &mut Vec<Sample>) -> Drained {
        let ahead = std::mem::take(&mut self.read);
        let count = limit.max(ahead).min(self.ring.len());
        samples.extend(self.ring.drain(..count));
        Drained { read: count - ahead, lost: std::mem::take(&mut self.lost) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isotherm_core::{Operation, PageId};
    use isotherm_machine::Profile;

    fn costs() -> Costs {
        Profile::builtin("pact").expect("it comes with Isotherm").costs
    }

    fn request(rate: SamplingRate, scope: SamplingScope) -> Sampling {
        Sampling::loads(rate, scope, 100, Nanos::SECOND)
    }

    fn sample(page: u32) -> Sample {
        Sample {
            time: Nanos(0),
            page: PageId(page),
            weight: 1,
            latency: 0,
            exposed: 0,
            tier: TierId::FAST,
            operation: Operation::Load,
        }
    }

    #[test]
    fn frequency_mode_finds_the_period_of_each_event() {
        let mut sampler = Sampler::new(10, 1, &costs());
        sampler.set(request(SamplingRate::Frequency(100_000), SamplingScope::EachTier), 2);
        // 10 accesses/us of tier 0, 1/us of tier 1, two threads: 0.2 samples/us wanted of each.
        (0..50).for_each(|_| sampler.block(&[1000, 100, 0, 0], 100_000.0, 2));
        assert_eq!(sampler.period(0), 49, "10 a microsecond / 0.2, rounded down");
        assert_eq!(sampler.period(1), 4);
    }

    #[test]
    fn the_fast_tier_can_be_sampled_more_rarely() {
        let mut sampler = Sampler::new(10, 1, &costs());
        let each = request(SamplingRate::Frequency(100_000), SamplingScope::EachTier);
        sampler.set(Sampling { fast_divisor: 4, ..each }, 2);
        (0..50).for_each(|_| sampler.block(&[1000, 100, 0, 0], 100_000.0, 2));
        assert_eq!((sampler.period(0), sampler.period(1)), (199, 4), "4 x 49, rounded once");
    }

    #[test]
    fn the_fast_tier_can_be_left_out() {
        let mut sampler = Sampler::new(10, 1, &costs());
        sampler.set(request(SamplingRate::Period(100), SamplingScope::EachSlowTier), 1);
        assert_eq!(
            (sampler.event(0), sampler.period(0), sampler.event(1), sampler.period(1)),
            (0, 0, 1, 100)
        );
    }

    #[test]
    fn one_event_for_all_tiers_sees_their_sum() {
        let mut sampler = Sampler::new(10, 1, &costs());
        sampler.set(request(SamplingRate::Frequency(100_000), SamplingScope::AllTiers), 1);
        (0..50).for_each(|_| sampler.block(&[900, 100, 0, 0], 100_000.0, 1));
        assert_eq!((sampler.event(1), sampler.period(0)), (0, 99));
    }

    #[test]
    fn a_full_ring_loses_and_counts() {
        let mut sampler = Sampler::new(2, 1, &costs());
        (0..5).for_each(|page| sampler.record(sample(page)));
        let mut samples = Vec::new();
        assert_eq!(sampler.drain(9, &mut samples), Drained { read: 2, lost: 3 });
        assert_eq!(samples.len(), 2);
        assert_eq!(sampler.drain(9, &mut samples), Drained { read: 0, lost: 0 });
    }

    #[test]
    fn a_reader_of_batches_that_exceed_the_ring_is_woken_when_half_of_it_is_taken() {
        let mut sampler = Sampler::new(4, 1, &costs());
        sampler.record(sample(0));
        assert!(!sampler.wakes(5));
        sampler.record(sample(1));
        assert!(sampler.wakes(5) && !sampler.wakes(4));
        sampler.read();
        assert!(!sampler.wakes(5), "what was read takes no room");
    }

    #[test]
    fn what_was_read_ahead_takes_no_room_and_comes_first() {
        let mut sampler = Sampler::new(2, 1, &costs());
        (0..2).for_each(|page| sampler.record(sample(page)));
        assert_eq!((sampler.read(), sampler.read()), (2, 0));
        (2..5).for_each(|page| sampler.record(sample(page)));
        assert_eq!(sampler.waiting(), 4, "the ring's two, and the two before");
        let mut samples = Vec::new();
        assert_eq!(sampler.drain(1, &mut samples), Drained { read: 0, lost: 1 });
        assert_eq!(samples.len(), 2, "what was read is delivered, however little is asked for");
        assert_eq!(sampler.drain(3, &mut samples), Drained { read: 2, lost: 0 });
        let pages: Vec<u32> = samples.iter().map(|sample| sample.page.0).collect();
        assert_eq!(pages, [0, 1, 2, 3]);
    }

    /// Asks to take a sample every `gap`; returns the share that the kernel lets through.
    fn admitted(costs: &Costs, request: Sampling, record: Record, gap: Nanos) -> f64 {
        let mut sampler = Sampler::new(1, 1, costs);
        sampler.set(request, 1);
        sampler.set_record(record);
        let (mut tick, count) = ((0, 0), 4_000_000 / gap.0 * 100);
        let taken = (0..count).filter(|&sample| sampler.admit(&mut tick, Nanos(sample * gap.0))).count();
        assert_eq!(sampler.throttled(), count - taken as u64);
        taken as f64 / count as f64
    }

    #[test]
    fn an_event_with_more_than_the_highest_rate_is_throttled() {
        let period = request(SamplingRate::Period(10), SamplingScope::AllTiers);
        // A sample each 2.5 us is 400,000 a second, four times the limit; one each 20 us half of it.
        assert_eq!(admitted(&costs(), period, Record::Clocked, Nanos(2_500)), 0.25);
        assert_eq!(admitted(&costs(), period, Record::Clocked, Nanos(20_000)), 1.0);
        let frequency = request(SamplingRate::Frequency(400_000), SamplingScope::AllTiers);
        assert_eq!(admitted(&costs(), frequency, Record::Plain, Nanos(2_500)), 0.25);
    }

    #[test]
    fn an_interrupt_that_takes_too_long_lowers_the_highest_rate() {
        let period = request(SamplingRate::Period(10), SamplingScope::AllTiers);
        // 25 % of the 10 us between two samples at the highest rate are 2.5 us.
        let with = |sample| Costs { sample: Nanos(sample), ..costs() };
        assert_eq!(admitted(&with(2_500), period, Record::Clocked, Nanos(10_000)), 1.0);
        // 5 us and a quarter fit 160 times into a quarter of a tick, of 400.
        assert_eq!(admitted(&with(5_000), period, Record::Clocked, Nanos(10_000)), 0.4);
        let unlimited = Costs { sample_time_limit: 0.0, ..with(5_000) };
        assert_eq!(admitted(&unlimited, period, Record::Clocked, Nanos(10_000)), 1.0);
    }

    #[test]
    fn a_sample_costs_an_interrupt_unless_the_processor_buffers_its_record() {
        let cost = |rate, record| {
            let mut sampler = Sampler::new(1, 1, &costs());
            sampler.set(request(rate, SamplingScope::AllTiers), 1);
            sampler.set_record(record);
            sampler.cost()
        };
        let (whole, share) = (costs().sample, costs().buffered_sample);
        assert!(share < whole);
        assert_eq!(cost(SamplingRate::Period(100), Record::Plain), share);
        assert_eq!(cost(SamplingRate::Period(100), Record::Clocked), whole);
        assert_eq!(cost(SamplingRate::Frequency(100), Record::Plain), whole);
    }

    #[test]
    fn buffered_records_stop_at_a_quarter_of_the_time() {
        let period = request(SamplingRate::Period(1), SamplingScope::AllTiers);
        // 300 ns fit 3,333 times into a quarter of 4 ms, of which there are 40,000 samples at 100 ns.
        let share = admitted(&costs(), period, Record::Plain, Nanos(100));
        assert!((share - 3333.0 / 40_000.0).abs() < 1e-6, "{share}");
    }

    #[test]
    fn the_dithered_period_keeps_its_mean() {
        let mut sampler = Sampler::new(2, 1, &costs());
        sampler.set(request(SamplingRate::Period(64), SamplingScope::AllTiers), 1);
        let mean = (0..20_000).map(|_| sampler.countdown(0)).sum::<u64>() as f64 / 20_000.0;
        assert!((mean - 64.0).abs() < 0.2, "{mean}");
    }
}
