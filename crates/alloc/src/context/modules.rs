//! Defines which loaded object an address lies in.

use std::arch::asm;
use std::ffi::{c_int, c_void};
use std::mem::{MaybeUninit, transmute};

/// A loaded object: the program, a library.
#[derive(Clone, Copy, Debug)]
pub(super) struct Module {
    /// Its first address: other addresses are told from here.
    pub(super) base: usize,
    end: usize,
    /// Where its `.eh_frame_hdr` lies.
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

/// The object that an address lies in.
pub(super) fn find(address: usize) -> Option<Module> {
    match find_object() {
        Some(find) => {
            let mut found = MaybeUninit::<Found>::uninit();
            // SAFETY: `_dl_find_object` fills the structure if it returns 0. It takes no lock and may be called anywhere.
            let found = unsafe {
                if find(address as *mut c_void, found.as_mut_ptr()) != 0 {
                    return None;
                }
                found.assume_init()
            };
            let frame_header = (found.frame_header != 0).then_some(found.frame_header);
            Some(Module { base: found.start, end: found.end, frame_header })
        }
        None => iterate(address),
    }
}

type FindObject = unsafe extern "C" fn(*mut c_void, *mut Found) -> c_int;

/// `_dl_find_object`, which glibc has since 2.35.
fn find_object() -> Option<FindObject> {
    let address: usize;
    // SAFETY: reads where the loader put the function's address, 0 if there is none.
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

/// The same on an older glibc, whose lock a fork in another thread can leave held.
fn iterate(address: usize) -> Option<Module> {
    let mut search = (address, None::<Module>);
    // SAFETY: the callback gets the pointer to `search` back.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.1
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, search: *mut c_void) -> c_int {
    // SAFETY: `iterate` passes this, and the loader a description whose headers are there.
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
    *found = Some(Module { base, end, frame_header });
    1
}

impl Module {
    /// What is mapped of it from an address on.
    pub(super) fn bytes_from(&self, address: usize) -> Option<&'static [u8]> {
        let length = self.end.checked_sub(address).filter(|_| address >= self.base)?;
        // SAFETY: read-only parts of a module that the caller returns into. Only a chain of tables that a linker
        // wrote is followed in it, so the gaps that can be between its parts are not read.
        Some(unsafe { std::slice::from_raw_parts(address as *const u8, length) })
    }

    /// Whether an address of it is code, by the program headers at its start.
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
        // SAFETY: the first page of a module is mapped, and the headers are in it (checked below for what the file says).
        let header = unsafe { &*bytes.as_ptr().cast::<libc::Elf64_Ehdr>() };
        let (start, count) = (header.e_phoff as usize, usize::from(header.e_phnum));
        let fits = start >= size && start % 8 == 0 && start + count * size_of::<libc::Elf64_Phdr>() <= 4096;
        // SAFETY: inside the first page.
        fits.then(|| unsafe { std::slice::from_raw_parts(bytes.as_ptr().add(start).cast(), count) })
    }
}
