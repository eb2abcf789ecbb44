//! Page rates from few samples: two memories of counts, each shrunk to its neighbourhood.

use isotherm_core::{PageId, TierId};

/// Pages of a neighbourhood: 2 MiB of base pages.
const REGION: usize = 512;
/// Pages of a block, the smaller neighbourhood: 64 bytes of counts, a cache line.
pub(crate) const BLOCK: usize = 16;
/// The long memory's half-life over the short one's.
const RATIO: f64 = 8.0;
/// Nats of a lead that tells: odds of twenty to one.
const TELLS: f64 = 3.0;
/// Share of a prediction that is uniform, so that no sample is impossible.
const UNIFORM: f64 = 0.01;
/// A count's top bit. Both memories' bits together are how many tiers a page is from where it was first,
/// modulo [`TIERS`]: the short memory has the high one.
const AWAY: u16 = 1 << 15;
const MOST: u16 = AWAY - 1;
/// Share of what is known of samples' weights that an epoch keeps.
const KEPT: f32 = 0.75;
/// Tiers that are told apart; slower ones count as the last of them.
const TIERS: u8 = 4;

/// A page's rate in samples of the leading memory: its expectation, and the variance of that.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rate {
    pub(crate) mean: f64,
    pub(crate) variance: f64,
}

/// The mean of a neighbourhood, and how far the parts of it differ by more than chance.
#[derive(Debug, Clone, Copy, Default)]
struct Region {
    mean: f32,
    /// Weight of a block's own mean against the region's, 0 to 1.
    block: f32,
    /// Weight of a page's own count against its block's, 0 to 1.
    page: f32,
    /// Variance of a block's mean.
    noise: f32,
}

/// A block's rate without its pages' own counts, and how much these weigh.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    around: f64,
    own: f64,
    /// Variance of a page's rate that its block's mean brings.
    shared: f64,
    /// Variance of a count by chance, over its expectation.
    chance: f64,
}

/// Counts that halve each time that so many samples have come.
#[derive(Debug, Default)]
struct Memory {
    /// Sum of all counts.
    total: f64,
    /// Time behind the counts, and the same over what a count stands for.
    time: f64,
    exposure: f64,
    /// Samples since the counts were halved last.
    fresh: f64,
}

/// Counts of all pages, in a short and a long memory that lie side by side.
#[derive(Debug)]
pub(crate) struct Rates {
    counts: Vec<[u16; 2]>,
    regions: Vec<[Region; 2]>,
    /// Of each region, how often its recent samples counted: the sum, and that of the squares.
    weights: Vec<(f32, f32)>,
    memories: [Memory; 2],
    leader: usize,
    /// Half-life of the short memory in samples.
    half_life: f64,
    /// How much better the short memory has predicted samples, in nats; forgotten with the short half-life.
    lead: f64,
    /// The same of the pages within their regions.
    within: f64,
    /// All samples so far.
    seen: f64,
    /// Share of the time that counts stand for.
    share: f64,
    halvings: u16,
}

impl Region {
    /// Analyses the variance of a region's counts: what exceeds chance is a difference between pages of a
    /// block, or between blocks (Buehlmann's credibility, in two stages). `chance`: variance by chance over
    /// expectation.
    fn of(counts: &[[u16; 2]], memory: usize, chance: f64) -> Self {
        let (mut total, mut squares, mut sums, mut blocks) = (0u64, 0u64, 0.0, 0.0);
        for block in counts.chunks(BLOCK) {
            let value = |count: &[u16; 2]| u64::from(count[memory] & MOST);
            let (sum, square) = block
                .iter()
                .map(value)
                .fold((0, 0), |(sum, square), count| (sum + count, square + count * count));
            total += sum;
            squares += square;
            sums += (sum * sum) as f64 / block.len() as f64;
            blocks += 1.0;
        }
        if total == 0 {
            return Self::default();
        }
        let pages = counts.len() as f64;
        let mean = total as f64 / pages;
        let (within, between) = (squares as f64 - sums, sums - mean * total as f64);
        let within = (within / (pages - blocks).max(1.0)).max(chance * mean);
        let between = (between / f64::max(blocks - 1.0, 1.0)).max(within);
        let page = 1.0 - chance * mean / within;
        let block = 1.0 - within / between;
        let noise = within * blocks / pages;
        Self { mean: mean as f32, block: block as f32, page: page as f32, noise: noise as f32 }
    }
}

impl Block {
    /// Returns the rate of a page of the block that has been counted so often.
    #[inline]
    pub(crate) fn rate(&self, count: u16) -> Rate {
        let mean = self.around + self.own * (f64::from(count) - self.around);
        Rate { mean, variance: self.own * self.chance * mean + self.shared }
    }
}

impl Memory {
    /// Notes counts of a page: `count` is what it had.
    fn count(&mut self, count: &mut u16, region: &mut Region, size: usize, times: u16) {
        let times = times.min(MOST - (*count & MOST));
        *count += times;
        region.mean += f32::from(times) / size as f32;
        self.total += f64::from(times);
        self.fresh += f64::from(times);
    }
}

impl Rates {
    pub(crate) fn new(pages: usize) -> Self {
        Self {
            counts: vec![[0; 2]; pages],
            regions: vec![[Region::default(); 2]; pages.div_ceil(REGION)],
            weights: vec![(0.0, 0.0); pages.div_ceil(REGION)],
            memories: [Memory::default(), Memory::default()],
            leader: 1,
            half_life: pages.max(1) as f64 / 2.0,
            lead: 0.0,
            within: 0.0,
            seen: 0.0,
            share: 0.0,
            halvings: 0,
        }
    }

    pub(crate) fn pages(&self) -> usize {
        self.counts.len()
    }

    pub(crate) fn grow(&mut self, pages: usize) {
        if pages > self.pages() {
            self.counts.resize(pages, [0; 2]);
            self.regions.resize(pages.div_ceil(REGION), [Region::default(); 2]);
            self.weights.resize(pages.div_ceil(REGION), (0.0, 0.0));
        }
    }

    /// Returns a page's block as a memory knows it.
    #[inline]
    fn block_of(&self, page: usize, memory: usize) -> Block {
        let first = page / BLOCK * BLOCK;
        let counts = &self.counts[first..(first + BLOCK).min(self.counts.len())];
        let sum: u32 = counts.iter().map(|count| u32::from(count[memory] & MOST)).sum();
        let region = &self.regions[page / REGION][memory];
        let (mean, own, shared) = (f64::from(region.mean), f64::from(region.page), f64::from(region.block));
        let around = mean + shared * (f64::from(sum) / counts.len() as f64 - mean);
        let shared = (1.0 - own).powi(2) * shared * f64::from(region.noise);
        Block { around, own, shared, chance: chance(self.weights[page / REGION]) }
    }

    /// Returns how likely a sample is by a memory, over the mean: one of this region, and of it of this page.
    fn prediction(&self, page: usize, memory: usize) -> [f64; 2] {
        let mean = f64::from(self.regions[page / REGION][memory].mean);
        let total = self.memories[memory].total;
        let mixed = |likely: f64| (1.0 - UNIFORM) * likely + UNIFORM;
        let region = if total > 0.0 { mixed(mean * self.counts.len() as f64 / total) } else { 1.0 };
        let rate = self.block_of(page, memory).rate(self.counts[page][memory] & MOST);
        [region, if mean > 0.0 { mixed(rate.mean / mean) } else { 1.0 }]
    }

    /// Takes a sample in that counts so often, after both memories have said how likely it was.
    pub(crate) fn count(&mut self, page: PageId, times: u16) {
        if times > 0 {
            let page = page.index();
            let [short, long] = [0, 1].map(|memory| self.prediction(page, memory));
            let [region, within] = [0, 1].map(|part| (short[part] / long[part]).ln());
            self.lead += region + within - self.lead / self.half_life;
            self.within += within - self.within / self.half_life;
            self.seen += f64::from(times);
            let size = REGION.min(self.counts.len() - page / REGION * REGION);
            let (sum, squares) = &mut self.weights[page / REGION];
            *sum += f32::from(times);
            *squares += f32::from(times).powi(2);
            let regions = &mut self.regions[page / REGION];
            let counts = self.counts[page].iter_mut().zip(regions);
            for (memory, (count, region)) in self.memories.iter_mut().zip(counts) {
                memory.count(count, region, size, times);
            }
        }
    }

    /// Notes that the program was sampled for `time`, in which a count stands for `unit`.
    pub(crate) fn expose(&mut self, time: f64, unit: f64) {
        for memory in &mut self.memories {
            memory.time += time;
            memory.exposure += time / unit;
        }
    }

    /// Lets counts stand for this share of the time from now on, within a factor of two where it has risen.
    /// Returns how often all of them were halved for it.
    pub(crate) fn count_by(&mut self, share: f64) -> u64 {
        if self.share == 0.0 {
            self.share = share;
            return 0;
        }
        let doublings = (share / self.share).log2().max(0.0) as u64;
        (0..doublings).for_each(|_| self.double());
        doublings
    }

    /// Lets a count stand for twice as much. Otherwise the time before, in which samples were worth little or
    /// stood for few accesses, would weigh more than as much time now: a program's start, which stores and
    /// hardly waits, hid what it read later.
    fn double(&mut self) {
        self.share *= 2.0;
        self.seen /= 2.0;
        for memory in 0..2 {
            self.halve_counts(memory);
            let memory = &mut self.memories[memory];
            memory.exposure /= 2.0;
            memory.fresh /= 2.0;
        }
        for region in self.regions.iter_mut().flatten() {
            region.mean /= 2.0;
            region.noise /= 4.0;
        }
        for (sum, squares) in &mut self.weights {
            (*sum, *squares) = (*sum / 2.0, *squares / 4.0);
        }
    }

    /// Forgets half of what a memory knows.
    fn halve(&mut self, memory: usize) {
        self.halve_counts(memory);
        let memory = &mut self.memories[memory];
        memory.time /= 2.0;
        memory.exposure /= 2.0;
        memory.fresh = 0.0;
    }

    /// Halves all counts of a memory; what does not divide is rounded up or down by turns.
    fn halve_counts(&mut self, memory: usize) {
        self.halvings = self.halvings.wrapping_add(1);
        let mut total = 0;
        for (page, count) in self.counts.iter_mut().enumerate() {
            let count = &mut count[memory];
            let value = *count & MOST;
            let halved = (value + (value & 1 & (page as u16 ^ self.halvings))) >> 1;
            *count = *count & AWAY | halved;
            total += u64::from(halved);
        }
        self.memories[memory].total = total as f64;
    }

    /// Lets counts age, chooses the memory that leads, and learns how neighbours differ.
    pub(crate) fn age(&mut self) {
        let half_lives = [self.half_life, self.half_life * RATIO];
        for (memory, half_life) in half_lives.into_iter().enumerate() {
            if self.memories[memory].fresh >= half_life {
                self.halve(memory);
            }
            let regions = self.regions.iter_mut().zip(self.counts.chunks(REGION)).zip(&self.weights);
            for ((regions, counts), &weights) in regions {
                regions[memory] = Region::of(counts, memory, chance(weights));
            }
        }
        for (sum, squares) in &mut self.weights {
            (*sum, *squares) = (*sum * KEPT, *squares * KEPT);
        }
        self.choose_leader();
        let (lead, pages) = (self.told(), self.pages().max(1) as f64);
        if lead > TELLS {
            self.half_life = (self.half_life / 2f64.sqrt()).max(pages / 16.0);
        } else if lead < -TELLS {
            // No memory looks back further than the run: both would hold the same.
            let most = (self.seen / RATIO).max(pages / 2.0);
            self.half_life = (self.half_life * 2f64.sqrt()).min(most);
        }
    }

    /// Returns how much better the short memory has predicted samples. Bursts make it the better one at
    /// telling regions. Which of its pages are hot decides, if it tells anything.
    fn told(&self) -> f64 {
        if self.within.abs() > TELLS { self.within } else { self.lead }
    }

    /// Chooses the memory that leads.
    pub(crate) fn choose_leader(&mut self) {
        self.leader = usize::from(self.told() <= 0.0);
    }

    /// Returns the block that begins at a page, by the memory that leads.
    #[inline]
    pub(crate) fn block(&self, first: PageId) -> Block {
        self.block_of(first.index(), self.leader)
    }

    /// Returns how often a page was counted, by the memory that leads.
    #[inline]
    pub(crate) fn counted(&self, page: PageId) -> u16 {
        self.counts[page.index()][self.leader] & MOST
    }

    /// Returns what turns a count of the leading memory into a rate.
    pub(crate) fn exposure(&self) -> f64 {
        self.memories[self.leader].exposure
    }

    /// Returns the time in which the leading memory forgets half.
    pub(crate) fn memory_time(&self) -> f64 {
        let half_life = if self.leader == 0 { self.half_life } else { self.half_life * RATIO };
        let Memory { time, total, .. } = self.memories[self.leader];
        half_life * time / total.max(1.0)
    }

    pub(crate) fn half_life(&self) -> f64 {
        self.half_life
    }

    /// Returns the tier that a page, now in `tier`, was in first; `None` if it is there.
    #[inline]
    pub(crate) fn home(&self, page: PageId, tier: TierId) -> Option<TierId> {
        let away = self.away(page);
        (away != 0).then(|| TierId((told_apart(tier) + away) % TIERS))
    }

    /// Returns whether a page is not where it was first.
    pub(crate) fn displaced(&self, page: PageId) -> bool {
        self.away(page) != 0
    }

    /// Notes that a page has moved.
    pub(crate) fn displace(&mut self, page: PageId, from: TierId, to: TierId) {
        let away = (self.away(page) + TIERS + told_apart(from) - told_apart(to)) % TIERS;
        let [short, long] = &mut self.counts[page.index()];
        *short = *short & MOST | (u16::from(away >> 1) << 15);
        *long = *long & MOST | (u16::from(away & 1) << 15);
    }

    #[inline]
    fn away(&self, page: PageId) -> u8 {
        let [short, long] = self.counts[page.index()].map(|count| (count >> 15) as u8);
        short << 1 | long
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.counts[..]) + size_of_val(&self.regions[..]) + size_of_val(&self.weights[..])
    }
}

/// Returns the variance of a count by chance, over its expectation: how often samples count, 1 as in
/// Poisson's. A phase of one thread has few samples that each count much.
fn chance((sum, squares): (f32, f32)) -> f64 {
    if sum > 0.0 { f64::from(squares / sum) } else { 1.0 }
}

fn told_apart(tier: TierId) -> u8 {
    tier.0.min(TIERS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Rates {
        fn rate(&self, page: PageId) -> Rate {
            self.block(page).rate(self.counted(page))
        }
    }

    /// Counts each page so often, once around after the other.
    fn counted(pages: usize, times: impl Fn(usize) -> u16) -> Rates {
        let mut rates = Rates::new(pages);
        for page in 0..pages {
            (0..times(page)).for_each(|_| rates.count(PageId(page as u32), 1));
        }
        rates.age();
        rates
    }

    /// Counts 64 pages from `first` on in rounds, each an epoch; returns the shortest half-life meanwhile.
    fn feed(rates: &mut Rates, first: u32, rounds: u32) -> f64 {
        let mut least = f64::INFINITY;
        for _ in 0..rounds {
            (0..64).for_each(|page| rates.count(PageId(first + page), 1));
            rates.age();
            least = least.min(rates.half_life);
        }
        least
    }

    #[test]
    fn counts_that_differ_by_chance_alone_are_shrunk_to_their_mean() {
        // Poisson-like: mean and variance are 1.
        let chance = |page: usize| [0, 1, 0, 2, 1, 0, 3, 1][page * 5 % 8];
        let rates = counted(REGION, chance);
        let (low, high) = (rates.rate(PageId(0)).mean, rates.rate(PageId(6)).mean);
        assert!((low - 1.0).abs() < 0.2 && (high - 1.0).abs() < 0.2, "{low} {high}");
    }

    #[test]
    fn a_hot_page_among_cold_ones_stands_out_and_a_hot_block_lifts_its_pages() {
        let rates = counted(REGION, |page| if page == 100 { 200 } else { 1 });
        assert!(rates.rate(PageId(100)).mean > 180.0, "{:?}", rates.rate(PageId(100)));
        let block = counted(REGION, |page| if page / BLOCK == 3 { 6 + (page % 2) as u16 * 4 } else { 1 });
        let (inside, outside) = (block.rate(PageId(48)).mean, block.rate(PageId(0)).mean);
        assert!(inside > 6.5, "its 6 samples are few against its block's 8: {inside}");
        assert!(outside < 1.5, "{outside}");
    }

    #[test]
    fn a_sample_that_counts_much_is_one_event() {
        let mut rates = Rates::new(REGION);
        // Every fourth page has a sample, which counts 40 times: chance alone, as if it counted once. Counts
        // are halved once.
        (0..REGION as u32).step_by(4).for_each(|page| rates.count(PageId(page), 40));
        rates.age();
        let (sampled, other) = (rates.rate(PageId(0)), rates.rate(PageId(1)));
        assert!((sampled.mean - 5.0).abs() < 0.5 && (other.mean - 5.0).abs() < 0.5, "{sampled:?} {other:?}");
        assert!(sampled.variance < 1.0, "{sampled:?}");
    }

    #[test]
    fn the_short_memory_leads_after_a_change_and_the_long_one_while_nothing_changes() {
        let mut rates = Rates::new(REGION);
        let steady = feed(&mut rates, 0, 60);
        assert!(rates.rate(PageId(0)).mean > 4.0 * rates.rate(PageId(300)).mean);
        assert!(rates.leader == 1 && steady == REGION as f64 / 2.0, "{steady}");
        let least = feed(&mut rates, 256, 60);
        assert!(least < steady, "it forgets sooner: {least}");
        assert!(rates.rate(PageId(256)).mean > rates.rate(PageId(0)).mean, "and has learned the new set");
    }

    /// As in queries that go through one table after the other: sqlite3 was remembered for 660 samples only.
    #[test]
    fn regression_bursts_in_regions_do_not_make_it_forget_which_of_their_pages_are_hot() {
        let mut rates = Rates::new(4 * REGION);
        for epoch in 0..400 {
            for sample in 0..170 {
                // Half of the samples are of eight pages, the others of all.
                let page = if sample % 2 == 0 { sample / 2 % 8 * 61 } else { sample * 89 % 512 };
                rates.count(PageId(epoch / 16 % 4 * REGION as u32 + page), 1);
            }
            rates.age();
        }
        let half_life = rates.half_life() / rates.pages() as f64;
        assert!(rates.leader == 1 && half_life >= 0.5, "{} {half_life}", rates.leader);
    }

    /// The half-life of a steady program grew without limit, and a change was learned after as long again.
    #[test]
    fn regression_a_change_after_a_long_steady_time_is_learned_sooner_than_that() {
        let mut rates = Rates::new(REGION);
        feed(&mut rates, 0, 800);
        assert!(rates.half_life() <= 800.0 * 64.0 / RATIO, "{}", rates.half_life());
        feed(&mut rates, 256, 200);
        assert!(rates.rate(PageId(256)).mean > rates.rate(PageId(0)).mean, "{:?}", rates.leader);
    }

    #[test]
    fn halving_keeps_rates_and_the_mark_of_displaced_pages() {
        let mut rates = Rates::new(REGION);
        rates.displace(PageId(7), TierId(2), TierId(1));
        for _ in 0..40 {
            (0..REGION as u32).for_each(|page| rates.count(PageId(page), 1));
            rates.expose(512.0, 1.0);
            rates.age();
        }
        assert!(rates.displaced(PageId(7)) && !rates.displaced(PageId(8)));
        let rate = rates.rate(PageId(7)).mean / rates.exposure();
        assert!((rate * 512.0 - 1.0).abs() < 0.05, "a sample each 512: {rate}");
        let home = |rates: &Rates, tier| rates.home(PageId(7), TierId(tier));
        assert_eq!(home(&rates, 1), Some(TierId(2)));
        rates.displace(PageId(7), TierId(1), TierId(0));
        assert_eq!(home(&rates, 0), Some(TierId(2)), "the first place counts");
        rates.displace(PageId(7), TierId(0), TierId(2));
        assert_eq!(home(&rates, 2), None);
    }

    /// A second of stores that do not stall, then one of loads that do.
    #[test]
    fn regression_time_in_which_samples_are_worth_little_weighs_as_any_other() {
        let mut rates = Rates::new(REGION);
        let mut pass = |worth, times| {
            rates.count_by(worth);
            (0..times).for_each(|_| rates.count(PageId(7), 1));
            rates.expose(1e9, 100.0 * worth);
        };
        pass(5.0, 16);
        pass(80.0, 200);
        rates.age();
        let stall = rates.rate(PageId(7)).mean / rates.exposure();
        assert!((stall / (201.0 * 80.0 * 100.0 / 2e9) - 1.0).abs() < 0.05, "{stall} ns a ns");
    }

    #[test]
    fn metadata_is_a_thousandth_of_the_footprint() {
        let pages = 1 << 18;
        assert!(Rates::new(pages).bytes() * 1000 <= pages * 4096);
    }
}
