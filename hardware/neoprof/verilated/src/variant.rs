//! The sets of sizes that the hardware is simulated in, and the functions of each.

use std::ffi::c_void;

use isotherm_neoprof::Parameters;

/// A simulated device of the shim.
pub(crate) type Handle = *mut c_void;

/// Functions of `shim.cpp` for one set of sizes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Functions {
    pub(crate) new: unsafe extern "C" fn() -> Handle,
    pub(crate) free: unsafe extern "C" fn(Handle),
    pub(crate) reset: unsafe extern "C" fn(Handle, bool),
    pub(crate) tick: unsafe extern "C" fn(Handle, bool, bool, u32, u32, *const u64),
    pub(crate) bus: unsafe extern "C" fn(Handle, bool, bool, u32, u64),
    pub(crate) flags: unsafe extern "C" fn(Handle) -> u32,
    pub(crate) data: unsafe extern "C" fn(Handle) -> u64,
}

macro_rules! functions {
    ($name:ident: $new:ident $free:ident $reset:ident $tick:ident $bus:ident $flags:ident $data:ident) => {
        mod $name {
            use super::Handle;
            unsafe extern "C" {
                pub(super) fn $new() -> Handle;
                pub(super) fn $free(device: Handle);
                pub(super) fn $reset(device: Handle, active: bool);
                pub(super) fn $tick(
                    device: Handle,
                    mem: bool,
                    core: bool,
                    valid: u32,
                    write: u32,
                    pages: *const u64,
                );
                pub(super) fn $bus(device: Handle, valid: bool, write: bool, address: u32, data: u64);
                pub(super) fn $flags(device: Handle) -> u32;
                pub(super) fn $data(device: Handle) -> u64;
            }
            pub(super) const ALL: super::Functions = super::Functions {
                new: $new,
                free: $free,
                reset: $reset,
                tick: $tick,
                bus: $bus,
                flags: $flags,
                data: $data,
            };
        }
    };
}

functions!(paper: neoprof_paper_new neoprof_paper_free neoprof_paper_reset neoprof_paper_tick
    neoprof_paper_bus neoprof_paper_flags neoprof_paper_data);
functions!(small: neoprof_small_new neoprof_small_free neoprof_small_reset neoprof_small_tick
    neoprof_small_bus neoprof_small_flags neoprof_small_data);
functions!(single: neoprof_single_new neoprof_single_free neoprof_single_reset neoprof_single_tick
    neoprof_single_bus neoprof_single_flags neoprof_single_data);

/// A set of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// The paper's sizes; its memories are described as one array each.
    Paper,
    /// 3 lanes of 256 entries, 5-bit counters, 16 hot pages, 16 bins, 3 channels; segmented, latency 4.
    Small,
    /// 1 lane of 16K entries, 8-bit counters, 64 hot pages, 52-bit pages, 1 channel; segmented, latency 2.
    Single,
}

impl Variant {
    /// All sets.
    pub const ALL: [Self; 3] = [Self::Paper, Self::Small, Self::Single];

    /// Returns its sizes.
    #[must_use]
    pub fn parameters(self) -> Parameters {
        match self {
            Self::Paper => Parameters::default(),
            Self::Small => Parameters {
                lanes: 3,
                width: 256,
                counter_bits: 5,
                address_bits: 20,
                hot_entries: 16,
                histogram_bins: 16,
                channels: 3,
                seed: 7,
            },
            Self::Single => Parameters {
                lanes: 1,
                width: 16 << 10,
                counter_bits: 8,
                address_bits: 52,
                hot_entries: 64,
                histogram_bins: 64,
                channels: 1,
                seed: 99,
            },
        }
    }

    pub(crate) fn functions(self) -> Functions {
        match self {
            Self::Paper => paper::ALL,
            Self::Small => small::ALL,
            Self::Single => single::ALL,
        }
    }
}
