//! The functions of a library's table, over any [`Policy`].

use std::cell::RefCell;
use std::ffi::c_void;
use std::panic::{self, AssertUnwindSafe, catch_unwind};

use isotherm_core::parameters::{Kind, Parameters, Spec};
use isotherm_core::{
    Bin, Copying, DeviceReading, DeviceReport, Gauge, Histogram, Nanos, Outcome, Plan, Policy, SampleBatch,
    Sampling, SamplingRate, Setup,
};

use crate::abi::{self, Slice, Text, kinds, text};
use crate::memory::Remote;

/// A policy with its description, which [`crate::export!`] implements.
pub trait Exported {
    /// The policy.
    type Policy: Policy;
    /// Its name, in kebab case.
    const NAME: &'static str;
    /// Its name in print.
    const TITLE: &'static str;
    /// Where it was published, or where it comes from.
    const PAPER: &'static str;
    /// One or two sentences: what it does.
    const HELP: &'static str;
    /// Its parameters.
    const SPECS: &'static [Spec];

    /// Builds it.
    ///
    /// # Errors
    /// Why it cannot run so.
    fn build(parameters: &Parameters, setup: &Setup) -> Result<Self::Policy, String>;
}

/// Returns the table of a policy's library. Panics are no longer printed: their message goes to the program.
pub fn table<E: Exported>() -> &'static abi::Table {
    panic::set_hook(Box::new(|info| {
        PANIC.set(info.to_string().replace('\n', " "));
    }));
    Box::leak(Box::new(abi::Table {
        name: text(E::NAME),
        title: text(E::TITLE),
        paper: text(E::PAPER),
        help: text(E::HELP),
        parameters: leak(E::SPECS.iter().map(parameter).collect()),
        build: build::<E>,
        observe: observe::<E::Policy>,
        step: step::<E::Policy>,
        settle: settle::<E::Policy>,
        metadata: metadata::<E::Policy>,
        gauges: gauges::<E::Policy>,
        drop: drop::<E::Policy>,
    }))
}

fn leak<T>(items: Vec<T>) -> Slice<T> {
    Slice::of(items.leak())
}

fn parameter(spec: &Spec) -> abi::Parameter {
    let (kind, low, high) = match spec.kind {
        Kind::Count(low, high) => (kinds::COUNT, low, high),
        Kind::Number(low, high) => (kinds::NUMBER, low.to_bits(), high.to_bits()),
        Kind::Flag => (kinds::FLAG, 0, 0),
        Kind::Duration(low, high) => (kinds::DURATION, low.0, high.0),
        Kind::Size(low, high) => (kinds::SIZE, low.0, high.0),
        Kind::Choice(_) => (kinds::CHOICE, 0, 0),
    };
    let words = if let Kind::Choice(words) = spec.kind { words } else { &[] };
    abi::Parameter {
        name: text(spec.name),
        default: text(spec.default),
        unit: text(spec.unit),
        source: text(spec.source),
        help: text(spec.help),
        words: leak(words.iter().map(|word| text(word)).collect()),
        low,
        high,
        kind,
        scaled: spec.scaled.into(),
        rate: spec.rate.into(),
    }
}

/// A policy, with buffers for what passes in each call.
struct Instance<P> {
    policy: P,
    batch: SampleBatch,
    plan: Plan,
    outcome: Outcome,
    gauges: (Vec<Gauge>, Vec<abi::Gauge>),
}

thread_local! {
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
    static FAILURE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Calls the policy. Returns why it failed, valid until the thread's next call: a panic ends here.
fn guarded(call: impl FnOnce() -> Result<(), String>) -> Text {
    let failure = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => return Text::default(),
        Ok(Err(failure)) => failure,
        Err(payload) => {
            // Dropping it could panic again.
            std::mem::forget(payload);
            PANIC.take()
        }
    };
    let failure = if failure.is_empty() { "it gave no reason".into() } else { failure };
    FAILURE.with_borrow_mut(|last| {
        *last = failure;
        text(last)
    })
}

unsafe extern "C" fn build<E: Exported>(
    values: Slice<u64>,
    setup: *const Setup,
    built: *mut abi::Built,
) -> Text {
    guarded(|| {
        // SAFETY: the program passes valid values and a valid setup.
        let (values, setup) = unsafe { (values.get(), &*setup) };
        let decoded = values.iter().zip(E::SPECS).map(|(&bits, spec)| abi::decode(bits, spec.kind));
        let parameters = decoded.collect::<Option<Vec<_>>>().filter(|_| values.len() == E::SPECS.len());
        let parameters = parameters.and_then(|values| Parameters::with_values(E::NAME, E::SPECS, values));
        let policy = E::build(&parameters.ok_or("the values fit other parameters")?, setup)?;
        let (allocation, weights) = abi::encode_allocation(policy.allocation());
        let description = abi::Built {
            sampling: request(policy.sampling()),
            signals: policy.signals().bits(),
            record: policy.record() as u8,
            allocation,
            migration_context: policy.migration_context() as u8,
            weights,
            instance: Box::into_raw(Box::new(Instance {
                policy,
                batch: SampleBatch::default(),
                plan: Plan::default(),
                outcome: Outcome::default(),
                gauges: Default::default(),
            }))
            .cast(),
        };
        // SAFETY: the program passes a place to write to.
        unsafe { built.write(description) };
        Ok(())
    })
}

/// Returns the instance that the program got from [`build`].
///
/// # Safety
/// The pointer comes from [`build`] for the same policy, was not dropped, and no other call has it.
unsafe fn instance<'a, P>(instance: *mut c_void) -> &'a mut Instance<P> {
    // SAFETY: by this function's contract.
    unsafe { &mut *instance.cast::<Instance<P>>() }
}

unsafe extern "C" fn observe<P: Policy>(
    own: *mut c_void,
    batch: *const abi::Batch,
    memory: *const abi::Memory,
) -> Text {
    guarded(|| {
        // SAFETY: the program passes its instance and, for the time of the call, valid structures.
        let (own, mut view) = unsafe { (instance::<P>(own), Remote::new(&*memory)) };
        // SAFETY: likewise.
        unsafe { take(&*batch, &mut own.batch) };
        own.policy.observe(&own.batch, &mut view);
        Ok(())
    })
}

unsafe extern "C" fn step<P: Policy>(
    own: *mut c_void,
    now: u64,
    memory: *const abi::Memory,
    orders: *mut abi::Orders,
) -> Text {
    guarded(|| {
        // SAFETY: the program passes its instance and, for the time of the call, valid structures.
        let (own, mut view) = unsafe { (instance::<P>(own), Remote::new(&*memory)) };
        own.plan.clear();
        own.policy.step(Nanos(now), &mut view, &mut own.plan);
        // SAFETY: the program passes a place to write to.
        unsafe { orders.write(orders_of(&own.plan)) };
        Ok(())
    })
}

unsafe extern "C" fn settle<P: Policy>(
    own: *mut c_void,
    settled: *const abi::Settled,
    memory: *const abi::Memory,
) -> Text {
    guarded(|| {
        // SAFETY: the program passes its instance and, for the time of the call, valid structures.
        let (own, mut view, settled) = unsafe { (instance::<P>(own), Remote::new(&*memory), &*settled) };
        let Outcome { moves, reclaimed, demoted } = &mut own.outcome;
        // SAFETY: likewise.
        unsafe {
            refill(moves, settled.moves);
            refill(reclaimed, settled.reclaimed);
            refill(demoted, settled.demoted);
        }
        own.policy.settle(&own.plan, &own.outcome, &mut view);
        Ok(())
    })
}

unsafe extern "C" fn metadata<P: Policy>(own: *mut c_void, bytes: *mut u64) -> Text {
    guarded(|| {
        // SAFETY: the program passes its instance and a place to write to.
        unsafe { bytes.write(instance::<P>(own).policy.metadata().0) };
        Ok(())
    })
}

unsafe extern "C" fn gauges<P: Policy>(own: *mut c_void, gauges: *mut Slice<abi::Gauge>) -> Text {
    guarded(|| {
        // SAFETY: the program passes its instance.
        let own = unsafe { instance::<P>(own) };
        let (shown, passed) = &mut own.gauges;
        shown.clear();
        own.policy.gauges(shown);
        passed.clear();
        passed.extend(shown.iter().map(|gauge| abi::Gauge { name: text(gauge.name), value: gauge.value }));
        // SAFETY: the program passes a place to write to.
        unsafe { gauges.write(Slice::of(passed)) };
        Ok(())
    })
}

unsafe extern "C" fn drop<P: Policy>(own: *mut c_void) -> Text {
    guarded(|| {
        // SAFETY: the program passes its instance, which came from a box, for the last time.
        std::mem::drop(unsafe { Box::from_raw(own.cast::<Instance<P>>()) });
        Ok(())
    })
}

/// Replaces the items by those of the program.
///
/// # Safety
/// The slice is valid.
unsafe fn refill<T: Copy>(items: &mut Vec<T>, from: Slice<T>) {
    items.clear();
    // SAFETY: by this function's contract.
    items.extend_from_slice(unsafe { from.get() });
}

/// Copies a batch into the policy's own structures.
///
/// # Safety
/// All slices of the batch are valid.
unsafe fn take(from: &abi::Batch, batch: &mut SampleBatch) {
    // SAFETY: by this function's contract.
    unsafe {
        refill(&mut batch.samples, from.samples);
        refill(&mut batch.faults, from.faults);
        refill(&mut batch.counters.tiers, from.tiers);
        batch.devices.clear();
        batch.devices.extend(from.devices.get().iter().map(|reading| device(reading)));
    }
    batch.counters.multiplexed = from.multiplexed;
    batch.lost = from.lost;
    batch.spent = from.spent;
}

/// Copies a reading.
///
/// # Safety
/// All its slices are valid.
unsafe fn device(from: &abi::Reading) -> DeviceReading {
    // SAFETY: by this function's contract.
    let (hot, bins) = unsafe { (from.hot.get(), from.bins.get()) };
    let bins = bins.iter().map(|bin| Bin { counts: bin.low..=bin.high, entries: bin.entries });
    let report = || DeviceReport {
        histogram: Histogram::new(bins.collect()),
        lanes: from.lanes,
        traffic: from.traffic,
        refused: from.refused,
        dropped: from.dropped,
    };
    DeviceReading { tier: from.tier, hot: hot.to_vec(), again: from.again, report: from.reports.then(report) }
}

fn request(sampling: Sampling) -> abi::Request {
    let Sampling { rate, scope, fast_divisor, stores, batch, tick, budget } = sampling;
    let (kind, rate) = match rate {
        SamplingRate::Off => (0, 0),
        SamplingRate::Period(period) => (1, period),
        SamplingRate::Frequency(frequency) => (2, frequency),
    };
    abi::Request {
        rate,
        batch: batch as u64,
        tick: tick.0,
        budget: budget.map_or(u64::MAX, |budget| budget.0),
        fast_divisor,
        kind,
        scope: scope as u8,
        stores: stores.into(),
    }
}

fn orders_of(plan: &Plan) -> abi::Orders {
    let device = plan.device.unwrap_or_default();
    abi::Orders {
        moves: Slice::of(&plan.moves),
        reclaim: Slice::of(&plan.reclaim),
        arm: Slice::of(&plan.arm),
        split: Slice::of(&plan.split),
        collapse: Slice::of(&plan.collapse),
        work: plan.work,
        sleep: plan.sleep.0,
        sampling: plan.sampling.map(request).unwrap_or_default(),
        device: abi::DeviceOrders {
            threshold: device.threshold.unwrap_or(0),
            sets: device.threshold.is_some().into(),
            clear: device.clear.into(),
            report: device.report.into(),
        },
        samples: plan.sampling.is_some().into(),
        asks: plan.device.is_some().into(),
        transactional: (plan.copying == Copying::Transactional).into(),
    }
}
