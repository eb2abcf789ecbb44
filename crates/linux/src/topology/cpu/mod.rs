//! Processor of this machine: `/proc/cpuinfo`, and the name of its microarchitecture.
//!
//! Family and model numbers of Intel are those of Linux' `arch/x86/include/asm/intel-family.h`, those of AMD
//! the ranges in `arch/x86/kernel/cpu/amd.c`, the part numbers of Arm those of
//! `arch/arm64/include/asm/cputype.h`.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::LinuxError;
use crate::files::{Tree, decimal, format_error, hexadecimal};

const CPUINFO: &str = "/proc/cpuinfo";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Vendor {
    Intel,
    /// `AuthenticAMD`, and `HygonGenuine`, which is a licensed Zen.
    Amd,
    /// Arm's own cores, implementer 0x41.
    Arm,
    /// Ampere's own cores, implementer 0xc0.
    Ampere,
    Other,
}

macro_rules! models {
    ($($variant:ident $name:literal,)*) => {
        /// Microarchitecture, by which PMU events are tabulated.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[non_exhaustive]
        pub enum Model {
            $(#[serde(rename = $name)] $variant,)*
        }

        impl Model {
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

models! {
    Haswell "haswell", // Xeon E5 v3, E7 v3.
    Broadwell "broadwell", // Xeon E5 v4, E7 v4, D-1500; client processors too.
    SkylakeClient "skylake-client", // Client Skylake, Kaby Lake, Coffee Lake and Comet Lake.
    SkylakeSp "skylake-sp", // Xeon Scalable, first generation.
    CascadeLake "cascade-lake", // Xeon Scalable, second generation: the first with Optane memory.
    CooperLake "cooper-lake", // Xeon Scalable, third generation, four sockets and more.
    IceLakeSp "ice-lake-sp", // Xeon Scalable, third generation, and Xeon D-1700 and D-2700.
    IceLakeClient "ice-lake-client", // Client Ice Lake, Tiger Lake and Rocket Lake.
    SapphireRapids "sapphire-rapids", // Xeon Scalable, fourth generation: the first with CXL.
    EmeraldRapids "emerald-rapids", // Xeon Scalable, fifth generation.
    GraniteRapids "granite-rapids", // Xeon 6 with P-cores.
    SierraForest "sierra-forest", // Xeon 6 with E-cores.
    ClearwaterForest "clearwater-forest", // Xeon 6+ with E-cores.
    IntelHybrid "intel-hybrid", // Client processors with two kinds of cores: Alder, Raptor, Meteor, Lunar and Arrow Lake.
    Zen1 "zen1", // Zen and Zen+, and Hygon's Dhyana.
    Zen2 "zen2", // Zen 2, such as EPYC 7002.
    Zen3 "zen3", // Zen 3 and 3+, such as EPYC 7003.
    Zen4 "zen4", // Zen 4 and 4c, such as EPYC 9004.
    Zen5 "zen5", // Zen 5 and 5c, such as EPYC 9005.
    Zen6 "zen6", // Zen 6.
    NeoverseN1 "neoverse-n1", // Such as Graviton 2 and Altra.
    NeoverseV1 "neoverse-v1", // Such as Graviton 3.
    NeoverseN2 "neoverse-n2", // Such as Yitian 710.
    NeoverseV2 "neoverse-v2", // Such as Graviton 4 and Grace.
    NeoverseN3 "neoverse-n3",
    NeoverseV3 "neoverse-v3",
    AmpereOne "ampere-one",
    Unknown "unknown",
}

impl Model {
    /// Returns the microarchitecture; for Arm and Ampere `model` is the part number.
    pub fn of(vendor: Vendor, family: u32, model: u32, stepping: u32) -> Self {
        match vendor {
            Vendor::Intel => Self::intel(family, model, stepping),
            Vendor::Amd => Self::amd(family, model),
            Vendor::Arm => Self::arm(model),
            Vendor::Ampere if matches!(model, 0xac3 | 0xac4) => Self::AmpereOne,
            Vendor::Ampere | Vendor::Other => Self::Unknown,
        }
    }

    fn intel(family: u32, model: u32, stepping: u32) -> Self {
        if family != 6 {
            return Self::Unknown;
        }
        match model {
            0x3f => Self::Haswell,
            0x3d | 0x47 | 0x4f | 0x56 => Self::Broadwell,
            0x4e | 0x5e | 0x8e | 0x9e | 0xa5 | 0xa6 => Self::SkylakeClient,
            // Three generations share one model number.
            0x55 if stepping <= 4 => Self::SkylakeSp,
            0x55 if stepping <= 9 => Self::CascadeLake,
            0x55 => Self::CooperLake,
            0x6a | 0x6c => Self::IceLakeSp,
            0x7d | 0x7e | 0x8c | 0x8d | 0xa7 => Self::IceLakeClient,
            0x8f => Self::SapphireRapids,
            0xcf => Self::EmeraldRapids,
            0xad | 0xae => Self::GraniteRapids,
            0xaf => Self::SierraForest,
            0xdd => Self::ClearwaterForest,
            0x97 | 0x9a | 0xb7 | 0xba | 0xbf | 0xaa | 0xac | 0xbd | 0xb5 | 0xc5 | 0xc6 => Self::IntelHybrid,
            _ => Self::Unknown,
        }
    }

    fn amd(family: u32, model: u32) -> Self {
        match (family, model) {
            (0x17, 0x00..=0x2f | 0x50..=0x5f) | (0x18, 0x00..=0x0f) => Self::Zen1,
            (0x17, 0x30..=0x4f | 0x60..=0x7f | 0x90..=0x91 | 0xa0..=0xaf) => Self::Zen2,
            (0x19, 0x00..=0x0f | 0x20..=0x5f) => Self::Zen3,
            (0x19, 0x10..=0x1f | 0x60..=0xaf) => Self::Zen4,
            (0x1a, 0x00..=0x2f | 0x40..=0x4f | 0x60..=0x7f) => Self::Zen5,
            (0x1a, 0x50..=0x5f | 0x80..=0xaf | 0xc0..=0xcf) => Self::Zen6,
            _ => Self::Unknown,
        }
    }

    fn arm(part: u32) -> Self {
        match part {
            0xd0c => Self::NeoverseN1,
            0xd40 => Self::NeoverseV1,
            0xd49 => Self::NeoverseN2,
            0xd4f => Self::NeoverseV2,
            0xd8e => Self::NeoverseN3,
            0xd83 | 0xd84 => Self::NeoverseV3,
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// First processor listed; all processors of a server are alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    pub vendor: Vendor,
    /// Family of an x86 processor, 0 for others.
    pub family: u32,
    /// Model of an x86 processor, part number of an Arm one.
    pub model: u32,
    /// Stepping of an x86 processor, revision of an Arm one.
    pub stepping: u32,
    pub microarchitecture: Model,
    /// Maker's name, or that of the microarchitecture where the file has none, as on Arm.
    pub name: String,
    /// Whether a hypervisor reports itself, which often hides the PMU. Always false on Arm, where none does.
    pub virtualized: bool,
}

impl Cpu {
    pub fn read(root: &Path) -> Result<Self, LinuxError> {
        let tree = Tree::new(root);
        let text = tree.text(CPUINFO)?;
        Self::parse(&text)
            .ok_or_else(|| format_error(&tree.path(CPUINFO), "a processor's vendor and model", &text))
    }

    /// Parses the text of `/proc/cpuinfo`; `None` if it describes no x86 or Arm processor.
    pub fn parse(text: &str) -> Option<Self> {
        let first = text.trim_start().split("\n\n").next()?;
        let field = |name: &str| {
            let matching = |line: &&str| line.split(':').next().is_some_and(|key| key.trim() == name);
            Some(first.lines().find(matching)?.split_once(':')?.1.trim())
        };
        let (vendor, family, model, stepping) = x86(&field).or_else(|| arm(&field))?;
        let microarchitecture = Model::of(vendor, family, model, stepping);
        let virtualized =
            field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
        let name = field("model name").unwrap_or(microarchitecture.name()).to_owned();
        Some(Self { vendor, family, model, stepping, microarchitecture, name, virtualized })
    }
}

type Numbers = (Vendor, u32, u32, u32);

fn x86<'a>(field: &impl Fn(&str) -> Option<&'a str>) -> Option<Numbers> {
    let vendor = match field("vendor_id")? {
        "GenuineIntel" => Vendor::Intel,
        "AuthenticAMD" | "HygonGenuine" => Vendor::Amd,
        _ => Vendor::Other,
    };
    // Some hypervisors hide the stepping as 'unknown'.
    let stepping = field("stepping").and_then(decimal).unwrap_or(0);
    Some((vendor, decimal(field("cpu family")?)?, decimal(field("model")?)?, stepping))
}

fn arm<'a>(field: &impl Fn(&str) -> Option<&'a str>) -> Option<Numbers> {
    let vendor = match hexadecimal(field("CPU implementer")?)? {
        0x41 => Vendor::Arm,
        0xc0 => Vendor::Ampere,
        _ => Vendor::Other,
    };
    let part = u32::try_from(hexadecimal(field("CPU part")?)?).ok()?;
    Some((vendor, 0, part, field("CPU revision").and_then(decimal).unwrap_or(0)))
}

#[cfg(test)]
mod tests;
