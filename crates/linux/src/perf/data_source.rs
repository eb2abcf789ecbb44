//! Memory that served an access, as the kernel encodes it: `union perf_mem_data_src`.

use isotherm_core::{Bytes, Operation, TierId};

use crate::topology::{Node, Topology};

/// Kind of memory, as seen from the accessing processor: local at its own socket, remote at another; each
/// technology's pair in this order (`Memory::at`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Memory {
    LocalDram,
    RemoteDram,
    LocalCxl,
    RemoteCxl,
    LocalPmem,
    RemotePmem,
}

impl Memory {
    /// All kinds, in the order of [`TierMap`].
    #[rustfmt::skip]
    pub const ALL: [Self; 6] = [
        Self::LocalDram, Self::RemoteDram, Self::LocalCxl, Self::RemoteCxl, Self::LocalPmem, Self::RemotePmem,
    ];

    /// Returns the same technology at this or at another socket.
    const fn at(self, remote: bool) -> Self {
        Self::ALL[self as usize & !1 | remote as usize]
    }
}

/// Tier of each kind of memory on this machine, in the order of [`Memory::ALL`];
/// `None` where the kind is absent or does not determine the tier, so that the page must. A CPU-less node of
/// CXL memory is `LocalCxl` to processors that distinguish it from DRAM, and otherwise whatever they report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TierMap(pub [Option<TierId>; 6]);

impl TierMap {
    /// A kind of memory determines a tier if all nodes that have it are in that tier. Nodes with processors
    /// have DRAM; nodes without have CXL or persistent memory.
    pub fn of(topology: &Topology, tiers: &[Vec<u32>]) -> Self {
        let tier_of = |node: &Node| {
            let tier = tiers.iter().position(|nodes| nodes.contains(&node.id))?;
            Some(TierId(tier as u8))
        };
        let common = |cpuless: bool| {
            let nodes = topology.nodes.iter().filter(|node| node.total > Bytes(0));
            let mut found = nodes.filter(|node| node.is_cpuless() == cpuless).map(tier_of);
            let first = found.next()??;
            found.all(|tier| tier == Some(first)).then_some(first)
        };
        let (dram, other) = (common(false), common(true));
        Self([dram, dram, other, other, other, other])
    }

    #[inline]
    pub fn tier(&self, memory: Memory) -> Option<TierId> {
        self.0[memory as usize]
    }

    #[must_use]
    pub fn with(mut self, memory: Memory, tier: TierId) -> Self {
        self.0[memory as usize] = Some(tier);
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// Cache, fill buffer or another core.
    Cache,
    Memory(Memory),
    /// Device, or uncached memory.
    Device,
    Unknown,
}

/// `union perf_mem_data_src`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataSource(pub u64);

const OP_LOAD: u64 = 0x02;
const OP_STORE: u64 = 0x04;

const LEVEL_MISS: u64 = 0x04;
/// L1, line fill buffer, L2, L3, and caches of other sockets.
const LEVEL_CACHES: u64 = 0x08 | 0x10 | 0x20 | 0x40 | 0x400 | 0x800;
const LEVEL_LOCAL_RAM: u64 = 0x80;
const LEVEL_REMOTE_RAM: u64 = 0x100 | 0x200;
const LEVEL_DEVICE: u64 = 0x1000 | 0x2000;

const NUMBER_UNCACHED: u64 = 0x8;
const NUMBER_CXL: u64 = 0x9;
const NUMBER_IO: u64 = 0xa;
const NUMBER_ANY_CACHE: u64 = 0xb;
const NUMBER_FILL_BUFFER: u64 = 0xc;
const NUMBER_RAM: u64 = 0xd;
const NUMBER_PMEM: u64 = 0xe;

/// Another core of the same node, which is not another node's memory.
const HOPS_SAME_NODE: u64 = 1;

impl DataSource {
    const fn field(self, first: u32, bits: u32) -> u64 {
        self.0 >> first & ((1 << bits) - 1)
    }

    /// `None` for prefetches, code, and where it is not reported.
    #[inline]
    pub fn operation(self) -> Option<Operation> {
        match self.field(0, 5) {
            op if op & OP_LOAD != 0 => Some(Operation::Load),
            op if op & OP_STORE != 0 => Some(Operation::Store),
            _ => None,
        }
    }

    /// Returns what served the access, by `mem_lvl_num` and `mem_remote`, or else by `mem_lvl`.
    #[inline]
    pub fn served(self) -> Served {
        let remote = self.field(37, 1) != 0 && self.field(43, 3) != HOPS_SAME_NODE;
        match self.field(33, 4) {
            NUMBER_RAM => Served::Memory(self.ram().unwrap_or(Memory::LocalDram.at(remote))),
            NUMBER_CXL => Served::Memory(Memory::LocalCxl.at(remote)),
            NUMBER_PMEM => Served::Memory(Memory::LocalPmem.at(remote)),
            // L1 to L4, its fill buffers, a cache at the memory, L0.
            1..=7 | NUMBER_ANY_CACHE | NUMBER_FILL_BUFFER if !self.missed() => Served::Cache,
            NUMBER_UNCACHED | NUMBER_IO => Served::Device,
            _ => self.by_level(),
        }
    }

    /// Whether the named level was missed rather than the one that served the access.
    fn missed(self) -> bool {
        self.field(5, 14) & LEVEL_MISS != 0
    }

    /// Returns DRAM named by `mem_lvl`, which is more exact here than `mem_remote`: old kernels omit that.
    fn ram(self) -> Option<Memory> {
        (self.field(5, 14) & LEVEL_REMOTE_RAM != 0).then_some(Memory::RemoteDram)
    }

    fn by_level(self) -> Served {
        match self.field(5, 14) {
            level if level & LEVEL_LOCAL_RAM != 0 => Served::Memory(Memory::LocalDram),
            level if level & LEVEL_REMOTE_RAM != 0 => Served::Memory(Memory::RemoteDram),
            level if level & LEVEL_DEVICE != 0 => Served::Device,
            level if level & LEVEL_CACHES != 0 && !self.missed() => Served::Cache,
            _ => Served::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shifts `mem_op`, `mem_lvl`, `mem_lvl_num`, `mem_remote` and `mem_hops` as `PERF_MEM_S` does.
    fn source(op: u64, level: u64, number: u64, remote: u64, hops: u64) -> DataSource {
        // mem_snoop, mem_lock, mem_dtlb, mem_snoopx and mem_blk are set to show that they do not matter.
        let noise = 0x1f << 19 | 3 << 24 | 0x7f << 26 | 3 << 38 | 7 << 40;
        DataSource(op | level << 5 | number << 33 | remote << 37 | hops << 43 | noise)
    }

    #[test]
    fn kinds_of_memory_are_told_apart() {
        use Memory::*;
        let cases = [
            (0xd, 0, 0, LocalDram),
            (0xd, 1, 0, RemoteDram),
            (0xd, 1, 3, RemoteDram),
            (0xd, 1, 1, LocalDram),
            (0x9, 0, 0, LocalCxl),
            (0x9, 1, 2, RemoteCxl),
            (0xe, 0, 0, LocalPmem),
            (0xe, 1, 0, RemotePmem),
        ];
        for (number, remote, hops, memory) in cases {
            assert_eq!(
                source(2, 2, number, remote, hops).served(),
                Served::Memory(memory),
                "{number:#x} {remote}"
            );
        }
    }

    #[test]
    fn the_older_levels_are_read_where_the_newer_are_missing() {
        for number in [0, 0xf] {
            assert_eq!(source(2, 0x82, number, 0, 0).served(), Served::Memory(Memory::LocalDram));
            assert_eq!(source(2, 0x102, number, 0, 0).served(), Served::Memory(Memory::RemoteDram));
            assert_eq!(source(2, 0x202, number, 0, 0).served(), Served::Memory(Memory::RemoteDram));
            assert_eq!(source(2, 0x42, number, 0, 0).served(), Served::Cache);
            assert_eq!(source(2, 0x402, number, 0, 0).served(), Served::Cache);
            assert_eq!(source(2, 0x1002, number, 0, 0).served(), Served::Device);
            assert_eq!(source(2, 0x01, number, 0, 0).served(), Served::Unknown);
        }
        // Intel's table has entries with remote DRAM in the old field and the new one without `mem_remote`.
        assert_eq!(source(2, 0x102, 0xd, 0, 0).served(), Served::Memory(Memory::RemoteDram));
    }

    #[test]
    fn a_missed_level_is_not_what_served() {
        assert_eq!(source(2, 0x44, 3, 0, 0).served(), Served::Unknown);
        assert_eq!(source(2, 0x42, 3, 0, 0).served(), Served::Cache);
        assert_eq!(source(2, 0, 8, 0, 0).served(), Served::Device);
    }

    #[test]
    fn operations_are_read() {
        let operations = [1, 2, 4, 8, 16].map(|op| source(op, 0, 0xd, 0, 0).operation());
        assert_eq!(operations, [None, Some(Operation::Load), Some(Operation::Store), None, None]);
    }

    #[test]
    fn a_map_answers_in_the_order_of_all() {
        let map = TierMap::default().with(Memory::LocalDram, TierId(0)).with(Memory::RemotePmem, TierId(2));
        let tiers = Memory::ALL.map(|memory| map.tier(memory));
        assert_eq!(tiers, [Some(TierId(0)), None, None, None, None, Some(TierId(2))]);
    }

    #[test]
    fn a_kind_of_memory_determines_a_tier_where_all_of_it_is_in_one() {
        let node =
            |id, cpus: &[u32]| Node { id, cpus: cpus.to_vec(), total: Bytes(1 << 30), ..Node::default() };
        let topology = |nodes| Topology { nodes, ..Topology::default() };
        let machine = topology(vec![node(0, &[0]), node(1, &[1]), node(2, &[])]);
        let map = TierMap::of(&machine, &[vec![0, 1], vec![2]]);
        assert_eq!(map.tier(Memory::LocalDram), Some(TierId(0)));
        assert_eq!(map.tier(Memory::RemoteDram), Some(TierId(0)));
        assert_eq!(map.tier(Memory::LocalCxl), Some(TierId(1)));
        let map = TierMap::of(&machine, &[vec![0], vec![1, 2]]);
        assert_eq!(map.tier(Memory::LocalDram), None, "the page tells");
        assert_eq!(map.tier(Memory::RemotePmem), Some(TierId(1)));
        assert_eq!(TierMap::of(&machine, &[vec![0, 1]]).tier(Memory::LocalCxl), None, "in no tier");
    }
}
