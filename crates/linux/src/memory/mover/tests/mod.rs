use std::io;
use std::process::Command;

use proptest::prelude::*;

use isotherm_core::MOVED_AT_ONCE;

use self::fake::Fake;
use super::*;
use crate::memory::{BASE, HUGE};
use crate::sys::testing::Memory;

mod fake;

fn base(page: u64, node: u32) -> PageMove {
    PageMove { address: page * BASE, shape: Shape::Base, node }
}

fn all_to_fast(pages: u64) -> Vec<PageMove> {
    (0..pages).map(|page| base(page, 0)).collect()
}

/// Runs one step without a rate and without room to make.
fn run(kernel: &mut Fake, moves: &[PageMove]) -> (Vec<MoveStatus>, MoverStatistics, Vec<LinuxError>) {
    let (mut mover, mut statuses) = (Mover::new(kernel, MoverOptions::default()), Vec::new());
    let step = mover.step(Nanos(0), Pid(1), moves, &mut statuses, &mut |_, _| false).expect("no error");
    assert_eq!(step, Step::Done);
    (statuses, mover.statistics(), mover.denials())
}

fn count(statuses: &[MoveStatus], wanted: MoveStatus) -> usize {
    statuses.iter().filter(|&&status| status == wanted).count()
}

#[test]
fn pages_move_once_in_batches_and_are_there_afterwards() {
    let mut kernel = Fake::on_slow(1200);
    kernel.pages.remove(&(7 * BASE));
    let moves = all_to_fast(1200);
    let (statuses, statistics, _) = run(&mut kernel, &moves);
    assert_eq!(count(&statuses, MoveStatus::Moved), 1199);
    assert_eq!(statuses[7], MoveStatus::Gone);
    assert_eq!((statistics.moved, statistics.bytes, statistics.calls), (1199, Bytes(1199 * BASE), 3));
    let (statuses, statistics, _) = run(&mut kernel, &moves);
    assert_eq!(count(&statuses, MoveStatus::AlreadyThere), 1199);
    assert_eq!((statistics.calls, statistics.bytes), (0, Bytes(0)), "nothing was to be moved");
    // 511, 512 and 176 pages.
    assert_eq!(kernel.calls, [526, 527, 181]);
    assert_eq!(kernel.most, MOVED_AT_ONCE, "a thread that touches a page waits for these alone");
}

#[test]
fn busy_pages_are_tried_again_within_bound_and_pause_budget() {
    let mut kernel = Fake::on_slow(100);
    kernel.fail = [(3 * BASE, (libc::EBUSY, 1)), (4 * BASE, (libc::EBUSY, 9))].into();
    let (statuses, statistics, _) = run(&mut kernel, &all_to_fast(100));
    assert_eq!(count(&statuses, MoveStatus::Moved), 99);
    assert_eq!((statuses[4], statistics.busy, statistics.retries), (MoveStatus::Busy, 1, 2));
    assert_eq!(kernel.paused, 2 * MoverOptions::default().pause.0);

    let mut kernel = Fake::on_slow(10);
    kernel.fail = [(0, (libc::EBUSY, 9))].into();
    let options = MoverOptions { pause_budget: Nanos(0), retries: 5, ..MoverOptions::default() };
    let (mut mover, mut statuses) = (Mover::new(&mut kernel, options), Vec::new());
    mover.step(Nanos(0), Pid(1), &all_to_fast(10), &mut statuses, &mut |_, _| false).expect("no error");
    assert_eq!((statuses[0], kernel.calls.len(), kernel.paused), (MoveStatus::Busy, 1, 0));
}

#[test]
fn a_stuck_page_hides_neither_those_before_nor_those_behind() {
    let mut kernel = Fake::on_slow(512);
    // The page behind the stuck one ends the batch, and the failure then ends the call.
    kernel.stuck = [(100 * BASE, 9)].into();
    kernel.fail = [(101 * BASE, (libc::EBUSY, 1))].into();
    let (statuses, ..) = run(&mut kernel, &all_to_fast(512));
    assert_eq!(count(&statuses, MoveStatus::Moved), 511);
    assert_eq!(statuses[100], MoveStatus::Busy);
    // The first round has gone on behind the pages that did not move: only the stuck one is tried again, and
    // those that the kernel does not tell of.
    assert_eq!(kernel.calls.len(), 4);
}

#[test]
fn every_status_of_a_page_has_its_meaning() {
    for (errno, expected) in [
        (libc::EFAULT, MoveStatus::Gone),
        (libc::ENOENT, MoveStatus::Gone),
        (libc::EBUSY, MoveStatus::Busy),
        (libc::EAGAIN, MoveStatus::Busy),
        (libc::EINVAL, MoveStatus::Busy),
        (libc::EIO, MoveStatus::Busy),
        (libc::ENOMEM, MoveStatus::NoRoom),
        (libc::EACCES, MoveStatus::Denied),
        (libc::EPERM, MoveStatus::Denied),
    ] {
        let mut kernel = Fake::on_slow(3);
        kernel.fail = [(BASE, (errno, 99))].into();
        let (statuses, statistics, denials) = run(&mut kernel, &all_to_fast(3));
        assert_eq!(statuses, [MoveStatus::Moved, expected, MoveStatus::Moved], "errno {errno}");
        assert_eq!(statistics.moved, 2);
        assert_eq!(denials.len(), usize::from(expected == MoveStatus::Denied));
        assert!(denials.iter().all(|denial| denial.to_string().contains("CAP_SYS_NICE")), "{denials:?}");
    }
}

#[test]
fn every_error_of_the_call_has_its_meaning() {
    let after = |errno: i32, times: usize| {
        let mut kernel = Fake::on_slow(4);
        kernel.errors = vec![errno; times];
        let (mut mover, mut statuses) = (Mover::new(&mut kernel, MoverOptions::default()), Vec::new());
        let result = mover.step(Nanos(0), Pid(9), &all_to_fast(4), &mut statuses, &mut |_, _| false);
        (result, statuses, mover.denials())
    };
    for errno in [libc::ESRCH, libc::EINVAL] {
        assert!(matches!(after(errno, 1).0, Err(LinuxError::Ended(9))), "errno {errno}");
    }
    for (errno, needs) in [(libc::EPERM, "CAP_SYS_PTRACE"), (libc::EACCES, "cpuset.mems")] {
        let (result, statuses, denials) = after(errno, 99);
        assert_eq!((result.expect("no error"), statuses), (Step::Done, vec![MoveStatus::Denied; 4]));
        assert!(denials.len() == 1 && denials[0].to_string().contains(needs), "{denials:?}");
    }
    let error = after(libc::ENODEV, 1).0.expect_err("no such node").to_string();
    assert!(error.contains("node 0 is not one of"), "{error}");
    for errno in [libc::EFAULT, libc::E2BIG, libc::ENOSYS] {
        let error = after(errno, 1).0.expect_err("an error");
        assert!(matches!(error, LinuxError::Call { call: "move_pages", .. }), "{error}");
    }
    for errno in [libc::EINTR, libc::EAGAIN, libc::EBUSY] {
        assert_eq!(after(errno, 1).1, [MoveStatus::Moved; 4], "tried again after {errno}");
        assert_eq!(after(errno, 9).1, [MoveStatus::Busy; 4], "given up after {errno}");
    }
    assert_eq!(after(libc::ENOMEM, 1).1, [MoveStatus::NoRoom; 4]);
}

#[test]
fn a_refusal_is_said_once_and_also_when_looking() {
    let mut kernel = Fake::on_slow(2);
    kernel.query_error = libc::EPERM;
    let (mut mover, mut statuses) = (Mover::new(&mut kernel, MoverOptions::default()), Vec::new());
    for _ in 0..3 {
        statuses.clear();
        mover.step(Nanos(0), Pid(1), &all_to_fast(2), &mut statuses, &mut |_, _| false).expect("no error");
        assert_eq!(statuses, [MoveStatus::Denied; 2]);
    }
    assert_eq!((mover.denials().len(), mover.denials().len(), mover.statistics().denied), (1, 0, 6));
}

#[test]
fn without_room_the_batch_shrinks_and_room_is_asked_for() {
    let mut kernel = Fake::on_slow(2000);
    kernel.room = Some(700);
    let (mut mover, mut statuses) = (Mover::new(&mut kernel, MoverOptions::default()), Vec::new());
    let mut asked = Vec::new();
    let mut room = |node: u32, bytes: Bytes| {
        asked.push((node, bytes));
        false
    };
    mover.step(Nanos(0), Pid(1), &all_to_fast(2000), &mut statuses, &mut room).expect("no error");
    assert_eq!(count(&statuses, MoveStatus::Moved), 700);
    assert_eq!(count(&statuses, MoveStatus::NoRoom), 1300);
    assert_eq!(asked, [(0, Bytes((1024 - 700) * BASE))], "asked once a step, for the rest of the batch");
    assert_eq!(mover.batch_size(), 256);
    assert_eq!(kernel.calls.len(), 2, "a full node is not tried again in the same step");
}

#[test]
fn room_that_was_made_is_used() {
    let kernel = std::cell::RefCell::new(Fake { room: Some(100), ..Fake::on_slow(512) });
    struct Shared<'a>(&'a std::cell::RefCell<Fake>);
    impl MovePages for Shared<'_> {
        fn move_pages(
            &mut self,
            pid: Pid,
            addresses: &[u64],
            nodes: Option<&[i32]>,
            status: &mut [i32],
            all: bool,
        ) -> io::Result<u64> {
            (&mut *self.0.borrow_mut()).move_pages(pid, addresses, nodes, status, all)
        }
        fn pause(&mut self, _: Nanos) {}
    }
    let (mut mover, mut statuses) = (Mover::new(Shared(&kernel), MoverOptions::default()), Vec::new());
    let mut room = |_: u32, bytes: Bytes| {
        kernel.borrow_mut().room = Some(bytes.0 / BASE);
        true
    };
    mover.step(Nanos(0), Pid(1), &all_to_fast(512), &mut statuses, &mut room).expect("no error");
    assert_eq!(count(&statuses, MoveStatus::Moved), 512);
}

#[test]
fn demoting_from_a_full_node_lets_it_be_tried_again() {
    let mut kernel = Fake::on_slow(10);
    kernel.pages.insert(20 * BASE, 0);
    kernel.room = Some(0);
    let moves = [base(0, 0), base(20, 1), base(1, 0)];
    let (statuses, ..) = run(&mut kernel, &moves);
    assert_eq!(statuses, [MoveStatus::NoRoom, MoveStatus::Moved, MoveStatus::NoRoom]);
    assert_eq!(kernel.calls, [1, 1, 1]);
}

/// A tier that has memory for every second page only: the others are told, cost nothing and stay where they
/// are, and the next step moves them once there is memory.
#[test]
fn no_memory_for_half_of_the_moves_moves_the_other_half() {
    let mut kernel = Fake::on_slow(512);
    kernel.fail = (0..512).step_by(2).map(|page| (page * BASE, (libc::ENOMEM, 1))).collect();
    let (mut mover, mut statuses) = (Mover::new(&mut kernel, MoverOptions::default()), Vec::new());
    let mut half = |expected: [MoveStatus; 2], mover: &mut Mover<_>| {
        statuses.clear();
        let step = mover.step(Nanos(0), Pid(1), &all_to_fast(512), &mut statuses, &mut |_, _| false);
        assert_eq!(step.expect("no error"), Step::Done);
        let pairs = statuses.chunks(2).filter(|pair| *pair == expected).count();
        assert_eq!(pairs, 256, "{expected:?}");
    };
    half([MoveStatus::NoRoom, MoveStatus::Moved], &mut mover);
    assert_eq!((mover.statistics().moved, mover.statistics().bytes), (256, Bytes(256 * BASE)));
    half([MoveStatus::Moved, MoveStatus::AlreadyThere], &mut mover);
    assert!(kernel.pages.values().all(|&node| node == 0));
}

#[test]
fn a_process_that_ends_in_the_middle_keeps_what_was_settled() {
    let mut kernel = Fake::on_slow(1024);
    kernel.errors = vec![0, libc::ESRCH];
    let (mut mover, mut statuses) = (Mover::new(&mut kernel, MoverOptions::default()), Vec::new());
    let result = mover.step(Nanos(0), Pid(5), &all_to_fast(1024), &mut statuses, &mut |_, _| false);
    assert!(matches!(result, Err(LinuxError::Ended(5))));
    assert_eq!(statuses, [MoveStatus::Moved; 512]);
}

fn huge_at(number: u64, shape: Shape) -> PageMove {
    PageMove { address: number * HUGE, shape, node: 0 }
}

#[test]
fn a_huge_page_moves_whole_by_its_first_address() {
    let mut kernel = Fake::on_slow(1024);
    kernel.huge = [0, HUGE].into();
    let (statuses, statistics, _) = run(&mut kernel, &[huge_at(0, Shape::Huge), huge_at(1, Shape::Huge)]);
    assert_eq!((statuses, kernel.calls.as_slice()), (vec![MoveStatus::Moved; 2], &[2][..]));
    assert_eq!(statistics.bytes, Bytes(2 * HUGE));
    assert!(kernel.pages.values().all(|&node| node == 0));
}

#[test]
fn a_huge_page_that_was_split_meanwhile_moves_page_by_page() {
    let mut kernel = Fake::on_slow(512);
    kernel.pages.remove(&0);
    kernel.pages.remove(&(9 * BASE));
    let (statuses, statistics, _) = run(&mut kernel, &[huge_at(0, Shape::Huge)]);
    assert_eq!((statuses, statistics.bytes), (vec![MoveStatus::Moved], Bytes(510 * BASE)));
    assert!(kernel.pages.values().all(|&node| node == 0));
}

#[test]
fn a_range_moves_its_pages_also_where_a_huge_page_maps_it() {
    let mut kernel = Fake::on_slow(1024);
    kernel.huge = [HUGE].into();
    let moves = [huge_at(0, Shape::HugeRange), huge_at(1, Shape::HugeRange), huge_at(2, Shape::HugeRange)];
    let (statuses, statistics, _) = run(&mut kernel, &moves);
    assert_eq!(statuses, [MoveStatus::Moved, MoveStatus::Moved, MoveStatus::Gone]);
    assert_eq!((statistics.retries, kernel.paused), (0, 0), "its parts are no busy pages");
    assert!(kernel.pages.values().all(|&node| node == 0));
}

#[test]
fn the_rate_is_spent_on_pages_that_move_only() {
    let mut kernel = Fake::on_slow(2048);
    kernel.pages.range_mut(..1024 * BASE).for_each(|(_, node)| *node = 0);
    let options = MoverOptions { rate: Some(Bytes(HUGE)), burst: Bytes(HUGE), ..MoverOptions::default() };
    let (mut mover, mut statuses) = (Mover::new(&mut kernel, options), Vec::new());
    let moves = all_to_fast(2048);
    let mut step = |mover: &mut Mover<_>, now| {
        mover.step(now, Pid(1), &moves, &mut statuses, &mut |_, _| false).expect("no error")
    };
    let Step::Wait { until } = step(&mut mover, Nanos(0)) else { panic!("more than the burst") };
    assert_eq!((mover.statistics().already_there, mover.statistics().moved), (1024, 512));
    assert!(until > Nanos(0) && until < Nanos::SECOND, "{until}: when the next page may move");
    assert_eq!(step(&mut mover, Nanos::SECOND), Step::Done);
    assert_eq!((mover.statistics().moved, statuses.len()), (1024, 2048));
}

#[test]
fn what_did_not_move_costs_no_tokens() {
    let mut kernel = Fake::on_slow(512);
    kernel.fail = (0..512).map(|page| (page * BASE, (libc::EACCES, 1))).collect();
    let options = MoverOptions { rate: Some(Bytes(1)), burst: Bytes(HUGE), ..MoverOptions::default() };
    let mut mover = Mover::new(&mut kernel, options);
    for expected in [MoveStatus::Denied, MoveStatus::Moved] {
        let mut statuses = Vec::new();
        let step = mover.step(Nanos(0), Pid(1), &all_to_fast(512), &mut statuses, &mut |_, _| false);
        assert_eq!((step.expect("no error"), count(&statuses, expected)), (Step::Done, 512));
    }
}

proptest! {
    #[test]
    fn any_mixture_of_errors_gives_each_move_one_status_and_keeps_the_rate(
        faults in prop::collection::vec((0u64..300, 0usize..6, 0u32..4), 0..40),
        stuck in prop::collection::vec((0u64..300, 0u32..4), 0..10),
        calls in prop::collection::vec(prop::sample::select(vec![0, 0, 0, libc::ENOMEM, libc::EAGAIN]), 0..6),
        batch in 1usize..400, rate in 1u64..1 << 30,
    ) {
        let kinds = [libc::EBUSY, libc::ENOENT, libc::ENOMEM, libc::EACCES, libc::EINVAL, libc::EFAULT];
        let mut kernel = Fake::on_slow(300);
        kernel.fail = faults.into_iter().map(|(page, kind, times)| (page * BASE, (kinds[kind], times))).collect();
        kernel.stuck = stuck.into_iter().map(|(page, times)| (page * BASE, times)).collect();
        kernel.errors = calls;
        let options = MoverOptions { batch, rate: Some(Bytes(rate)), burst: Bytes(HUGE), ..MoverOptions::default() };
        let (moves, mut statuses, mut now) = (all_to_fast(300), Vec::new(), Nanos(0));
        let mut mover = Mover::new(&mut kernel, options);
        loop {
            match mover.step(now, Pid(1), &moves, &mut statuses, &mut |_, _| false).expect("no error") {
                Step::Done => break,
                Step::Wait { until } => {
                    prop_assert!(until > now);
                    now = until;
                }
            }
        }
        let statistics = mover.statistics();
        prop_assert_eq!(statuses.len(), 300);
        let moved = count(&statuses, MoveStatus::Moved) as u64;
        prop_assert_eq!((statistics.moved, statistics.bytes), (moved, Bytes(moved * BASE)));
        let bound = u128::from(HUGE) + u128::from(now.0) * u128::from(rate) / 1_000_000_000;
        prop_assert!(u128::from(statistics.bytes.0) <= bound);
        // Pages reported as moved are there.
        for (page, status) in statuses.into_iter().enumerate() {
            let there = kernel.pages[&(page as u64 * BASE)] == 0;
            prop_assert!(status != MoveStatus::Moved || there, "page {}", page);
        }
    }
}

#[test]
fn the_real_kernel_answers_as_the_injected_one() {
    let memory = Memory::new(4 << 20, false);
    (0..8).for_each(|page| memory.touch(page));
    let own = Pid(std::process::id());
    let to = |page: u64, node: u32| PageMove { address: memory.page(page), shape: Shape::Base, node };
    let (mut mover, mut statuses) = (Mover::new(Kernel, MoverOptions::default()), Vec::new());
    let mut step = |pid: Pid, moves: &[PageMove]| {
        statuses.clear();
        let result = mover.step(Nanos(0), pid, moves, &mut statuses, &mut |_, _| false);
        result.map(|_| statuses.clone())
    };
    let mut residences = Vec::new();
    let mut reader = crate::memory::nodes::NodeReader::new(Kernel);
    reader.locate(own, &[memory.page(0)], &mut residences).expect("located");
    let [crate::memory::nodes::Residence::Node(node)] = residences[..] else { panic!("{residences:?}") };
    let moves = [to(0, node), to(1, node), to(300, node), PageMove { address: 0, ..to(0, node) }];
    let statuses = step(own, &moves).expect("no error");
    assert_eq!(statuses[2..], [MoveStatus::Gone; 2]);
    let settled = |status: &MoveStatus| matches!(status, MoveStatus::AlreadyThere | MoveStatus::Moved);
    assert!(statuses[..2].iter().all(settled), "{statuses:?}");
    // Linux has at most 1024 nodes, and no machine has the last.
    let error = step(own, &[to(0, 1023)]).expect_err("no such node").to_string();
    assert!(error.contains("node 1023 is not one of"), "{error}");
    let mut child = Command::new("sleep").arg("100").spawn().expect("sleep");
    let pid = Pid(child.id());
    assert_eq!(step(pid, &[to(0, node)]).expect("no error"), [MoveStatus::Gone]);
    child.kill().expect("killed");
    child.wait().expect("waited for");
    assert!(matches!(step(pid, &[to(0, node)]), Err(LinuxError::Ended(_))));
}
