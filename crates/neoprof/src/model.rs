//! The device's model: it answers as the hardware does, one request at a time.

use std::collections::VecDeque;
use std::hint::black_box;

use crate::buffer::HotBuffer;
use crate::hash::H3;
use crate::histogram::histogram_of_counts;
use crate::registers as at;
use crate::sketch::Sketch;
use crate::{Device, Histogram, ParameterError, Parameters, Registers, Request};

/// Requests whose entries are loaded together.
const BLOCK: usize = 32;

/// A device without a pipeline: requests take effect at once, so none is ever dropped.
#[derive(Debug, Clone)]
pub struct Model {
    parameters: Parameters,
    hash: H3,
    sketch: Sketch,
    hot: HotBuffer,
    captured: VecDeque<u64>,
    threshold: u32,
    counts_writes: bool,
    cycles: u64,
    reads: u64,
    writes: u64,
}

impl Model {
    /// Creates a device after power-on.
    ///
    /// # Errors
    /// [`ParameterError`] if a device cannot have these sizes.
    pub fn new(parameters: Parameters) -> Result<Self, ParameterError> {
        let parameters = parameters.checked()?;
        Ok(Self {
            parameters,
            hash: H3::new(&parameters),
            sketch: Sketch::new(&parameters),
            hot: HotBuffer::new(parameters.hot_entries),
            captured: VecDeque::new(),
            threshold: parameters.counter_max(),
            counts_writes: false,
            cycles: 0,
            reads: 0,
            writes: 0,
        })
    }

    /// Returns the device's sizes.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Returns the current histogram of the first lane. Unlike the registers, it captures nothing.
    #[must_use]
    pub fn histogram(&self) -> Histogram {
        histogram_of_counts(
            self.sketch.first_lane(),
            self.parameters.histogram_bins,
            self.parameters.counter_max(),
        )
    }

    /// Counts requests, but not their cycles.
    fn pass(&mut self, requests: &[Request]) {
        match self.parameters.lanes {
            1 => self.pass_lanes::<1>(requests),
            2 => self.pass_lanes::<2>(requests),
            3 => self.pass_lanes::<3>(requests),
            _ => self.pass_lanes::<4>(requests),
        }
    }

    /// Counts requests in blocks of two passes: the first only loads the entries, so that their cache misses
    /// overlap; the second branches on their values and would otherwise wait for each miss at a mispredicted
    /// branch.
    fn pass_lanes<const LANES: usize>(&mut self, requests: &[Request]) {
        for block in requests.chunks(BLOCK) {
            let mut counted = [(0, [0; LANES]); BLOCK];
            let mut length = 0;
            for request in block {
                let page = request.page & self.parameters.page_mask();
                counted[length] = (page, self.hash.indices::<LANES>(page));
                length += usize::from(!request.write | self.counts_writes);
                self.writes += u64::from(request.write);
            }
            self.reads += block.iter().filter(|request| !request.write).count() as u64;
            let counted = &counted[..length];
            black_box(counted.iter().fold(0, |sum, &(_, indices)| sum ^ self.sketch.load(indices)));
            counted.iter().for_each(|&(page, indices)| self.count(page, indices));
        }
    }

    /// Counts one access and reports its page if it has become hot.
    #[inline]
    fn count<const LANES: usize>(&mut self, page: u64, indices: [u32; LANES]) {
        let estimate = self.sketch.count(indices);
        if estimate > self.threshold && !self.sketch.is_marked(indices) && self.hot.push(page) {
            self.sketch.mark(indices);
        }
    }

    fn reset(&mut self) {
        self.sketch.clear();
        self.hot = HotBuffer::new(self.parameters.hot_entries);
        self.captured.clear();
        (self.cycles, self.reads, self.writes) = (0, 0, 0);
    }

    fn capture(&mut self) {
        self.captured = self.histogram().bins().map(|bin| bin.entries).collect();
    }
}

impl Registers for Model {
    fn read(&mut self, offset: u64) -> u64 {
        match offset {
            at::IDENTITY => at::IDENTITY_VALUE,
            at::PARAMETERS => self.parameters.to_word(),
            at::SEED => self.parameters.seed,
            at::SET_THRESHOLD => self.threshold.into(),
            at::GET_NR_HOT_PAGE => self.hot.pages.len() as u64,
            at::GET_HOT_PAGE => self.hot.pop(),
            at::GET_NR_SAMPLE => self.cycles.min(at::COUNTER_MAX),
            at::GET_RD_CNT => self.reads.min(at::COUNTER_MAX),
            at::GET_WR_CNT => self.writes.min(at::COUNTER_MAX),
            at::GET_NR_HIST_BIN => self.captured.len() as u64,
            at::GET_HIST => self.captured.pop_front().unwrap_or(at::EMPTY),
            at::MODE => u64::from(self.counts_writes),
            at::HOT_REFUSED => self.hot.refused,
            _ => 0,
        }
    }

    fn write(&mut self, offset: u64, value: u64) {
        match offset {
            at::RESET if value & 1 == 1 => self.reset(),
            at::SET_THRESHOLD => {
                self.threshold = value.min(self.parameters.counter_max().into()) as u32;
            }
            at::SET_HIST_EN if value & 1 == 1 => self.capture(),
            at::MODE => self.counts_writes = value & at::MODE_WRITES != 0,
            _ => {}
        }
    }
}

impl Device for Model {
    fn cycle(&mut self, requests: &[Request]) {
        let channels = self.parameters.channels as usize;
        self.cycles += requests.len().div_ceil(channels).max(1) as u64;
        self.pass(requests);
    }

    fn idle(&mut self, cycles: u64) {
        self.cycles = self.cycles.saturating_add(cycles);
    }

    fn accesses(&mut self, requests: &[Request]) {
        self.cycles += requests.len() as u64;
        self.pass(requests);
    }
}
