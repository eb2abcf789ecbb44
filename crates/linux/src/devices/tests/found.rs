use std::path::Path;

use isotherm_chmu::registers as unit;
use isotherm_core::Signal;
use isotherm_neoprof::registers as at;

use super::*;
use crate::source::AccessSource;

#[test]
fn the_register_locator_tells_where_a_unit_is() {
    let mut config = vec![0; 4096];
    let mut put = |at: usize, word: u32| config[at..at + 4].copy_from_slice(&word.to_le_bytes());
    put(0x100, 0x0001 | 1 << 16 | 0x140 << 20);
    put(0x140, 0x0023 | 1 << 16);
    put(0x144, 0x1e98 | 0x01c << 20);
    put(0x148, 8);
    put(0x14c, 2 | 3 << 8);
    put(0x154, 2 | 5 << 8 | 0x3 << 16);
    put(0x158, 1);
    let expected = find::Located { bar: 2, offset: 0x1_0003_0000 };
    assert_eq!(find::locate(&config), Some(expected));
    assert_eq!(find::locate(&config[..0x150]), None, "cut off");
    assert_eq!(find::locate(&[0xff; 4096]), None);
    assert_eq!(find::locate(&[]), None);
}

const DEVICE: &str = "sys/bus/pci/devices/0000:00:05.0";
/// The device's memory.
const RESOURCE: &str = "sys/bus/pci/devices/0000:00:05.0/resource2";

fn write(root: &Path, name: &str, bytes: &[u8]) {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().expect("a directory")).expect("writable");
    std::fs::write(path, bytes).expect("writable");
}

/// Makes a machine with a slow node of 256 MiB and a device whose memory is missing yet.
fn machine() -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a directory");
    let write = |name: &str, bytes| write(root.path(), name, bytes);
    write(&format!("{DEVICE}/vendor"), b"0x1af4\n");
    write(&format!("{DEVICE}/device"), b"0x1110\n");
    write("sys/devices/system/memory/block_size_bytes", b"8000000\n");
    for block in [32, 33] {
        write(&format!("sys/devices/system/node/node1/memory{block}/state"), b"online\n");
    }
    root
}

#[test]
fn a_device_is_found_by_its_id_and_its_memory_by_the_slow_node() {
    let root = machine();
    let mut registers = vec![0u8; 1 << 16];
    let mut put =
        |at: u64, word: u64| registers[at as usize..at as usize + 8].copy_from_slice(&word.to_le_bytes());
    put(at::IDENTITY, at::IDENTITY_VALUE);
    put(at::PARAMETERS, sizes().to_word());
    let mut refused = Vec::new();
    let missing = find::open(root.path(), &[1], &mut refused).err().expect("no memory yet").to_string();
    assert!(missing.contains("needs CXL memory with a NeoProf"), "{missing}");
    write(root.path(), RESOURCE, &registers);
    let source = find::open(root.path(), &[1], &mut refused).expect("a NeoProf");
    assert!(refused.is_empty() && source.offers().has(Signal::DeviceReports));
    drop(source);
    find::open(root.path(), &[1, 2], &mut refused).err().expect("which node?");
    assert!(refused.pop().expect("why").to_string().contains("in no CXL region"));
}

#[test]
fn a_memory_that_stands_for_a_unit_is_known_by_its_first_word() {
    let root = machine();
    let mut model = isotherm_chmu::Model::new(isotherm_chmu::Sizes::of_memory(1 << 28)).expect("sizes");
    let block = (0..0x100).step_by(8).flat_map(|offset| model.read(offset).to_le_bytes());
    let mut memory = unit::STAND_IN.to_le_bytes().to_vec();
    memory.resize(unit::STAND_IN_BLOCK as usize, 0);
    memory.extend(block);
    memory.resize(unit::STAND_IN_BYTES as usize, 0);
    write(root.path(), RESOURCE, &memory);
    let source = find::open(root.path(), &[1], &mut Vec::new()).expect("a unit");
    assert!(source.offers().has(Signal::DeviceHotPages) && !source.offers().has(Signal::DeviceReports));
    let second =
        || find::open(root.path(), &[1], &mut Vec::new()).map(drop).map_err(|error| error.to_string());
    let refused = second().expect_err("two engines would take each other's pages");
    assert!(refused.contains("resource2: another engine uses the device"), "{refused}");
    drop(source);
    assert_eq!(second(), Ok(()));
}

#[test]
fn a_unit_that_the_kernels_driver_has_is_asked_of_the_kernel() {
    let unit = "sys/bus/event_source/devices/cxl_hmu_mem2.0.0";
    let fields = [
        "epoch_type",
        "access_type",
        "epoch_scale",
        "epoch_multiplier",
        "hotness_threshold",
        "hotness_granual",
    ];
    let root = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        let path = root.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("writable");
        std::fs::write(path, text).expect("writable");
    };
    write("sys/bus/pci/devices/0000:0d:00.0/vendor", "0x8086");
    write("sys/bus/pci/devices/0000:0d:00.0/device", "0x0d93");
    write("sys/bus/pci/devices/0000:0d:00.0/mem2/firmware_version", "1");
    // No PMU has this number.
    write(&format!("{unit}/type"), "4000000000");
    write(&format!("{unit}/cpumask"), "0");
    fields.into_iter().enumerate().for_each(|(index, field)| {
        let (low, high) = (10 * (index % 6), 10 * (index % 6) + 9);
        write(&format!("{unit}/format/{field}"), &format!("config{}:{low}-{high}", index / 5 + 1));
    });
    let error = find::open(root.path(), &[1], &mut Vec::new()).err().expect("no such PMU").to_string();
    assert!(error.contains("needs CXL memory with a NeoProf"), "{error}");
    assert!(
        error.contains("the kernel refuses the event cxl_hmu_mem2.0.0") || error.contains("CAP_PERFMON"),
        "{error}"
    );
}
