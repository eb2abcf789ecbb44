//! The signals that a host offers, and what would provide those that it lacks.

use isotherm_core::live_result::CounterOrigin;
use isotherm_core::{Signal, Signals};
use isotherm_linux::source::AccessSource;

/// Returns the host's signals. Hits are summed over any samples; in shadow mode moves cost nothing.
pub fn offers(
    sources: &[Box<dyn AccessSource>],
    origin: CounterOrigin,
    shadow: bool,
    reclaims: bool,
) -> Signals {
    let has = |signal| sources.iter().any(|source| source.offers().has(signal));
    let offered = Signal::ALL.into_iter().filter(|&signal| match signal {
        Signal::TierHits => has(signal) || has(Signal::LoadSamples),
        Signal::TierStalls => origin != CounterOrigin::None,
        Signal::KernelReclaim => reclaims,
        Signal::TransactionalMoves => shadow,
        signal => has(signal),
    });
    offered.fold(Signals::NONE, Signals::with)
}

/// Returns the origin of the queue counters; `modelled`: the user accepts a model.
pub fn counter_origin(sources: &[Box<dyn AccessSource>], shadow: bool, modelled: bool) -> CounterOrigin {
    let has = |signal| sources.iter().any(|source| source.offers().has(signal));
    let model = modelled && has(Signal::LoadSamples);
    match shadow {
        // Hardware counts real memory, not shadows.
        true if model => CounterOrigin::Modelled,
        true => CounterOrigin::None,
        false if has(Signal::TierStalls) => CounterOrigin::Counted,
        false if sources.iter().any(|source| source.samples_all_latencies()) => CounterOrigin::LittlesLaw,
        false => CounterOrigin::None,
    }
}

/// Says what would provide a signal that no source offers.
pub fn remedy(missing: Signal) -> &'static str {
    match missing {
        Signal::LoadSamples => {
            "it needs a PMU, hint faults or accessed bits; `isotherm doctor` says what each lacks here"
        }
        Signal::StoreSamples => "it needs a PMU that samples stores, or hint faults; see `isotherm doctor`",
        Signal::SampleLatency => {
            "it needs a PMU with load latency (Intel PEBS, AMD IBS, Arm SPE); see `isotherm doctor`"
        }
        Signal::ExposedLatency => {
            "no available processor has it (Intel's retire latency in PEBS, from Granite Rapids)"
        }
        Signal::TierHits | Signal::TierStalls => {
            "it needs hardware counters (CAP_PERFMON on a machine with a PMU); see `isotherm doctor`"
        }
        Signal::KernelReclaim => {
            "it needs cgroup v2 memory.reclaim or a node's reclaim file; see `isotherm doctor`, \
             or try --shadow"
        }
        Signal::HintFaults => {
            "it needs userfaultfd and a program that loads libisotherm.so; see `isotherm doctor`"
        }
        Signal::AccessedBits => "it needs /proc/PID/clear_refs or idle page tracking; see `isotherm doctor`",
        Signal::TransactionalMoves => "no released kernel has it (Nomad's patches do); try --shadow",
        Signal::DeviceHotPages => {
            "it needs CXL memory with a NeoProf or CHMU device, and the right to map its registers (root)"
        }
        Signal::DeviceReports => {
            "it needs CXL memory with a NeoProf device and the right to map its registers (root); with a \
             CHMU, set the policy's threshold"
        }
    }
}
