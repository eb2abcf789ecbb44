//! Defines the device that is the simulated hardware: `libisotherm_neoprof_rtl.so` of `hardware/neoprof/verilated`, found and loaded
//! at run time, so that nothing else here needs verilator.

use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use isotherm_neoprof::registers::{COUNTER_MAX, GET_NR_SAMPLE, RESET};
use isotherm_neoprof::{Device, Parameters, Registers, Request};

/// The version of the shared object's functions that is spoken here.
const VERSION: u32 = 1;

/// A device of the shared object.
type Handle = *mut c_void;

/// Its functions, see `hardware/neoprof/verilated/src/exports.rs`.
#[derive(Debug, Clone, Copy)]
struct Functions {
    new: unsafe extern "C" fn(u64, u64) -> Handle,
    free: unsafe extern "C" fn(Handle),
    read: unsafe extern "C" fn(Handle, u64) -> u64,
    write: unsafe extern "C" fn(Handle, u64, u64),
    pass: unsafe extern "C" fn(Handle, *const u64, usize),
}

/// The simulated hardware. Its clocks stand still while nothing passes; those cycles are added to its counter of them.
#[derive(Debug)]
pub(super) struct Rtl {
    handle: Handle,
    functions: Functions,
    /// Cycles since the reset for which the clocks stood still.
    skipped: u64,
    words: Vec<u64>,
}

// SAFETY: the simulated device owns all that it uses and is tied to no thread; this is its only handle.
unsafe impl Send for Rtl {}

impl Rtl {
    /// The hardware of these sizes after power-on.
    ///
    /// # Errors
    /// If the shared object cannot be loaded, is of another version, or was not built in these sizes.
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
    // SAFETY: loads a shared object that the user named, whose constructors are those of C++'s runtime; it is never unloaded.
    let object = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if object.is_null() {
        // SAFETY: after a failure this is a terminated string of this thread.
        let reason = unsafe { CStr::from_ptr(libc::dlerror()) }.to_string_lossy().into_owned();
        return Err(reason);
    }
    let find = |name: &CStr| {
        // SAFETY: the object is loaded, the name terminated.
        let found = unsafe { libc::dlsym(object, name.as_ptr()) };
        let missing = || format!("it has no {}; expected libisotherm_neoprof_rtl.so", name.to_string_lossy());
        (!found.is_null()).then_some(found).ok_or_else(missing)
    };
    // SAFETY: the object's function of this name has this signature in every version.
    let version = unsafe {
        std::mem::transmute::<*mut c_void, extern "C" fn() -> u32>(find(c"isotherm_neoprof_version")?)
    }();
    if version != VERSION {
        return Err(format!("its functions have version {version}; expected {VERSION}: build both anew"));
    }
    // SAFETY: of this version, the functions of these names have the signatures that the fields declare.
    unsafe {
        Ok(Functions {
            new: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(u64, u64) -> Handle>(find(
                c"isotherm_neoprof_new",
            )?),
            free: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Handle)>(find(
                c"isotherm_neoprof_free",
            )?),
            read: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Handle, u64) -> u64>(find(
                c"isotherm_neoprof_read",
            )?),
            write: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Handle, u64, u64)>(find(
                c"isotherm_neoprof_write",
            )?),
            pass: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Handle, *const u64, usize)>(find(
                c"isotherm_neoprof_pass",
            )?),
        })
    }
}

impl Registers for Rtl {
    fn read(&mut self, offset: u64) -> u64 {
        // SAFETY: the device is there until this is dropped.
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
        // SAFETY: as above; as many words as are said.
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
