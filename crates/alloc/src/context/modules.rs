//! Loaded objects and the addresses in them.

use std::arch::asm;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::{MaybeUninit, transmute};

#[derive(Clone, Copy, Debug)]
pub(super) struct Module {
    /// First address; offsets count from here.
    pub(super) base: usize,
    end: usize,
    pub(super) path: &'static CStr,
    pub(super) frame_header: Option<usize>,
}

/// `struct dl_find_object` of `dlfcn.h` on x86-64.
#[repr(C)]
struct Found {
    flags: u64,
    start: usize,
    end: usize,
    link_map: *mut c_void,
    frame_header: usize,
    reserved: [u64; 7],
}

pub(super) fn find(address: usize) -> Option<Module> {
    let Some(find) = find_object() else { return iterate(address) };
    let mut found = MaybeUninit::<Found>::uninit();
    // SAFETY: `_dl_find_object` fills the structure if it returns 0; it may be called anywhere.
    let found = unsafe {
        if find(address as *mut c_void, found.as_mut_ptr()) != 0 {
            return None;
        }
        found.assume_init()
    };
    let frame_header = (found.frame_header != 0).then_some(found.frame_header);
    // SAFETY: glibc fills `link_map` with its own record, which lives as long as the object is loaded and has
    // the path as its second word (`struct link_map` of `link.h`).
    let path = unsafe { text(*found.link_map.cast::<*const c_char>().add(1)) };
    Some(Module { base: found.start, end: found.end, path, frame_header })
}

/// # Safety
/// `path` is null, or text that ends with 0 and stays while the object is loaded.
unsafe fn text(path: *const c_char) -> &'static CStr {
    // SAFETY: by the caller's promise a path that is not null ends with 0.
    if path.is_null() { c"" } else { unsafe { CStr::from_ptr(path) } }
}

type FindObject = unsafe extern "C" fn(*mut c_void, *mut Found) -> c_int;

/// Returns `_dl_find_object`, which glibc has since 2.35.
fn find_object() -> Option<FindObject> {
    let address: usize;
    // SAFETY: the instruction reads the slot into which the loader put the function's address, or 0 because
    // the symbol is weak; an optional function pointer is `None` for 0.
    unsafe {
        asm!(
            ".weak _dl_find_object",
            "mov {}, qword ptr [rip + _dl_find_object@GOTPCREL]",
            out(reg) address,
            options(nostack, readonly, preserves_flags),
        );
        transmute::<usize, Option<FindObject>>(address)
    }
}

/// Finds the object on an older glibc, whose lock a fork in another thread can leave held.
fn iterate(address: usize) -> Option<Module> {
    let mut search = (address, None::<Module>);
    // SAFETY: `visit` gets back the pointer to `search`, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.1
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, search: *mut c_void) -> c_int {
    // SAFETY: `iterate` passes this pointer to its variable, and the loader a description with headers.
    let (info, (address, found), headers) = unsafe {
        let info = &*info;
        let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
        (info, &mut *search.cast::<(usize, Option<Module>)>(), headers)
    };
    let start = |header: &libc::Elf64_Phdr| (info.dlpi_addr + header.p_vaddr) as usize;
    let loaded = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let base = loaded().map(start).min().unwrap_or(usize::MAX) & !4095;
    let end = loaded().map(|header| start(header) + header.p_memsz as usize).max().unwrap_or(0);
    if !(base..end).contains(address) {
        return 0;
    }
    let frame_header = headers.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME).map(start);
    // SAFETY: the loader's path ends with 0.
    let path = unsafe { text(info.dlpi_name) };
    *found = Some(Module { base, end, path, frame_header });
    1
}

impl Module {
    pub(super) fn bytes_from(&self, address: usize) -> Option<&'static [u8]> {
        let length = self.end.checked_sub(address).filter(|_| address >= self.base)?;
        // SAFETY: the caller returns into the object, so it stays loaded. Readers only follow tables that a
        // linker wrote, which lie in mapped, read-only parts, and so avoid gaps in the range.
        Some(unsafe { std::slice::from_raw_parts(address as *const u8, length) })
    }

    /// Returns whether an address of the object is code, by the program headers at its start.
    pub(super) fn executable(&self, address: usize) -> bool {
        let Some(headers) = self.headers() else { return false };
        let first = headers.iter().find(|header| header.p_type == libc::PT_LOAD).map_or(0, |h| h.p_vaddr);
        let offset = (address - self.base) as u64 + (first & !4095);
        headers.iter().any(|header| {
            let code = header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0;
            code && (header.p_vaddr..header.p_vaddr + header.p_memsz).contains(&offset)
        })
    }

    fn headers(&self) -> Option<&'static [libc::Elf64_Phdr]> {
        let bytes = self.bytes_from(self.base)?;
        if !bytes.starts_with(b"\x7fELF") {
            return None;
        }
        let size = size_of::<libc::Elf64_Ehdr>();
        // SAFETY: an object's first page is mapped, holds the ELF header and is aligned for it.
        let header = unsafe { &*bytes.as_ptr().cast::<libc::Elf64_Ehdr>() };
        let (start, count) = (header.e_phoff as usize, usize::from(header.e_phnum));
        let fits = start >= size && start % 8 == 0 && start + count * size_of::<libc::Elf64_Phdr>() <= 4096;
        // SAFETY: the headers lie in the first page and are aligned, as checked.
        fits.then(|| unsafe { std::slice::from_raw_parts(bytes.as_ptr().add(start).cast(), count) })
    }
}
