//! Checks of how the kernel reclaims memory: demotion, reclaim by node and by cgroup, its LRU, huge pages.

use std::io::ErrorKind;

use isotherm_core::Bytes;
use isotherm_linux::files::hexadecimal;
use isotherm_linux::topology::{Tiers, Topology};

use super::facts::{Facts, HIDDEN, OWN_CGROUP};
use super::finding::{Area, Checked, Finding, Remedy, settled};

const DEMOTION: &str = "/sys/kernel/mm/numa/demotion_enabled";
const MGLRU: &str = "/sys/kernel/mm/lru_gen/enabled";
const ZSWAP: &str = "/sys/module/zswap/parameters";
const SWAPS: &str = "/proc/swaps";
const MEMINFO: &str = "/proc/meminfo";
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Checks reclaim on the tiers of `topology`, which is `None` where it could not be read.
pub(super) fn examine(facts: &Facts<'_>, topology: Option<&Topology>) -> Vec<Finding> {
    let tiers = topology.map(Tiers::derive);
    let mut findings = vec![settled(demotion(facts, tiers.as_ref()))];
    findings.extend(tiers.iter().flat_map(|tiers| node_reclaim(facts, tiers)));
    findings.extend([cgroup_reclaim(facts), mglru(facts), zswap(facts), huge_pages(facts)].map(settled));
    findings
}

fn demotion(facts: &Facts<'_>, tiers: Option<&Tiers>) -> Checked {
    let topic = Area::Memory.topic("demotion");
    let slower = tiers.is_some_and(|tiers| tiers.count() > 1);
    let lost = "demotion by the kernel, which swaps out or drops cold pages instead";
    let Some(text) = facts.sys_file(topic, DEMOTION)? else {
        let remedy = Remedy::option("CONFIG_NUMA=y CONFIG_MIGRATION=y (Linux 5.15 or later)");
        return Ok(topic.missing("the kernel has no demotion", lost, remedy));
    };
    Ok(match text.as_str() {
        "true" | "1" => topic.ok("the kernel's reclaim demotes pages to slower tiers"),
        "false" | "0" if !slower => topic.ok("off; there is no slower tier to demote to"),
        "false" | "0" => {
            let remedy = Remedy::Command(format!("echo 1 > {DEMOTION}"));
            topic.missing("the kernel's reclaim does not demote", lost, remedy)
        }
        other => topic.unknown(format!("{DEMOTION} has the unknown value '{other}'")),
    })
}

/// Checks the nodes of the fastest tier; one that cannot be reclaimed from decides.
fn node_reclaim(facts: &Facts<'_>, tiers: &Tiers) -> Option<Finding> {
    let topic = Area::Memory.topic("node-reclaim");
    let lost = "demotion from the fast tier at a policy's request, except by cgroup";
    let failed = tiers.all().first()?.nodes.iter().find_map(|node| {
        let file = format!("/sys/devices/system/node/node{node}/reclaim");
        facts.writable(&file).err().map(|error| (file, error))
    });
    Some(match failed {
        None => topic.ok("the kernel reclaims from nodes of the fast tier on request"),
        Some(_) if !facts.sys_is_visible() => topic.unknown(HIDDEN),
        Some((_, error)) if error.kind() == ErrorKind::NotFound => {
            let meaning = "the kernel cannot reclaim from one node on request";
            topic.missing(meaning, lost, Remedy::advice("Linux 6.17 or later"))
        }
        Some((file, error)) => facts.unwritable(topic, &file, lost, &error),
    })
}

fn cgroup_reclaim(facts: &Facts<'_>) -> Checked {
    let topic = Area::Memory.topic("cgroup-reclaim");
    let lost = "demotion of one program's pages at a policy's request";
    let text = topic.known(facts.tree.text(OWN_CGROUP))?;
    let own = text.lines().find_map(|line| line.strip_prefix("0::"));
    let mount = facts.mounts.iter().find(|mount| mount.kind == "cgroup2").map(|mount| mount.point.as_str());
    let controls = |mount: &&str| {
        let controllers = facts.tree.text(&format!("{mount}/cgroup.controllers"));
        controllers.is_ok_and(|text| text.split(' ').any(|name| name == "memory"))
    };
    let (Some(own), Some(mount)) = (own, mount.filter(controls)) else {
        let remedy = Remedy::BootParameter("systemd.unified_cgroup_hierarchy=1".to_owned());
        return Ok(topic.missing("no cgroup of version 2 controls memory", lost, remedy));
    };
    let file = format!("{mount}{}/memory.reclaim", own.trim_end_matches('/'));
    Ok(match facts.writable(&file) {
        Ok(()) => topic.ok(format!("the kernel reclaims from this cgroup on request, by {file}")),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let remedy = "systemd-run --scope -p MemoryAccounting=yes isotherm run -- PROGRAM";
            topic.missing(format!("cgroup {own} has no memory.reclaim"), lost, Remedy::command(remedy))
        }
        Err(error) => facts.unwritable(topic, &file, lost, &error),
    })
}

fn mglru(facts: &Facts<'_>) -> Checked {
    let topic = Area::Memory.topic("multi-gen-lru");
    let lost = "the more exact of the kernel's two LRUs for its own demotion";
    let Some(text) = facts.sys_file(topic, MGLRU)? else {
        let remedy = Remedy::option("CONFIG_LRU_GEN=y");
        return Ok(topic.missing("the kernel has no multi-generational LRU", lost, remedy));
    };
    Ok(match hexadecimal(&text) {
        Some(0) => topic.missing("off", lost, Remedy::Command(format!("echo y > {MGLRU}"))),
        Some(_) => topic.ok("the kernel's reclaim uses it"),
        None => topic.unknown(format!("{MGLRU}: expected a hexadecimal number, found '{text}'")),
    })
}

/// Checks compressed memory: its pages have no node and do not move until a fault brings them back.
fn zswap(facts: &Facts<'_>) -> Checked {
    let topic = Area::Memory.topic("zswap");
    let lost = "compressed memory behind the slowest tier";
    match facts.sys_file(topic, &format!("{ZSWAP}/enabled"))?.as_deref() {
        None => return Ok(topic.ok("not in this kernel: what is swapped out goes to the swap device")),
        Some("N") => return Ok(topic.ok("off: what is swapped out goes to the swap device")),
        Some("Y") => {}
        Some(other) => return Ok(topic.unknown(format!("{ZSWAP}/enabled has the unknown value '{other}'"))),
    }
    // The file has a line of headings.
    if topic.known(facts.tree.text(SWAPS))?.lines().count() < 2 {
        let remedy = Remedy::advice("a swap file or device (mkswap, swapon): zswap stands before it");
        return Ok(topic.missing("on, but there is no swap", lost, remedy));
    }
    let compressor = facts.sys_file(topic, &format!("{ZSWAP}/compressor"))?.unwrap_or_default();
    let meminfo = topic.known(facts.tree.text(MEMINFO))?;
    let bytes = |name: &str| {
        let kibibytes = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_suffix("kB"));
        kibibytes.and_then(|number| number.trim().parse().ok()).map_or(Bytes(0), |kib: u64| Bytes(kib << 10))
    };
    let (stored, taken) = (bytes("Zswapped:"), bytes("Zswap:"));
    Ok(topic.ok(format!("on, by {compressor}: {stored} of pages in {taken}")))
}

fn huge_pages(facts: &Facts<'_>) -> Checked {
    let topic = Area::Memory.topic("transparent-huge-pages");
    let Some(text) = facts.sys_file(topic, HUGE_PAGES)? else {
        return Ok(topic.ok("not in this kernel: all pages are base pages"));
    };
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(chosen, _)| chosen);
    Ok(match chosen {
        Some("always") => topic.ok("always: most memory is in 2 MiB pages, which move whole"),
        Some("madvise") => topic.ok("madvise: programs that ask get 2 MiB pages, which move whole"),
        Some("never") => topic.ok("never: all pages are base pages"),
        _ => topic.unknown(format!("{HUGE_PAGES} has the unknown value '{text}'")),
    })
}
