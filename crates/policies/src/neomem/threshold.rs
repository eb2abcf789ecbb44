//! Algorithm 1: the dynamic hotness threshold.

use isotherm_core::DeviceReport;

use super::settings::Settings;

/// The threshold above which nothing is hot: what a device has before it is told one.
const NOTHING: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
pub(super) struct Observed<'a> {
    /// Share of the device's cycles in which a request passed.
    pub(super) bandwidth: f64,
    /// Promotions of pages that had been demoted.
    pub(super) ping_pongs: u64,
    pub(super) promoted: u64,
    pub(super) report: &'a DeviceReport,
}

#[derive(Debug, Clone)]
pub(super) struct Threshold {
    settings: Settings,
    /// m_quota: pages that may be migrated between two updates.
    quota: f64,
    /// The share of entries that may exceed it.
    pub(super) p: f64,
    pub(super) theta: u32,
    pub(super) bandwidth: f64,
    pub(super) ping_pong: f64,
    pub(super) error: u32,
}

impl Threshold {
    pub(super) fn new(settings: Settings, quota: f64) -> Self {
        let p = settings.p_init;
        Self { settings, quota, p, theta: NOTHING, bandwidth: 0.0, ping_pong: 0.0, error: 0 }
    }

    /// Lines 4 to 16.
    pub(super) fn update(&mut self, observed: &Observed<'_>) {
        let Settings { p_min, p_max, alpha, beta, delta, .. } = self.settings;
        let histogram = &observed.report.histogram;
        self.bandwidth = observed.bandwidth;
        // Without a promotion there is no ping-pong.
        self.ping_pong = observed.ping_pongs as f64 / observed.promoted.max(1) as f64;
        self.error = histogram.error_bound(observed.report.lanes, delta);
        let halved = |p: f64| (p / 2.0).max(p_min);
        // Lines 9 to 13: more if the slow tier is busy, less if pages come back, half if the quota is spent.
        self.p = if (observed.promoted as f64) < self.quota {
            let grown = (1.0 + self.bandwidth).powf(alpha);
            let shrunk = (1.0 + self.ping_pong).powf(beta);
            (self.p * grown / shrunk).clamp(p_min, p_max.max(p_min))
        } else {
            halved(self.p)
        };
        // Lines 14 and 15: counts that may be errors say nothing.
        if histogram.quantile(1.0 - self.p) < self.error {
            self.p = halved(self.p);
        }
        // Line 16. The published daemon, too, never goes below 1: one access makes no page hot.
        self.theta = histogram.quantile(1.0 - self.p).max(1);
    }
}

#[cfg(test)]
mod tests {
    use isotherm_core::parameters::Parameters;
    use isotherm_core::{Bin, Histogram};

    use super::*;

    const QUOTA: f64 = 100.0;

    fn threshold() -> Threshold {
        Threshold::new(Settings::read(&Parameters::new("neomem", Settings::SPECS)), QUOTA)
    }

    /// 10,000 entries: one counts 900, ten 500, a hundred 100 and the others `noise`.
    fn report(noise: u32) -> DeviceReport {
        let bin = |count, entries| Bin { counts: count..=count, entries };
        let bins = vec![bin(noise, 9889), bin(100, 100), bin(500, 10), bin(900, 1)];
        DeviceReport { histogram: Histogram::new(bins), lanes: 2, ..DeviceReport::default() }
    }

    fn update(threshold: &mut Threshold, bandwidth: f64, (promoted, ping_pongs): (u64, u64), noise: u32) {
        let report = report(noise);
        threshold.update(&Observed { bandwidth, ping_pongs, promoted, report: &report });
    }

    #[test]
    fn the_threshold_is_the_quantile_of_p() {
        let mut threshold = threshold();
        update(&mut threshold, 0.0, (0, 0), 0);
        assert_eq!((threshold.p, threshold.theta), (0.001, 500), "0.1 % of 10,000 are 10 entries");
    }

    #[test]
    fn bandwidth_raises_p_linearly_and_ping_pong_lowers_it_squared() {
        let mut threshold = threshold();
        update(&mut threshold, 0.5, (10, 0), 0);
        assert!((threshold.p - 0.0015).abs() < 1e-12);
        update(&mut threshold, 0.0, (10, 10), 0);
        assert!((threshold.p - 0.0015 / 4.0).abs() < 1e-12);
    }

    #[test]
    fn p_stays_within_its_bounds() {
        let mut threshold = threshold();
        (0..20).for_each(|_| update(&mut threshold, 1.0, (10, 0), 0));
        assert!((threshold.p - 0.0156).abs() < 1e-12);
        assert_eq!(threshold.theta, 1, "156 entries: 45 of them were not accessed");
        (0..20).for_each(|_| update(&mut threshold, 0.0, (10, 10), 0));
        assert!((threshold.p - 0.0001).abs() < 1e-12);
        assert_eq!(threshold.theta, 500, "one entry may be above");
    }

    #[test]
    fn a_used_up_quota_halves_p_whatever_the_bandwidth() {
        let mut threshold = threshold();
        update(&mut threshold, 1.0, (99, 0), 0);
        assert!((threshold.p - 0.002).abs() < 1e-12);
        update(&mut threshold, 1.0, (100, 0), 0);
        assert!((threshold.p - 0.001).abs() < 1e-12);
    }

    #[test]
    fn a_quantile_below_the_error_bound_halves_p() {
        let mut threshold = threshold();
        (0..20).for_each(|_| update(&mut threshold, 1.0, (0, 0), 0));
        update(&mut threshold, 0.0, (0, 0), 30);
        assert!((threshold.p - 0.0156).abs() < 1e-12, "156 entries' quantile is 30 too: not below");
        assert_eq!(threshold.error, 30);
        let bin = |count, entries| Bin { counts: count..=count, entries };
        let crowded = Histogram::new(vec![bin(0, 4_000), bin(40, 5_000), bin(90, 1_000)]);
        let report = DeviceReport { histogram: crowded, lanes: 1, ..DeviceReport::default() };
        (threshold.p, threshold.settings.p_max) = (0.95, 0.95);
        threshold.update(&Observed { bandwidth: 0.0, ping_pongs: 0, promoted: 0, report: &report });
        assert_eq!((threshold.error, threshold.p, threshold.theta), (40, 0.475, 40));
    }

    /// Bin 63 of the hardware's histogram takes all counts from 1912 on. Its end is what a counter holds, and
    /// no page exceeds that: NeoMem promoted nothing.
    #[test]
    fn very_hot_pages_do_not_blind_it() {
        let mut threshold = threshold();
        let bin = |counts, entries| Bin { counts, entries };
        let bins = vec![bin(0..=0, 9_900), bin(1_912..=65_535, 100)];
        let report = DeviceReport { histogram: Histogram::new(bins), lanes: 2, ..DeviceReport::default() };
        threshold.update(&Observed { bandwidth: 0.0, ping_pongs: 0, promoted: 0, report: &report });
        assert_eq!(threshold.theta, 1_912);
    }

    #[test]
    fn an_empty_histogram_gives_the_lowest_threshold() {
        let mut threshold = threshold();
        let report = DeviceReport { lanes: 2, ..DeviceReport::default() };
        threshold.update(&Observed { bandwidth: 0.0, ping_pongs: 0, promoted: 0, report: &report });
        assert_eq!(threshold.theta, 1);
    }
}
