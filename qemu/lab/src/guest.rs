//! Reads the guest's registers and memory to find the process that runs.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use isotherm_virtual_pmu::{Mailbox, Process};

use crate::api::{Api, ByteArray, RegisterDescriptor};

/// Address bits of CR3.
const TABLES: u64 = 0x000f_ffff_ffff_f000;

/// Relevant registers of a vCPU, and a buffer to read into.
pub(crate) struct Guest {
    buffer: NonNull<ByteArray>,
    kernel_base: *mut c_void,
    page_tables: *mut c_void,
}

impl Guest {
    /// Finds the registers of the vCPU that is starting; `None` if QEMU does not name them.
    pub(crate) fn find(api: &Api) -> Option<Self> {
        // SAFETY: called while a vCPU starts, as QEMU demands; the array and its names are QEMU's and live
        // on.
        let descriptors = unsafe {
            let array = (api.registers)().as_ref()?;
            std::slice::from_raw_parts(array.data.cast::<RegisterDescriptor>(), array.length as usize)
        };
        let register = |name: &CStr| {
            // SAFETY: names are terminated strings.
            let found =
                descriptors.iter().find(|descriptor| unsafe { CStr::from_ptr(descriptor.name) } == name);
            found.map(|descriptor| descriptor.handle)
        };
        // SAFETY: GLib's function without arguments.
        let buffer = NonNull::new(unsafe { (api.new_bytes)() })?;
        Some(Self { buffer, kernel_base: register(c"k_gs_base")?, page_tables: register(c"cr3")? })
    }

    /// Returns the process that runs, and its task's address if known. Called by a callback of this vCPU.
    pub(crate) fn process(&self, api: &Api, mailbox: Option<&Mailbox>) -> (Process, Option<u64>) {
        let known = mailbox.and_then(|mailbox| {
            let task = self.task(api, mailbox)?;
            Some((self.read_u32(api, task.wrapping_add(mailbox.tgid))?, task))
        });
        match known {
            Some((tgid, task)) if tgid != 0 => (Process::Tgid(tgid), Some(task)),
            _ => (Process::PageTables(self.register(api, self.page_tables).unwrap_or(0) & TABLES), None),
        }
    }

    pub(crate) fn parent(&self, api: &Api, mailbox: &Mailbox, task: u64) -> Option<u32> {
        if mailbox.parent == 0 {
            return None;
        }
        let parent = self.read_u64(api, task.wrapping_add(mailbox.parent))?;
        self.read_u32(api, parent.wrapping_add(mailbox.tgid))
    }

    pub(crate) fn thread(&self, api: &Api, mailbox: &Mailbox, task: u64) -> Option<u32> {
        self.read_u32(api, task.wrapping_add(mailbox.thread))
    }

    fn task(&self, api: &Api, mailbox: &Mailbox) -> Option<u64> {
        let base = self.register(api, self.kernel_base)?;
        // The kernel's per-CPU data; absent while it boots.
        let task =
            (base >> 63 != 0).then(|| self.read_u64(api, base.wrapping_add(mailbox.current_task)))??;
        (task >> 63 != 0).then_some(task)
    }

    /// Returns the first word of the page of a virtual address.
    pub(crate) fn first_word(&self, api: &Api, address: u64) -> Option<u64> {
        self.read_u64(api, address >> 12 << 12)
    }

    fn register(&self, api: &Api, handle: *mut c_void) -> Option<u64> {
        // SAFETY: the array and the register's handle are as QEMU gave them.
        let size = unsafe {
            (api.resize_bytes)(self.buffer.as_ptr(), 0);
            (api.read_register)(handle, self.buffer.as_ptr())
        };
        if size == 8 { self.taken().map(u64::from_le_bytes) } else { None }
    }

    fn read_u64(&self, api: &Api, address: u64) -> Option<u64> {
        self.read(api, address).map(u64::from_le_bytes)
    }

    fn read_u32(&self, api: &Api, address: u64) -> Option<u32> {
        self.read(api, address).map(u32::from_le_bytes)
    }

    fn read<const N: usize>(&self, api: &Api, address: u64) -> Option<[u8; N]> {
        // SAFETY: QEMU checks the address; the array is this structure's.
        unsafe { (api.read_memory)(address, self.buffer.as_ptr(), N) }.then(|| self.taken())?
    }

    fn taken<const N: usize>(&self) -> Option<[u8; N]> {
        // SAFETY: GLib keeps `length` valid bytes at `data`, or a null pointer.
        let bytes = unsafe {
            let array = self.buffer.as_ref();
            if array.data.is_null() {
                return None;
            }
            std::slice::from_raw_parts(array.data, array.length as usize)
        };
        bytes.try_into().ok()
    }
}
