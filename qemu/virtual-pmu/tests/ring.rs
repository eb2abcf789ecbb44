//! The ring and the counters between one writer and one reader.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use isotherm_virtual_pmu::layout::{MIN_BYTES, word};
use isotherm_virtual_pmu::{Device, Driver, Identity, Prices, Process, Record, Snapshot};
use proptest::prelude::*;

fn memory() -> Vec<AtomicU64> {
    (0..MIN_BYTES / 8).map(|_| AtomicU64::new(0)).collect()
}

fn identity() -> Identity {
    Identity { tiers: 2, vcpus: 1, prices: Prices::default() }
}

/// Returns the n-th record; each of its words depends on `n`.
fn record(n: u64) -> Record {
    Record {
        address: n.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        process: Process::Tgid(n as u32),
        time: !n,
        tier: (n % 2) as u8,
        store: n.is_multiple_of(3),
        vcpu: (n % 128) as u8,
        latency: (n % 500) as u32,
        weight: (n % 1000) as u32,
    }
}

#[derive(Debug, Clone)]
enum Step {
    Push(u16),
    Pop(u16),
    Clear,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..3000u16).prop_map(Step::Push),
        4 => (0..3000u16).prop_map(Step::Pop),
        1 => Just(Step::Clear),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    /// Whatever is pushed and popped, the ring is a queue of its capacity that counts its overflow, over many
    /// wraps.
    #[test]
    fn the_ring_is_a_bounded_queue(steps in steps()) {
        let memory = memory();
        let mut device = Device::new(&memory[..], identity()).expect("a layout");
        let mut driver = Driver::open(&memory[..]).expect("the layout");
        let (mut model, mut next, mut lost) = (VecDeque::new(), 0u64, 0);
        for step in steps {
            match step {
                Step::Push(count) => for _ in 0..count {
                    let fits = (model.len() as u64) < driver.capacity();
                    prop_assert_eq!(device.push(record(next)), fits);
                    if fits { model.push_back(record(next)) } else { lost += 1 }
                    next += 1;
                },
                Step::Pop(count) => for _ in 0..count {
                    prop_assert_eq!(driver.pop(), model.pop_front());
                },
                Step::Clear => { driver.clear(); model.clear() }
            }
            prop_assert_eq!(driver.lost(), lost);
        }
    }

    /// An impossible position of the other side loses samples and nothing else.
    #[test]
    fn positions_that_cannot_be_harm_nobody(tail: u64, head: u64) {
        let memory = memory();
        let mut device = Device::new(&memory[..], identity()).expect("a layout");
        let mut driver = Driver::open(&memory[..]).expect("the layout");
        memory[word::TAIL].store(tail, Ordering::Relaxed);
        let fits = device.push(record(1));
        prop_assert_eq!(fits, 0u64.wrapping_sub(tail) < device.capacity());
        memory[word::HEAD].store(head, Ordering::Relaxed);
        let waiting = (1..=device.capacity()).contains(&head);
        prop_assert_eq!(driver.pop().is_some(), waiting);
        driver.clear();
        prop_assert_eq!(driver.pop(), None);
    }

    /// Foreign memory is refused, or read without harm.
    #[test]
    fn any_identity_is_opened_or_refused(
        capacity in prop_oneof![any::<u64>(), (0..64u32).prop_map(|shift| 1 << shift)],
        offset in prop_oneof![any::<u64>(), 0..MIN_BYTES as u64 * 2],
        tiers in 0..20u64, head: u64, tail: u64,
    ) {
        let memory = memory();
        Device::new(&memory[..], identity()).expect("a layout");
        let values = [(word::RING_CAPACITY, capacity), (word::RING_OFFSET, offset), (word::TIERS, tiers),
            (word::HEAD, head), (word::TAIL, tail)];
        values.into_iter().for_each(|(index, value)| memory[index].store(value, Ordering::Relaxed));
        if let Ok(mut driver) = Driver::open(&memory[..]) {
            let _ = (0..10).filter_map(|_| driver.pop()).count();
            prop_assert!(driver.snapshot().is_some());
        }
    }
}

/// Pushes a record; after a loss gives the reader time to make room.
fn push_or_wait(device: &mut Device<&[AtomicU64]>, memory: &[AtomicU64], n: u64) -> bool {
    let tail = memory[word::TAIL].load(Ordering::Relaxed);
    let fits = device.push(record(n));
    while !fits && memory[word::TAIL].load(Ordering::Relaxed) == tail {
        std::thread::yield_now();
    }
    fits
}

#[test]
fn a_reader_beside_a_writer_sees_each_record_once_whole_and_in_order() {
    const COUNT: u64 = 2_000_000;
    let memory = memory();
    let mut device = Device::new(&memory[..], identity()).expect("a layout");
    let mut driver = Driver::open(&memory[..]).expect("the layout");
    let ended = AtomicBool::new(false);
    let (written, read) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let written = (0..COUNT).filter(|&n| push_or_wait(&mut device, &memory, n)).collect::<Vec<_>>();
            ended.store(true, Ordering::Release);
            written
        });
        let mut read = Vec::new();
        loop {
            let last = ended.load(Ordering::Acquire);
            read.extend(std::iter::from_fn(|| driver.pop()));
            if last {
                break;
            }
            std::thread::yield_now();
        }
        (writer.join().expect("no panic"), read)
    });
    assert_eq!(written.len() as u64 + driver.lost(), COUNT);
    assert!(read.len() as u64 > driver.capacity(), "the ring wrapped");
    assert!(written.iter().map(|&n| record(n)).eq(read));
}

#[test]
fn counters_are_read_whole() {
    let memory = memory();
    let device = Device::new(&memory[..], identity()).expect("a layout");
    let driver = Driver::open(&memory[..]).expect("the layout");
    let ended = AtomicBool::new(false);
    let snapshot = |n: u64| {
        let mut snapshot =
            Snapshot { epoch: 1, time: n, accesses: n, instructions: n, ..Snapshot::default() };
        snapshot.tiers[0].load_misses = n;
        snapshot.tiers[1].busy = n;
        snapshot
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (1..500_000).for_each(|n| device.publish(&snapshot(n)));
            ended.store(true, Ordering::Release);
        });
        let mut before = 0;
        while !ended.load(Ordering::Acquire) {
            if let Some(seen) = driver.snapshot().filter(|seen| seen.epoch > 0) {
                assert_eq!(seen, snapshot(seen.time));
                assert!(seen.time >= before);
                before = seen.time;
            }
        }
    });
    assert_eq!(driver.snapshot(), Some(snapshot(499_999)));
}
