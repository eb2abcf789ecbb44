//! Defines which access sources a run uses: the best that are there, or those that the user names.

use isotherm_core::{Signal, Signals};

use super::CounterOrigin;
use isotherm_linux::LinuxError;
use isotherm_linux::source::AccessSource;

/// A source that might be used.
pub struct Candidate<'a> {
    /// Its kebab-case name.
    pub name: &'static str,
    /// What it would offer.
    pub offers: Signals,
    /// Opens it.
    pub open: Box<dyn FnOnce() -> Result<Box<dyn AccessSource>, LinuxError> + 'a>,
}

/// Why there is no source.
#[derive(Debug, thiserror::Error)]
pub enum ChoiceError {
    /// The user asked for one that there is not.
    #[error("--source {name}: no such source; there are {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// The one that the user asked for cannot be opened.
    #[error("--source {name}: {error}")]
    Refused {
        /// Its name.
        name: &'static str,
        /// Why.
        error: LinuxError,
    },
}

/// Opens sources until every signal that the policy needs is offered: `candidates` stand in the order of preference, and one
/// that cannot be opened is passed over, with its reason in `refused`. With `asked`, exactly that source.
///
/// # Errors
/// If the user asked for a source that does not exist or cannot be opened.
pub fn choose(
    needs: Signals,
    candidates: Vec<Candidate<'_>>,
    asked: Option<&str>,
    refused: &mut Vec<(&'static str, LinuxError)>,
) -> Result<Vec<Box<dyn AccessSource>>, ChoiceError> {
    if let Some(name) = asked {
        let known = candidates.iter().map(|candidate| candidate.name).collect::<Vec<_>>().join(", ");
        let Some(candidate) = candidates.into_iter().find(|candidate| candidate.name == name) else {
            return Err(ChoiceError::Unknown { name: name.into(), known });
        };
        let name = candidate.name;
        let source = (candidate.open)().map_err(|error| ChoiceError::Refused { name, error })?;
        return Ok(vec![source]);
    }
    let mut chosen: Vec<Box<dyn AccessSource>> = Vec::new();
    let mut offered = Signals::NONE;
    for candidate in candidates {
        if !needs.missing(offered).any(|signal| candidate.offers.has(signal)) {
            continue;
        }
        match (candidate.open)() {
            Ok(source) => {
                for signal in Signal::ALL {
                    offered = if source.offers().has(signal) { offered.with(signal) } else { offered };
                }
                chosen.push(source);
            }
            Err(error) => refused.push((candidate.name, error)),
        }
    }
    Ok(chosen)
}

/// What a host with these sources offers. Hits of tiers can be summed over any samples; with shadow tiers moves cost nothing, and
/// reclaim is by a clock over the samples. `origin` says where counters of the tiers' queues come from.
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

/// What would provide a signal that no source offers.
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
            "no processor in use has it here (Intel's retire latency in PEBS, from Granite Rapids)"
        }
        Signal::TierHits | Signal::TierStalls => {
            "it needs hardware counters (CAP_PERFMON on a machine with a PMU); see `isotherm doctor`"
        }
        Signal::KernelReclaim => {
            "it needs cgroup v2 memory.reclaim or a node's reclaim file; see `isotherm doctor`, or try --shadow"
        }
        Signal::HintFaults => {
            "it needs userfaultfd and a program that loads libisotherm.so; see `isotherm doctor`"
        }
        Signal::AccessedBits => "it needs /proc/PID/clear_refs or idle page tracking; see `isotherm doctor`",
        Signal::TransactionalMoves => "no kernel in use has it (Nomad's patches do); try --shadow",
        Signal::DeviceHotPages => {
            "it needs CXL memory with a NeoProf or CHMU device, and the right to map its registers (root)"
        }
        Signal::DeviceReports => {
            "it needs CXL memory with a NeoProf device and the right to map its registers (root); with a CHMU, set \
             neomem.threshold"
        }
    }
}
