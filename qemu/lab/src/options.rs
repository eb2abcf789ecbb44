//! The plugin's arguments.

use std::ops::Range;
use std::path::PathBuf;

use isotherm_core::cache::Geometry;
use isotherm_machine::{CostModel, Profile, ProfileError};

use crate::ranges::Ranges;

/// Fault of a profiling device, to test its driver; see `DeviceFault` of the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Version,
    Vanishes,
    Stuck,
}

impl Fault {
    const ALL: [(&'static str, Self); 3] =
        [("version", Self::Version), ("vanishes", Self::Vanishes), ("stuck", Self::Stuck)];
}

/// Kind of a profiling device; see `DeviceKind` of the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeviceKind {
    NeoProf,
    NeoProfRtl,
    Chmu,
    ChmuEpochs,
}

impl DeviceKind {
    const ALL: [Self; 4] = [Self::NeoProf, Self::NeoProfRtl, Self::Chmu, Self::ChmuEpochs];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::NeoProf => "neoprof",
            Self::NeoProfRtl => "neoprof-rtl",
            Self::Chmu => "chmu",
            Self::ChmuEpochs => "chmu-epochs",
        }
    }
}

/// Profiling device in front of the last tier; its sizes are in the machine profile.
#[derive(Debug)]
pub(crate) struct DeviceOptions {
    pub(crate) registers: PathBuf,
    pub(crate) kind: DeviceKind,
    /// NeoProf's simulated hardware, for that kind.
    pub(crate) library: Option<PathBuf>,
    pub(crate) fault: Option<Fault>,
}

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) bar: PathBuf,
    pub(crate) result: PathBuf,
    pub(crate) profile: Profile,
    /// Last-level cache of the profile, rounded to a power of two of sets.
    pub(crate) geometry: Geometry,
    pub(crate) ranges: Ranges,
    pub(crate) device: Option<DeviceOptions>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum OptionError {
    #[error(
        "unknown argument '{0}'; expected bar=, result=, machine=, tierN=, llc=, ways=, device=, device-kind=, device-rtl= or device-fault="
    )]
    Unknown(String),
    #[error("argument {0} is missing; expected {1}")]
    Missing(&'static str, &'static str),
    #[error("machine={0}: {1}")]
    File(String, std::io::Error),
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error("tier{0}={1}: expected START-END of physical addresses, several joined by '+'")]
    Range(usize, String),
    #[error("tier{tier}: {:#x}-{:#x} overlaps another range", range.start, range.end)]
    Overlap { tier: usize, range: Range<u64> },
    #[error("the machine has {machine} tiers, the arguments have ranges of {given}; expected tier0= to tier{}=", machine - 1)]
    Tiers { machine: usize, given: usize },
    #[error("the machine has {0} tiers; expected at most {max}", max = CostModel::MAX_TIERS)]
    ManyTiers(usize),
    #[error("a last-level cache of {size} bytes with {ways} ways; expected at least one set, at most 2^31")]
    Cache { size: u64, ways: u32 },
    #[error("device=: the machine has no [device]")]
    NoDevice,
    #[error("device-kind=neoprof-rtl: device-rtl= is missing; expected the shared object of the hardware")]
    NoHardware,
}

impl Options {
    /// Reads the arguments, and the machine profile that they name.
    pub(crate) fn read(arguments: &[String]) -> Result<Self, OptionError> {
        let (mut bar, mut result, mut machine) = (None, None, None);
        let (mut numbers, mut tiers) = (Vec::new(), Vec::new());
        let (mut registers, mut library, mut fault) = (None, None, None);
        let mut kind = DeviceKind::NeoProf;
        for argument in arguments {
            let unknown = || OptionError::Unknown(argument.clone());
            let (name, value) = argument.split_once('=').ok_or_else(unknown)?;
            match name {
                "bar" => bar = Some(value),
                "result" => result = Some(value),
                "machine" => machine = Some(value),
                "device" => registers = Some(PathBuf::from(value)),
                "device-rtl" => library = Some(PathBuf::from(value)),
                "device-kind" => {
                    let known = DeviceKind::ALL.iter().find(|kind| kind.name() == value);
                    kind = *known.ok_or_else(unknown)?;
                }
                "device-fault" => {
                    let known = Fault::ALL.iter().find(|(name, _)| *name == value);
                    fault = Some(known.ok_or_else(unknown)?.1);
                }
                "llc" => numbers.push(("llc.size", value)),
                "ways" => numbers.push(("llc.ways", value)),
                _ => {
                    let tier = name.strip_prefix("tier").and_then(|digits| digits.parse().ok());
                    tiers.push((tier.ok_or_else(unknown)?, value));
                }
            }
        }
        let profile = read_profile(machine, &numbers)?;
        if kind == DeviceKind::NeoProfRtl && library.is_none() {
            return Err(OptionError::NoHardware);
        }
        let device = registers.map(|registers| DeviceOptions { registers, kind, library, fault });
        if device.is_some() && profile.device.is_none() {
            return Err(OptionError::NoDevice);
        }
        let (size, ways) = (profile.llc_size, profile.llc_ways);
        Ok(Self {
            bar: bar.ok_or(OptionError::Missing("bar=", "the file of the ivshmem device"))?.into(),
            result: result.ok_or(OptionError::Missing("result=", "the file for results"))?.into(),
            geometry: Geometry::new(size, ways).ok_or(OptionError::Cache { size: size.0, ways })?,
            ranges: read_ranges(&tiers, profile.tiers.len())?,
            profile,
            device,
        })
    }
}

fn read_profile(path: Option<&str>, numbers: &[(&str, &str)]) -> Result<Profile, OptionError> {
    let path = path.ok_or(OptionError::Missing("machine=", "a machine profile (TOML)"))?;
    let text = std::fs::read_to_string(path).map_err(|error| OptionError::File(path.into(), error))?;
    let mut profile = Profile::parse(&text, path)?;
    for (number, value) in numbers {
        profile.set(number, value)?;
    }
    profile.check()?;
    if profile.tiers.len() > CostModel::MAX_TIERS {
        return Err(OptionError::ManyTiers(profile.tiers.len()));
    }
    Ok(profile)
}

fn read_ranges(given: &[(usize, &str)], machine: usize) -> Result<Ranges, OptionError> {
    let mut ranges = Ranges::default();
    for &(tier, text) in given {
        if tier >= machine {
            return Err(OptionError::Tiers { machine, given: tier + 1 });
        }
        let parsed = Ranges::parse(text).ok_or_else(|| OptionError::Range(tier, text.into()))?;
        ranges.add(tier as u8, parsed).map_err(|range| OptionError::Overlap { tier, range })?;
    }
    let with_memory = (0..machine).filter(|&tier| ranges.of(tier as u8).next().is_some()).count();
    if with_memory < machine {
        return Err(OptionError::Tiers { machine, given: with_memory });
    }
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn read(arguments: &[&str]) -> Result<Options, String> {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Options::read(&arguments).map_err(|error| error.to_string())
    }

    fn machine() -> String {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines/pact.toml");
        format!("machine={}", file.display())
    }

    #[test]
    fn a_whole_set_of_arguments_is_read() {
        let options = read(&[
            "bar=/b",
            "result=/r",
            &machine(),
            "tier0=0-0x1000",
            "tier1=0x1000-0x2000",
            "llc=2MiB",
            "ways=16",
        ])
        .expect("valid");
        assert_eq!((options.bar, options.result), ("/b".into(), "/r".into()));
        assert_eq!(options.geometry, Geometry { sets: 2048, ways: 16 });
        assert_eq!(options.ranges.tier(0x1800), Some(1));
    }

    #[test]
    fn a_profiling_device_has_its_sizes_in_the_profile() {
        let folder = tempfile::tempdir().expect("a directory");
        let text = std::fs::read_to_string(machine().trim_start_matches("machine=")).expect("a machine");
        let (without, _) = text.split_once("[device]").expect("its device");
        let path = folder.path().join("plain.toml");
        std::fs::write(&path, without).expect("writable");
        let plain = format!("machine={}", path.display());
        let rest = ["bar=/b", "result=/r", "tier0=0-0x1000", "tier1=0x1000-0x2000", "device=/n"];
        let of = |machine: &str, more: &str| read(&[&[machine], &rest[..], &[more]].concat());
        let device = of(&machine(), "device-fault=stuck").expect("valid").device.expect("asked for");
        assert_eq!((device.kind, device.fault), (DeviceKind::NeoProf, Some(Fault::Stuck)));
        let device = of(&machine(), "device-kind=chmu-epochs").expect("valid").device.expect("asked for");
        assert_eq!((device.kind, device.fault), (DeviceKind::ChmuEpochs, None));
        let error = of(&machine(), "device-kind=neoprof-rtl").expect_err("no hardware");
        assert!(error.starts_with("device-kind=neoprof-rtl: device-rtl= is missing"), "{error}");
        let error = of(&plain, "device-rtl=/l").expect_err("no sizes");
        assert_eq!(error, "device=: the machine has no [device]");
    }

    #[test]
    fn each_mistake_has_its_line() {
        let (machine, whole) = (machine(), "tier1=0x1000-0x2000");
        for (arguments, expected) in [
            (&["bar"][..], "unknown argument 'bar'"),
            (&["speed=1"], "unknown argument 'speed=1'"),
            (&["device-fault=tired"], "unknown argument 'device-fault=tired'"),
            (&["device-kind=cpmu"], "unknown argument 'device-kind=cpmu'"),
            (&["bar=/b"], "machine= is missing"),
            (&["machine=/no/such"], "machine=/no/such: No such file"),
            (&[&machine, "llc=2 parsecs"], "llc.size"),
            (&[&machine, "bar=/b", "result=/r", "llc=4KiB", "ways=128"], "at least one set"),
            (&[&machine], "bar= is missing"),
            (&[&machine, "bar=/b", "result=/r", "tier0=0-1"], "has 2 tiers, the arguments have ranges of 1"),
            (&[&machine, "bar=/b", "result=/r", whole, "tier2=0-1"], "expected tier0= to tier1="),
            (&[&machine, "bar=/b", "result=/r", whole, "tier0=x"], "tier0=x: expected START-END"),
            (&[&machine, "bar=/b", "result=/r", whole, "tier0=0-0x1001"], "overlaps"),
        ] {
            let error = read(arguments).expect_err("refused");
            assert!(error.contains(expected) && !error.contains('\n'), "{error}");
        }
    }
}
