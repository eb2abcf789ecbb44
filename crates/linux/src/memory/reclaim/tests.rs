use super::*;

/// A machine's files, as cgroup-v2.rst and stable/sysfs-devices-node describe them.
struct Machine(tempfile::TempDir);

const PROGRAM: Pid = Pid(70);
const OWN: Pid = Pid(71);
const CGROUP: &str = "sys/fs/cgroup/app.slice";

impl Machine {
    fn new(demotion: &str) -> Self {
        let machine = Self(tempfile::tempdir().expect("a temporary directory"));
        machine.write(DEMOTION, demotion);
        machine.write(
            "proc/self/mountinfo",
            "30 20 0:27 / /sys rw - sysfs sysfs rw\n31 20 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n",
        );
        machine.write("proc/70/cgroup", "1:name=systemd:/x\n0::/app.slice\n");
        machine.write("proc/71/cgroup", "0::/user.slice\n");
        machine
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.0.path().join(path)).expect("read")
    }

    fn find(&self) -> Result<Reclaimer, LinuxError> {
        Reclaimer::find(self.0.path(), PROGRAM, OWN, 0)
    }
}

#[test]
fn without_demotion_nothing_is_reclaimed_and_the_command_is_told() {
    for value in ["false\n", "0\n"] {
        let error = Machine::new(value).find().expect_err("reclaim would swap").to_string();
        assert!(error.contains("echo 1 > /sys/kernel/mm/numa/demotion_enabled"), "{error}");
    }
    let machine = Machine::new("true");
    fs::remove_file(machine.0.path().join(DEMOTION)).expect("removed");
    let error = machine.find().expect_err("no such kernel").to_string();
    assert!(error.contains("Linux 5.15"), "{error}");
}

#[test]
fn the_programs_own_cgroup_comes_first_then_the_node() {
    let machine = Machine::new("true\n");
    let error = machine.find().expect_err("neither").to_string();
    assert!(error.contains("node0/reclaim (Linux 6.17)") && error.contains("systemd-run"), "{error}");
    let node = machine.0.path().join("sys/devices/system/node/node0");
    machine.write("sys/devices/system/node/node0/reclaim", "");
    assert_eq!(machine.find().expect("found").scope(), &Scope::Node(node.clone()));
    machine.write(&format!("{CGROUP}/memory.reclaim"), "");
    let program = Scope::Program(machine.0.path().join(CGROUP));
    assert_eq!(machine.find().expect("found").scope(), &program);
    // Siblings, and Isotherm itself, would be reclaimed too.
    machine.write("proc/71/cgroup", "0::/app.slice\n");
    assert_eq!(machine.find().expect("found").scope(), &Scope::Node(node.clone()));
    // The root has no memory.reclaim.
    machine.write("proc/70/cgroup", "0::/\n");
    assert_eq!(machine.find().expect("found").scope(), &Scope::Node(node));
}

#[test]
fn bytes_are_asked_for_in_pieces() {
    let machine = Machine::new("1");
    let file = format!("{CGROUP}/memory.reclaim");
    machine.write(&file, "");
    let reclaimer = machine.find().expect("found");
    let reclaimed = reclaimer.reclaim(Pages(PIECE + 5)).expect("reclaimed");
    assert_eq!(reclaimed, Reclaimed { pages: Pages(PIECE + 5), demoted: None, complete: true });
    // A plain file keeps what was written from its start: the second piece over the first.
    assert_eq!(machine.read(&file), format!("{}777216", 5 * BASE).replace("20480777216", "20480216"));
}

#[test]
fn answers_of_the_kernel_have_their_meaning() {
    let answer = |errno| meaning(Err(io::Error::from_raw_os_error(errno)), "reclaim".into());
    for errno in [libc::EAGAIN, libc::EINTR, libc::EBUSY] {
        assert!(!answer(errno).expect("a part"));
    }
    let denied = answer(libc::EACCES).expect_err("denied").to_string();
    assert!(denied.contains("let the user write to reclaim"), "{denied}");
    assert!(matches!(answer(libc::EINVAL), Err(LinuxError::File { .. })));
    assert!(meaning(Ok(4), "reclaim".into()).expect("all"));
}

#[test]
fn counters_are_summed_by_what_they_count() {
    // memory.stat of Linux 6.12, in part.
    let cgroup =
        "anon 4096\npgsteal 70\npgsteal_kswapd 40\npgsteal_direct 30\npgdemote_kswapd 5\npgdemote_direct 6\n";
    let found = counted(cgroup);
    assert_eq!((found.stolen, found.demoted), (Some(70), Some(11)));
    // A node's vmstat of Linux 6.18, in part.
    let node = "nr_active_anon 9\npgdemote_kswapd 1\npgdemote_direct 2\npgdemote_khugepaged 0\npgdemote_proactive 4\n";
    let found = counted(node);
    assert_eq!((found.stolen, found.demoted), (None, Some(7)));
    let found = counted("pgsteal_kswapd 1\npgsteal_anon 3\npgsteal_file 4\nno number\npgdemote_x y\n");
    assert_eq!((found.stolen, found.demoted), (Some(7), None));
}

#[test]
fn a_part_is_told_by_the_counters() {
    let counted = |stolen, demoted| Counted { stolen, demoted };
    let of = |done, before, after| Reclaimed::of(1000, done, false, [before, after]).pages;
    assert_eq!(of(0, counted(Some(5), Some(3)), counted(Some(105), Some(33))), Pages(100));
    assert_eq!(of(0, counted(None, Some(3)), counted(None, Some(33))), Pages(30));
    assert_eq!(of(600, counted(None, None), counted(None, None)), Pages(600), "whole pieces are certain");
    assert_eq!(of(0, counted(Some(0), None), counted(Some(9999), None)), Pages(1000), "others reclaim too");
    let all = Reclaimed::of(1000, 1000, true, [counted(None, Some(3)), counted(None, Some(4))]);
    assert_eq!(all, Reclaimed { pages: Pages(1000), demoted: Some(Pages(1)), complete: true });
}

#[test]
fn the_real_node_takes_a_request_for_nothing() {
    let directory = PathBuf::from("/sys/devices/system/node/node0");
    match (Reclaimer { scope: Scope::Node(directory.clone()) }).ask(0) {
        Ok(_) => {}
        Err(LinuxError::Permission { .. }) => println!("skipped: only root may reclaim"),
        Err(LinuxError::File { .. }) if !directory.join("reclaim").exists() => {
            println!("skipped: no node reclaim before Linux 6.17");
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn an_empty_cgroup_has_nothing_to_reclaim() {
    let mount = mount_point(Path::new("/")).unwrap_or_default();
    let directory = mount.join(format!("isotherm-test-{}", std::process::id()));
    if mount.as_os_str().is_empty() || fs::create_dir(&directory).is_err() {
        println!("skipped: no writable cgroup v2");
        return;
    }
    let usable = directory.join("memory.reclaim").exists();
    let answer = (Reclaimer { scope: Scope::Program(directory.clone()) }).reclaim(Pages(1));
    fs::remove_dir(&directory).expect("removed");
    if usable {
        assert_eq!(answer.expect("an answer").pages, Pages(0));
    } else {
        println!("skipped: cgroup v2 has no memory controller here");
    }
}

#[test]
fn this_kernels_own_files_are_understood() {
    let vmstat = fs::read_to_string("/sys/devices/system/node/node0/vmstat");
    match vmstat.map(|text| counted(&text).demoted) {
        Ok(Some(_)) => {}
        _ => println!("skipped: this kernel does not count demotions of a node"),
    }
    match Reclaimer::find(Path::new("/"), Pid(std::process::id()), Pid(std::process::id()), 0) {
        // Nothing is reclaimed: the node holds other programs' pages as well.
        Ok(reclaimer) => assert!(matches!(reclaimer.scope(), Scope::Node(_))),
        Err(error) => assert!(error.to_string().contains("demotion") || error.to_string().contains("LRU")),
    }
}
