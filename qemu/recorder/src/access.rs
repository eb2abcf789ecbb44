//! Defines what an access is, as QEMU tells it.

use isotherm_qemu_api::access::{self, Tell};
pub(crate) use isotherm_qemu_api::access::{Kind, known};

use crate::recorder::Recorder;

/// What the word `access` means.
pub(crate) fn kind(recorder: &Recorder, access: u32) -> Kind {
    // SAFETY: these are the two functions of QEMU.
    let tell = unsafe { Tell::new(recorder.api.access_shift, recorder.api.is_store) };
    access::kind(tell, access)
}
