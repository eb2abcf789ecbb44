//! Tests of QEMU's command line.

use super::*;
use crate::LabError;

fn line(machine: &Machine, interactive: bool) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let cache = crate::cache::tests::filled(folder.path())?;
    let run = RunDirectory::at(folder.path().join("run,1"))?;
    let ports = vec![("stdout", Port::Socket(7)), ("stderr", Port::File("/a,b".into()))];
    let plugin = Some(Path::new("/p.so"));
    let guest = Guest {
        machine,
        cache: &cache,
        run: &run,
        ports,
        plugin,
        hardware: None,
        interactive,
        monitor: None,
        snapshot: None,
    };
    Ok(arguments(&guest).into_iter().map(|word| word.to_string_lossy().into_owned()).collect())
}

fn has(line: &[String], option: &str, value: &str) -> bool {
    line.windows(2).any(|pair| pair[0] == option && pair[1].contains(value))
}

#[test]
fn nodes_have_sizes_distances_and_speeds() -> Result<(), Box<dyn std::error::Error>> {
    let line = line(&Machine::builtin("two-tier")?, false)?;
    let numa = |value: &str| has(&line, "-numa", value);
    assert!(has(&line, "-m", "1610612736B") && has(&line, "-machine", "q35,hmat=on"));
    assert!(has(&line, "-object", "memory-backend-ram,id=memory1,size=1073741824"));
    assert!(numa("node,nodeid=0,cpus=0,memdev=memory0") && numa("node,nodeid=1,memdev=memory1,initiator=0"));
    let profile = Machine::builtin("two-tier")?.profile;
    for (node, tier) in profile.tiers.iter().enumerate() {
        let latency = tier.latency.0;
        assert!(numa(&format!("target={node},hierarchy=memory,data-type=access-latency,latency={latency}")));
    }
    assert!(!has(&line, "-cpu", "hypervisor") && !has(&line, "-machine", "cxl"));
    Ok(())
}

#[test]
fn each_two_of_three_nodes_have_a_distance() -> Result<(), Box<dyn std::error::Error>> {
    let line = line(&Machine::builtin("three-tier")?, false)?;
    for distance in ["src=0,dst=1,val=11", "src=0,dst=2,val=19", "src=1,dst=2,val=19"] {
        assert!(has(&line, "-numa", distance), "{distance}: {line:?}");
    }
    Ok(())
}

#[test]
fn a_profiling_device_is_a_memory_of_its_own_behind_the_virtual_pmus()
-> Result<(), Box<dyn std::error::Error>> {
    let line = line(&Machine::builtin("neoprof")?, false)?;
    let place = |text: &str| line.iter().position(|word| word.contains(text));
    assert!(has(&line, "-object", "id=device,share=on,size=4096,mem-path="));
    assert!(place("memdev=counters") < place("memdev=device") && has(&line, "-plugin", ",device="));
    Ok(())
}

#[test]
fn a_cxl_device_stands_behind_its_bridge() -> Result<(), Box<dyn std::error::Error>> {
    let line = line(&Machine::builtin("cxl")?, false)?;
    assert!(has(&line, "-machine", "cxl=on,cxl-fmw.0.targets.0=cxl.1,cxl-fmw.0.size=536870912"));
    assert!(has(&line, "-device", "cxl-type3,bus=cxl-port,volatile-memdev=memory1"));
    assert!(has(&line, "-cpu", ",-hypervisor") && has(&line, "-m", "536870912B"));
    assert!(!has(&line, "-numa", "nodeid=1"));
    Ok(())
}

#[test]
fn a_guest_that_pauses_is_controlled_by_a_socket_and_may_start_from_a_file()
-> Result<(), Box<dyn std::error::Error>> {
    let machine = Machine::builtin("small")?;
    let folder = tempfile::tempdir()?;
    let cache = crate::cache::tests::filled(folder.path())?;
    let run = RunDirectory::at(folder.path().join("run"))?;
    let (snapshot, monitor) = (Some("/a,b".into()), Some(9));
    let (plugin, hardware, ports) = (None, None, Ports::new());
    let guest = Guest {
        machine: &machine,
        cache: &cache,
        run: &run,
        ports,
        plugin,
        hardware,
        interactive: false,
        monitor,
        snapshot,
    };
    let words: Vec<_> =
        arguments(&guest).into_iter().map(|word| word.to_string_lossy().into_owned()).collect();
    assert!(has(&words, "-chardev", "socket,id=monitor,fd=9") && has(&words, "-action", "panic=pause"));
    // QEMU takes commas in this path as they are.
    assert!(has(&words, "-incoming", "file:/a,b"), "{words:?}");
    Ok(())
}

#[test]
fn instructions_are_the_clock_of_a_deterministic_machine() -> Result<(), Box<dyn std::error::Error>> {
    let machine = Machine { deterministic: true, ..Machine::builtin("small")? };
    let fixed = line(&machine, false)?;
    assert!(has(&fixed, "-icount", "shift=0,sleep=off") && has(&fixed, "-rtc", "clock=vm"));
    assert!(has(&fixed, "-append", "nokaslr") && has(&fixed, "-seed", "1"));
    assert!(!line(&Machine::builtin("small")?, false)?.contains(&"-icount".to_owned()));
    Ok(())
}

#[test]
fn streams_and_paths_with_commas_are_passed_on() -> Result<(), Box<dyn std::error::Error>> {
    let machine = Machine::builtin("small")?;
    let program = line(&machine, false)?;
    assert!(has(&program, "-chardev", "socket,id=stdout,fd=7"));
    assert!(has(&program, "-chardev", "file,id=stderr,path=/a,,b"));
    assert!(
        has(&program, "-chardev", "file,id=console,path=") && has(&program, "-chardev", "run,,1/console.log")
    );
    Ok(())
}

#[test]
fn a_terminal_is_no_serial_line() -> Result<(), Box<dyn std::error::Error>> {
    let machine = Machine::builtin("small")?;
    let (shell, program) = (line(&machine, true)?, line(&machine, false)?);
    assert!(has(&shell, "-chardev", "stdio,id=terminal,signal=off"));
    assert!(has(&shell, "-device", "virtconsole,chardev=terminal"));
    for line in [&shell, &program] {
        assert!(has(line, "-chardev", "file,id=console,path="));
        assert!(has(line, "-device", "isa-serial,chardev=console"));
    }
    assert!(!has(&program, "-device", "virtconsole"));
    Ok(())
}

#[test]
fn the_plugin_has_its_device() -> Result<(), Box<dyn std::error::Error>> {
    let line = line(&Machine::builtin("cxl")?, false)?;
    assert!(has(&line, "-device", "ivshmem-plain,memdev=counters,master=on,bus=pcie.0"));
    assert!(has(&line, "-object", "id=counters,share=on,size=16777216,mem-path=/"));
    assert!(has(&line, "-plugin", "/p.so,bar=") && has(&line, "-plugin", "tier1=0x110000000-0x130000000"));
    Ok(())
}

#[test]
fn several_processors_are_all_on_the_first_node() -> Result<(), Box<dyn std::error::Error>> {
    let machine = Machine { processors: 4, ..Machine::builtin("small")? };
    let line = line(&machine, false)?;
    assert!(has(&line, "-numa", "node,nodeid=0,cpus=0-3,") && has(&line, "-smp", "4"));
    Ok(())
}

#[test]
fn distances_follow_latencies() -> Result<(), LabError> {
    let machine = Machine::builtin("two-tier")?;
    let latency = |tier: usize| machine.profile.tiers[tier].latency.0;
    assert_eq!(distance(&machine, 0, 1), (10 * latency(1) / latency(0)).clamp(11, 254));
    Ok(())
}
