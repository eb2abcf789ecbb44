//! The lock that allows one engine per process: an abstract socket named after its number and start time.
//!
//! Any user of the network namespace sees it, and the kernel frees it when its holder dies.

use std::io;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use super::{Pid, ProcRoot, ProcessStat};
use crate::LinuxError;
use crate::sys::sockets;

/// The right to tier one process, released on drop.
#[derive(Debug)]
pub struct EngineLock {
    _socket: UnixListener,
    pid: Pid,
}

impl EngineLock {
    /// Takes the lock of a process; refused, naming the holder, while another engine has it.
    pub fn take(root: &ProcRoot, pid: Pid) -> Result<Self, LinuxError> {
        let start = ProcessStat::read(root, pid, &mut Vec::new())?.start;
        let call = LinuxError::of_call("bind of the engine's lock");
        let name = format!("isotherm-engine-{}-{start}", pid.0);
        let address = SocketAddr::from_abstract_name(&name).map_err(call)?;
        match UnixListener::bind_addr(&address) {
            Ok(socket) => Ok(Self { _socket: socket, pid }),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(refused(pid, &name)),
            Err(error) => Err(call(error)),
        }
    }

    pub fn pid(&self) -> Pid {
        self.pid
    }
}

fn refused(pid: Pid, name: &str) -> LinuxError {
    let abstract_name = format!("\0{name}");
    let socket = sockets::connect(abstract_name.as_bytes(), true).map_err(io::Error::from_raw_os_error);
    let holder = match socket.and_then(|socket| sockets::peer(socket.as_raw_fd())) {
        Ok(holder) if holder == pid => "the program itself, through libisotherm.so".into(),
        Ok(holder) => format!("process {}", holder.0),
        Err(_) => "another process".into(),
    };
    LinuxError::Unsupported {
        what: "a second engine on one process",
        remedy: format!("process {} is tiered by {holder}; end that engine first", pid.0),
    }
}
