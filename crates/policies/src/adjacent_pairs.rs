//! A policy for two tiers on a machine with more: an instance of it for each pair of adjacent tiers.
//!
//! An instance sees a machine of two tiers: the pages in them, and their samples, faults, devices and
//! counters. A page climbs or falls by one tier at a time, and leaves an instance's memory when another one
//! moves it out of the two, as if it had been unmapped.
//!
//! All move pages in one plan, the lowest pair first. Two full tiers exchange pages through a little room
//! that the slower one keeps free. Where it has none, a page that falls goes to the next tier, as in the
//! kernel (`demote_folio_list` in mm/vmscan.c, Linux 6.12).
//!
//! Accessed bits belong to all: what a scan of one instance clears, the others are told by theirs.

use std::ops::Range;

use isotherm_core::parameters::Parameters;
use isotherm_core::{
    Allocation, Bytes, Counters, Gauge, MigrationContext, Move, MoveStatus, Nanos, Outcome, PageId, PageSize,
    Pages, Plan, Policy, Reclaim, Record, SampleBatch, Sampling, SamplingRate, Setup, Signals, TierId, View,
};

use crate::registry::BuildError;

/// Builds a policy, on every pair of tiers if there are more than two.
pub(crate) fn build(
    parameters: &Parameters,
    setup: &Setup,
    one: Constructor,
) -> Result<Box<dyn Policy>, BuildError> {
    if setup.tiers <= 2 {
        return one(parameters, setup);
    }
    Ok(Box::new(AdjacentPairs::new(parameters, setup, one)?))
}

/// Builds a policy for two tiers.
pub(crate) type Constructor = fn(&Parameters, &Setup) -> Result<Box<dyn Policy>, BuildError>;

/// A tier behind the fast one keeps one page in so many free.
const SPARE: u64 = 1000;

/// A policy's instances, that of the fastest pair first.
struct AdjacentPairs {
    pairs: Vec<Pair>,
    /// Builds the others, once the sizes of their tiers are known.
    pending: Option<(Parameters, Setup, Constructor)>,
    failure: Option<String>,
    batch: SampleBatch,
    outcome: Outcome,
    /// Pages that a step moves so far, sorted.
    moving: Vec<PageId>,
    /// Free pages of each tier after these moves.
    room: Vec<i64>,
}

struct Pair {
    policy: Box<dyn Policy>,
    /// The faster of its tiers.
    upper: u8,
    request: Sampling,
    plan: Plan,
    /// For each of its moves, the place in the machine's plan; `None` if its page has left the two tiers.
    places: Vec<Option<usize>>,
    /// Pages whose accessed bits other instances cleared, a bit each; empty before the first.
    cleared: Vec<u64>,
}

impl Pair {
    fn new(policy: Box<dyn Policy>, upper: usize) -> Self {
        let request = policy.sampling();
        Self {
            policy,
            upper: upper as u8,
            request,
            plan: Plan::default(),
            places: Vec::new(),
            cleared: Vec::new(),
        }
    }

    /// Returns the tier as the instance knows it; `None` for one that is not of the pair.
    fn own(&self, tier: TierId) -> Option<TierId> {
        own(self.upper, tier)
    }

    fn of_machine(&self, tier: TierId) -> TierId {
        TierId(self.upper + tier.0)
    }

    /// Appends the instance's moves to the machine's, so that each finds room where there is any: a page
    /// rises into the room that another one left, and falls into that which one left before it. `tiers` says
    /// where the pages are, if they are in the pair; `room` is updated.
    fn arrange(&mut self, tiers: &[Option<TierId>], room: &mut [i64], moves: &mut Vec<Move>) {
        self.places.clear();
        self.places.resize(tiers.len(), None);
        let steps = &self.plan.moves;
        let is = |to: TierId| move |&index: &usize| tiers[index].is_some() && steps[index].to == to;
        let mut rising = (0..tiers.len()).filter(is(TierId::FAST)).peekable();
        let mut falling = (0..tiers.len()).filter(is(TierId::FAST.slower())).peekable();
        let (upper, lower, last) = (usize::from(self.upper), usize::from(self.upper) + 1, room.len() - 1);
        loop {
            let fits = room[lower] > 0 || lower == last;
            let rises = rising.peek().is_some() && (room[upper] > 0 || falling.peek().is_none());
            let (index, to) = match (falling.peek(), rises) {
                (Some(_), _) if fits => (falling.next(), lower),
                (_, true) => (rising.next(), upper),
                (Some(_), false) => {
                    let with_room = (lower + 1..last).find(|&tier| room[tier] > 0);
                    (falling.next(), with_room.unwrap_or(last))
                }
                (None, false) => break,
            };
            let Some(index) = index else { break };
            let from = usize::from(self.upper) + tiers[index].map_or(0, TierId::index);
            room[from] += 1;
            room[to] -= 1;
            self.places[index] = Some(moves.len());
            moves.push(Move { page: steps[index].page, to: TierId(to as u8) });
        }
    }
}

fn own(upper: u8, tier: TierId) -> Option<TierId> {
    tier.0.checked_sub(upper).filter(|&tier| tier < 2).map(TierId)
}

impl AdjacentPairs {
    fn new(parameters: &Parameters, setup: &Setup, one: Constructor) -> Result<Self, BuildError> {
        let first = one(parameters, &Setup { tiers: 2, ..*setup })?;
        Ok(Self {
            pairs: vec![Pair::new(first, 0)],
            pending: Some((parameters.clone(), *setup, one)),
            failure: None,
            batch: SampleBatch::default(),
            outcome: Outcome::default(),
            moving: Vec::new(),
            room: Vec::new(),
        })
    }

    fn build_others(&mut self, view: &dyn View) {
        let Some((parameters, setup, one)) = self.pending.take() else { return };
        for upper in 1..view.tiers().saturating_sub(1) {
            let fast = view.capacity(TierId(upper as u8));
            match one(&parameters, &Setup { fast, tiers: 2, ..setup }) {
                Ok(policy) => self.pairs.push(Pair::new(policy, upper)),
                Err(error) => self.failure = Some(error.to_string()),
            }
        }
    }

    fn first(&self) -> &dyn Policy {
        self.pairs[0].policy.as_ref()
    }
}

/// Copies the part of a batch that concerns a pair.
fn divide(batch: &SampleBatch, upper: u8, part: &mut SampleBatch) {
    let own = |tier| own(upper, tier);
    part.samples.clear();
    part.samples.extend(batch.samples.iter().filter_map(|sample| {
        let tier = own(sample.tier)?;
        Some(isotherm_core::Sample { tier, ..*sample })
    }));
    part.faults.clear();
    part.faults.extend(batch.faults.iter().filter_map(|fault| {
        let tier = own(fault.tier)?;
        Some(isotherm_core::HintFault { tier, ..*fault })
    }));
    part.devices.clear();
    part.devices.extend(batch.devices.iter().filter_map(|reading| {
        let tier = own(reading.tier).filter(|&tier| tier != TierId::FAST)?;
        Some(isotherm_core::DeviceReading { tier, ..reading.clone() })
    }));
    let tiers = batch.counters.tiers.iter().skip(usize::from(upper)).take(2).copied().collect();
    part.counters = Counters { tiers, ..batch.counters };
    (part.lost, part.spent) = (batch.lost, batch.spent);
}

/// Returns a request that gives each instance at least what it asks for.
fn united(requests: impl Iterator<Item = Sampling>) -> Option<Sampling> {
    let density = |rate: SamplingRate| match rate {
        SamplingRate::Off => 0.0,
        SamplingRate::Period(period) => 1.0 / period as f64,
        SamplingRate::Frequency(frequency) => frequency as f64,
    };
    requests.reduce(|one, other| {
        let denser = if density(other.rate) > density(one.rate) { other } else { one };
        Sampling {
            stores: one.stores || other.stores,
            batch: one.batch.min(other.batch),
            tick: one.tick.min(other.tick),
            fast_divisor: one.fast_divisor.min(other.fast_divisor),
            budget: one.budget.max(other.budget),
            ..denser
        }
    })
}

impl Policy for AdjacentPairs {
    fn signals(&self) -> Signals {
        self.first().signals()
    }

    fn sampling(&self) -> Sampling {
        self.first().sampling()
    }

    fn record(&self) -> Record {
        self.first().record()
    }

    fn allocation(&self) -> Allocation {
        self.first().allocation()
    }

    fn migration_context(&self) -> MigrationContext {
        self.first().migration_context()
    }

    fn grows(&self) -> bool {
        self.first().grows()
    }

    fn observe(&mut self, batch: &SampleBatch, view: &mut dyn View) {
        self.build_others(view);
        for index in 0..self.pairs.len() {
            divide(batch, self.pairs[index].upper, &mut self.batch);
            with_view(&mut self.pairs, index, view, |pair, view| pair.policy.observe(&self.batch, view));
        }
    }

    fn step(&mut self, now: Nanos, view: &mut dyn View, plan: &mut Plan) {
        self.moving.clear();
        self.room.clear();
        self.room.extend((0..view.tiers() as u8).map(|tier| view.free(TierId(tier)).0 as i64));
        for index in (0..self.pairs.len()).rev() {
            with_view(&mut self.pairs, index, view, |pair, view| {
                pair.plan.clear();
                pair.policy.step(now, view, &mut pair.plan);
            });
            let pair = &mut self.pairs[index];
            let is_there = |page: &PageId| {
                let tier = view.tier_of(*page).and_then(|tier| pair.own(tier));
                tier.filter(|_| self.moving.binary_search(page).is_err())
            };
            let tiers: Vec<_> = pair.plan.moves.iter().map(|step| is_there(&step.page)).collect();
            pair.arrange(&tiers, &mut self.room, &mut plan.moves);
            self.moving.clear();
            self.moving.extend(plan.moves.iter().map(|step| step.page));
            self.moving.sort_unstable();
            let of_machine =
                |&Reclaim { from, pages }: &Reclaim| Reclaim { from: pair.of_machine(from), pages };
            plan.reclaim.extend(pair.plan.reclaim.iter().map(of_machine));
            plan.copying = pair.plan.copying;
            plan.arm.extend(&pair.plan.arm);
            plan.split.extend(&pair.plan.split);
            plan.collapse.extend(&pair.plan.collapse);
            plan.device = pair.plan.device.or(plan.device);
            plan.work.touches += pair.plan.work.touches;
            plan.work.operations += pair.plan.work.operations;
            plan.work.swept += pair.plan.work.swept;
            plan.sleep = plan.sleep.max(pair.plan.sleep);
            if let Some(request) = pair.plan.sampling {
                pair.request = request;
                plan.sampling = Some(request);
            }
        }
        if plan.sampling.is_some() {
            plan.sampling = united(self.pairs.iter().map(|pair| pair.request));
        }
        if !plan.moves_pages() {
            // The engine will not settle: an instance whose moves were all left out hears of it here.
            self.settle(plan, &Outcome::default(), view);
        }
    }

    fn settle(&mut self, _plan: &Plan, outcome: &Outcome, view: &mut dyn View) {
        let mut reclaimed = outcome.reclaimed.iter().copied();
        for index in (0..self.pairs.len()).rev() {
            let pair = &self.pairs[index];
            if !pair.plan.moves_pages() {
                continue;
            }
            let part = &mut self.outcome;
            part.clear();
            let status = |place: &Option<usize>| {
                place.and_then(|place| outcome.moves.get(place).copied()).unwrap_or(MoveStatus::Gone)
            };
            part.moves.extend(pair.places.iter().map(status));
            part.reclaimed.extend(reclaimed.by_ref().take(pair.plan.reclaim.len()));
            if !pair.plan.reclaim.is_empty() {
                let fell = |page: &&PageId| {
                    view.tier_of(**page)
                        .and_then(|tier| pair.own(tier))
                        .is_some_and(|tier| tier != TierId::FAST)
                };
                part.demoted.extend(outcome.demoted.iter().filter(fell));
            }
            with_view(&mut self.pairs, index, view, |pair, view| {
                pair.policy.settle(&pair.plan, &self.outcome, view);
            });
        }
    }

    fn metadata(&self) -> Bytes {
        let bytes = |pair: &Pair| pair.policy.metadata().0 + size_of_val(&pair.cleared[..]) as u64;
        Bytes(self.pairs.iter().map(bytes).sum())
    }

    /// Appends those of the fastest pair.
    fn gauges(&self, gauges: &mut Vec<Gauge>) {
        self.first().gauges(gauges);
    }

    fn failure(&self) -> Option<String> {
        self.failure.clone().or_else(|| self.pairs.iter().find_map(|pair| pair.policy.failure()))
    }
}

/// Calls `work` with a pair and its view, and tells the other pairs which accessed bits it cleared.
fn with_view(
    pairs: &mut [Pair],
    index: usize,
    view: &mut dyn View,
    work: impl FnOnce(&mut Pair, &mut dyn View),
) {
    let pair = &mut pairs[index];
    let mut seen = std::mem::take(&mut pair.cleared);
    let mut own = PairView { upper: pair.upper, seen: &mut seen, accessed: Vec::new(), view };
    work(pair, &mut own);
    let accessed = own.accessed;
    pair.cleared = seen;
    for other in pairs.iter_mut().enumerate().filter(|(other, _)| *other != index).map(|(_, pair)| pair) {
        for &page in &accessed {
            let word = page.index() / 64;
            if other.cleared.len() <= word {
                other.cleared.resize(word + 1, 0);
            }
            other.cleared[word] |= 1 << (page.0 % 64);
        }
    }
}

/// A machine's memory as far as it lies in two adjacent tiers.
struct PairView<'a> {
    upper: u8,
    /// Pages whose accessed bits other instances cleared.
    seen: &'a mut Vec<u64>,
    /// Pages whose accessed bits this one cleared.
    accessed: Vec<PageId>,
    view: &'a mut dyn View,
}

impl PairView<'_> {
    fn of_machine(&self, tier: TierId) -> TierId {
        TierId(self.upper + tier.0)
    }

    /// Returns whether another instance saw the page accessed since the last scan.
    fn take_seen(&mut self, page: PageId) -> bool {
        let Some(word) = self.seen.get_mut(page.index() / 64) else { return false };
        let bit = 1 << (page.0 % 64);
        let seen = *word & bit != 0;
        *word &= !bit;
        seen
    }
}

impl View for PairView<'_> {
    fn tiers(&self) -> usize {
        2
    }

    fn page_size(&self) -> PageSize {
        self.view.page_size()
    }

    fn latency(&self, tier: TierId) -> Nanos {
        self.view.latency(self.of_machine(tier))
    }

    fn bandwidth(&self, tier: TierId) -> u64 {
        self.view.bandwidth(self.of_machine(tier))
    }

    fn capacity(&self, tier: TierId) -> Pages {
        self.view.capacity(self.of_machine(tier))
    }

    /// Less what a tier behind the fast one keeps free for exchanges.
    fn free(&self, tier: TierId) -> Pages {
        let of_machine = self.of_machine(tier);
        let kept = if tier == TierId::FAST && of_machine != TierId::FAST {
            (self.view.capacity(of_machine).0 / SPARE).max(1)
        } else {
            0
        };
        self.view.free(of_machine) - Pages(kept)
    }

    fn pages(&self) -> usize {
        self.view.pages()
    }

    fn tier_of(&self, page: PageId) -> Option<TierId> {
        self.view.tier_of(page).and_then(|tier| own(self.upper, tier))
    }

    fn tiers_of(&self, pages: &[PageId], tiers: &mut [Option<TierId>]) {
        self.view.tiers_of(pages, tiers);
        tiers.iter_mut().for_each(|tier| *tier = tier.and_then(|tier| own(self.upper, tier)));
    }

    fn walk(&mut self, cursor: PageId, limit: usize, found: &mut Vec<(PageId, TierId)>) -> Option<PageId> {
        let mut all = Vec::new();
        let next = self.view.walk(cursor, limit, &mut all);
        found.extend(all.into_iter().filter_map(|(page, tier)| Some((page, own(self.upper, tier)?))));
        next
    }

    fn scan_accessed(
        &mut self,
        cursor: PageId,
        limit: usize,
        found: &mut Vec<(PageId, TierId, bool)>,
    ) -> Option<PageId> {
        let mut all = Vec::new();
        let next = self.view.scan_accessed(cursor, limit, &mut all);
        for (page, tier, accessed) in all {
            if accessed {
                self.accessed.push(page);
            }
            let seen = self.take_seen(page);
            found.extend(own(self.upper, tier).map(|tier| (page, tier, accessed || seen)));
        }
        next
    }

    fn huge_range(&self, page: PageId) -> Range<u32> {
        self.view.huge_range(page)
    }

    fn unit(&self, page: PageId) -> Range<u32> {
        self.view.unit(page)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::registry::{Kind, find};
    use crate::support::test_view::{TestView, batch_of, setup, turn};

    fn three_tiers() -> TestView {
        TestView::new(&[Pages(4), Pages(8), Pages(100)], 40)
    }

    fn built(name: &str) -> Box<dyn Policy> {
        let entry = find(name).expect("registered");
        let Kind::Policy(build) = entry.kind else { panic!("no bound") };
        build(&entry.parameters(), &Setup { tiers: 3, ..setup(40, 4) }).expect("its defaults")
    }

    #[test]
    fn a_page_of_the_slowest_tier_climbs_step_by_step_and_others_fall() {
        let (mut policy, mut view) = (built("lru"), three_tiers());
        let mut tiers = Vec::new();
        for time in 1..=6 {
            let batch = batch_of(&view, &[39; 64], (0, 64));
            turn(policy.as_mut(), &mut view, &batch, Nanos(time * 1_000_000_000));
            tiers.push(view.tier_of(PageId(39)).expect("mapped").0);
        }
        assert_eq!(tiers[0], 1, "{tiers:?}");
        assert_eq!(tiers.last(), Some(&0), "{tiers:?}");
        let used = view.pages_in(TierId(0)).len() + view.pages_in(TierId(1)).len();
        assert!(used >= 10, "both stay nearly full: {used}");
    }

    /// The pages that a policy found accessed, by the capacity of the faster tier that it saw.
    static FOUND: Mutex<Vec<(u64, Vec<u32>)>> = Mutex::new(Vec::new());

    /// Scans all accessed bits at each step, and moves nothing.
    struct Scanner;

    impl Policy for Scanner {
        fn signals(&self) -> Signals {
            Signals::NONE
        }

        fn sampling(&self) -> Sampling {
            let scope = isotherm_core::SamplingScope::AllTiers;
            Sampling::loads(SamplingRate::Off, scope, 1, Nanos(1))
        }

        fn observe(&mut self, _: &SampleBatch, _: &mut dyn View) {}

        fn step(&mut self, _: Nanos, view: &mut dyn View, _: &mut Plan) {
            let mut found = Vec::new();
            view.scan_accessed(PageId(0), usize::MAX, &mut found);
            let accessed = found.iter().filter(|(.., accessed)| *accessed).map(|(page, ..)| page.0);
            let entry = (view.capacity(TierId::FAST).0, accessed.collect());
            FOUND.lock().expect("one thread").push(entry);
        }

        fn metadata(&self) -> Bytes {
            Bytes(0)
        }
    }

    #[test]
    fn each_instance_learns_of_every_accessed_bit_of_its_tiers_once() {
        let setup = Setup { tiers: 3, ..setup(40, 4) };
        let mut policy =
            build(&Parameters::default(), &setup, |_, _| Ok(Box::new(Scanner))).expect("it never fails");
        let mut view = three_tiers();
        // One page of each tier.
        view.accessed = vec![1, 6, 30];
        for time in 1..=2 {
            turn(policy.as_mut(), &mut view, &SampleBatch::default(), Nanos(time));
        }
        let found = FOUND.lock().expect("one thread").clone();
        // The lower pair, of 8 pages, steps first.
        let expected = [(8, vec![6, 30]), (4, vec![1, 6]), (8, vec![]), (4, vec![])];
        assert_eq!(found, expected);
    }

    /// Statuses that a policy was told, which asks for a page of the slowest of three tiers at each step.
    static TOLD: Mutex<Vec<Vec<MoveStatus>>> = Mutex::new(Vec::new());

    struct Stale;

    impl Policy for Stale {
        fn signals(&self) -> Signals {
            Signals::NONE
        }

        fn sampling(&self) -> Sampling {
            let scope = isotherm_core::SamplingScope::AllTiers;
            Sampling::loads(SamplingRate::Off, scope, 1, Nanos(1))
        }

        fn observe(&mut self, _: &SampleBatch, _: &mut dyn View) {}

        fn step(&mut self, _: Nanos, view: &mut dyn View, plan: &mut Plan) {
            if view.tier_of(PageId(30)).is_none() {
                plan.moves.push(Move { page: PageId(30), to: TierId::FAST });
            }
        }

        fn settle(&mut self, _: &Plan, outcome: &Outcome, _: &mut dyn View) {
            TOLD.lock().expect("one thread").push(outcome.moves.clone());
        }

        fn metadata(&self) -> Bytes {
            Bytes(0)
        }
    }

    #[test]
    fn an_instance_hears_of_moves_that_were_left_out_though_nothing_else_moves() {
        let setup = Setup { tiers: 3, ..setup(40, 4) };
        let mut policy =
            build(&Parameters::default(), &setup, |_, _| Ok(Box::new(Stale))).expect("it never fails");
        let mut view = three_tiers();
        let (plan, _) = turn(policy.as_mut(), &mut view, &SampleBatch::default(), Nanos(1));
        assert!(plan.moves.is_empty());
        assert_eq!(*TOLD.lock().expect("one thread"), [vec![MoveStatus::Gone]]);
    }

    #[test]
    fn no_instance_moves_a_page_that_has_left_its_tiers() {
        for entry in crate::ALL.iter().filter(|entry| matches!(entry.kind, Kind::Policy(_))) {
            let (mut policy, mut view) = (built(entry.name), three_tiers());
            for time in 1..=30u64 {
                let pages: Vec<u32> = (0..64).map(|index| (time as u32 * 7 + index * index) % 40).collect();
                let batch = batch_of(&view, &pages, (0, 64));
                let before = view.clone();
                let (plan, outcome) = turn(policy.as_mut(), &mut view, &batch, Nanos(time * 1_000_000_000));
                assert_eq!(plan.moves.len(), outcome.moves.len());
                for step in &plan.moves {
                    let from = before.tier_of(step.page).expect("mapped");
                    let one_up = step.to > from || from.0 - step.to.0 == 1 || entry.name == "isotherm";
                    assert!(one_up, "{}: {step:?} from {from:?}", entry.name);
                }
            }
        }
    }
}
