//! QEMU's command line for a virtual machine.

use std::ffi::{OsStr, OsString};
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

use crate::cache::Cache;
use crate::machine::{Machine, NodeKind};
use crate::plugin::{self, escaped};
use crate::run_directory::RunDirectory;

/// Processor model: old enough for every program of Debian, and quick to emulate.
const PROCESSOR: &str = "qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt";
/// Bus number of the host bridge above the CXL device.
const CXL_BUS: u32 = 12;
const KERNEL_WORDS: [&str; 10] = [
    "console=ttyS0",
    "quiet",
    "panic=-1",
    "rdinit=/init",
    // Reclaim would demote the files of a tmpfs, and programs would get their place on the fast node.
    "rootfstype=ramfs",
    // The guest's scripts choose the tiering, not the distribution's default.
    "numa_balancing=disable",
    "mitigations=off",
    "memhp_default_state=online_movable",
    "tsc=reliable",
    // On a busy host Linux's check of the timer fails, and the kernel panics.
    "no_timer_check",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Port {
    /// A socket that QEMU inherits by its number.
    Socket(RawFd),
    File(OsString),
}

/// Program's streams, by name. A missing stream is the guest's `/dev/null`.
pub type Ports = Vec<(&'static str, Port)>;

#[derive(Debug)]
pub struct Guest<'a> {
    pub machine: &'a Machine,
    pub cache: &'a Cache,
    pub run: &'a RunDirectory,
    pub ports: Ports,
    pub plugin: Option<&'a Path>,
    pub hardware: Option<&'a Path>,
    pub interactive: bool,
    /// Number of the socket by which QEMU is controlled, for a guest that pauses where its job begins.
    pub monitor: Option<RawFd>,
    /// Booted guest to start from.
    pub snapshot: Option<PathBuf>,
}

/// Returns QEMU's command line, without the program's name.
pub fn arguments(guest: &Guest<'_>) -> Vec<OsString> {
    let mut line = Line::default();
    board(&mut line, guest.machine);
    memory(&mut line, guest.machine);
    files(&mut line, guest);
    line.pair("-chardev", with_path("file,id=console,path=", &guest.run.console()));
    line.pair("-device", "isa-serial,chardev=console");
    if let Some(path) = guest.plugin {
        counting(&mut line, guest, path);
    }
    if guest.interactive || !guest.ports.is_empty() {
        line.pair("-device", "virtio-serial-pci,bus=pcie.0");
    }
    if guest.interactive {
        // The guest's `/dev/hvc0` keeps what is typed before it is opened; a serial line's driver would not.
        line.pair("-chardev", "stdio,id=terminal,signal=off");
        line.pair("-device", "virtconsole,chardev=terminal");
    }
    for (name, port) in &guest.ports {
        stream(&mut line, name, port);
    }
    if let Some(number) = guest.monitor {
        line.pair("-chardev", format!("socket,id=monitor,fd={number}"));
        line.pair("-mon", "chardev=monitor,mode=control");
        // By this device the guest pauses; its kernel has no driver for it loaded.
        line.pair("-device", "pvpanic");
        line.pair("-action", "panic=pause");
        // The guest's kernel takes new random numbers when it continues from a snapshot.
        line.pair("-device", "vmgenid,guid=auto");
    }
    if let Some(path) = &guest.snapshot {
        line.pair("-incoming", [OsStr::new("file:"), path.as_os_str()].join(OsStr::new("")));
    }
    let more: &[&str] = if guest.machine.deterministic { &["nokaslr", "norandmaps"] } else { &[] };
    line.pair("-append", [&KERNEL_WORDS, more].concat().join(" "));
    line.0
}

#[derive(Debug, Default)]
struct Line(Vec<OsString>);

impl Line {
    fn pair(&mut self, option: &str, value: impl Into<OsString>) {
        self.0.extend([option.into(), value.into()]);
    }
}

fn board(line: &mut Line, machine: &Machine) {
    line.0.extend(["-nodefaults", "-no-user-config", "-no-reboot"].map(Into::into));
    line.pair("-display", "none");
    let last = machine.nodes.iter().filter(|node| node.kind == NodeKind::Cxl).map(|node| node.size.0).max();
    let cxl = last.map_or_else(String::new, |size| {
        let window = size.next_multiple_of(256 << 20);
        format!(",cxl=on,cxl-fmw.0.targets.0=cxl.1,cxl-fmw.0.size={window}")
    });
    line.pair("-machine", format!("q35,hmat=on{cxl}"));
    // Linux uses no CXL memory if it knows that it is a guest.
    line.pair("-cpu", format!("{PROCESSOR}{}", if machine.has_cxl() { ",-hypervisor" } else { "" }));
    line.pair("-smp", machine.processors.to_string());
    line.pair("-accel", "tcg,thread=single");
    if machine.deterministic {
        line.pair("-icount", "shift=0,sleep=off");
        line.pair("-rtc", "base=2026-01-01,clock=vm");
        // The guest's kernel draws its first random numbers from this.
        line.pair("-seed", "1");
    }
}

/// Adds the nodes, their distances and the speeds that firmware reports.
fn memory(line: &mut Line, machine: &Machine) {
    line.pair("-m", format!("{}B", machine.plain_memory().0));
    for (index, node) in machine.nodes.iter().enumerate() {
        let size = node.size.0;
        line.pair("-object", format!("memory-backend-ram,id=memory{index},size={size}"));
        match node.kind {
            NodeKind::Plain if index == 0 => {
                let last = machine.processors - 1;
                let processors = if last == 0 { "cpus=0".into() } else { format!("cpus=0-{last}") };
                line.pair("-numa", format!("node,nodeid=0,{processors},memdev=memory0"));
            }
            NodeKind::Plain => {
                line.pair("-numa", format!("node,nodeid={index},memdev=memory{index},initiator=0"));
            }
            NodeKind::Cxl => cxl_device(line, index),
        }
    }
    for (index, _) in machine.nodes.iter().enumerate().filter(|(_, node)| node.kind == NodeKind::Plain) {
        for from in 0..index {
            line.pair("-numa", format!("dist,src={from},dst={index},val={}", distance(machine, from, index)));
        }
        speed(line, machine, index);
    }
}

/// Returns the distance of two nodes in firmware's tables, in proportion to latencies: 10 for a node itself,
/// else 11 up. The way from one without processors to another leads over the first node.
fn distance(machine: &Machine, from: usize, to: usize) -> u64 {
    let latency = |index: usize| machine.profile.tiers[index].latency.0;
    let from_first = |node: usize| (10 * latency(node) / latency(0).max(1)).max(10);
    (from_first(from) + from_first(to) - 10).clamp(11, 254)
}

fn speed(line: &mut Line, machine: &Machine, node: usize) {
    let tier = &machine.profile.tiers[node];
    let lines = format!("hmat-lb,initiator=0,target={node},hierarchy=memory");
    line.pair("-numa", format!("{lines},data-type=access-latency,latency={}", tier.latency.0));
    // The table holds 16 bits of a unit that all nodes share: 16 MiB/s, up to 1 TiB/s.
    let bandwidth = (tier.read_bandwidth >> 24).clamp(1, 0xffff) * 16;
    line.pair("-numa", format!("{lines},data-type=access-bandwidth,bandwidth={bandwidth}M"));
}

fn cxl_device(line: &mut Line, index: usize) {
    line.pair("-device", format!("pxb-cxl,bus_nr={CXL_BUS},bus=pcie.0,id=cxl.1"));
    line.pair("-device", "cxl-rp,port=0,bus=cxl.1,id=cxl-port,chassis=0,slot=2");
    line.pair("-device", format!("cxl-type3,bus=cxl-port,volatile-memdev=memory{index},id=cxl-memory"));
}

fn files(line: &mut Line, guest: &Guest<'_>) {
    for folder in guest.cache.firmware() {
        line.pair("-L", folder);
    }
    line.pair("-kernel", guest.cache.kernel());
    line.pair("-initrd", guest.run.initramfs());
    let root = "local,id=root,security_model=none,readonly=on,multidevs=remap,path=/";
    line.pair("-fsdev", root);
    line.pair("-device", "virtio-9p-pci,bus=pcie.0,fsdev=root,mount_tag=root");
    line.pair("-fsdev", with_path("local,id=share,security_model=none,path=", &guest.run.share()));
    line.pair("-device", "virtio-9p-pci,bus=pcie.0,fsdev=share,mount_tag=share");
}

fn counting(line: &mut Line, guest: &Guest<'_>, path: &Path) {
    let mut share = |id: &str, size: u64, file: &Path| {
        let backend = format!("memory-backend-file,id={id},share=on,size={size},mem-path=");
        line.pair("-object", with_path(&backend, file));
        line.pair("-device", format!("ivshmem-plain,memdev={id},master=on,bus=pcie.0"));
    };
    share("counters", plugin::SHARED_BYTES, &guest.run.shared_memory());
    if let Some(device) = guest.machine.device {
        share("device", plugin::register_bytes(device), &guest.run.registers());
    }
    line.pair("-plugin", plugin::option((path, guest.hardware), guest.machine, guest.run));
}

fn stream(line: &mut Line, name: &str, port: &Port) {
    let device = match port {
        Port::Socket(number) => OsString::from(format!("socket,id={name},fd={number}")),
        Port::File(path) => with_path(&format!("file,id={name},path="), Path::new(path)),
    };
    line.pair("-chardev", device);
    line.pair("-device", format!("virtserialport,chardev={name},name={name}"));
}

fn with_path(option: &str, path: &Path) -> OsString {
    let mut text = OsString::from(option);
    text.push(escaped(path));
    text
}

#[cfg(test)]
mod tests;
