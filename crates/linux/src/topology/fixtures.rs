//! Small trees of `/sys` and `/proc` for tests, written from tables.
//!
//! A table has one line per item, with columns separated by blanks and `-` for an empty column:
//!
//! ```text
//! node  ID CPULIST TOTAL_KB FREE_KB DISTANCE,DISTANCE
//! tier  NUMBER NODELIST
//! speed NODE CLASS READ_LATENCY WRITE_LATENCY READ_BANDWIDTH WRITE_BANDWIDTH
//! cxl   NAME NUMA_NODE SIZE
//! dax   NAME TARGET_NODE SIZE DRIVER
//! file  PATH TEXT (to the end of the line, `\n` for a new line)
//! link  PATH TARGET
//! without PATH (removes what an earlier line made)
//! ```

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tempfile::TempDir;

pub const LAPTOP: &str = "
node 0 0-7 16000000 9000000 10
tier 4 0
file sys/kernel/mm/numa/demotion_enabled false
";

pub const TWO_SOCKETS: &str = "
node 0 0-15,32-47 65000000 20000000 10,21
node 1 16-31,48-63 66000000 30000000 21,10
tier 4 0-1
speed 0 0 90 90 200000 200000
speed 0 1 90 90 200000 200000
file sys/kernel/mm/numa/demotion_enabled false
";

/// DRAM, and CXL memory in a slower tier.
pub const CXL: &str = "
node 0 0-31 130000000 40000000 10,14
node 1 - 260000000 259000000 14,10
tier 4 0
tier 22 1
speed 0 1 90 95 300000 250000
speed 1 0 250 260 26000 25000
speed 1 1 255 265 26000 0
cxl mem0 0 0x4000000000
cxl region0 - 0x4000000000
cxl decoder0.0 - 0x4000000000
cxl root0 - -
dax dax0.0 1 274877906944 kmem
file sys/kernel/mm/numa/demotion_enabled true
";

/// CXL memory that firmware declared ordinary memory.
pub const CXL_IN_THE_SAME_TIER: &str = "
node 0 0-31 130000000 40000000 10,14
node 1 - 260000000 259000000 14,10
tier 4 0-1
cxl mem0 0 0x4000000000
file sys/kernel/mm/numa/demotion_enabled false
";

/// Two sockets, each with DRAM and Optane memory.
pub const OPTANE: &str = "
node 0 0-23 96000000 1000000 10,21,17,28
node 1 24-47 98000000 2000000 21,10,28,17
node 2 - 520000000 500000000 17,28,10,28
node 3 - 530000000 500000000 28,17,28,10
tier 4 0-1
tier 22 2-3
dax dax0.0 2 541165879296 kmem
dax dax1.0 3 541165879296 kmem
file sys/kernel/mm/numa/demotion_enabled 1
";

/// DAX devices in every state but use as memory.
pub const DAX_NOT_ONLINE: &str = "
node 0 0-31 130000000 40000000 10
tier 4 0
dax dax0.0 1 274877906944 device_dax
dax dax1.0 2 274877906944 -
dax dax2.0 3 274877906944 kmem
dax dax3.0 -1 0 -
file sys/kernel/mm/numa/demotion_enabled false
";

pub const THREE_TIERS: &str = "
node 0 0-15 64000000 10000000 10,14,20
node 1 - 128000000 20000000 14,10,24
node 2 - 512000000 30000000 20,24,10
tier 4 0
tier 15 1
tier 22 2
";

/// Kernel before Linux 6.1, without memory_tiering.
pub const OLD_KERNEL: &str = "
node 0 0-15 64000000 10000000 10,20,17,28,14
node 1 16-31 64000000 20000000 20,10,28,17,24
node 2 - 256000000 30000000 17,28,10,28,30
node 3 - 256000000 40000000 28,17,28,10,30
node 4 - 128000000 50000000 14,24,30,30,10
";

/// Machine with a node of processors only.
pub const MEMORYLESS: &str = "
node 0 0-15 64000000 10000000 10,20,14
node 1 16-31 0 0 20,10,24
node 2 - 256000000 30000000 14,24,10
";

/// High-bandwidth memory beside ordinary memory: CPU-less, but not slow.
pub const HIGH_BANDWIDTH: &str = "
node 0 0-15 64000000 10000000 10,13
node 1 - 16000000 15000000 13,10
speed 0 1 110 110 200000 200000
speed 1 1 120 120 700000 700000
";

pub const NO_SYS: &str = "
file proc/meminfo MemTotal:       1000 kB\\nMemFree:         400 kB\\nMemAvailable:    700 kB
";

/// Writes a table's files below a new directory.
pub fn tree(table: &str) -> TempDir {
    let root = tempfile::tempdir().expect("a temporary directory");
    extend(root.path(), table);
    root
}

/// Writes a table's files below an existing directory.
pub fn extend(root: &Path, table: &str) {
    let mut online = Vec::new();
    for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let columns: Vec<&str> =
            line.split_whitespace().map(|word| if word == "-" { "" } else { word }).collect();
        match columns[..] {
            ["node", id, cpus, total, free, distances] => {
                online.push(id);
                node(root, id, cpus, (total, free), distances);
            }
            ["tier", number, nodes] => {
                let path = format!("sys/devices/virtual/memory_tiering/memory_tier{number}/nodelist");
                write(root, &path, nodes);
            }
            ["speed", node, class, ..] => speed(root, node, class, &columns[3..]),
            ["cxl", name, node, size] => cxl(root, name, node, size),
            ["dax", name, target, size, driver] => dax(root, name, target, size, driver),
            ["file", path, ..] => {
                let text = line.split_once(path).map_or("", |(_, text)| text.trim());
                write(root, path, &text.replace("\\n", "\n"));
            }
            ["link", path, target] => make_link(&root.join(path), target),
            ["without", path] => remove(&root.join(path)),
            _ => panic!("not a line of a fixture: {line}"),
        }
    }
    if !online.is_empty() {
        write(root, "sys/devices/system/node/online", &online.join(","));
    }
}

/// Writes a line of text into a file below `root`.
pub fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a file in a directory")).expect("a directory");
    fs::write(path, format!("{text}\n")).expect("a file");
}

fn node(root: &Path, id: &str, cpus: &str, (total, free): (&str, &str), distances: &str) {
    let directory = format!("sys/devices/system/node/node{id}");
    write(root, &format!("{directory}/cpulist"), cpus);
    write(root, &format!("{directory}/distance"), &distances.replace(',', " "));
    let mut meminfo = String::new();
    for (name, value) in [("MemTotal", total), ("MemFree", free), ("MemUsed", "0")] {
        writeln!(meminfo, "Node {id} {name}: {value:>14} kB").expect("a line");
    }
    write(root, &format!("{directory}/meminfo"), &meminfo);
}

fn speed(root: &Path, node: &str, class: &str, values: &[&str]) {
    let names = ["read_latency", "write_latency", "read_bandwidth", "write_bandwidth"];
    for (name, value) in names.iter().zip(values) {
        write(root, &format!("sys/devices/system/node/node{node}/access{class}/initiators/{name}"), value);
    }
}

fn cxl(root: &Path, name: &str, node: &str, size: &str) {
    let directory = format!("sys/bus/cxl/devices/{name}");
    fs::create_dir_all(root.join(&directory)).expect("a directory");
    if !node.is_empty() {
        write(root, &format!("{directory}/numa_node"), node);
    }
    if !size.is_empty() {
        let file = if name.starts_with("mem") { "ram/size" } else { "size" };
        write(root, &format!("{directory}/{file}"), size);
    }
}

fn dax(root: &Path, name: &str, target: &str, size: &str, driver: &str) {
    let directory = format!("sys/bus/dax/devices/{name}");
    write(root, &format!("{directory}/target_node"), target);
    write(root, &format!("{directory}/size"), size);
    if !driver.is_empty() {
        make_link(&root.join(directory).join("driver"), &format!("../../../bus/dax/drivers/{driver}"));
    }
}

fn make_link(path: &Path, target: &str) {
    fs::create_dir_all(path.parent().expect("a link in a directory")).expect("a directory");
    let _ = fs::remove_file(path);
    symlink(target, path).expect("a link");
}

fn remove(path: &Path) {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
        .expect("something to remove");
}
