//! Virtual machines: their nodes, speeds and processors. Read from `lab/machines/NAME.toml`.

use isotherm_core::Bytes;
use isotherm_core::names::advice;
use isotherm_machine::Profile;

use crate::LabError;

mod file;
mod profile_text;
#[cfg(test)]
mod tests;

/// Machines that come with Isotherm, in alphabetical order.
const BUILTIN: &[(&str, &str)] = &[
    ("chmu", include_str!("../../../../lab/machines/chmu.toml")),
    ("cxl", include_str!("../../../../lab/machines/cxl.toml")),
    ("deterministic", include_str!("../../../../lab/machines/deterministic.toml")),
    ("neoprof", include_str!("../../../../lab/machines/neoprof.toml")),
    ("neoprof-rtl", include_str!("../../../../lab/machines/neoprof-rtl.toml")),
    ("small", include_str!("../../../../lab/machines/small.toml")),
    ("three-tier", include_str!("../../../../lab/machines/three-tier.toml")),
    ("two-tier", include_str!("../../../../lab/machines/two-tier.toml")),
    ("zswap", include_str!("../../../../lab/machines/zswap.toml")),
];

/// Declares an enum whose variants have names in machine files.
macro_rules! named {
    ($(#[$doc:meta])* $type:ident { $($(#[$variant_doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $type {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $type {
            const ALL: &[(&str, Self)] = &[$(($name, Self::$variant)),*];

            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

named! {
    /// Use of huge pages (2 MiB) by the guest's kernel, as in `/sys/kernel/mm/transparent_hugepage/enabled`.
    HugePages {
        Never = "never",
        /// Where a program asks for them.
        Madvise = "madvise",
        Always = "always",
    }
}

named! {
    /// Kind of a node's memory.
    NodeKind {
        /// Memory that firmware tables describe, present from the start.
        Plain = "plain",
        /// CXL memory device, which the guest finds, configures and brings online.
        Cxl = "cxl",
    }
}

named! {
    /// Kind of a profiling device. QEMU's plugin uses the same names.
    DeviceKind {
        /// NeoProf: a model in Rust, which answers bit for bit as the hardware does.
        NeoProf = "neoprof",
        /// NeoProf: its hardware description, simulated cycle by cycle.
        NeoProfRtl = "neoprof-rtl",
        /// CXL's hotness monitoring unit, which can report at once.
        Chmu = "chmu",
        /// A hotness monitoring unit that reports at the end of epochs only.
        ChmuEpochs = "chmu-epochs",
    }
}

named! {
    /// Fault of a profiling device, to test its driver. QEMU's plugin uses the same names.
    DeviceFault {
        /// It states a version that does not exist.
        Version = "version",
        /// After 500 uses of its registers all of them read all ones.
        Vanishes = "vanishes",
        /// After 500 uses of its registers NeoProf reports the same hot page again and again, and a hotness
        /// monitoring unit never ends an operation.
        Stuck = "stuck",
    }
}

named! {
    /// Algorithm by which zswap compresses pages.
    Compressor {
        Lz4 = "lz4",
        Zstd = "zstd",
    }
}

/// Compressed memory behind the nodes, in their own memory: what the guest's kernel cannot keep there goes to
/// zswap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zswap {
    pub compressor: Compressor,
    /// Bytes of pages that may be stored, before compression.
    pub swap: Bytes,
}

/// Profiling device in front of the slow node. Its sizes and its clock are the profile's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device {
    pub kind: DeviceKind,
    /// Fault to simulate, if any.
    pub fault: Option<DeviceFault>,
}

/// Node: one tier of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    pub kind: NodeKind,
    /// Size, a multiple of [`Machine::GRAIN`].
    pub size: Bytes,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    pub name: String,
    pub title: String,
    /// Cores, latencies, bandwidths and costs, as in the simulator; one tier for each node.
    pub profile: Profile,
    pub processors: u32,
    pub huge_pages: HugePages,
    /// Whether instructions are the clock: two runs give the same result, at about half the speed.
    pub deterministic: bool,
    /// Nodes, fastest first; the first has the processors.
    pub nodes: Vec<Node>,
    /// Profiling device, if any.
    pub device: Option<Device>,
    /// Compressed memory, if any.
    pub zswap: Option<Zswap>,
}

impl Machine {
    /// Unit of node sizes, which Linux brings online at once.
    pub const GRAIN: Bytes = Bytes(128 << 20);
    /// Smallest first node: the kernel and its programs live there.
    pub const SMALLEST_FIRST: Bytes = Bytes(256 << 20);
    /// Largest sum of all nodes.
    pub const LARGEST: Bytes = Bytes(64 << 30);

    /// Reads a machine from the text of a TOML file, in the form that `docs/guide/lab.md` describes.
    ///
    /// `file` names the text in errors; its stem becomes the machine's name.
    ///
    /// # Errors
    /// If the text is not a valid machine, in one line that names the file, the field and what was expected.
    pub fn parse(text: &str, file: &str) -> Result<Self, LabError> {
        file::read(text, file)
    }

    /// Returns a machine that comes with Isotherm.
    ///
    /// # Errors
    /// If the name is unknown; the error lists similar names or all.
    pub fn builtin(name: &str) -> Result<Self, LabError> {
        let Some((name, text)) = BUILTIN.iter().find(|(known, _)| *known == name) else {
            let advice = advice(name, Self::builtin_names());
            return Err(LabError::UnknownMachine { name: crate::error::shortened(name), advice });
        };
        Self::parse(text, name)
    }

    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name)
    }

    /// Returns the text of a machine that comes with Isotherm, with its comments.
    pub fn builtin_text(name: &str) -> Option<&'static str> {
        BUILTIN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// Returns the profile as TOML, in the form of `machines/*.toml`: the guest's cost model is made from it.
    pub fn profile_toml(&self) -> String {
        profile_text::write(&self.profile)
    }

    pub fn has_cxl(&self) -> bool {
        self.nodes.iter().any(|node| node.kind == NodeKind::Cxl)
    }

    /// Returns the bytes of memory that is present from the start.
    pub fn plain_memory(&self) -> Bytes {
        self.nodes.iter().filter(|node| node.kind == NodeKind::Plain).map(|node| node.size).sum()
    }
}
