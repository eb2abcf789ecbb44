//! Sources for self-tests: a real one over `clear_refs` and `smaps`, and wrong ones.

use std::fs;
use std::ops::Range;

use isotherm_core::{Bytes, Nanos, Operation, Sampling, Signal, Signals};
use isotherm_linux::LinuxError;
use isotherm_linux::process::Pid;
use isotherm_linux::source::{Access, AccessSource, Cause, SourceStatistics};

/// Behaviour of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Reports the kernel's accessed bits of the mappings that hold a range.
    Bits,
    /// Reports a sample at the start of each mapping that was accessed.
    Samples,
    /// Reports nothing.
    Silent,
    /// Reports every range as accessed.
    Everything,
    /// Reports samples at unused addresses.
    Elsewhere,
    /// Lacks the right to follow.
    Denied,
    /// Loses more samples than it keeps.
    Lossy,
}

/// Source of one kind.
#[derive(Debug)]
pub(crate) struct TestSource {
    pub(crate) kind: Kind,
    followed: Option<Pid>,
    drained: u64,
}

pub(crate) fn source(kind: Kind) -> Box<dyn AccessSource> {
    Box::new(TestSource { kind, followed: None, drained: 0 })
}

/// Returns the mappings of a process that were accessed since the last call, and clears their bits.
fn accessed_mappings(pid: Pid) -> Vec<Range<u64>> {
    let smaps = fs::read_to_string(format!("/proc/{}/smaps", pid.0)).unwrap_or_default();
    let (mut found, mut current) = (Vec::new(), 0..0);
    for line in smaps.lines() {
        let first = line.split(' ').next().unwrap_or("");
        if let Some((start, end)) = first.split_once('-') {
            let address = |text| u64::from_str_radix(text, 16).unwrap_or(0);
            current = address(start)..address(end);
        } else if line.strip_prefix("Referenced:").is_some_and(|rest| rest.trim() != "0 kB") {
            found.push(current.clone());
        }
    }
    // 1 clears the bits; 4 flushes the TLB, which holds copies of them.
    for value in ["1", "4"] {
        let _ = fs::write(format!("/proc/{}/clear_refs", pid.0), value);
    }
    found
}

impl AccessSource for TestSource {
    fn name(&self) -> &'static str {
        "test-source"
    }

    fn offers(&self) -> Signals {
        let signal = match self.kind {
            Kind::Bits | Kind::Everything => Signal::AccessedBits,
            _ => Signal::LoadSamples,
        };
        Signals::NONE.with(signal)
    }

    fn follow(&mut self, process: Pid) -> Result<(), LinuxError> {
        if self.kind == Kind::Denied {
            let remedy = "sysctl -w kernel.perf_event_paranoid=1".to_owned();
            return Err(LinuxError::Permission { what: "sampling", needs: "CAP_PERFMON", remedy });
        }
        self.followed = Some(process);
        // Discards earlier accesses.
        accessed_mappings(process);
        Ok(())
    }

    fn forget(&mut self, _: Pid) {
        self.followed = None;
    }

    fn request(&mut self, _: &Sampling) -> Result<(), LinuxError> {
        Ok(())
    }

    fn drain(&mut self, accesses: &mut Vec<Access>) -> Result<(), LinuxError> {
        let process = self.followed.expect("drained while it follows");
        let addresses: Vec<u64> = match self.kind {
            Kind::Samples | Kind::Lossy => {
                accessed_mappings(process).iter().map(|range| range.start).collect()
            }
            Kind::Elsewhere => vec![0x10; 8],
            _ => Vec::new(),
        };
        self.drained += addresses.len() as u64;
        accesses.extend(addresses.into_iter().map(|address| Access {
            time: Nanos(0),
            process,
            address,
            weight: 1,
            latency: 0,
            tier: None,
            operation: Operation::Load,
            cause: Cause::Sampled,
        }));
        Ok(())
    }

    fn accessed(
        &mut self,
        process: Pid,
        ranges: &[Range<u64>],
        answers: &mut Vec<bool>,
    ) -> Result<(), LinuxError> {
        if self.kind == Kind::Everything {
            answers.extend(ranges.iter().map(|_| true));
            return Ok(());
        }
        let found = accessed_mappings(process);
        answers.extend(
            ranges.iter().map(|range| {
                found.iter().any(|mapping| mapping.start < range.end && range.start < mapping.end)
            }),
        );
        Ok(())
    }

    fn statistics(&self) -> SourceStatistics {
        let lost = if self.kind == Kind::Lossy { self.drained * 2 } else { 0 };
        SourceStatistics { delivered: self.drained, lost, memory: Bytes(0), ..SourceStatistics::default() }
    }
}
