//! Defines the findings about how the kernel makes room: demotion, reclaim by node and cgroup, its LRU, huge pages.

use super::facts::{Facts, HIDDEN};
use super::finding::{Area, Finding, Remedy};
use isotherm_linux::topology::files::hexadecimal;
use isotherm_linux::topology::{Tiers, Topology};

const DEMOTION: &str = "/sys/kernel/mm/numa/demotion_enabled";
const MGLRU: &str = "/sys/kernel/mm/lru_gen/enabled";
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const OWN_CGROUP: &str = "/proc/self/cgroup";

/// The tiers are those of `topology`, if it could be read.
pub(super) fn examine(facts: &Facts<'_>, topology: Option<&Topology>) -> Vec<Finding> {
    let tiers = topology.map(Tiers::derive);
    let mut findings = vec![demotion(facts, tiers.as_ref())];
    findings.extend(tiers.iter().flat_map(|tiers| node_reclaim(facts, tiers)));
    findings.extend([cgroup_reclaim(facts), mglru(facts), huge_pages(facts)]);
    findings
}

fn demotion(facts: &Facts<'_>, tiers: Option<&Tiers>) -> Finding {
    let (area, name) = (Area::Memory, "demotion");
    let slower = tiers.is_some_and(|tiers| tiers.count() > 1);
    let lost = "reclaim by the kernel's LRU swaps cold pages out, or drops them, rather than demote them";
    match facts.tree.text_if_there(DEMOTION) {
        Err(error) => Finding::unknown(area, name, error),
        Ok(None) if !facts.sys_is_visible() => Finding::unknown(area, name, HIDDEN),
        Ok(None) => Finding::missing(
            area,
            name,
            "the kernel has no demotion",
            lost,
            Remedy::option("CONFIG_NUMA=y CONFIG_MIGRATION=y (Linux 5.15 or later)"),
        ),
        Ok(Some(text)) => match text.as_str() {
            "true" | "1" => Finding::ok(area, name, "the kernel's reclaim demotes pages to slower tiers"),
            "false" | "0" if !slower => {
                Finding::ok(area, name, "off, and there is no slower tier to demote to")
            }
            "false" | "0" => Finding::missing(
                area,
                name,
                "the kernel's reclaim does not demote",
                lost,
                Remedy::command(format!("echo 1 > {DEMOTION}")),
            ),
            other => {
                Finding::unknown(area, name, format!("{DEMOTION} says '{other}', which is not known here"))
            }
        },
    }
}

/// One finding for the nodes of the fastest tier: where some differ, those without count.
fn node_reclaim(facts: &Facts<'_>, tiers: &Tiers) -> Option<Finding> {
    let (area, name) = (Area::Memory, "node-reclaim");
    let fast = tiers.all().first()?;
    let file = |node: &u32| format!("/sys/devices/system/node/node{node}/reclaim");
    let lost = "a policy's request that the kernel demote from the fast tier, except by cgroup";
    let answers: Vec<_> = fast.nodes.iter().map(|node| (file(node), facts.writable(&file(node)))).collect();
    let failed = answers.into_iter().find_map(|(file, answer)| Some((file, answer.err()?)));
    let Some((file, error)) = failed else {
        return Some(Finding::ok(area, name, "the fast tier's nodes can be asked to make room"));
    };
    let finding = if !facts.sys_is_visible() {
        Finding::unknown(area, name, HIDDEN)
    } else if error.kind() == std::io::ErrorKind::NotFound {
        let remedy = Remedy::advice("Linux 6.17 or later");
        Finding::missing(area, name, "the kernel cannot be asked to make room on one node", lost, remedy)
    } else {
        Finding::missing(
            area,
            name,
            format!("{file} may not be written: {error}"),
            lost,
            facts.write_remedy(&error),
        )
    };
    Some(finding)
}

fn cgroup_reclaim(facts: &Facts<'_>) -> Finding {
    let (area, name) = (Area::Memory, "cgroup-reclaim");
    let lost = "a policy's request that the kernel demote pages of one program";
    let text = match facts.tree.text(OWN_CGROUP) {
        Ok(text) => text,
        Err(error) => return Finding::unknown(area, name, error),
    };
    let own = text.lines().find_map(|line| line.strip_prefix("0::"));
    let mount = facts.mounts.iter().find(|mount| mount.kind == "cgroup2").map(|mount| mount.point.as_str());
    let controls = |mount: &&str| {
        let controllers = facts.tree.text(&format!("{mount}/cgroup.controllers"));
        controllers.is_ok_and(|text| text.split(' ').any(|name| name == "memory"))
    };
    let (Some(own), Some(mount)) = (own, mount.filter(controls)) else {
        let meaning = "no cgroup of version 2 controls memory here";
        let remedy = Remedy::BootParameter("systemd.unified_cgroup_hierarchy=1".to_owned());
        return Finding::missing(area, name, meaning, lost, remedy);
    };
    let file = format!("{mount}{}/memory.reclaim", own.trim_end_matches('/'));
    match facts.writable(&file) {
        Ok(()) => Finding::ok(area, name, format!("{file} can be asked to make room")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let meaning = format!("this process' cgroup {own} has no memory.reclaim");
            Finding::missing(
                area,
                name,
                meaning,
                lost,
                Remedy::command("systemd-run --scope -p MemoryAccounting=yes isotherm run -- PROGRAM"),
            )
        }
        Err(error) => Finding::missing(
            area,
            name,
            format!("{file} may not be written: {error}"),
            lost,
            facts.write_remedy(&error),
        ),
    }
}

fn mglru(facts: &Facts<'_>) -> Finding {
    let (area, name) = (Area::Memory, "multi-gen-lru");
    let lost = "the more exact of the kernel's two LRUs when it demotes by itself";
    match facts.tree.text_if_there(MGLRU) {
        Err(error) => Finding::unknown(area, name, error),
        Ok(None) if !facts.sys_is_visible() => Finding::unknown(area, name, HIDDEN),
        Ok(None) => Finding::missing(
            area,
            name,
            "the kernel has no multi-generational LRU",
            lost,
            Remedy::option("CONFIG_LRU_GEN=y"),
        ),
        Ok(Some(text)) => match hexadecimal(&text) {
            Some(0) => {
                Finding::missing(area, name, "it is off", lost, Remedy::command(format!("echo y > {MGLRU}")))
            }
            Some(_) => Finding::ok(area, name, "the kernel's reclaim uses it"),
            None => {
                Finding::unknown(area, name, format!("{MGLRU} says '{text}', which is no hexadecimal number"))
            }
        },
    }
}

fn huge_pages(facts: &Facts<'_>) -> Finding {
    let (area, name) = (Area::Memory, "transparent-huge-pages");
    match facts.tree.text_if_there(HUGE_PAGES) {
        Err(error) => Finding::unknown(area, name, error),
        Ok(None) if !facts.sys_is_visible() => Finding::unknown(area, name, HIDDEN),
        Ok(None) => Finding::ok(area, name, "the kernel has none: all pages are base pages"),
        Ok(Some(text)) => {
            let chosen =
                text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(chosen, _)| chosen);
            match chosen {
                Some("always") => {
                    Finding::ok(area, name, "always: most memory comes as 2 MiB pages, which move whole")
                }
                Some("madvise") => {
                    Finding::ok(area, name, "madvise: programs that ask get 2 MiB pages, which move whole")
                }
                Some("never") => Finding::ok(area, name, "never: all pages are base pages"),
                _ => Finding::unknown(
                    area,
                    name,
                    format!("{HUGE_PAGES} says '{text}', which is not known here"),
                ),
            }
        }
    }
}
