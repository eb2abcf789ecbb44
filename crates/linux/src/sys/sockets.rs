//! Unix stream sockets: peers, descriptors beside messages, and single bytes that mean "look".
//!
//! Descriptors are passed by number, for the agent's lie in a table of its own. Does not allocate.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::process::Pid;
use super::{code, errno, owned};

/// Mode of a socket that only its user may connect to.
const PRIVATE: libc::mode_t = 0o600;

fn socket(flags: libc::c_int) -> Result<OwnedFd, i32> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | flags;
    // SAFETY: integers only.
    owned(unsafe { libc::socket(libc::AF_UNIX, kind, 0) }.into()).map_err(|error| code(&error))
}

/// Calls `with` with the address of `path` and its length.
fn with_address(
    path: &[u8],
    with: impl FnOnce(*const libc::sockaddr, libc::socklen_t) -> libc::c_int,
) -> Result<(), i32> {
    // SAFETY: all bytes zero are a valid value of this plain structure.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    if path.len() >= address.sun_path.len() {
        return Err(libc::ENAMETOOLONG);
    }
    for (to, from) in address.sun_path.iter_mut().zip(path) {
        *to = *from as libc::c_char;
    }
    let length = (size_of::<libc::sa_family_t>() + path.len() + 1) as libc::socklen_t;
    if with((&raw const address).cast(), length) == 0 { Ok(()) } else { Err(errno()) }
}

/// Connects to the socket at `path`. With `nonblocking` the call fails instead of waiting for a full queue.
/// Errors: `ENAMETOOLONG` for more than 107 bytes; `ECONNREFUSED` or `ENOENT` if nobody listens there;
/// `EAGAIN` for a full queue.
pub(crate) fn connect(path: &[u8], nonblocking: bool) -> Result<OwnedFd, i32> {
    let socket = socket(if nonblocking { libc::SOCK_NONBLOCK } else { 0 })?;
    // SAFETY: the address is readable for its length during the call.
    with_address(path, |at, length| unsafe { libc::connect(socket.as_raw_fd(), at, length) })?;
    Ok(socket)
}

/// Listens at `path`, without waiting in calls. Others can never connect, whatever the umask: Linux gives the
/// file the mode that the socket had before `bind(2)`. Errors: `EADDRINUSE` if there is a file.
pub(crate) fn listen(path: &[u8]) -> Result<OwnedFd, i32> {
    let socket = socket(libc::SOCK_NONBLOCK)?;
    // SAFETY: integers only.
    if unsafe { libc::fchmod(socket.as_raw_fd(), PRIVATE) } != 0 {
        return Err(errno());
    }
    // SAFETY: the address is readable for its length during the call.
    with_address(path, |at, length| unsafe { libc::bind(socket.as_raw_fd(), at, length) })?;
    // SAFETY: integers only.
    if unsafe { libc::listen(socket.as_raw_fd(), libc::SOMAXCONN) } != 0 {
        return Err(errno());
    }
    Ok(socket)
}

/// Whoever is at the other end of a socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    /// 0 for a process outside of this namespace.
    pub(crate) process: Pid,
    user: u32,
}

impl Peer {
    /// Returns whether it has this thread's user, or is root.
    pub(crate) fn is_trusted(self) -> bool {
        self.user == 0 || self.user == super::process::user()
    }
}

/// Returns who is at the other end, as the kernel knows it (`SO_PEERCRED`). Errors: `ENOTSOCK` or `EBADF` for
/// another descriptor.
pub(crate) fn peer(socket: RawFd) -> Result<Peer, i32> {
    let mut who = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the structure and its length are writable and match.
    let result = unsafe {
        let option = (&raw mut who).cast();
        libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_PEERCRED, option, &raw mut length)
    };
    if result == 0 { Ok(Peer { process: Pid(who.pid as u32), user: who.uid }) } else { Err(errno()) }
}

/// Most descriptors beside a message.
const FILES: usize = 2;
const FILE_BYTES: u32 = (FILES * size_of::<RawFd>()) as u32;

/// Room for descriptors beside a message, aligned as `cmsghdr` is.
#[repr(C, align(8))]
struct Ancillary([u8; 64]);

/// Calls `with` with a message header for `bytes` and descriptors beside them.
fn with_header<R>(bytes: *mut u8, length: usize, with: impl FnOnce(&mut libc::msghdr) -> R) -> R {
    let mut part = libc::iovec { iov_base: bytes.cast(), iov_len: length };
    let mut room = Ancillary([0; 64]);
    // SAFETY: all bytes zero are a valid value of this plain structure.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = room.0.as_mut_ptr().cast();
    // SAFETY: computes a length: 24 bytes, which `room` holds.
    header.msg_controllen = unsafe { libc::CMSG_SPACE(FILE_BYTES) } as _;
    with(&mut header)
}

/// Sends a message with two descriptors. Errors: those of `sendmsg(2)`: `EPIPE` if the other end is gone.
pub(crate) fn send_files(socket: RawFd, bytes: &[u8], files: [RawFd; FILES]) -> Result<(), i32> {
    let sent = with_header(bytes.as_ptr().cast_mut(), bytes.len(), |header| {
        // SAFETY: the header's room holds the descriptors; the kernel only reads the bytes.
        unsafe {
            let control = libc::CMSG_FIRSTHDR(header);
            (*control).cmsg_level = libc::SOL_SOCKET;
            (*control).cmsg_type = libc::SCM_RIGHTS;
            (*control).cmsg_len = libc::CMSG_LEN(FILE_BYTES) as _;
            libc::CMSG_DATA(control).cast::<[RawFd; FILES]>().write_unaligned(files);
            libc::sendmsg(socket, header, libc::MSG_NOSIGNAL)
        }
    });
    if sent == bytes.len() as isize { Ok(()) } else { Err(errno()) }
}

/// Receives a message, its length and the descriptors beside it; `EAGAIN` if there is none yet.
pub(crate) fn receive_files(
    socket: RawFd,
    bytes: &mut [u8],
) -> Result<(usize, [Option<OwnedFd>; FILES]), i32> {
    with_header(bytes.as_mut_ptr(), bytes.len(), |header| {
        let mut files = [const { None }; FILES];
        // SAFETY: the header points to live, writable buffers; a descriptor belongs to whoever received it.
        unsafe {
            let got = libc::recvmsg(socket, header, libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC);
            let got = usize::try_from(got).map_err(|_| errno())?;
            let control = libc::CMSG_FIRSTHDR(header);
            if !control.is_null() && (*control).cmsg_type == libc::SCM_RIGHTS {
                let bytes = ((*control).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
                let numbers = libc::CMSG_DATA(control).cast::<RawFd>();
                for (at, file) in files.iter_mut().enumerate().take(bytes / size_of::<RawFd>()) {
                    *file = Some(OwnedFd::from_raw_fd(numbers.add(at).read_unaligned()));
                }
            }
            Ok((got, files))
        }
    })
}

/// Sends a byte that means "look". A full buffer holds one already.
pub(crate) fn nudge(socket: RawFd) {
    // SAFETY: one readable byte.
    unsafe { libc::send(socket, [0u8].as_ptr().cast(), 1, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) };
}

/// Takes such bytes; false if the other end is gone.
pub(crate) fn still_there(socket: RawFd) -> bool {
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
