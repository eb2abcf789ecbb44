//! The simulated hardware: its two clocks, its register bus, and the trait of devices on top of them.

use isotherm_neoprof::registers as at;
use isotherm_neoprof::{Device, Parameters, Registers, Request};

use crate::variant::{Functions, Handle, Variant};

/// Core cycles until the core sees an entry of the FIFO.
const CROSSING: u32 = 6;
/// Entries allowed to wait in the FIFO of 64, which leaves room for those on their way.
const BACKLOG: u32 = 48;
/// Generous bound on the core cycles of a register request, clearing and a full FIFO included.
const PATIENCE: u32 = 100_000;

/// A simulated device. Only [`Registers`] waits until all earlier requests are counted.
#[derive(Debug)]
pub struct Rtl {
    handle: Handle,
    functions: Functions,
    parameters: Parameters,
    /// Core cycles per 256 memory cycles on average; `None` for one per request: the FIFO stays empty.
    core_rate: Option<u32>,
    /// 256ths of a core cycle that are due.
    due: u32,
    /// Upper bound on the requests that wait in the FIFO.
    backlog: u32,
    mem_cycles: u64,
    core_cycles: u64,
}

// SAFETY: the simulated device owns all its memory and is not tied to a thread; `Rtl` is its only handle.
unsafe impl Send for Rtl {}

impl Rtl {
    /// Creates a device after power-on, its valid bits cleared.
    #[must_use]
    pub fn new(variant: Variant) -> Self {
        let functions = variant.functions();
        // SAFETY: the call has no preconditions; `drop` frees the handle.
        let handle = unsafe { (functions.new)() };
        let mut rtl = Self {
            handle,
            functions,
            parameters: variant.parameters(),
            core_rate: None,
            due: 0,
            backlog: 0,
            mem_cycles: 0,
            core_cycles: 0,
        };
        (0..4).for_each(|_| rtl.tick(true, true, &[]));
        // SAFETY: the handle is valid until this value is dropped.
        unsafe { (rtl.functions.reset)(rtl.handle, false) };
        (0..2048).for_each(|_| rtl.tick(false, true, &[]));
        rtl.mem_cycles = 0;
        rtl.core_cycles = 0;
        rtl
    }

    /// Returns the device's sizes.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Sets the core cycles per 256 memory cycles; `None`: as many as requests arrive, and at least one per
    /// cycle.
    pub fn set_core_rate(&mut self, rate: Option<u32>) {
        self.core_rate = rate;
    }

    /// Returns the memory cycles since power-on, including those of register requests.
    #[must_use]
    pub fn mem_cycles(&self) -> u64 {
        self.mem_cycles
    }

    /// Returns the core cycles since power-on.
    #[must_use]
    pub fn core_cycles(&self) -> u64 {
        self.core_cycles
    }

    /// Begins a register request, which [`Rtl::finished`] or [`Rtl::finish`] completes.
    pub fn begin(&mut self, write: bool, offset: u64, value: u64) {
        let offset = if offset < at::BYTES { offset as u32 } else { at::BYTES as u32 - 1 };
        // SAFETY: the handle is valid until this value is dropped.
        unsafe { (self.functions.bus)(self.handle, true, write, offset, value) };
    }

    /// Returns whether the last register request has ended, and if so withdraws it from the bus.
    pub fn finished(&mut self) -> bool {
        let finished = self.flags() & 1 != 0;
        if finished {
            // SAFETY: the handle is valid until this value is dropped.
            unsafe { (self.functions.bus)(self.handle, false, false, 0, 0) };
        }
        finished
    }

    /// Waits for the register request's end, the memory's clock running too if `mem`. Returns the value read.
    ///
    /// # Panics
    /// If the request does not end within a generous bound.
    pub fn finish(&mut self, mem: bool) -> u64 {
        for _ in 0..PATIENCE {
            self.tick(mem, true, &[]);
            if self.finished() {
                // SAFETY: the handle is valid until this value is dropped.
                return unsafe { (self.functions.data)(self.handle) };
            }
        }
        panic!("the register bus hangs");
    }

    /// Runs the core until all requests are counted. The memory's clock runs for one more cycle, in which the
    /// page monitor forwards the last requests to the FIFO, and then stands still. Returns the core's cycles.
    pub fn drain(&mut self) -> u64 {
        let start = self.core_cycles;
        self.tick(true, true, &[]);
        let mut quiet = 0;
        while quiet < CROSSING {
            self.tick(false, true, &[]);
            quiet = if self.flags() & 2 == 0 { quiet + 1 } else { 0 };
        }
        self.backlog = 0;
        self.core_cycles - start
    }

    /// Runs one cycle of the memory with these requests, and the core cycles that are due.
    fn mem_cycle(&mut self, requests: &[Request]) {
        let due = match self.core_rate {
            Some(rate) => {
                self.due += rate;
                let due = self.due / 256;
                self.due %= 256;
                due
            }
            None => (requests.len() as u32).max(1),
        };
        self.tick(true, due > 0, requests);
        (1..due).for_each(|_| self.tick(false, true, &[]));
        self.backlog = (self.backlog + requests.len() as u32).saturating_sub(due);
    }

    /// Lets the core catch up before the FIFO is full.
    fn hold_back(&mut self) {
        while self.backlog > BACKLOG {
            self.tick(false, true, &[]);
            self.backlog -= 1;
        }
    }

    /// Runs one cycle even if the core is behind: the hardware drops requests that find the FIFO full.
    pub fn cycle_regardless(&mut self, requests: &[Request]) {
        self.mem_cycle(requests);
        self.backlog = self.backlog.min(BACKLOG);
    }

    fn tick(&mut self, mem: bool, core: bool, requests: &[Request]) {
        let mut pages = [0; 4];
        let (mut valid, mut write) = (0, 0);
        for (channel, request) in requests.iter().enumerate() {
            pages[channel] = request.page & self.parameters.page_mask();
            valid |= 1 << channel;
            write |= u32::from(request.write) << channel;
        }
        self.mem_cycles += u64::from(mem);
        self.core_cycles += u64::from(core);
        // SAFETY: the handle is valid until `drop`; `pages` has an entry for each of the at most 4 channels.
        unsafe { (self.functions.tick)(self.handle, mem, core, valid, write, pages.as_ptr()) };
    }

    fn flags(&self) -> u32 {
        // SAFETY: the handle is valid until this value is dropped.
        unsafe { (self.functions.flags)(self.handle) }
    }

    /// Returns whether a register lies in the memory's clock domain.
    fn crosses(write: bool, offset: u64) -> bool {
        match offset {
            at::GET_NR_SAMPLE | at::GET_RD_CNT | at::GET_WR_CNT | at::ACCESSES_DROPPED => !write,
            at::RESET | at::MODE => write,
            _ => false,
        }
    }

    fn request(&mut self, write: bool, offset: u64, value: u64) -> u64 {
        self.drain();
        self.begin(write, offset, value);
        self.finish(Self::crosses(write, offset))
    }
}

impl Drop for Rtl {
    fn drop(&mut self) {
        // SAFETY: the handle came from `new` and is not used afterwards.
        unsafe { (self.functions.free)(self.handle) };
    }
}

impl Registers for Rtl {
    fn read(&mut self, offset: u64) -> u64 {
        self.request(false, offset, 0)
    }

    fn write(&mut self, offset: u64, value: u64) {
        self.request(true, offset, value);
    }
}

impl Device for Rtl {
    fn cycle(&mut self, requests: &[Request]) {
        if requests.is_empty() {
            self.mem_cycle(&[]);
        }
        for requests in requests.chunks(self.parameters.channels as usize) {
            self.hold_back();
            self.mem_cycle(requests);
        }
    }

    fn idle(&mut self, cycles: u64) {
        (0..cycles).for_each(|_| self.mem_cycle(&[]));
    }
}
