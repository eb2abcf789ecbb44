//! The small machine that the policies' tests run on: tiers with capacities and a page table, no time.

use isotherm_core::parameters::{Parameters, Spec};
use isotherm_core::{
    Counters, HintFault, MoveStatus, Nanos, Operation, Outcome, PageId, PageSize, Pages, Plan, Policy,
    Sample, SampleBatch, TierCounters, TierId, View,
};

use crate::Setup;

/// Pages in tiers, and the walks that were made over them.
#[derive(Debug, Clone)]
pub(crate) struct TestView {
    capacity: Vec<Pages>,
    place: Vec<Option<TierId>>,
    pub(crate) page_size: PageSize,
    /// Pages of the fast tier that a move may not take: the kernel's reserve.
    pub(crate) reserve: u64,
    /// A page that every move finds busy.
    pub(crate) pinned: Option<PageId>,
    /// Pages accessed since the last scan.
    pub(crate) accessed: Vec<u32>,
    /// Pages that plans armed.
    pub(crate) armed: Vec<PageId>,
    /// The cursor of each walk.
    pub(crate) walks: Vec<PageId>,
}

impl TestView {
    /// Creates a machine with `mapped` pages, allocated in order from the fastest tier with room.
    pub(crate) fn new(capacity: &[Pages], mapped: usize) -> Self {
        let mut view = Self {
            capacity: capacity.to_vec(),
            place: Vec::new(),
            page_size: PageSize::Base,
            reserve: 0,
            pinned: None,
            accessed: Vec::new(),
            armed: Vec::new(),
            walks: Vec::new(),
        };
        (0..mapped).for_each(|_| view.allocate());
        view
    }

    /// Maps one more page, at the end of the address space.
    pub(crate) fn allocate(&mut self) {
        let tier = (0..self.capacity.len() as u8).map(TierId).find(|&tier| self.free(tier).0 > 0);
        self.place.push(Some(tier.expect("room for another page")));
    }

    /// Unmaps a page.
    pub(crate) fn unmap(&mut self, page: u32) {
        self.place[page as usize] = None;
    }

    /// Puts a page where a test wants it.
    pub(crate) fn put(&mut self, page: u32, tier: TierId) {
        self.place[page as usize] = Some(tier);
    }

    /// Returns the pages of a tier, in order.
    pub(crate) fn pages_in(&self, tier: TierId) -> Vec<u32> {
        (0..self.place.len() as u32).filter(|&page| self.place[page as usize] == Some(tier)).collect()
    }

    /// Carries a plan's moves out as `move_pages` would.
    pub(crate) fn carry_out(&mut self, plan: &Plan) -> Outcome {
        self.armed.extend(&plan.arm);
        let moves = plan.moves.iter().map(|step| self.move_page(step.page, step.to)).collect();
        Outcome { moves, ..Outcome::default() }
    }

    fn move_page(&mut self, page: PageId, to: TierId) -> MoveStatus {
        let reserve = if to == TierId::FAST { self.reserve } else { 0 };
        match self.tier_of(page) {
            None => MoveStatus::Gone,
            Some(tier) if tier == to => MoveStatus::AlreadyThere,
            Some(_) if self.pinned == Some(page) => MoveStatus::Busy,
            Some(_) if self.free(to).0 <= reserve => MoveStatus::NoRoom,
            Some(_) => {
                self.put(page.0, to);
                MoveStatus::Moved
            }
        }
    }
}

impl View for TestView {
    fn tiers(&self) -> usize {
        self.capacity.len()
    }

    fn page_size(&self) -> PageSize {
        self.page_size
    }

    fn latency(&self, tier: TierId) -> Nanos {
        Nanos(100 + 150 * tier.index() as u64)
    }

    /// The fast tier's is three times that of each other.
    fn bandwidth(&self, tier: TierId) -> u64 {
        if tier == TierId::FAST { 3 << 30 } else { 1 << 30 }
    }

    fn capacity(&self, tier: TierId) -> Pages {
        self.capacity[tier.index()]
    }

    fn free(&self, tier: TierId) -> Pages {
        let used = self.place.iter().filter(|&&place| place == Some(tier)).count();
        self.capacity(tier) - Pages(used as u64)
    }

    fn pages(&self) -> usize {
        self.place.len()
    }

    fn tier_of(&self, page: PageId) -> Option<TierId> {
        self.place.get(page.index()).copied().flatten()
    }

    fn walk(&mut self, cursor: PageId, limit: usize, found: &mut Vec<(PageId, TierId)>) -> Option<PageId> {
        self.walks.push(cursor);
        let mapped = |(index, tier): (usize, &Option<TierId>)| tier.map(|tier| (PageId(index as u32), tier));
        let rest = self.place.iter().enumerate().skip(cursor.index());
        found.extend(rest.filter_map(mapped).take(limit));
        let next = found.last().map_or(self.place.len(), |last| last.0.index() + 1);
        (next < self.place.len()).then_some(PageId(next as u32))
    }

    fn scan_accessed(
        &mut self,
        cursor: PageId,
        limit: usize,
        found: &mut Vec<(PageId, TierId, bool)>,
    ) -> Option<PageId> {
        let mut walked = Vec::new();
        let next = self.walk(cursor, limit, &mut walked);
        found.extend(walked.iter().map(|&(page, tier)| (page, tier, self.accessed.contains(&page.0))));
        self.accessed.retain(|page| !walked.iter().any(|entry| entry.0.0 == *page));
        next
    }

    fn huge_range(&self, page: PageId) -> std::ops::Range<u32> {
        let first = page.0 / 512 * 512;
        first..(first + 512).min(self.place.len() as u32)
    }
}

/// Returns a setup of base pages on two tiers, of which the fast one has `fast`.
pub(crate) fn setup(pages: usize, fast: u64) -> Setup {
    Setup { pages, fast: Pages(fast), page_size: PageSize::Base, tiers: 2, seed: 1 }
}

/// Returns a policy's parameters, with some of them set.
pub(crate) fn parameters(specs: &'static [Spec], settings: &[(&str, &str)]) -> Parameters {
    let mut parameters = Parameters::new("test", specs);
    settings.iter().for_each(|(key, text)| parameters.set(key, text).expect("valid"));
    parameters
}

/// Returns a batch of one sample for each of `pages`, with counters at `(fast, all)` load misses.
pub(crate) fn batch_of(view: &TestView, pages: &[u32], (fast, all): (u64, u64)) -> SampleBatch {
    let sample = |&page: &u32| Sample {
        time: Nanos(0),
        page: PageId(page),
        weight: 1,
        latency: 0,
        exposed: 0,
        tier: view.tier_of(PageId(page)).unwrap_or(TierId::FAST),
        operation: Operation::Load,
    };
    let count = |load_misses| TierCounters { load_misses, ..TierCounters::default() };
    SampleBatch {
        samples: pages.iter().map(sample).collect(),
        counters: Counters { tiers: vec![count(fast), count(all - fast)], ..Counters::default() },
        ..SampleBatch::default()
    }
}

/// Returns a batch of one hint fault on `page` at `time`, armed `latency` before.
pub(crate) fn fault_of(view: &TestView, page: u32, latency: Nanos, time: Nanos) -> SampleBatch {
    let page = PageId(page);
    let tier = view.tier_of(page).unwrap_or(TierId::FAST);
    let fault = HintFault { time, page, latency, tier, operation: Operation::Load };
    SampleBatch { faults: vec![fault], ..SampleBatch::default() }
}

/// Returns `times` samples of each page.
pub(crate) fn samples(pages: impl IntoIterator<Item = u32>, times: usize) -> Vec<u32> {
    pages.into_iter().flat_map(|page| std::iter::repeat_n(page, times)).collect()
}

/// Returns the pages that the plan promotes.
pub(crate) fn promoted(plan: &Plan) -> Vec<u32> {
    plan.moves.iter().filter(|step| step.to == TierId::FAST).map(|step| step.page.0).collect()
}

/// Returns the pages that the plan demotes.
pub(crate) fn demoted(plan: &Plan) -> Vec<u32> {
    plan.moves.iter().filter(|step| step.to != TierId::FAST).map(|step| step.page.0).collect()
}

/// Runs one turn of the engine over `batch` at `now`. Returns the plan and its outcome.
pub(crate) fn turn(
    policy: &mut dyn Policy,
    view: &mut TestView,
    batch: &SampleBatch,
    now: Nanos,
) -> (Plan, Outcome) {
    let mut plan = Plan::default();
    policy.observe(batch, view);
    policy.step(now, view, &mut plan);
    let outcome = view.carry_out(&plan);
    if plan.moves_pages() {
        policy.settle(&plan, &outcome, view);
    }
    (plan, outcome)
}
