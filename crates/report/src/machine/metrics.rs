//! The state as OpenMetrics text.
//!
//! Names tell nothing of the mechanism: `isotherm_promotions_total` counts promotions of any source and
//! policy. The kernel's own counts stand beside them under the kernel's names.

use isotherm_core::Bytes;
use isotherm_core::machine_status::{GroupStatus, MachineStatus};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

type Labels = Vec<(String, String)>;
type Counts = Family<Labels, Counter>;
type Seconds = Family<Labels, Counter<f64, std::sync::atomic::AtomicU64>>;
type Values = Family<Labels, Gauge<f64, std::sync::atomic::AtomicU64>>;

/// Formats the state as OpenMetrics. The labels are the groups' and tiers' names, at most 256 and 8.
pub fn machine_metrics(status: &MachineStatus) -> String {
    let mut registry = Registry::with_prefix("isotherm");
    machine(&mut registry, status);
    groups(&mut registry, &status.groups);
    let kernel = Counts::default();
    for (name, value) in &status.kernel {
        kernel.get_or_create(&vec![("name".into(), name.clone())]).inc_by(*value);
    }
    registry.register("kernel_vmstat", "The kernel's own counts of moved pages", kernel);
    let mut text = String::new();
    // Writing to a string does not fail.
    encode(&mut text, &registry).map_or_else(|error| format!("# {error}\n# EOF\n"), |()| text)
}

fn machine(registry: &mut Registry, status: &MachineStatus) {
    let one = |value: f64| {
        let values = Values::default();
        values.get_or_create(&Vec::new()).set(value);
        values
    };
    registry.register_with_unit(
        "fast",
        "Fast memory for all groups together",
        Unit::Bytes,
        one(status.fast_bytes.0 as f64),
    );
    registry.register(
        "programs_left_alone",
        "Programs that belong to no group",
        one(status.left_alone as f64),
    );
    registry.register(
        "shadow",
        "Whether tiers are virtual and nothing moves",
        one(f64::from(u8::from(status.shadow))),
    );
    registry.register("rivals", "Other software that moves pages", one(status.rivals.len() as f64));
    let cpu = Seconds::default();
    cpu.get_or_create(&Vec::new()).inc_by(status.cpu_ns.as_seconds());
    let (bytes, rows, dropped) = (Values::default(), Counts::default(), Counts::default());
    if let Some(log) = &status.log {
        bytes.get_or_create(&Vec::new()).set(log.bytes.0 as f64);
        rows.get_or_create(&Vec::new()).inc_by(log.written_rows);
        dropped.get_or_create(&Vec::new()).inc_by(log.dropped_rows);
    }
    registry.register_with_unit("log", "Size of the log of operations", Unit::Bytes, bytes);
    registry.register("log_rows", "Rows of the log that were written", rows);
    registry.register("log_dropped_rows", "Rows of the log that could not be written", dropped);
    registry.register_with_unit("cpu", "Processor time of the daemon with all engines", Unit::Seconds, cpu);
}

fn groups(registry: &mut Registry, groups: &[GroupStatus]) {
    let labels = |group: &GroupStatus| vec![("group".to_owned(), group.name.clone())];
    let tier = |group: &GroupStatus, tier: usize| {
        let mut labels = labels(group);
        labels.push(("tier".to_owned(), tier.to_string()));
        labels
    };
    let (resident, hits) = (Values::default(), Counts::default());
    for group in groups {
        for (place, bytes) in group.resident_bytes.iter().enumerate() {
            resident.get_or_create(&tier(group, place)).set(bytes.0 as f64);
        }
        for (place, &count) in group.hits.iter().enumerate() {
            hits.get_or_create(&tier(group, place)).inc_by(count);
        }
    }
    registry.register_with_unit(
        "resident",
        "Memory of the group's programs on each tier",
        Unit::Bytes,
        resident,
    );
    registry.register("hits", "Accesses that each tier served, counted or summed over samples", hits);
    let mut bytes = |name: &str, help: &str, of: &dyn Fn(&GroupStatus) -> Option<Bytes>| {
        let values = Values::default();
        for group in groups {
            if let Some(value) = of(group) {
                values.get_or_create(&labels(group)).set(value.0 as f64);
            }
        }
        registry.register_with_unit(name, help, Unit::Bytes, values);
    };
    bytes("share", "Fast memory that the group may use now", &|group| Some(group.share_bytes));
    bytes("protect", "Least fast memory that others never take", &|group| Some(group.protect_bytes));
    bytes("limit", "Most fast memory", &|group| group.limit_bytes);
    bytes("swapped", "Memory of the group's programs in swap", &|group| Some(group.swapped_bytes));
    bytes("zswapped", "How much of it zswap holds, before compression, or less", &|group| {
        group.zswapped_bytes
    });
    bytes("engine_memory", "Memory of the group's engine", &|group| Some(group.engine_bytes));
    let mut count = |name: &str, help: &str, of: fn(&GroupStatus) -> u64| {
        let counts = Counts::default();
        for group in groups {
            counts.get_or_create(&labels(group)).inc_by(of(group));
        }
        registry.register(name, help, counts);
    };
    count("promotions", "Pages moved to a faster tier", |group| group.traffic.promotions);
    count("demotions", "Pages moved to a slower tier", |group| {
        group.traffic.demotions + group.traffic.reclaimed
    });
    count("samples", "Accesses sampled", |group| group.samples);
    count("samples_lost", "Samples lost on the way to the policy", |group| group.lost);
    let failures = Counts::default();
    for group in groups {
        let refused = group.traffic.refused;
        for (errno, count) in [
            ("ENOMEM", refused.no_room),
            ("EBUSY", refused.busy),
            ("ENOENT", refused.gone + refused.swapped),
            ("EPERM", refused.denied),
        ] {
            let mut labels = labels(group);
            labels.push(("errno".to_owned(), errno.to_owned()));
            failures.get_or_create(&labels).inc_by(count);
        }
    }
    registry.register("move_failures", "Moves that the kernel or a full tier refused", failures);
    let mut seconds = |name: &str, help: &str, of: fn(&GroupStatus) -> f64| {
        let counts = Seconds::default();
        for group in groups {
            counts.get_or_create(&labels(group)).inc_by(of(group));
        }
        registry.register_with_unit(name, help, Unit::Seconds, counts);
    };
    seconds("running", "Processor time of the programs", |group| group.running_ns.as_seconds());
    seconds("observing", "Time that programs lost to being observed", |group| {
        group.observing_ns.as_seconds()
    });
    seconds("engine", "Processor time of the group's engine", |group| group.engine_ns.as_seconds());
    seconds("saved", "Upper bound on the time saved against as much fast memory filled at random", |group| {
        group.saved_ns.as_seconds()
    });
    let (ratio, programs) = (Values::default(), Values::default());
    for group in groups {
        if let Some(known) = group.hit_ratio {
            ratio.get_or_create(&labels(group)).set(known);
        }
        programs.get_or_create(&labels(group)).set(group.programs.len() as f64);
    }
    registry.register(
        "hit_ratio",
        "The fast tier's share of all accesses; absent while it is not known",
        ratio,
    );
    registry.register("programs", "Programs of the group", programs);
}

#[cfg(test)]
mod tests {
    use isotherm_core::Nanos;
    use isotherm_core::live_result::{Refused, Traffic};
    use isotherm_core::machine_status::LogStatus;

    use super::*;

    #[test]
    fn metrics_have_units_types_and_labels() {
        let refused = Refused { busy: 3, ..Refused::default() };
        let group = GroupStatus {
            name: "database".into(),
            resident_bytes: vec![Bytes(4096), Bytes(8192)],
            swapped_bytes: Bytes(12288),
            hits: vec![90, 10],
            traffic: Traffic { promotions: 5, demotions: 2, reclaimed: 1, refused, ..Traffic::default() },
            saved_ns: Nanos(1_500_000_000),
            ..GroupStatus::default()
        };
        let kernel = vec![("pgpromote_success".to_owned(), 42)];
        let log = Some(LogStatus { bytes: Bytes(4096), dropped_rows: 7, ..LogStatus::default() });
        let status = MachineStatus { groups: vec![group], kernel, log, ..MachineStatus::default() };
        let text = machine_metrics(&status);
        for line in [
            "# TYPE isotherm_resident_bytes gauge",
            "# UNIT isotherm_resident_bytes bytes",
            "isotherm_resident_bytes{group=\"database\",tier=\"1\"} 8192.0",
            "isotherm_swapped_bytes{group=\"database\"} 12288.0",
            "isotherm_hits_total{group=\"database\",tier=\"0\"} 90",
            "isotherm_promotions_total{group=\"database\"} 5",
            "isotherm_demotions_total{group=\"database\"} 3",
            "isotherm_move_failures_total{group=\"database\",errno=\"EBUSY\"} 3",
            "isotherm_saved_seconds_total{group=\"database\"} 1.5",
            "isotherm_log_bytes{} 4096.0",
            "isotherm_log_dropped_rows_total{} 7",
            "isotherm_kernel_vmstat_total{name=\"pgpromote_success\"} 42",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} is missing:\n{text}");
        }
        assert!(!text.contains("isotherm_limit_bytes{"), "a group without a limit has no such value");
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn the_dashboard_asks_for_metrics_that_exist() {
        let group = GroupStatus {
            limit_bytes: Some(Bytes(1)),
            hit_ratio: Some(0.5),
            resident_bytes: vec![Bytes(1)],
            hits: vec![1],
            ..GroupStatus::default()
        };
        let kernel = vec![("pgpromote_success".to_owned(), 42)];
        let text =
            machine_metrics(&MachineStatus { groups: vec![group], kernel, ..MachineStatus::default() });
        let known = |name: &str| {
            let family = name.strip_suffix("_total").unwrap_or(name);
            text.lines().any(|line| {
                line.strip_prefix("# TYPE ").and_then(|rest| rest.split(' ').next()) == Some(family)
            })
        };
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/grafana.json");
        let dashboard: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).expect("the dashboard")).expect("JSON");
        let mut asked = 0;
        for panel in dashboard["panels"].as_array().expect("panels") {
            for target in panel["targets"].as_array().expect("targets") {
                let query = target["expr"].as_str().expect("a query");
                let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                for name in words.filter(|word| word.starts_with("isotherm_")) {
                    assert!(known(name), "{name} is no metric");
                    asked += 1;
                }
            }
        }
        assert!(asked > 10, "{asked}");
    }
}
