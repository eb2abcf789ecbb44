//! The functions of the shared object, which the lab's plugin (`qemu/lab/src/neoprof/rtl.rs`) finds by name.

use std::slice;

use isotherm_neoprof::{Device, Parameters, Registers, Request};

use crate::{Rtl, Variant};

/// Version of these functions; grows with every change.
pub const VERSION: u32 = 1;

/// Returns [`VERSION`].
#[unsafe(no_mangle)]
pub extern "C" fn isotherm_neoprof_version() -> u32 {
    VERSION
}

/// Creates a device of the sizes in the parameters' register; null if the hardware was not built in them.
#[unsafe(no_mangle)]
pub extern "C" fn isotherm_neoprof_new(parameters: u64, seed: u64) -> *mut Rtl {
    let sizes = Parameters::from_word(parameters, seed);
    let variant = Variant::ALL.into_iter().find(|variant| Ok(variant.parameters()) == sizes);
    variant.map_or(std::ptr::null_mut(), |variant| Box::into_raw(Box::new(Rtl::new(variant))))
}

/// Frees a device.
///
/// # Safety
/// `device` came from [`isotherm_neoprof_new`], is not null, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isotherm_neoprof_free(device: *mut Rtl) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(device) });
}

/// Reads a register.
///
/// # Safety
/// `device` came from [`isotherm_neoprof_new`], is neither null nor freed, and no other call uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isotherm_neoprof_read(device: *mut Rtl, offset: u64) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { &mut *device }.read(offset)
}

/// Writes a register.
///
/// # Safety
/// As for [`isotherm_neoprof_read`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isotherm_neoprof_write(device: *mut Rtl, offset: u64, value: u64) {
    // SAFETY: the caller's promise.
    unsafe { &mut *device }.write(offset, value);
}

/// Runs a cycle for each request: a word of the page, shifted up by one, and bit 0 for a write.
///
/// # Safety
/// As for [`isotherm_neoprof_read`]; `requests` points to `count` words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isotherm_neoprof_pass(device: *mut Rtl, requests: *const u64, count: usize) {
    // SAFETY: the caller's promise.
    let (device, requests) = unsafe { (&mut *device, slice::from_raw_parts(requests, count)) };
    for &word in requests {
        device.cycle(&[Request { page: word >> 1, write: word & 1 == 1 }]);
    }
}

#[cfg(test)]
mod tests {
    use isotherm_neoprof::registers as at;

    use super::*;

    #[test]
    fn a_device_by_its_functions_is_the_device() {
        let sizes = Variant::Small.parameters();
        assert!(isotherm_neoprof_new(sizes.to_word(), sizes.seed + 1).is_null(), "not built so");
        let device = isotherm_neoprof_new(sizes.to_word(), sizes.seed);
        assert!(!device.is_null() && isotherm_neoprof_version() == VERSION);
        // SAFETY: the device is live and used by this thread alone until the last line frees it; the words
        // are a slice's.
        unsafe {
            isotherm_neoprof_write(device, at::SET_THRESHOLD, 2);
            let requests = [7 << 1, 9 << 1 | 1, 7 << 1, 7 << 1];
            isotherm_neoprof_pass(device, requests.as_ptr(), requests.len());
            let read = |offset| isotherm_neoprof_read(device, offset);
            assert_eq!([at::GET_RD_CNT, at::GET_WR_CNT, at::GET_NR_HOT_PAGE].map(read), [3, 1, 1]);
            assert_eq!(read(at::GET_HOT_PAGE), 7);
            isotherm_neoprof_free(device);
        }
    }
}
