//! Defines the memory file that agent and engine share, and how its descriptor travels.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::ops::Deref;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;

use super::protocol::{Hello, Shared};
use super::sys::errno;
use super::userfault::Range64;

const BYTES: usize = size_of::<Shared>();
const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// A mapping of the memory file.
pub(super) struct SharedMapping {
    start: NonNull<Shared>,
}

// SAFETY: all of `Shared` is atomic, and the mapping lives until its owner drops it.
unsafe impl Send for SharedMapping {}

impl SharedMapping {
    /// Creates a file, sealed in its size.
    pub(super) fn create() -> Result<(Self, OwnedFd), i32> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: a name that ends in 0.
        let raw = unsafe { libc::memfd_create(c"isotherm".as_ptr(), flags) };
        if raw < 0 {
            return Err(errno());
        }
        // SAFETY: just opened for this caller.
        let file = unsafe { OwnedFd::from_raw_fd(raw) };
        // SAFETY: values only.
        let sized = unsafe {
            libc::ftruncate(raw, BYTES as libc::off_t) == 0 && libc::fcntl(raw, libc::F_ADD_SEALS, SEALS) == 0
        };
        if !sized {
            return Err(errno());
        }
        Ok((Self::map(&file)?, file))
    }

    /// Maps a file that somebody else made; `EINVAL` if it could shrink or has another size.
    pub(super) fn adopt(file: &OwnedFd) -> Result<Self, i32> {
        let mut about = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: the structure is written by the first call before it is read.
        let (seals, size) = unsafe {
            if libc::fstat(file.as_raw_fd(), about.as_mut_ptr()) != 0 {
                return Err(errno());
            }
            (libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS), about.assume_init().st_size)
        };
        if seals < 0 || seals & SEALS != SEALS || size != BYTES as i64 {
            return Err(libc::EINVAL);
        }
        Self::map(file)
    }

    fn map(file: &OwnedFd) -> Result<Self, i32> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice; the file's size is sealed, so it stays backed.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), BYTES, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(errno());
        }
        NonNull::new(start.cast()).map(|start| Self { start }).ok_or(libc::ENOMEM)
    }

    /// Where it lies.
    pub(super) fn range(&self) -> Range64 {
        Range64::new(self.start.as_ptr() as usize as u64, BYTES as u64)
    }
}

impl Deref for SharedMapping {
    type Target = Shared;
    fn deref(&self) -> &Shared {
        // SAFETY: mapped for as long as `self` lives, page-aligned, as long as `Shared`; any bits are valid atomics.
        unsafe { self.start.as_ref() }
    }
}

impl Drop for SharedMapping {
    fn drop(&mut self) {
        // SAFETY: made by `map`; no reference outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), BYTES) };
    }
}

/// Room for one descriptor beside a message.
#[repr(C, align(8))]
struct Ancillary([u8; 64]);

/// Sends the hello with the file's descriptor.
pub(super) fn send_hello(socket: RawFd, hello: Hello, file: &OwnedFd) -> Result<(), i32> {
    let mut bytes = hello.encode();
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut room = Ancillary([0; 64]);
    // SAFETY: the header points to live buffers of the lengths given; the room is larger than one descriptor needs and
    // aligned as `cmsghdr` is.
    let sent = unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = room.0.as_mut_ptr().cast();
        header.msg_controllen = libc::CMSG_SPACE(4) as _;
        let control = libc::CMSG_FIRSTHDR(&raw const header);
        (*control).cmsg_level = libc::SOL_SOCKET;
        (*control).cmsg_type = libc::SCM_RIGHTS;
        (*control).cmsg_len = libc::CMSG_LEN(4) as _;
        libc::CMSG_DATA(control).cast::<i32>().write_unaligned(file.as_raw_fd());
        libc::sendmsg(socket, &raw const header, libc::MSG_NOSIGNAL)
    };
    if sent == bytes.len() as isize { Ok(()) } else { Err(errno()) }
}

/// Receives a hello: `Err(EAGAIN)` if there is none yet, `Err(EPROTO)` if it is none.
pub(super) fn receive_hello(socket: RawFd) -> Result<(Hello, Option<OwnedFd>), i32> {
    let mut bytes = [0u8; Hello::BYTES];
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut room = Ancillary([0; 64]);
    // SAFETY: as in `send_hello`; a descriptor that came along belongs to whoever received it.
    let (got, file) = unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = room.0.as_mut_ptr().cast();
        header.msg_controllen = libc::CMSG_SPACE(4) as _;
        let got = libc::recvmsg(socket, &raw mut header, libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC);
        if got < 0 {
            return Err(errno());
        }
        let control = libc::CMSG_FIRSTHDR(&raw const header);
        let is_file = !control.is_null()
            && (*control).cmsg_type == libc::SCM_RIGHTS
            && (*control).cmsg_len as usize == libc::CMSG_LEN(4) as usize;
        let file =
            is_file.then(|| OwnedFd::from_raw_fd(libc::CMSG_DATA(control).cast::<i32>().read_unaligned()));
        (got, file)
    };
    if got != bytes.len() as isize {
        return Err(libc::EPROTO);
    }
    Ok((Hello::decode(bytes).ok_or(libc::EPROTO)?, file))
}

/// Who is at the other end, as the kernel knows it.
pub(super) fn peer(socket: RawFd) -> Option<u32> {
    let mut who = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the structure and its length are writable and match.
    let result = unsafe {
        let option = (&raw mut who).cast();
        libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_PEERCRED, option, &raw mut length)
    };
    (result == 0 && who.pid > 0).then_some(who.pid as u32)
}

/// A byte that means "look"; whether it could be sent does not matter, for then one is there already.
pub(super) fn nudge(socket: RawFd) {
    // SAFETY: one readable byte.
    unsafe { libc::send(socket, [0u8].as_ptr().cast(), 1, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) };
}

/// Takes such bytes; false if the other end is gone.
pub(super) fn still_there(socket: RawFd) -> bool {
    let mut bytes = [0u8; 64];
    loop {
        // SAFETY: the buffer is writable for its length.
        let got = unsafe { libc::recv(socket, bytes.as_mut_ptr().cast(), bytes.len(), libc::MSG_DONTWAIT) };
        match got {
            0 => return false,
            n if n > 0 => {}
            _ => return errno() == libc::EAGAIN || errno() == libc::EINTR,
        }
    }
}

/// Connects to the engine.
pub(super) fn connect(path: &[u8]) -> Result<OwnedFd, i32> {
    // SAFETY: values only; the address is zeroed, then filled within its bounds.
    unsafe {
        let raw = libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        if raw < 0 {
            return Err(errno());
        }
        let socket = OwnedFd::from_raw_fd(raw);
        let mut address: libc::sockaddr_un = std::mem::zeroed();
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        if path.len() >= address.sun_path.len() {
            return Err(libc::ENAMETOOLONG);
        }
        for (to, from) in address.sun_path.iter_mut().zip(path) {
            *to = *from as libc::c_char;
        }
        let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        if libc::connect(raw, (&raw const address).cast(), length) != 0 {
            return Err(errno());
        }
        Ok(socket)
    }
}
