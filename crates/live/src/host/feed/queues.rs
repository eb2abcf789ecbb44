//! Models the occupancy of the tiers' queues by Little's law over samples, for machines that do not count it.
//!
//! Requests in flight = requests a second x latency (Little 1961; PACT section 4.2.2 uses it on AMD, which
//! does not count occupancy). A sample for w accesses of latency L stands for w x L of occupancy. A queue
//! counts as busy for as long as its occupancy lasts one request deep, so that T1 / T2 is at least 1, and
//! bandwidth x latency if more were in flight.
//!
//! L comes from the samples, for the memory that served them (AMD's IBS: [`CounterOrigin::LittlesLaw`]); or
//! it is the idle latency that the machine's profile gives a shadow tier ([`CounterOrigin::Modelled`]). The
//! latter is not measured: overlapping requests look like a fast program.

use isotherm_core::live_result::CounterOrigin;
use isotherm_core::{Counters, Nanos, Operation, TierCounters};
use isotherm_linux::source::Access;

use crate::host::options::Tier;

#[derive(Debug)]
pub(super) struct Queues {
    origin: CounterOrigin,
    latencies: Vec<Nanos>,
    /// Occupancy of all requests and of loads at the last close.
    before: Vec<(u64, u64)>,
    closed: Nanos,
}

impl Queues {
    pub(super) fn new(origin: CounterOrigin, tiers: &[Tier]) -> Option<Self> {
        let wanted = matches!(origin, CounterOrigin::LittlesLaw | CounterOrigin::Modelled);
        wanted.then(|| Self {
            origin,
            latencies: tiers.iter().map(|tier| tier.latency).collect(),
            before: vec![(0, 0); tiers.len()],
            closed: Nanos(0),
        })
    }

    /// Adds a sample that stands for so many accesses.
    pub(super) fn add(&self, tier: usize, access: &Access, accesses: u64, counter: &mut TierCounters) {
        let known = self.origin == CounterOrigin::LittlesLaw && access.latency > 0;
        let latency = if known { u64::from(access.latency) } else { self.latencies[tier].0 };
        let occupancy = accesses * latency;
        counter.occupancy += occupancy;
        if access.operation == Operation::Load {
            counter.load_occupancy += occupancy;
        }
    }

    /// Ends a window at `now` and adds the time that each queue was busy in it.
    pub(super) fn close(&mut self, now: Nanos, counters: &mut Counters) {
        let elapsed = (now - self.closed).0;
        self.closed = now;
        for (counter, before) in counters.tiers.iter_mut().zip(&mut self.before) {
            counter.busy += (counter.occupancy - before.0).min(elapsed);
            counter.load_busy += (counter.load_occupancy - before.1).min(elapsed);
            *before = (counter.occupancy, counter.load_occupancy);
        }
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::Bytes;
    use isotherm_linux::process::Pid;
    use isotherm_linux::source::Cause;

    use super::*;

    const TIERS: [Tier; 2] = [
        Tier { size: Bytes(1 << 30), latency: Nanos(100), bandwidth: 0 },
        Tier { size: Bytes(1 << 30), latency: Nanos(200), bandwidth: 0 },
    ];

    fn access(latency: u32, operation: Operation) -> Access {
        Access {
            time: Nanos(0),
            process: Pid(1),
            address: 0,
            weight: 1,
            latency,
            tier: None,
            operation,
            cause: Cause::Sampled,
        }
    }

    fn counters() -> Counters {
        Counters { tiers: vec![TierCounters::default(); 2], ..Counters::default() }
    }

    fn parallelism(counters: &Counters, tier: usize) -> f64 {
        counters.tiers[tier].load_occupancy as f64 / counters.tiers[tier].load_busy as f64
    }

    #[test]
    fn requests_in_flight_are_bandwidth_times_latency() {
        let mut queues = Queues::new(CounterOrigin::Modelled, &TIERS).expect("a model");
        let mut counters = counters();
        // 4000 loads of 200 ns in 100 us: 8 in flight.
        (0..10).for_each(|_| queues.add(1, &access(0, Operation::Load), 400, &mut counters.tiers[1]));
        queues.close(Nanos(100_000), &mut counters);
        assert_eq!((counters.tiers[1].load_occupancy, counters.tiers[1].load_busy), (800_000, 100_000));
        assert_eq!(parallelism(&counters, 1), 8.0);
        // 50 more in the next 100 us: one at a time, a tenth of it.
        queues.add(1, &access(0, Operation::Load), 50, &mut counters.tiers[1]);
        queues.close(Nanos(200_000), &mut counters);
        assert_eq!((counters.tiers[1].load_occupancy, counters.tiers[1].load_busy), (810_000, 110_000));
        assert_eq!(counters.tiers[0], TierCounters::default());
    }

    #[test]
    fn a_samples_latency_counts_only_for_real_tiers() {
        let occupancy = |origin| {
            let queues = Queues::new(origin, &TIERS).expect("a model");
            let mut counters = counters();
            queues.add(0, &access(350, Operation::Load), 10, &mut counters.tiers[0]);
            queues.add(0, &access(0, Operation::Store), 10, &mut counters.tiers[0]);
            (counters.tiers[0].load_occupancy, counters.tiers[0].occupancy)
        };
        assert_eq!(
            occupancy(CounterOrigin::LittlesLaw),
            (3500, 4500),
            "without a latency, the tier's idle one"
        );
        assert_eq!(
            occupancy(CounterOrigin::Modelled),
            (1000, 2000),
            "the sample's latency is not the shadow's"
        );
    }

    #[test]
    fn without_a_model_there_are_no_queues() {
        assert!(Queues::new(CounterOrigin::None, &TIERS).is_none());
        assert!(Queues::new(CounterOrigin::Counted, &TIERS).is_none());
        let origin = crate::host::counter_origin(&[], true, true);
        assert_eq!(origin, CounterOrigin::None, "without samples there is nothing to model");
    }
}
