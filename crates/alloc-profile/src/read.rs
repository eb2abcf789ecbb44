//! Reads a profile.

use std::collections::HashMap;

use thiserror::Error;

use crate::layout as at;

#[derive(Debug, Error, PartialEq, Eq)]
pub enum ProfileError {
    #[error("expected the {expected} bytes of an allocation profile, found {found}")]
    Size { found: usize, expected: usize },
    /// The file begins differently, or the program has not started to write.
    #[error("expected an allocation profile of version {}", at::VERSION)]
    Version,
}

/// A region: its address range, and its contents in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    pub start: u64,
    pub end: u64,
    /// First address that was never used.
    pub frontier: u64,
    /// Live blocks, including those that threads keep for reuse.
    pub allocated: u64,
    pub active: u64,
    pub resident: u64,
}

impl Region {
    /// Returns the share of the pages with live blocks that no block uses.
    pub fn fragmentation(&self) -> f64 {
        if self.active == 0 { 0.0 } else { 1.0 - self.allocated.min(self.active) as f64 / self.active as f64 }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    pub start: u64,
    /// Path of its file; empty for the program itself.
    pub path: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Index of its module; not below the number of modules if that is unknown.
    pub module: usize,
    /// Offset from the module's first address.
    pub offset: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// Hash of its frames, the same in every run of a program.
    pub hash: u64,
    pub region: usize,
    pub blocks: u64,
    pub bytes: u64,
    /// Return addresses, innermost first.
    pub frames: Vec<Frame>,
}

/// A sampled live block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    pub address: u64,
    /// Requested size in bytes.
    pub size: u64,
    pub context: usize,
    /// Live bytes that it stands for.
    pub weight: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    pub process: u64,
    /// Mean number of bytes per sampled block.
    pub sample: u64,
    pub regions: Vec<Region>,
    pub contexts: Vec<Context>,
    /// Contexts for which the table had no room.
    pub contexts_lost: u64,
    pub modules: Vec<Module>,
    /// Sampled live blocks, in no particular order.
    pub blocks: Vec<Block>,
    /// Samples for which the table had no room.
    pub samples_lost: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Heat {
    pub regions: Vec<f64>,
    pub contexts: Vec<f64>,
    /// Accesses outside of all regions: stacks, code, mapped files.
    pub elsewhere: f64,
}

impl Profile {
    /// Reads a profile, also that of a running program, whose latest change may be half written.
    ///
    /// # Errors
    /// [`ProfileError`] if the bytes are not those of a profile.
    pub fn parse(bytes: &[u8]) -> Result<Self, ProfileError> {
        let (words, rest) = bytes.as_chunks::<8>();
        if words.len() != at::WORDS || !rest.is_empty() {
            return Err(ProfileError::Size { found: bytes.len(), expected: at::WORDS * 8 });
        }
        let words: Vec<u64> = words.iter().map(|&word| u64::from_ne_bytes(word)).collect();
        if (words[at::MAGIC_AT], words[at::VERSION_AT]) != (at::MAGIC, at::VERSION) {
            return Err(ProfileError::Version);
        }
        let table = |from: usize, size: usize, most: usize, used_at: usize| {
            let used = usize::try_from(words[used_at]).unwrap_or(usize::MAX).min(most);
            words[from..from + used * size].chunks_exact(size)
        };
        let regions = table(at::REGIONS_FROM, at::REGION, at::REGIONS, at::REGIONS_AT).map(region).collect();
        let modules = table(at::MODULES_FROM, at::MODULE, at::MODULES, at::MODULES_AT).map(module).collect();
        let contexts: Vec<_> =
            table(at::CONTEXTS_FROM, at::CONTEXT, at::CONTEXTS, at::CONTEXTS_AT).map(context).collect();
        let blocks = words[at::BLOCKS_FROM..].chunks_exact(at::BLOCK).filter_map(block);
        let blocks = blocks.filter(|block| block.context < contexts.len()).collect();
        Ok(Self {
            process: words[at::PROCESS_AT],
            sample: words[at::SAMPLE_AT],
            regions,
            contexts_lost: words[at::CONTEXTS_AT].saturating_sub(at::CONTEXTS as u64),
            contexts,
            modules,
            blocks,
            samples_lost: words[at::LOST_AT],
        })
    }

    /// Distributes accesses over regions and contexts. Each item is an address in a page of 4 KiB and the
    /// number of accesses that it stands for. A page's accesses are divided among the contexts of the live
    /// blocks sampled in it, by the blocks' weights; without such blocks they count for the region only.
    pub fn heat(&self, accesses: impl IntoIterator<Item = (u64, f64)>) -> Heat {
        let mut pages: HashMap<u64, Vec<(usize, f64)>> = HashMap::new();
        for block in &self.blocks {
            let last = block.address.saturating_add(block.size.saturating_sub(1));
            for page in (block.address >> 12)..=(last >> 12).min((block.address >> 12) + 1024) {
                pages.entry(page).or_default().push((block.context, block.weight.max(1) as f64));
            }
        }
        let mut heat = Heat {
            regions: vec![0.0; self.regions.len()],
            contexts: vec![0.0; self.contexts.len()],
            elsewhere: 0.0,
        };
        for (address, count) in accesses {
            match self.regions.iter().position(|region| (region.start..region.end).contains(&address)) {
                Some(region) => heat.regions[region] += count,
                None => heat.elsewhere += count,
            }
            let shares = pages.get(&(address >> 12)).map_or(&[][..], Vec::as_slice);
            let whole: f64 = shares.iter().map(|(_, weight)| weight).sum();
            for (context, weight) in shares {
                heat.contexts[*context] += count * weight / whole;
            }
        }
        heat
    }

    /// Returns the live bytes of each context, estimated from the sampled blocks.
    pub fn live(&self) -> Vec<u64> {
        let mut live = vec![0_u64; self.contexts.len()];
        for block in &self.blocks {
            live[block.context] = live[block.context].saturating_add(block.weight);
        }
        live
    }
}

fn region(words: &[u64]) -> Region {
    Region {
        start: words[at::REGION_START],
        end: words[at::REGION_END],
        frontier: words[at::REGION_FRONTIER],
        allocated: words[at::REGION_ALLOCATED],
        active: words[at::REGION_ACTIVE],
        resident: words[at::REGION_RESIDENT],
    }
}

fn module(words: &[u64]) -> Module {
    let bytes: Vec<u8> =
        words[1..].iter().flat_map(|word| word.to_ne_bytes()).take_while(|&byte| byte != 0).collect();
    Module { start: words[0], path: String::from_utf8_lossy(&bytes).into_owned() }
}

fn context(words: &[u64]) -> Context {
    let length = usize::try_from(words[at::CONTEXT_LENGTH]).unwrap_or(usize::MAX).min(at::FRAMES);
    let frame = |&word: &u64| Frame {
        module: (word >> at::OFFSET_BITS) as usize,
        offset: word & ((1 << at::OFFSET_BITS) - 1),
    };
    Context {
        hash: words[at::CONTEXT_HASH],
        region: words[at::CONTEXT_REGION] as usize,
        blocks: words[at::CONTEXT_BLOCKS],
        bytes: words[at::CONTEXT_BYTES],
        frames: words[at::CONTEXT_FRAMES..at::CONTEXT_FRAMES + length].iter().map(frame).collect(),
    }
}

fn block(words: &[u64]) -> Option<Block> {
    let &[address, size, context, weight] = words else { return None };
    (address > 1).then_some(Block { address, size, context: usize::try_from(context).ok()?, weight })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn empty() -> Vec<u64> {
        let mut words = vec![0; at::WORDS];
        (words[at::MAGIC_AT], words[at::VERSION_AT]) = (at::MAGIC, at::VERSION);
        words
    }

    fn parse(words: &[u64]) -> Result<Profile, ProfileError> {
        Profile::parse(&words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>())
    }

    #[test]
    fn what_was_written_is_read() {
        let mut words = empty();
        (words[at::CONTEXTS_AT], words[at::MODULES_AT], words[at::REGIONS_AT]) = (1, 1, 1);
        words[at::REGIONS_FROM..at::REGIONS_FROM + 6].copy_from_slice(&[4096, 8192, 5000, 300, 400, 500]);
        words[at::CONTEXTS_FROM..at::CONTEXTS_FROM + 7].copy_from_slice(&[9, 0, 2, 5, 50, 17, 1 << 48 | 18]);
        words[at::MODULES_FROM] = 77;
        words[at::MODULES_FROM + 1] = u64::from_ne_bytes(*b"/bin/x\0\0");
        words[at::BLOCKS_FROM..at::BLOCKS_FROM + 8].copy_from_slice(&[4200, 10, 0, 640, 1, 10, 0, 640]);
        let profile = parse(&words).expect("a profile");
        let frames = vec![Frame { module: 0, offset: 17 }, Frame { module: 1, offset: 18 }];
        assert_eq!(profile.contexts, [Context { hash: 9, region: 0, blocks: 5, bytes: 50, frames }]);
        assert_eq!(profile.modules, [Module { start: 77, path: "/bin/x".into() }]);
        assert_eq!(profile.live(), [640]);
        assert_eq!(profile.regions[0].fragmentation(), 0.25);
    }

    #[test]
    fn accesses_fall_to_contexts_by_weight() {
        let context = Context { hash: 1, region: 0, blocks: 1, bytes: 1, frames: Vec::new() };
        let region = Region { start: 0, end: 1 << 20, frontier: 0, allocated: 0, active: 0, resident: 0 };
        let block = |address, size, context, weight| Block { address, size, context, weight };
        let mut profile = parse(&empty()).expect("a profile");
        profile.contexts = vec![context; 2];
        profile.regions = vec![region];
        profile.blocks = vec![block(4096, 64, 0, 300), block(4200, 64, 1, 100), block(8100, 200, 1, 50)];
        let heat = profile.heat([(4096, 4.0), (8192, 2.0), (40960, 1.0), (1 << 30, 5.0)]);
        let page_one = 4.0 * 300.0 / 450.0;
        assert_eq!(heat.regions, [7.0]);
        assert!((heat.contexts[0] - page_one).abs() < 1e-9, "{heat:?}");
        assert!((heat.contexts[1] - (4.0 - page_one + 2.0)).abs() < 1e-9, "{heat:?}");
        assert_eq!(heat.elsewhere, 5.0);
    }

    #[test]
    fn other_files_are_refused() {
        assert_eq!(Profile::parse(b"text"), Err(ProfileError::Size { found: 4, expected: at::WORDS * 8 }));
        assert_eq!(parse(&vec![0; at::WORDS]), Err(ProfileError::Version));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn nothing_in_it_makes_reading_panic(changes in prop::collection::vec((2..at::WORDS, any::<u64>()), 0..200)) {
            let mut words = empty();
            for (index, value) in changes {
                words[index] = value;
            }
            if let Ok(profile) = parse(&words) {
                profile.live();
                profile.regions.iter().for_each(|region| assert!(region.fragmentation() <= 1.0));
            }
        }
    }
}
