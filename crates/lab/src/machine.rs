//! Defines the machine that a guest is given: its nodes, their speeds, its processors. Read from `lab/machines/NAME.toml`.

use isotherm_core::Bytes;
use isotherm_core::names::advice;
use isotherm_machine::Profile;

use crate::LabError;

mod file;
mod profile_text;
#[cfg(test)]
mod tests;

/// The machines that come with Isotherm, in alphabetical order.
const BUILTIN: &[(&str, &str)] = &[
    ("cxl", include_str!("../../../lab/machines/cxl.toml")),
    ("deterministic", include_str!("../../../lab/machines/deterministic.toml")),
    ("neoprof", include_str!("../../../lab/machines/neoprof.toml")),
    ("neoprof-rtl", include_str!("../../../lab/machines/neoprof-rtl.toml")),
    ("small", include_str!("../../../lab/machines/small.toml")),
    ("two-tier", include_str!("../../../lab/machines/two-tier.toml")),
];

/// How the guest's kernel uses huge pages (2 MiB).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HugePages {
    /// Not at all.
    Never,
    /// Where a program asks for them.
    Madvise,
    /// Wherever they fit.
    Always,
}

impl HugePages {
    const ALL: [(&'static str, Self); 3] =
        [("never", Self::Never), ("madvise", Self::Madvise), ("always", Self::Always)];

    /// As Linux writes it in `/sys/kernel/mm/transparent_hugepage/enabled`.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

/// What a node is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// Memory that firmware tables describe, there from the start.
    Plain,
    /// A CXL memory device, which the guest finds, configures and brings online.
    Cxl,
}

impl NodeKind {
    const ALL: [(&'static str, Self); 2] = [("plain", Self::Plain), ("cxl", Self::Cxl)];

    /// As machine files write it.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

/// What stands behind the registers of a NeoProf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeoProfModel {
    /// Its model in Rust, which answers bit for bit as the hardware does.
    Fast,
    /// The hardware description, simulated cycle by cycle.
    Rtl,
}

impl NeoProfModel {
    const ALL: [(&'static str, Self); 2] = [("fast", Self::Fast), ("rtl", Self::Rtl)];

    /// As machine files write it.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

/// What goes wrong with a NeoProf, to see what its driver makes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeoProfFault {
    /// It states a version that nobody speaks.
    Version,
    /// After 500 uses of its registers all of them read all ones.
    Vanishes,
    /// After 500 uses of its registers the same hot page comes again and again.
    Stuck,
}

impl NeoProfFault {
    const ALL: [(&'static str, Self); 3] =
        [("version", Self::Version), ("vanishes", Self::Vanishes), ("stuck", Self::Stuck)];

    /// As machine files and QEMU's plugin write it.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

/// A NeoProf in front of the slow node. Its sizes and its clock are the profile's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeoProf {
    /// What stands behind its registers.
    pub model: NeoProfModel,
    /// What goes wrong with it, if anything is to.
    pub fault: Option<NeoProfFault>,
}

/// One node: one tier of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// What it is made of.
    pub kind: NodeKind,
    /// Its size, a multiple of [`Machine::GRAIN`].
    pub size: Bytes,
}

/// A virtual machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Kebab-case name.
    pub name: String,
    /// One line.
    pub title: String,
    /// Cores, latencies, bandwidths and costs, as the simulator takes them; one tier for each node.
    pub profile: Profile,
    /// Virtual processors.
    pub processors: u32,
    /// How the guest's kernel uses huge pages.
    pub huge_pages: HugePages,
    /// Whether instructions are the clock: two runs give the same result, at about half the speed.
    pub deterministic: bool,
    /// The nodes, fastest first; the first has the processors.
    pub nodes: Vec<Node>,
    /// The profiling device, if there is one.
    pub neoprof: Option<NeoProf>,
}

impl Machine {
    /// The unit of node sizes: what Linux brings online at once.
    pub const GRAIN: Bytes = Bytes(128 << 20);
    /// The smallest first node: the kernel and its programs live there.
    pub const SMALLEST_FIRST: Bytes = Bytes(256 << 20);
    /// The largest sum of all nodes.
    pub const LARGEST: Bytes = Bytes(64 << 30);

    /// Reads a machine from the text of a TOML file, in the form that `docs/lab.md` describes.
    ///
    /// `file` names the text in errors; its stem becomes the machine's name.
    ///
    /// # Errors
    /// One line that names the file, the field and what was expected.
    pub fn parse(text: &str, file: &str) -> Result<Self, LabError> {
        file::read(text, file)
    }

    /// One of the machines that come with Isotherm.
    ///
    /// # Errors
    /// If there is none of that name; the error lists those there are.
    pub fn builtin(name: &str) -> Result<Self, LabError> {
        let Some((name, text)) = BUILTIN.iter().find(|(known, _)| *known == name) else {
            let advice = advice(name, Self::builtin_names());
            return Err(LabError::UnknownMachine { name: crate::error::shortened(name), advice });
        };
        Self::parse(text, name)
    }

    /// The names that [`Self::builtin`] knows.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name)
    }

    /// The text of a machine that comes with Isotherm, with its comments; `None` where there is none of that name.
    pub fn builtin_text(name: &str) -> Option<&'static str> {
        BUILTIN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// The profile in force as TOML, in the form of `machines/*.toml`: what the guest's cost model is read from.
    pub fn profile_toml(&self) -> String {
        profile_text::write(&self.profile)
    }

    /// Whether a node is a CXL device.
    pub fn has_cxl(&self) -> bool {
        self.nodes.iter().any(|node| node.kind == NodeKind::Cxl)
    }

    /// Memory that is there from the start.
    pub fn plain_memory(&self) -> Bytes {
        self.nodes.iter().filter(|node| node.kind == NodeKind::Plain).map(|node| node.size).sum()
    }
}
