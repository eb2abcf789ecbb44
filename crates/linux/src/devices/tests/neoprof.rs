use isotherm_neoprof::registers as at;

use super::*;

fn refused(fault: Fault) -> String {
    NeoProf::open("0000:3a:00.0", Faulty::new(fault).0).err().expect("no usable device").to_string()
}

#[test]
fn another_devices_registers_are_refused_in_one_line() {
    assert_eq!(
        refused(Fault::Reads(at::IDENTITY, 0x1234)),
        "0000:3a:00.0: its first register is 0x0000000000001234, a NeoProf's 0x4e454f50524f4601"
    );
    assert_eq!(
        refused(Fault::Reads(at::IDENTITY, 0x4e45_4f50_524f_4603)),
        "0000:3a:00.0: version 3 of its registers; this driver speaks 1"
    );
    assert_eq!(
        refused(Fault::Reads(at::PARAMETERS, 0x0002_400e_2010_ff02)),
        "0000:3a:00.0: log2 width of a NeoProf device: expected 6 to 24, not 255"
    );
    assert_eq!(refused(Fault::Vanished), "0000:3a:00.0: it has vanished (its registers read all ones)");
}

#[test]
fn hot_pages_and_reports_come_through_the_registers() {
    let mut running = running();
    running.access(9, 5);
    assert_eq!(running.read(false), Ok((vec![], None)), "nothing is hot before a threshold is set");
    running.threshold(3).expect("it answers");
    running.access(9, 1);
    running.access(4, 4);
    let (pages, report) = running.read(true).expect("it answers");
    let report = report.expect("asked for");
    assert_eq!(pages, [9, 4]);
    assert_eq!((report.traffic.reads, report.traffic.cycles, report.lanes), (10, 10, 2));
    assert_eq!(report.histogram.entries(), 4096);
    running.driver.command(DeviceRequest { clear: true, ..DeviceRequest::default() }).expect("it answers");
    let report = running.read(true).expect("it answers").1.expect("asked for");
    assert_eq!(report.traffic.reads, 0);
}

#[test]
fn an_absurd_threshold_is_capped_at_what_a_counter_reaches() {
    let mut running = running();
    running.threshold(u32::MAX).expect("capped");
    assert_eq!(running.device.lock().expect("one thread").model.read(at::SET_THRESHOLD), 65_535);
}

#[test]
fn a_full_buffer_loses_nothing_but_tells() {
    let mut running = running();
    running.threshold(1).expect("it answers");
    (0..100).for_each(|page| running.access(page, 2));
    let (pages, report) = running.read(true).expect("it answers");
    assert_eq!((pages.len(), report.expect("asked for").refused), (64, 36));
    (64..100).for_each(|page| running.access(page, 1));
    assert_eq!(running.read(false).expect("it answers").0.len(), 36, "reported at their next access");
}

#[test]
fn a_device_that_vanishes_or_stands_still_is_named() {
    let mut running = running();
    running.threshold(1).expect("it answers");
    running.break_it(Fault::Vanished);
    let vanished = "0000:3a:00.0: it has vanished (its registers read all ones)";
    assert_eq!(running.read(false).expect_err("gone"), vanished);
    assert_eq!(running.threshold(2).expect_err("gone").to_string(), vanished);
    running.break_it(Fault::Reads(at::GET_NR_HOT_PAGE, 5000));
    let absurd = "0000:3a:00.0: the number of hot pages is 5000, and can be 64 at most";
    assert_eq!(running.read(false).expect_err("too many"), absurd);
    running.break_it(Fault::Reads(at::GET_HOT_PAGE, 3));
    (0..20).for_each(|page| running.access(page, 4));
    assert_eq!(running.read(false).expect_err("stuck"), "0000:3a:00.0: its hot page stands still at 0x3");
    running.break_it(Fault::Reads(at::GET_HIST, 3));
    let absurd = "0000:3a:00.0: the sum of the histogram is 192, and can be 4096 at most";
    assert_eq!(running.read(true).expect_err("stuck"), absurd);
}
