//! Counters of the guest's kernel: the differences between two snapshots of its files.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

/// Bytes of a page, the kernel's unit.
const PAGE: u64 = 4096;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Pages that NUMA balancing has promoted (`pgpromote_success`).
    pub promoted: u64,
    /// Pages that reclaim has demoted (`pgdemote_kswapd`, `pgdemote_direct`, `pgdemote_khugepaged`).
    pub demoted: u64,
    /// Pages moved for tiering: for all reasons but compaction and memory hotplug. A huge page counts as 512.
    pub moved: u64,
    /// Pages that could not be moved for the same reasons.
    pub failed: u64,
    /// Pages moved by each of the kernel's reasons (trace point `mm_migrate_pages`).
    pub moves: BTreeMap<String, Moves>,
    /// Huge pages among those moved (`thp_migration_success`).
    pub huge_moved: u64,
    pub hint_faults: u64,
    /// Growth of every counter of `/proc/vmstat` that has grown.
    pub vmstat: BTreeMap<String, u64>,
    /// Seconds of the guest's clock between the snapshots. Under emulation they do not measure speed.
    pub guest_seconds: f64,
    pub damon: Option<Damon>,
    /// The program's pages in compressed memory; `null` on a machine without it.
    pub zswap: Option<Zswap>,
}

/// Pages that the kernel tried to move for one reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Moves {
    pub succeeded: u64,
    pub failed: u64,
    /// Times that it moved pages together.
    pub batches: u64,
}

/// Kernel's reasons by number (`enum migrate_reason`), as its trace point prints them.
const REASONS: [&str; 10] = [
    "compaction",
    "memory-failure",
    "memory-hotplug",
    "syscall-or-cpuset",
    "mbind",
    "numa-balancing",
    "contiguous-range",
    "long-term-pin",
    "demotion",
    "damon",
];
/// Reasons other than tiering.
const OTHERS: [&str; 2] = ["compaction", "memory-hotplug"];

/// Pages moved and bytes tried by DAMON's `migrate_hot` and `migrate_cold`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Damon {
    pub promoted: u64,
    pub demoted: u64,
    pub hot_bytes_tried: u64,
    pub cold_bytes_tried: u64,
}

/// Counters of the program's cgroup and of zswap.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Zswap {
    pub compressor: String,
    /// Pages that were compressed and stored (`zswpout`).
    pub stored: u64,
    /// Pages that came back by a fault (`zswpin`).
    pub loaded: u64,
    /// Pages written to the swap device (`zswpwb`), which the lab's guest forbids.
    pub written_back: u64,
    /// Times that a page was not stored and stays in memory, because it does not compress
    /// (`reject_compress_poor`; lz4 fails then: `reject_compress_fail`).
    pub incompressible: u64,
    /// Most pages in store at a look, four times a second, and the memory that they took then.
    pub most_pages: u64,
    pub most_bytes: u64,
}

impl Zswap {
    /// Returns how many times larger the stored pages were before.
    pub fn ratio(&self) -> Option<f64> {
        (self.most_bytes > 0).then(|| (self.most_pages * PAGE) as f64 / self.most_bytes as f64)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Residence {
    /// Seconds of the guest's clock since the snapshot before the program.
    pub seconds: f64,
    pub node_bytes: Vec<u64>,
    /// Bytes in compressed memory before compression, and after it.
    pub zswapped_bytes: u64,
    pub zswap_bytes: u64,
}

impl Residence {
    /// Returns the bytes of the program's memory, wherever they are.
    pub fn total(&self) -> u64 {
        self.node_bytes.iter().sum::<u64>() + self.zswapped_bytes
    }
}

impl Counts {
    /// Reads the files that a guest has left in its shared folder. Missing files count nothing.
    pub fn read(share: &Path) -> Self {
        let text = |path: &str| std::fs::read_to_string(share.join(path)).unwrap_or_default();
        let vmstat = grown(&text("before/vmstat"), &text("after/vmstat"));
        let sum = |names: &[&str]| names.iter().filter_map(|&name| vmstat.get(name)).sum();
        let moves = moves(&text("before/moves"), &text("after/moves"));
        let tiering = || moves.iter().filter(|(reason, _)| !OTHERS.contains(&reason.as_str()));
        let seconds = |path| text(path).trim().parse::<f64>().unwrap_or(0.0);
        Self {
            promoted: sum(&["pgpromote_success"]),
            demoted: sum(&["pgdemote_kswapd", "pgdemote_direct", "pgdemote_khugepaged"]),
            moved: tiering().map(|(_, moves)| moves.succeeded).sum(),
            failed: tiering().map(|(_, moves)| moves.failed).sum(),
            huge_moved: sum(&["thp_migration_success"]),
            hint_faults: sum(&["numa_hint_faults"]),
            guest_seconds: (seconds("after/uptime") - seconds("before/uptime")).max(0.0),
            damon: damon(&text("damon.0"), &text("damon.1")),
            zswap: zswap(&text("zswap"), &text("after/memory.stat"), &residence(share)),
            moves,
            vmstat,
        }
    }
}

pub fn residence(share: &Path) -> Vec<Residence> {
    let text = |path: &str| std::fs::read_to_string(share.join(path)).unwrap_or_default();
    let start = text("before/uptime").trim().parse::<f64>().unwrap_or(0.0);
    text("residency").lines().filter_map(|line| moment(line, start)).collect()
}

/// Returns the last moment with at least nine tenths of the largest memory, before the end frees it.
pub fn settled(moments: &[Residence]) -> Option<&Residence> {
    let largest = moments.iter().map(Residence::total).max()?;
    moments.iter().rev().find(|moment| moment.total() > 0 && moment.total() >= largest - largest / 10)
}

/// Parses `12.25 N0=4096 N1=8192`, on a machine with compressed memory with ` zswap=2048 zswapped=4096`.
fn moment(line: &str, start: f64) -> Option<Residence> {
    let mut words = line.split_whitespace();
    let seconds = words.next()?.parse::<f64>().ok()? - start;
    let (mut node_bytes, mut zswap_bytes, mut zswapped_bytes) = (Vec::new(), 0, 0);
    for word in words {
        let (name, value) = word.split_once('=')?;
        let value = value.parse().ok()?;
        match name {
            "zswap" => zswap_bytes = value,
            "zswapped" => zswapped_bytes = value,
            _ => node_bytes.push(value),
        }
    }
    (seconds.is_finite() && !node_bytes.is_empty()).then_some(Residence {
        seconds,
        node_bytes,
        zswapped_bytes,
        zswap_bytes,
    })
}

fn grown(before: &str, after: &str) -> BTreeMap<String, u64> {
    let before: BTreeMap<&str, u64> = counters(before).collect();
    let difference = |(name, value): (&str, u64)| {
        let grown = value.saturating_sub(before.get(name).copied().unwrap_or(0));
        // The growth of an amount, as opposed to a count, means nothing.
        (grown > 0 && !name.starts_with("nr_")).then(|| (name.to_owned(), grown))
    };
    counters(after).filter_map(difference).collect()
}

fn moves(before: &str, after: &str) -> BTreeMap<String, Moves> {
    let before: BTreeMap<usize, Moves> = before.lines().filter_map(reason).collect();
    let grown = |(number, after): (usize, Moves)| {
        let before = before.get(&number).copied().unwrap_or_default();
        let name = REASONS.get(number).map_or_else(|| format!("reason-{number}"), |name| (*name).to_owned());
        let moves = Moves {
            succeeded: after.succeeded.saturating_sub(before.succeeded),
            failed: after.failed.saturating_sub(before.failed),
            batches: after.batches.saturating_sub(before.batches),
        };
        (moves != Moves::default()).then_some((name, moves))
    };
    after.lines().filter_map(reason).filter_map(grown).collect()
}

/// Parses `{ reason:          3 } hitcount:          2  succeeded:         75  failed:          1`.
fn reason(line: &str) -> Option<(usize, Moves)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let value = |name: &str| {
        words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1)?.parse().ok())
    };
    let [succeeded, failed, batches] = ["succeeded:", "failed:", "hitcount:"].map(value);
    let moves = Moves { succeeded: succeeded?, failed: failed?, batches: batches? };
    Some((usize::try_from(value("reason:")?).ok()?, moves))
}

fn counters(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        Some((name, value.trim().parse().ok()?))
    })
}

fn value(text: &str, name: &str) -> Option<u64> {
    counters(text).find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// Reads zswap's own files, one a line, and the statistics of the program's cgroup.
fn zswap(files: &str, cgroup: &str, moments: &[Residence]) -> Option<Zswap> {
    let compressor = files.lines().find_map(|line| line.strip_prefix("compressor "))?;
    let most = moments.iter().max_by_key(|moment| moment.zswapped_bytes);
    Some(Zswap {
        compressor: compressor.into(),
        stored: value(cgroup, "zswpout")?,
        loaded: value(cgroup, "zswpin")?,
        written_back: value(cgroup, "zswpwb")?,
        incompressible: value(files, "reject_compress_poor")? + value(files, "reject_compress_fail")?,
        most_pages: most.map_or(0, |moment| moment.zswapped_bytes / PAGE),
        most_bytes: most.map_or(0, |moment| moment.zswap_bytes),
    })
}

fn damon(cold: &str, hot: &str) -> Option<Damon> {
    Some(Damon {
        promoted: value(hot, "sz_applied")? / PAGE,
        demoted: value(cold, "sz_applied")? / PAGE,
        hot_bytes_tried: value(hot, "sz_tried")?,
        cold_bytes_tried: value(cold, "sz_tried")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(files: &[(&str, &str)]) -> Result<tempfile::TempDir, std::io::Error> {
        let folder = tempfile::tempdir()?;
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
            std::fs::write(path, text)?;
        }
        Ok(folder)
    }

    #[test]
    fn what_the_kernel_counts_is_the_difference() -> Result<(), std::io::Error> {
        let folder = share(&[
            ("before/vmstat", "nr_free_pages 9\npgdemote_kswapd 1\n"),
            ("after/vmstat", "nr_free_pages 99\npgdemote_kswapd 4\npgdemote_direct 2\npgpromote_success 3\n"),
            (
                "before/moves",
                "# event histogram\n{ reason:          3 } hitcount:          1  succeeded:          2  failed:          1\n",
            ),
            (
                "after/moves",
                "{ reason: 3 } hitcount: 5  succeeded: 9  failed: 1\n{ reason: 0 } hitcount: 1  succeeded: 70  failed: 7\nTotals:\n    Hits: 6\n",
            ),
            ("before/uptime", "2.5\n"),
            ("after/uptime", "4.0\n"),
            ("residency", "3.0 N0=4096 N1=0\nbroken\n3.5 N0=x\n"),
        ])?;
        let counts = Counts::read(folder.path());
        assert_eq!((counts.promoted, counts.demoted, counts.moved), (3, 5, 7));
        let moves = |succeeded, failed, batches| Some(Moves { succeeded, failed, batches });
        assert_eq!(counts.moves.get("syscall-or-cpuset").copied(), moves(7, 0, 4));
        assert_eq!((counts.moves.get("compaction").copied(), counts.failed), (moves(70, 7, 1), 0));
        assert!((counts.guest_seconds - 1.5).abs() < 1e-9 && counts.damon.is_none());
        assert!(!counts.vmstat.contains_key("nr_free_pages"));
        let expected = Residence { seconds: 0.5, node_bytes: vec![4096, 0], ..Residence::default() };
        assert_eq!(residence(folder.path()), [expected]);
        Ok(())
    }

    #[test]
    fn damon_moves_hot_and_cold() -> Result<(), std::io::Error> {
        let stats =
            |bytes: u64| format!("nr_tried 3\nsz_tried {}\nnr_applied 2\nsz_applied {bytes}\n", 2 * bytes);
        let folder = share(&[("damon.0", &stats(8192)), ("damon.1", &stats(4096))])?;
        let expected = Damon { promoted: 1, demoted: 2, hot_bytes_tried: 8192, cold_bytes_tried: 16384 };
        assert_eq!(Counts::read(folder.path()).damon, Some(expected));
        Ok(())
    }

    #[test]
    fn compressed_memory_counts_the_program_and_its_fullest_moment() -> Result<(), std::io::Error> {
        let folder = share(&[
            ("zswap", "compressor lz4\nreject_compress_fail 2\nreject_compress_poor 5\nstored_pages 0\n"),
            ("after/memory.stat", "anon 0\nzswpin 3\nzswpout 9\nzswpwb 0\n"),
            (
                "residency",
                "1.0 N0=1 zswap=100 zswapped=8192\n2.0 N0=1 zswap=4096 zswapped=16384\n3.0 N0=1 zswap=0 zswapped=0\n",
            ),
        ])?;
        let zswap = Counts::read(folder.path()).zswap.unwrap_or_default();
        assert_eq!((zswap.compressor.as_str(), zswap.stored, zswap.loaded), ("lz4", 9, 3));
        assert_eq!((zswap.incompressible, zswap.most_pages, zswap.most_bytes), (7, 4, 4096));
        assert_eq!((zswap.ratio(), Zswap::default().ratio()), (Some(4.0), None));
        assert_eq!(residence(folder.path())[1].node_bytes, [1]);
        Ok(())
    }

    #[test]
    fn nothing_left_counts_nothing() -> Result<(), std::io::Error> {
        let folder = share(&[])?;
        assert_eq!(Counts::read(folder.path()), Counts::default());
        assert!(residence(folder.path()).is_empty());
        Ok(())
    }

    #[test]
    fn memory_that_is_freed_at_the_end_does_not_count() {
        let moment = |seconds, node_bytes: [u64; 2]| Residence {
            seconds,
            node_bytes: node_bytes.to_vec(),
            ..Residence::default()
        };
        let moments = [moment(1.0, [0, 8]), moment(2.0, [3, 5]), moment(3.0, [1, 4]), moment(4.0, [1, 0])];
        assert_eq!(settled(&moments), Some(&moments[1]));
        assert_eq!(settled(&[moment(1.0, [0, 0])]), None);
    }

    proptest::proptest! {
        #[test]
        fn no_file_is_too_strange(text in "\\PC{0,200}") {
            let _ = (grown(&text, &text), moment(&text, 0.0), damon(&text, &text), reason(&text));
            let _ = zswap(&text, &text, &[]);
        }
    }
}
