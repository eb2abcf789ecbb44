//! A policy behind a library's table.

use std::cell::RefCell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};

use isotherm_core::parameters::Parameters;
use isotherm_core::{
    Allocation, Bytes, Gauge, MigrationContext, Nanos, Outcome, Plan, Policy, Record, SampleBatch, Sampling,
    Setup, Signals, View, Weights,
};
use isotherm_policy::abi::{self, Bin, Reading, Settled, Slice, Table, Text, encode};

use crate::memory::{self, Buffers};
use crate::orders::{self, pick};

/// An instance of the policy, which the library built.
#[derive(Debug)]
struct Instance {
    table: &'static Table,
    pointer: *mut c_void,
}

// SAFETY: by the interface, an instance may be used by any thread, one at a time.
unsafe impl Send for Instance {}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: the instance is the table's, and is not used any more. A failure has no one left to tell.
        unsafe { (self.table.drop)(self.pointer) };
    }
}

/// An instance of a library's policy. Once it has failed, nothing of it is called but `drop`.
#[derive(Debug)]
pub(crate) struct Remote {
    instance: Instance,
    name: &'static str,
    path: PathBuf,
    signals: Signals,
    sampling: Sampling,
    record: Record,
    allocation: Allocation,
    context: MigrationContext,
    failure: RefCell<Option<String>>,
    buffers: Buffers,
    bins: Vec<Vec<Bin>>,
}

impl Remote {
    /// Builds an instance. Fails with the library's reason.
    pub(crate) fn build(
        table: &'static Table,
        (name, path): (&'static str, &Path),
        parameters: &Parameters,
        setup: &Setup,
    ) -> Result<Self, String> {
        let values: Vec<u64> = parameters.iter().map(|(spec, value)| encode(value, spec.kind)).collect();
        let mut built = MaybeUninit::uninit();
        // SAFETY: the arguments are valid for the call, and `built` is a place to write to.
        let failure = unsafe { (table.build)(Slice::of(&values), setup, built.as_mut_ptr()) };
        // SAFETY: by the interface, the text is valid until the next call.
        unsafe { succeeded(failure)? };
        // SAFETY: a library that returned no failure has written it.
        let built = unsafe { built.assume_init() };
        if built.instance.is_null() {
            return Err("it built nothing".into());
        }
        let instance = Instance { table, pointer: built.instance };
        let unknown =
            || format!("it needs signals of which this isotherm does not know all: {:#b}", built.signals);
        let weighted = Allocation::Weighted(Weights(built.weights));
        let allocations = [Allocation::FastFirst, Allocation::SlowFirst, weighted];
        let contexts = [MigrationContext::Shared, MigrationContext::Dedicated, MigrationContext::Faulting];
        Ok(Self {
            instance,
            name,
            path: path.into(),
            signals: Signals::from_bits(built.signals).ok_or_else(unknown)?,
            sampling: orders::sampling(&built.sampling)?,
            record: pick(&[Record::Plain, Record::Clocked], built.record, "record of samples")?,
            allocation: pick(&allocations, built.allocation, "place for new pages")?,
            context: pick(&contexts, built.migration_context, "migration context")?,
            failure: RefCell::default(),
            buffers: Buffers::default(),
            bins: Vec::new(),
        })
    }

    /// Calls a function of the table unless the policy has failed. Returns whether it succeeded.
    fn call(&self, name: &str, call: impl FnOnce(&Table, *mut c_void) -> Text) -> bool {
        if self.failure.borrow().is_some() {
            return false;
        }
        let failure = call(self.instance.table, self.instance.pointer);
        // SAFETY: by the interface, the text is valid until the next call.
        match unsafe { succeeded(failure) } {
            Ok(()) => true,
            Err(failure) => self.fail(name, &failure),
        }
    }

    fn fail(&self, name: &str, failure: &str) -> bool {
        let path = self.path.display();
        *self.failure.borrow_mut() = Some(format!("policy {} ({path}): {name}: {failure}", self.name));
        false
    }
}

/// Returns the failure that a call returned.
///
/// # Safety
/// The text is valid.
unsafe fn succeeded(failure: Text) -> Result<(), String> {
    // SAFETY: by this function's contract.
    match unsafe { failure.get() } {
        [] => Ok(()),
        text => Err(String::from_utf8_lossy(text).into_owned()),
    }
}

impl Policy for Remote {
    fn signals(&self) -> Signals {
        self.signals
    }

    fn sampling(&self) -> Sampling {
        self.sampling
    }

    fn record(&self) -> Record {
        self.record
    }

    fn allocation(&self) -> Allocation {
        self.allocation
    }

    fn migration_context(&self) -> MigrationContext {
        self.context
    }

    fn observe(&mut self, batch: &SampleBatch, view: &mut dyn View) {
        let mut bins = std::mem::take(&mut self.bins);
        let readings = describe(batch, &mut bins);
        let passed = abi::Batch {
            samples: Slice::of(&batch.samples),
            faults: Slice::of(&batch.faults),
            devices: Slice::of(&readings),
            tiers: Slice::of(&batch.counters.tiers),
            lost: batch.lost,
            spent: batch.spent,
            multiplexed: batch.counters.multiplexed,
        };
        let mut buffers = std::mem::take(&mut self.buffers);
        memory::with(view, &mut buffers, |memory| {
            // SAFETY: the instance is the table's; batch and memory are valid for the call.
            self.call("observe", |table, instance| unsafe {
                (table.observe)(instance, &raw const passed, memory)
            })
        });
        (self.buffers, self.bins) = (buffers, bins);
    }

    fn step(&mut self, now: Nanos, view: &mut dyn View, plan: &mut Plan) {
        let mut orders = abi::Orders::default();
        let mut buffers = std::mem::take(&mut self.buffers);
        let stepped = memory::with(view, &mut buffers, |memory| {
            // SAFETY: the instance is the table's; the memory is valid, and `orders` a place to write to.
            self.call("step", |table, instance| unsafe {
                (table.step)(instance, now.0, memory, &raw mut orders)
            })
        });
        self.buffers = buffers;
        if !stepped {
            return;
        }
        // SAFETY: by the interface, what a step wrote is valid until the next call.
        if let Err(problem) = unsafe { orders::read(&orders, view, plan) } {
            self.fail("step", &problem);
            plan.clear();
        }
    }

    fn settle(&mut self, _plan: &Plan, outcome: &Outcome, view: &mut dyn View) {
        let settled = Settled {
            moves: Slice::of(&outcome.moves),
            reclaimed: Slice::of(&outcome.reclaimed),
            demoted: Slice::of(&outcome.demoted),
        };
        let mut buffers = std::mem::take(&mut self.buffers);
        memory::with(view, &mut buffers, |memory| {
            // SAFETY: the instance is the table's; the outcome and the memory are valid for the call.
            self.call("settle", |table, instance| unsafe {
                (table.settle)(instance, &raw const settled, memory)
            })
        });
        self.buffers = buffers;
    }

    fn metadata(&self) -> Bytes {
        let mut bytes = 0;
        // SAFETY: the instance is the table's, and `bytes` a place to write to.
        self.call("metadata", |table, instance| unsafe { (table.metadata)(instance, &raw mut bytes) });
        Bytes(bytes)
    }

    fn gauges(&self, gauges: &mut Vec<Gauge>) {
        let mut shown = Slice::default();
        // SAFETY: the instance is the table's, and `shown` a place to write to.
        if !self.call("gauges", |table, instance| unsafe { (table.gauges)(instance, &raw mut shown) }) {
            return;
        }
        // SAFETY: by the interface, the gauges are valid until the next call.
        for gauge in unsafe { shown.get() } {
            // SAFETY: by the interface, a gauge's name is valid for ever.
            match std::str::from_utf8(unsafe { gauge.name.get() }) {
                Ok(name) => gauges.push(Gauge { name, value: gauge.value }),
                Err(_) => _ = self.fail("gauges", "a name that is not UTF-8 text"),
            }
        }
    }

    fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }
}

/// Returns the devices' readings as they pass; they point into `bins` and the batch.
fn describe(batch: &SampleBatch, bins: &mut Vec<Vec<Bin>>) -> Vec<Reading> {
    bins.resize_with(batch.devices.len(), Vec::new);
    for (reading, bins) in batch.devices.iter().zip(bins.iter_mut()) {
        bins.clear();
        let counted = reading.report.iter().flat_map(|report| report.histogram.bins());
        bins.extend(counted.map(|bin| Bin {
            entries: bin.entries,
            low: *bin.counts.start(),
            high: *bin.counts.end(),
        }));
    }
    let described = batch.devices.iter().zip(bins.iter()).map(|(reading, bins)| {
        let report = reading.report.clone().unwrap_or_default();
        Reading {
            hot: Slice::of(&reading.hot),
            bins: Slice::of(bins),
            traffic: report.traffic,
            refused: report.refused,
            dropped: report.dropped,
            lanes: report.lanes,
            tier: reading.tier,
            reports: reading.report.is_some(),
            again: reading.again,
        }
    });
    described.collect()
}
