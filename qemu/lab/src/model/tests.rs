use std::path::Path;
use std::sync::atomic::AtomicU64;

use isotherm_virtual_pmu::Driver;

use super::*;

/// A machine of two tiers of 1 MiB and a cache of 64 KiB, 4 ways, with the guest's side of its memory.
fn machine(folder: &Path) -> (Model, Driver<Memory>) {
    let profile = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines/pact.toml");
    let arguments = [
        format!("bar={}", folder.join("bar").display()),
        format!("result={}", folder.join("result.json").display()),
        format!("machine={}", profile.display()),
        "llc=64KiB".into(),
        "ways=4".into(),
        "tier0=0x0-0x100000".into(),
        "tier1=0x100000-0x200000".into(),
    ];
    let words = layout::MIN_BYTES / size_of::<AtomicU64>();
    let memory: Memory = Box::leak((0..words).map(|_| AtomicU64::new(0)).collect());
    let model = Model::new(Options::read(&arguments).expect("valid"), memory, 1).expect("a machine");
    (model, Driver::open(memory).expect("the layout"))
}

fn ask(model: &mut Model, driver: &Driver<Memory>, control: Control) {
    driver.set_control(control);
    let doorbell = driver.ring();
    model.obey(doorbell);
    assert!(driver.is_answered(doorbell));
}

fn counting(epoch: u64) -> Control {
    Control { epoch, counting: true, ..Control::default() }
}

fn missed(account: AccountId, physical: u64, store: bool) -> Missed {
    let process = Process::Tgid(7);
    Missed {
        vcpu: 0,
        process,
        account,
        address: 0x5000_0000,
        physical: Some(physical),
        store,
        instructions: 10,
    }
}

fn phases(folder: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read(folder.join("result.json")).expect("results");
    let result: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    result["phases"].as_array().expect("phases").clone()
}

#[test]
fn a_thread_is_left_out_while_the_guest_asks_for_it() {
    let folder = tempfile::tempdir().expect("a directory");
    let (mut model, driver) = machine(folder.path());
    ask(&mut model, &driver, Control { left_out: 9, ..counting(1) });
    assert!(model.leaves_out(|| Some(9)) && !model.leaves_out(|| Some(8)) && !model.leaves_out(|| None));
    ask(&mut model, &driver, counting(1));
    assert!(!model.leaves_out(|| panic!("nobody is left out: no thread is asked for")));
}

#[test]
fn each_miss_goes_to_its_tier_and_its_process() {
    let folder = tempfile::tempdir().expect("a directory");
    let (mut model, driver) = machine(folder.path());
    assert!(!model.control.counting);
    ask(&mut model, &driver, counting(1));
    assert!(model.control.counting);
    let account = model.account(Process::Tgid(7), || None).expect("nobody is excluded");
    for (physical, store, times) in
        [(0, false, 3), (0xf_ffc0, true, 2), (0x10_0000, false, 5), (0x20_0000, false, 4)]
    {
        (0..times).for_each(|_| model.miss(&missed(account, physical, store)));
    }
    model.miss(&Missed { physical: None, ..missed(account, 0, false) });
    model.end_stretch(&Stretch { vcpu: 0, account, accesses: 100, instructions: 1000, rest: 850 });
    ask(&mut model, &driver, counting(1));
    let snapshot = driver.snapshot().expect("whole");
    let tiers = snapshot.tiers.map(|tier| (tier.load_misses, tier.store_misses));
    assert_eq!(tiers[..2], [(3, 2), (5, 0)]);
    assert_eq!((snapshot.accesses, snapshot.instructions, snapshot.elsewhere), (100, 1000, 5));
    model.finish();
    let process = &phases(folder.path())[1]["processes"][0];
    assert_eq!(process["misses"], serde_json::json!([[3, 2], [5, 0]]));
    assert_eq!((&process["tgid"], &process["accesses"]), (&7.into(), &100.into()));
}

#[test]
fn time_is_that_of_all_instructions_and_of_the_stalls() {
    let folder = tempfile::tempdir().expect("a directory");
    let (mut model, driver) = machine(folder.path());
    ask(&mut model, &driver, counting(1));
    let account = model.account(Process::Tgid(7), || None).expect("nobody is excluded");
    (0..3000).for_each(|_| model.miss(&missed(account, 0, false)));
    // Instructions of a miss outside the tiers are charged as well.
    (0..10).for_each(|_| model.miss(&missed(account, 0x20_0000, false)));
    model.end_stretch(&Stretch { vcpu: 0, account, accesses: 1, instructions: 1, rest: 70_000 });
    ask(&mut model, &driver, counting(1));
    let snapshot = driver.snapshot().expect("whole");
    let instructions = (30_000 + 100 + 70_000) * model.options.profile.core.instruction_ps / 1000;
    let expected = instructions + snapshot.tiers[0].stall;
    assert!(
        snapshot.tiers[0].stall > 0 && snapshot.time.abs_diff(expected) <= 2,
        "{} {expected}",
        snapshot.time
    );
}

#[test]
fn a_new_epoch_starts_from_nothing_and_keeps_what_was() {
    let folder = tempfile::tempdir().expect("a directory");
    let (mut model, driver) = machine(folder.path());
    for epoch in 1..=2 {
        ask(&mut model, &driver, counting(epoch));
        assert_eq!(driver.snapshot(), Some(Snapshot { epoch, ..Snapshot::default() }));
        let account = model.account(Process::Tgid(7), || None).expect("nobody is excluded");
        (0..epoch * 2000).for_each(|_| model.miss(&missed(account, 0x10_0000, true)));
    }
    model.finish();
    let phases = phases(folder.path());
    let of = |index: usize| (&phases[index]["epoch"], &phases[index]["tiers"][1]["store_misses"]);
    assert_eq!(
        [of(0), of(1), of(2)].map(|(a, b)| (a.as_u64(), b.as_u64())),
        [(0, 0), (1, 2000), (2, 4000)].map(|(a, b)| (Some(a), Some(b)))
    );
}

#[test]
fn samples_carry_what_is_known_of_their_miss() {
    let folder = tempfile::tempdir().expect("a directory");
    let (mut model, mut driver) = machine(folder.path());
    let control = Control { periods: [10; 8], events: Control::all_events(true), exact: true, ..counting(1) };
    ask(&mut model, &driver, control);
    let account = model.account(Process::Tgid(7), || None).expect("nobody is excluded");
    (0..99).for_each(|_| model.miss(&missed(account, 0x10_0000, true)));
    let records: Vec<Record> = std::iter::from_fn(|| driver.pop()).collect();
    assert_eq!(records.len(), 9);
    assert!(records.is_sorted_by_key(|record| record.time) && records[8].time > 0);
    let (process, address) = (Process::Tgid(7), 0x5000_0000);
    let expected =
        Record { address, process, time: 0, tier: 1, store: true, vcpu: 0, latency: 190, weight: 10 };
    assert!(records.iter().all(|record| Record { time: 0, ..*record } == expected), "{records:?}");
    ask(&mut model, &driver, counting(1));
    (0..99).for_each(|_| model.miss(&missed(account, 0x10_0000, true)));
    assert_eq!(driver.pop(), None, "off is off");
}

#[test]
fn the_filter_decides_who_has_an_account() {
    let folder = tempfile::tempdir().expect("a directory");
    let (mut model, driver) = machine(folder.path());
    driver.set_filter(&[7]);
    ask(&mut model, &driver, Control { children: true, ..counting(1) });
    assert!(model.account(Process::Tgid(7), || None).is_some());
    assert!(model.account(Process::Tgid(8), || Some(7)).is_some());
    assert!(model.account(Process::Tgid(9), || Some(6)).is_none());
    assert!(model.account(Process::PageTables(7 << 12), || None).is_none());
}
