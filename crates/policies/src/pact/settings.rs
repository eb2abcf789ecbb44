use isotherm_core::{Bytes, Nanos, choices, parameters};

use super::attribution::Weight;

/// The parameter `whole` before it is scaled.
pub(super) const WHOLE: u64 = 1_000_000_000;
const LONGEST: Nanos = Nanos(u64::MAX / 4);

choices! {
    pub(crate) enum Score {
        /// Attributed stalls.
        Pac = "pac",
        /// Samples.
        Frequency = "frequency",
    }
}

choices! {
    pub(crate) enum Track {
        Slow = "slow",
        All = "all",
    }
}

choices! {
    pub(crate) enum DemotionBy {
        /// The kernel's LRU.
        Kernel = "kernel",
        /// The tracked values.
        Tracker = "tracker",
    }
}

choices! {
    pub(crate) enum Binning {
        /// The Freedman-Diaconis width, scaled by the candidates' share.
        Scaled = "scaled",
        /// The Freedman-Diaconis width.
        Adaptive = "adaptive",
        Static = "static",
    }
}

parameters! {
    /// PACT's parameters. Sections are PACT's; "its artifact" is the daemon published with it.
    pub(crate) struct Settings {
        /// Samples every n-th load of each thread that misses to a tracked tier.
        sampling_period: u64 = count(1, 1_000_000_000, "400").unit("loads").source("section 4.3.5"),
        /// Time over which stalls are estimated and attributed to pages.
        window: Nanos = interval("20ms").source("section 4.3.3").scaled(),
        /// The shortest window whose counters mean something.
        shortest_window: Nanos = duration(Nanos(0), LONGEST, "1ms")
            .source("its artifact, which rejects shorter ones; here they go on until they are long enough")
            .scaled(),
        /// Cost of a miss to the second tier that nothing overlaps; other tiers' in proportion to their
        /// latency.
        k: Nanos = duration(Nanos(1), Nanos::SECOND, "350ns")
            .source("its artifact: 771 cycles of the CXL tier at 2.2 GHz; with one slow tier it is the unit of PAC and changes no decision but the first"),
        /// The most memory-level parallelism that is believed.
        most_parallelism: f64 = number(1.0, 1024.0, "16").unit("requests")
            .source("its artifact: 16 for Skylake, 20 for Emerald Rapids"),
        /// How a window's stalls are divided among its samples: evenly, or by the latency, whole or exposed,
        /// that each carries.
        attribution: Weight = choice("proportional").source("sections 4.3.1 and 4.3.7"),
        /// Quantity that is summed up for each page.
        score: Score = choice("pac")
            .source("section 5.6: the frequency-only variant counts samples in place of stalls"),
        /// Which tiers are sampled.
        track: Track = choice("slow").source("section 4.3.5"),
        /// Share of a page's value that is left when it was not sampled for the cooling distance.
        cooling: f64 = number(0.0, 1.0, "1")
            .source("section 4.3.4: alpha = 1, no cooling; 0.5 halves, 0 resets"),
        /// Samples of all pages since a page's own, beyond which it is cooled.
        cooling_distance: u32 = count(1, 4_000_000_000, "200k").unit("samples").source("section 5.7")
            .scaled(),
        /// Pages tracked at most; beyond, new ones displace those of least value, which a gauge counts.
        tracked_pages: usize = count(1, 1 << 32, "4294967296").unit("pages")
            .source("ours: as many as there are; its artifact ignores pages beyond 2 M"),
        /// Bins of the histogram; pages of the last one are promoted.
        bins: u64 = count(2, 65_536, "20").source("section 4.5"),
        /// Width of a bin until it is adapted, or always where binning is static.
        initial_width: f64 = number(1e-9, 1e18, "455").unit("ns of stall")
            .source("its artifact: 1000 cycles, at 2.2 GHz"),
        /// Whether bins have the Freedman-Diaconis width, scaled by the candidates' share or not, or the
        /// initial one.
        binning: Binning = choice("scaled").source("sections 4.5 and 5.10"),
        /// Values from which the quartiles are taken.
        reservoir: usize = count(4, 1_000_000, "100").unit("values").source("section 4.5, algorithm 3"),
        /// Above this, bins are made twice as wide, else half as wide.
        t_scale: f64 = number(0.0, 1e12, "0.7").unit("tracked pages per candidate").source("its artifact"),
        /// Pages of the run that a thousand million pages of the paper's footprint are; the bins' rule counts
        /// the latter.
        whole: u64 = count(1, WHOLE, "1000000000").unit("pages of 10^9")
            .source("ours: the width falls with the cube root of the pages tracked, which a scaled run has fewer of")
            .scaled(),
        /// The most that one window promotes; with 0, nothing moves and PAC is measured only.
        batch: usize = count(0, 1 << 32, "4096").unit("pages").source("its artifact"),
        /// The most that the whole run promotes; 0 for no limit.
        promotions: u64 = count(0, 1 << 40, "0").unit("pages")
            .source("ours: section 5.6 compares at an equal number"),
        /// Who picks the pages to demote.
        demotion: DemotionBy = choice("kernel")
            .source("section 4.4.1; by the tracker where a host has no LRU: ours"),
        /// How much more than was promoted is demoted ahead (m).
        margin: Bytes = size(0, 1 << 50, "0").source("section 4.4.2: m = 0").scaled(),
        /// Whether base pages are tracked and the 2 MiB around them moved.
        move_huge: bool = flag("false").source("section 5.2: a page of a huge page takes the whole along"),
    }
}
