//! Which of a thread's misses have left its reorder window. Their order alone decides it, so it is computed
//! once for all runs over a stream.

use crate::limits::WINDOW;
use crate::profile::Profile;

/// The reorder windows of a stream's threads.
#[derive(Debug, Clone)]
pub struct ReorderWindows {
    /// Instructions that one holds.
    size: u64,
    threads: Vec<Window>,
}

#[derive(Debug, Clone)]
struct Window {
    /// Instructions up to each of the last misses.
    positions: [u64; WINDOW],
    position: u64,
    misses: usize,
    /// Number of the oldest miss in the window: of its load queue, too.
    oldest: usize,
}

impl ReorderWindows {
    /// Creates the empty windows of `threads` threads.
    pub fn new(profile: &Profile, threads: usize) -> Self {
        Self::of_size(profile.core.reorder_window, threads)
    }

    pub(crate) fn of_size(instructions: u32, threads: usize) -> Self {
        let window = Window { positions: [0; WINDOW], position: 0, misses: 0, oldest: 0 };
        Self { size: instructions.into(), threads: vec![window; threads] }
    }

    /// Executes `instructions` of a thread, the last of which misses. Returns the distance in the thread's
    /// misses from this one to the last that has left the window by then, at most 128; 0 if none has.
    #[inline]
    pub fn miss(&mut self, thread: u16, instructions: u32) -> u8 {
        let left = self.run(thread, instructions.into());
        let window = &mut self.threads[usize::from(thread)];
        window.positions[window.misses % WINDOW] = window.position;
        window.misses += 1;
        left
    }

    /// Executes `instructions` of a thread without a miss. Returns the distance for the next miss, as
    /// [`Self::miss`].
    #[inline]
    pub fn run(&mut self, thread: u16, instructions: u64) -> u8 {
        let Window { positions, position, misses, oldest } = &mut self.threads[usize::from(thread)];
        *position += instructions;
        let first = position.saturating_sub(self.size);
        while *oldest < *misses && (positions[*oldest % WINDOW] <= first || *misses - *oldest == WINDOW) {
            *oldest += 1;
        }
        if *oldest == 0 { 0 } else { (*misses + 1 - *oldest) as u8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_miss_leaves_with_its_instruction_or_with_the_load_queue_s_room() {
        let mut windows = ReorderWindows::of_size(100, 2);
        let mut miss = |instructions| windows.miss(0, instructions);
        assert_eq!([miss(40), miss(40), miss(40), miss(40)], [0, 0, 0, 3]);
        assert_eq!(miss(1000), 1, "all before it");
        let mut dense = ReorderWindows::of_size(1000, 1);
        let left: Vec<u8> = (0..300).map(|_| dense.miss(0, 1)).collect();
        assert!(left[..128].iter().all(|&left| left == 0) && left[128..].iter().all(|&left| left == 128));
        assert_eq!((windows.run(0, 0), windows.run(0, 100), windows.miss(1, 1)), (2, 1, 0));
    }
}
