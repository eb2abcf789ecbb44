//! Continues recording through `execve`: instead of the guest's call, the plugin executes QEMU with itself on
//! the program.
//!
//! A call that the kernel would refuse is left to it, so that the guest sees its error. A program that QEMU
//! cannot run (another architecture, a set-user-ID program) runs natively and untraced, and is counted.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::recorder::Recorder;
use crate::vcpu;
use isotherm_recorder_protocol::{Executable, Resolved, resolve};

const EXECVE: i64 = 59;
const EXECVEAT: i64 = 322;
/// The kernel's limit of a string (`MAX_ARG_STRLEN`).
const LONGEST: usize = 128 << 10;
/// More strings than the kernel takes (`ARG_MAX` bytes, 2 MiB by default).
const MAX: usize = 1 << 20;

/// Offset from a guest address to the host's.
pub(crate) static GUEST_BASE: AtomicU64 = AtomicU64::new(0);

/// Inspects a system call before it is made. Does not return from an `exec` that it traces.
pub(crate) fn intercept(recorder: &Recorder, index: u32, number: i64, arguments: [u64; 5]) {
    let (path, arguments, environment) = match number {
        EXECVE => (path_of(arguments[0]), arguments[1], arguments[2]),
        EXECVEAT => (path_at(arguments[0], arguments[1]), arguments[2], arguments[3]),
        _ => return,
    };
    let (Some(path), Some(mut arguments), Some(environment)) =
        (path, strings(arguments), strings(environment))
    else {
        return;
    };
    if arguments.is_empty() {
        // As the kernel does.
        arguments.push(OsString::new());
    }
    let path = guest_path(recorder, path);
    if !is_executable(&path) {
        return;
    }
    // SAFETY: called on the thread of this vCPU, without another reference to it.
    unsafe { vcpu::get(index) }.end(recorder);
    match resolve(&path, &arguments) {
        Ok(Ok(resolved)) if is_executable(&resolved.program) => {
            if !changes_user(&resolved.program) {
                replace(recorder, resolved, environment);
            }
            recorder.report_untraced(&path.into_os_string());
        }
        Ok(Err((_, Executable::Other)) | Ok(_)) => {}
        Ok(Err((program, _))) => recorder.report_untraced(&program.into_os_string()),
        Err(_) => recorder.report_untraced(&path.into_os_string()),
    }
}

/// Executes QEMU; returns only on failure.
fn replace(recorder: &Recorder, resolved: Resolved, environment: Vec<OsString>) {
    let (arguments, environment) = recorder.invocation.again(resolved, environment, recorder.process());
    let terminated =
        |words: Vec<OsString>| words.into_iter().map(|word| CString::new(word.into_vec()).ok()).collect();
    let (Some(qemu), Some::<Vec<CString>>(arguments), Some::<Vec<CString>>(environment)) =
        (recorder.invocation.qemu(), terminated(arguments), terminated(environment))
    else {
        return;
    };
    let pointers = |words: &[CString]| -> Vec<_> {
        words.iter().map(|word| word.as_ptr()).chain(std::iter::once(std::ptr::null())).collect()
    };
    // SAFETY: null-terminated arrays of terminated strings, all alive during the call.
    unsafe { libc::execve(qemu.as_ptr(), pointers(&arguments).as_ptr(), pointers(&environment).as_ptr()) };
}

/// Replaces `/proc/self/exe`, which is QEMU to the kernel, by the guest's own program.
fn guest_path(recorder: &Recorder, path: PathBuf) -> PathBuf {
    let own = format!("/proc/{}/exe", std::process::id());
    let itself = [Path::new("/proc/self/exe"), Path::new("/proc/thread-self/exe"), Path::new(&own)];
    if itself.contains(&path.as_path()) { recorder.invocation.program.clone() } else { path }
}

fn path_of(address: u64) -> Option<PathBuf> {
    string(address).map(PathBuf::from)
}

/// Returns the path that `execveat` means: relative to a descriptor, or the descriptor's own file.
fn path_at(descriptor: u64, address: u64) -> Option<PathBuf> {
    let path = path_of(address)?;
    let descriptor = descriptor as i32;
    if path.is_absolute() || (descriptor == libc::AT_FDCWD && !path.as_os_str().is_empty()) {
        return Some(path);
    }
    let directory = std::fs::read_link(format!("/proc/self/fd/{descriptor}")).ok()?;
    Some(if path.as_os_str().is_empty() { directory } else { directory.join(path) })
}

fn is_executable(path: &Path) -> bool {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: a terminated path.
    let refused = unsafe { libc::faccessat(libc::AT_FDCWD, name.as_ptr(), libc::X_OK, libc::AT_EACCESS) };
    refused == 0 && path.is_file()
}

/// Returns whether executing the file changes the user or group, which QEMU in between would prevent.
fn changes_user(path: &Path) -> bool {
    let Ok(file) = std::fs::metadata(path) else { return false };
    // SAFETY: these calls only read the process's identity.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let set = |bit: u32| file.mode() & bit != 0;
    (set(libc::S_ISUID) && file.uid() != user) || (set(libc::S_ISGID) && file.gid() != group)
}

/// Reads a guest's null-terminated array of strings: empty for a null array, `None` for an unreadable one.
fn strings(array: u64) -> Option<Vec<OsString>> {
    let mut found = Vec::new();
    for index in 0..MAX as u64 {
        if array == 0 {
            break;
        }
        let mut pointer = [0; 8];
        if read_memory(array + index * 8, &mut pointer) < pointer.len() {
            return None;
        }
        match u64::from_le_bytes(pointer) {
            0 => break,
            address => found.push(string(address)?),
        }
    }
    Some(found)
}

pub(crate) fn string(address: u64) -> Option<OsString> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    while bytes.len() < LONGEST {
        let at = address + bytes.len() as u64;
        // Up to the end of the page, since the next one may not be mapped.
        let length = 4096 - (at % 4096) as usize;
        let read = read_memory(at, &mut buffer[..length]);
        if read == 0 {
            return None;
        }
        let end = buffer[..read].iter().position(|&byte| byte == 0);
        bytes.extend_from_slice(&buffer[..end.unwrap_or(read)]);
        if end.is_some() {
            return Some(OsStr::from_bytes(&bytes).to_owned());
        }
    }
    None
}

/// Reads guest memory that may not be mapped, and returns the number of bytes read.
fn read_memory(address: u64, buffer: &mut [u8]) -> usize {
    let host = address.wrapping_add(GUEST_BASE.load(Ordering::Relaxed));
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote = libc::iovec { iov_base: host as *mut libc::c_void, iov_len: buffer.len() };
    // SAFETY: the kernel copies into `buffer`, which has this length, and fails on addresses that are not
    // mapped.
    let read =
        unsafe { libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(read).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guest_strings_are_read_and_bad_pointers_refused() {
        let (first, second) =
            (CString::new("one").expect("no zero"), CString::new("x".repeat(9000)).expect("no zero"));
        let array = [first.as_ptr() as u64, second.as_ptr() as u64, 0];
        let read = strings(array.as_ptr() as u64).expect("readable");
        assert_eq!(read, [OsString::from("one"), OsString::from("x".repeat(9000))]);
        assert_eq!(strings(0), Some(vec![]));
        assert_eq!(strings(16), None);
        assert_eq!(string(16), None);
    }

    #[test]
    fn a_path_at_a_descriptor_is_found_through_it() {
        let name = CString::new("name").expect("no zero");
        assert_eq!(path_at(libc::AT_FDCWD as u64, name.as_ptr() as u64), Some("name".into()));
        let file = std::fs::File::open("/etc").expect("there is /etc");
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&file) as u64;
        assert_eq!(path_at(descriptor, name.as_ptr() as u64), Some("/etc/name".into()));
        assert_eq!(path_at(descriptor, c"".as_ptr() as u64), Some("/etc".into()));
    }

    #[test]
    fn only_executable_files_are_executable() {
        assert!(is_executable(Path::new("/bin/sh")));
        assert!(!is_executable(Path::new("/etc")));
        assert!(!is_executable(Path::new("/etc/passwd")));
        assert!(!changes_user(Path::new("/bin/sh")));
    }
}
