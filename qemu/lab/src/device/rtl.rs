//! The device as simulated hardware: `libisotherm_neoprof_rtl.so` of `hardware/neoprof/verilated`, loaded at
//! run time, so that nothing else here needs verilator.

use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use isotherm_neoprof::registers::{COUNTER_MAX, GET_NR_SAMPLE, RESET};
use isotherm_neoprof::{Device, Parameters, Registers, Request};

const VERSION: u32 = 1;

type Handle = *mut c_void;

/// Functions of the shared object, see `hardware/neoprof/verilated/src/exports.rs`.
#[derive(Debug, Clone, Copy)]
struct Functions {
    new: unsafe extern "C" fn(u64, u64) -> Handle,
    free: unsafe extern "C" fn(Handle),
    read: unsafe extern "C" fn(Handle, u64) -> u64,
    write: unsafe extern "C" fn(Handle, u64, u64),
    pass: unsafe extern "C" fn(Handle, *const u64, usize),
}

/// Simulated hardware. Its clocks stand still while nothing passes; its cycle counter includes those cycles.
#[derive(Debug)]
pub(super) struct Rtl {
    handle: Handle,
    functions: Functions,
    /// Cycles since the reset for which the clocks stood still.
    skipped: u64,
    words: Vec<u64>,
}

// SAFETY: the simulated device owns everything that it uses and is tied to no thread; this is its only
// handle.
unsafe impl Send for Rtl {}

impl Rtl {
    /// Makes hardware after power-on. Fails on another version, or if it was not built in these sizes.
    pub(super) fn load(path: &Path, sizes: &Parameters) -> Result<Self, String> {
        let functions = load(path)?;
        // SAFETY: a function of the shared object, which takes any sizes.
        let handle = unsafe { (functions.new)(sizes.to_word(), sizes.seed) };
        if handle.is_null() {
            return Err(format!(
                "the hardware was not built with {} lanes of {}, {}-bit counters and {} hot pages; expected the paper's sizes",
                sizes.lanes, sizes.width, sizes.counter_bits, sizes.hot_entries
            ));
        }
        Ok(Self { handle, functions, skipped: 0, words: Vec::new() })
    }
}

fn load(path: &Path) -> Result<Functions, String> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: loads the shared object that the user named, with constructors of C++'s runtime only; it is
    // never unloaded.
    let object = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if object.is_null() {
        // SAFETY: after a failure this is a terminated string of this thread.
        let reason = unsafe { CStr::from_ptr(libc::dlerror()) }.to_string_lossy().into_owned();
        return Err(reason);
    }
    // SAFETY: the function of this name has this signature in every version of the object.
    let version = unsafe { symbol::<extern "C" fn() -> u32>(object, c"isotherm_neoprof_version")? }();
    if version != VERSION {
        return Err(format!("its functions have version {version}; expected {VERSION}: build both again"));
    }
    // SAFETY: in this version the functions of these names have the signatures that the fields declare.
    unsafe {
        Ok(Functions {
            new: symbol(object, c"isotherm_neoprof_new")?,
            free: symbol(object, c"isotherm_neoprof_free")?,
            read: symbol(object, c"isotherm_neoprof_read")?,
            write: symbol(object, c"isotherm_neoprof_write")?,
            pass: symbol(object, c"isotherm_neoprof_pass")?,
        })
    }
}

/// # Safety
/// `F` is the type of a pointer to a function with the symbol's signature.
unsafe fn symbol<F: Copy>(object: *mut c_void, name: &CStr) -> Result<F, String> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the object is loaded, the name terminated.
    let found = unsafe { libc::dlsym(object, name.as_ptr()) };
    if found.is_null() {
        return Err(format!("it has no {}; expected libisotherm_neoprof_rtl.so", name.to_string_lossy()));
    }
    // SAFETY: the caller's contract; both pointers have the same size.
    Ok(unsafe { std::mem::transmute_copy(&found) })
}

impl Registers for Rtl {
    fn read(&mut self, offset: u64) -> u64 {
        // SAFETY: the device lives until this is dropped.
        let value = unsafe { (self.functions.read)(self.handle, offset) };
        if offset == GET_NR_SAMPLE { value.saturating_add(self.skipped).min(COUNTER_MAX) } else { value }
    }

    fn write(&mut self, offset: u64, value: u64) {
        if offset == RESET && value & 1 == 1 {
            self.skipped = 0;
        }
        // SAFETY: as above.
        unsafe { (self.functions.write)(self.handle, offset, value) };
    }
}

impl Device for Rtl {
    fn cycle(&mut self, requests: &[Request]) {
        self.accesses(requests);
    }

    fn idle(&mut self, cycles: u64) {
        self.skipped = self.skipped.saturating_add(cycles);
    }

    fn accesses(&mut self, requests: &[Request]) {
        self.words.clear();
        self.words.extend(requests.iter().map(|request| request.page << 1 | u64::from(request.write)));
        // SAFETY: as above; there are that many words.
        unsafe { (self.functions.pass)(self.handle, self.words.as_ptr(), self.words.len()) };
    }
}

impl Drop for Rtl {
    fn drop(&mut self) {
        // SAFETY: the device came from `new` and is not used again.
        unsafe { (self.functions.free)(self.handle) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_the_hardware_is_refused_in_one_line() {
        let error = |path: &str| Rtl::load(Path::new(path), &Parameters::default()).err().unwrap_or_default();
        assert!(error("/no/such.so").contains("/no/such.so"));
        let other = error("libc.so.6");
        assert!(other.contains("it has no isotherm_neoprof_version") && !other.contains('\n'), "{other}");
    }
}
