//! Finds the device by its PCI id, and by the beginning of its memory.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use isotherm_virtual_pmu::{Driver, LayoutError, PCI_DEVICE, PCI_VENDOR, Words};

use crate::LinuxError;
use crate::files::Tree;
use crate::sys::mmap::SharedWords;

const DEVICES: &str = "/sys/bus/pci/devices";
const WHAT: &str = "the virtual PMU";

pub fn is_present(root: &Path) -> bool {
    candidates(Tree::new(root)).next().is_some()
}

/// Returns the file of its memory, as it is named on a live machine.
pub fn memory_file(tree: Tree<'_>) -> Option<String> {
    candidates(tree).next().map(|name| format!("{DEVICES}/{name}/resource2"))
}

fn candidates(tree: Tree<'_>) -> impl Iterator<Item = String> + '_ {
    let names = tree.names(DEVICES).unwrap_or_default();
    names.into_iter().filter(move |name| {
        let is = |file: &str, id: u16| {
            let number = |text: &str| u16::from_str_radix(text.strip_prefix("0x")?, 16).ok();
            tree.parsed(&format!("{DEVICES}/{name}/{file}"), "a PCI id", number)
                .is_ok_and(|found| found == id)
        };
        is("vendor", PCI_VENDOR) && is("device", PCI_DEVICE)
    })
}

impl Words for SharedWords {
    fn words(&self) -> &[AtomicU64] {
        Self::words(self)
    }
}

/// Opens the first device whose memory a plugin has laid out.
pub(super) fn open(root: &Path) -> Result<Driver<SharedWords>, LinuxError> {
    let tree = Tree::new(root);
    let mut refused = None;
    for name in candidates(tree) {
        match Driver::open(map(tree, &name)?) {
            Ok(driver) => return Ok(driver),
            Err(error) => refused = Some(error),
        }
    }
    let remedy = refused.as_ref().map_or_else(
        || "it is a device of the lab's virtual machine: isotherm lab run".to_owned(),
        LayoutError::to_string,
    );
    Err(LinuxError::Unsupported { what: WHAT, remedy })
}

fn map(tree: Tree<'_>, name: &str) -> Result<SharedWords, LinuxError> {
    // Firmware enables only devices that it knows; writing to this file enables others.
    if tree.text(&format!("{DEVICES}/{name}/enable")).is_ok_and(|enabled| enabled == "0") {
        let path = tree.path(&format!("{DEVICES}/{name}/enable"));
        std::fs::write(&path, "1").map_err(|error| refused(&path, error))?;
    }
    let path = tree.path(&format!("{DEVICES}/{name}/resource2"));
    let opened = File::options().read(true).write(true).open(&path).and_then(|file| {
        let bytes = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        SharedWords::new(&file, bytes)
    });
    opened.map_err(|error| refused(&path, error))
}

fn refused(path: &Path, error: io::Error) -> LinuxError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => LinuxError::Permission {
            what: WHAT,
            needs: "CAP_SYS_ADMIN",
            remedy: "sudo isotherm run -- PROGRAM".into(),
        },
        _ => LinuxError::file(path, error),
    }
}
