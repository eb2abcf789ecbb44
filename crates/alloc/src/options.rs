//! Options, which are environment variables.

use std::ffi::CStr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use crate::context::DEPTH;
use crate::{regions, sites, sys, text};

const PREFIX: &str = "ISOTHERM_ALLOC_";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) regions: usize,
    pub(crate) depth: usize,
    pub(crate) region_bytes: usize,
    /// Mean number of bytes allocated per block sampled, where a profile is written.
    pub(crate) sample_bytes: usize,
    pub(crate) profile: Option<&'static CStr>,
    /// Whether contexts get regions of their own, of which a recorder is told.
    pub(crate) sites: bool,
}

/// Smallest range that an arena can work in, in bytes.
pub(crate) const SMALLEST_REGION: usize = 64 << 20;

impl Options {
    /// Jenga's regions and depth.
    pub(crate) const DEFAULT: Self = Self {
        regions: 32,
        depth: DEPTH,
        region_bytes: 256 << 30,
        sample_bytes: 64 << 10,
        profile: None,
        sites: false,
    };

    /// Reads the environment's variables and reports unusable ones on standard error. Those of a privileged
    /// program are not read: they come from a user without its rights.
    pub(crate) fn from_environment() -> Self {
        let mut options = Self::DEFAULT;
        if sys::is_privileged() {
            return options;
        }
        for variable in environment() {
            let Some(setting) = variable.to_bytes().strip_prefix(PREFIX.as_bytes()) else { continue };
            if let Err(expected) = options.set(setting, variable) {
                let variable = variable.to_str().unwrap_or("a variable that is not UTF-8");
                text::print(format_args!("{variable}: expected {expected}; the default is used"));
            }
        }
        if options.sites {
            options.regions = regions::MAX;
            options.region_bytes = options.region_bytes.min(sites::REGION_BYTES);
        }
        options
    }

    /// Sets one option, given without the prefix and as a whole.
    fn set(&mut self, setting: &[u8], whole: &'static CStr) -> Result<(), &'static str> {
        let equals = setting.iter().position(|&byte| byte == b'=').ok_or("NAME=VALUE")?;
        let (name, value) = (&setting[..equals], &setting[equals + 1..]);
        let number = || std::str::from_utf8(value).ok().and_then(parse);
        let within = |low, high| number().filter(|value| (low..=high).contains(value));
        match name {
            b"REGIONS" => self.regions = within(1, regions::MAX).ok_or("a number of regions, 1 to 256")?,
            b"DEPTH" => self.depth = within(1, DEPTH).ok_or("a number of return addresses, 1 to 10")?,
            b"REGION_SIZE" => {
                let size = within(SMALLEST_REGION, 1 << 40).filter(|size| size.is_power_of_two());
                self.region_bytes = size.ok_or("a power of two in bytes, 64M to 1T (K, M, G, T)")?;
            }
            b"SAMPLE" => self.sample_bytes = within(1, 1 << 40).ok_or("bytes, 1 to 1T (K, M, G, T)")?,
            b"SITES" => self.sites = within(0, 1).ok_or("0 or 1")? == 1,
            b"PROFILE" => {
                let from = whole.count_bytes() - value.len();
                let folder = CStr::from_bytes_with_nul(&whole.to_bytes_with_nul()[from..]).ok();
                self.profile = Some(folder.filter(|folder| !folder.is_empty()).ok_or("a folder")?);
            }
            _ => return Err("REGIONS, DEPTH, REGION_SIZE, SAMPLE, PROFILE or SITES after ISOTHERM_ALLOC_"),
        }
        Ok(())
    }
}

/// Parses a number with an optional unit of bytes, such as 64K.
fn parse(text: &str) -> Option<usize> {
    let power = match text.as_bytes().last()? {
        b'K' => 10,
        b'M' => 20,
        b'G' => 30,
        b'T' => 40,
        _ => 0,
    };
    let digits = if power == 0 { text } else { &text[..text.len() - 1] };
    // `parse` would accept a sign.
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse::<usize>().ok().filter(|_| plain)?.checked_mul(1 << power)
}

fn environment() -> impl Iterator<Item = &'static CStr> {
    unsafe extern "C" {
        static environ: *const *const libc::c_char;
    }
    // SAFETY: the C library's variable, read once before any thread could change it. It is null if the first
    // call comes before the C library has started; there is nothing to read then.
    let first = unsafe { environ };
    let mut next = first;
    std::iter::from_fn(move || {
        if next.is_null() {
            return None;
        }
        // SAFETY: `next` lies in the array, which ends with a null pointer; its strings end with 0.
        let text = unsafe { *next };
        (!text.is_null()).then(|| {
            // SAFETY: as above; a string that is not null is not the array's end.
            unsafe {
                next = next.add(1);
                CStr::from_ptr(text)
            }
        })
    })
}

static DEPTH_IN_FORCE: AtomicUsize = AtomicUsize::new(DEPTH);

pub(crate) fn depth() -> usize {
    DEPTH_IN_FORCE.load(Relaxed)
}

static SAMPLE_IN_FORCE: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn sample_bytes() -> f64 {
    SAMPLE_IN_FORCE.load(Relaxed) as f64
}

pub(crate) fn put_in_force(options: &Options) {
    SAMPLE_IN_FORCE.store(options.sample_bytes, Relaxed);
    DEPTH_IN_FORCE.store(options.depth, Relaxed);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(whole: &'static CStr) -> Result<Options, &'static str> {
        let mut options = Options::DEFAULT;
        let setting = whole.to_bytes().strip_prefix(PREFIX.as_bytes()).expect("the prefix");
        options.set(setting, whole).map(|()| options)
    }

    #[test]
    fn options_are_read_with_units() {
        assert_eq!(set(c"ISOTHERM_ALLOC_REGIONS=8").expect("valid").regions, 8);
        assert_eq!(set(c"ISOTHERM_ALLOC_DEPTH=4").expect("valid").depth, 4);
        assert_eq!(set(c"ISOTHERM_ALLOC_REGION_SIZE=1G").expect("valid").region_bytes, 1 << 30);
        assert_eq!(set(c"ISOTHERM_ALLOC_SAMPLE=4K").expect("valid").sample_bytes, 4096);
        assert!(set(c"ISOTHERM_ALLOC_SITES=1").expect("valid").sites);
        assert_eq!(set(c"ISOTHERM_ALLOC_PROFILE=a/b").expect("valid").profile, Some(c"a/b"));
    }

    #[test]
    fn unusable_values_are_refused() {
        for wrong in [
            c"ISOTHERM_ALLOC_REGIONS=0",
            c"ISOTHERM_ALLOC_REGIONS=257",
            c"ISOTHERM_ALLOC_REGIONS=+8",
            c"ISOTHERM_ALLOC_REGIONS=",
            c"ISOTHERM_ALLOC_DEPTH=11",
            c"ISOTHERM_ALLOC_DEPTH=ten",
            c"ISOTHERM_ALLOC_REGION_SIZE=3G",
            c"ISOTHERM_ALLOC_REGION_SIZE=99999999999999T",
            c"ISOTHERM_ALLOC_PROFILE=",
            c"ISOTHERM_ALLOC_SITES=2",
            c"ISOTHERM_ALLOC_REGION=8",
            c"ISOTHERM_ALLOC_",
        ] {
            assert!(set(wrong).is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn numbers_never_panic(text in ".*") {
            parse(&text);
        }

        #[test]
        fn numbers_are_read_back(number in 0..1_usize << 40) {
            prop_assert_eq!(parse(&number.to_string()), Some(number));
        }
    }
}
