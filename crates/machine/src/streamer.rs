//! The streamer: a second-level cache's prefetcher, which fetches a stream's next lines ahead of requests.
//!
//! The order of a thread's misses alone decides which lines it fetches, so this is computed once, when a
//! stream is built; what the prefetches save depends on the machine and is computed in a replay.
//!
//! Source: Intel 64 and IA-32 Architectures Optimization Reference Manual, "Data Prefetch to the L2 and Last
//! Level Cache": the streamer watches loads and stores that miss the first-level cache; keeps one stream,
//! forward or backward, in each of up to 32 pages of 4 KiB; sends up to two prefetches per request; runs up
//! to 20 lines ahead; stays within the page. The condition that starts a stream is not documented: here, two
//! consecutive requests for neighbouring lines.

use crate::slots::Slots;

/// Pages in which a core follows a stream.
const PAGES: usize = 32;
const PER_REQUEST: usize = 2;
/// Lines that it runs ahead of the request.
const AHEAD: i8 = 20;
const LINES: i8 = 64;
/// No line neighbours it, so a page's first request starts no stream.
const NO_LINE: i8 = -2;

/// Position of an access in the whole stream and among its thread's accesses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    /// Index in the stream.
    pub index: u32,
    /// Number among its thread's accesses.
    pub of_thread: u32,
}

#[derive(Debug, Clone)]
struct Page {
    /// Bit N: line N was prefetched and not requested yet.
    brought: u64,
    last: i8,
    /// 1 or -1 in a stream, 0 before there is one.
    direction: i8,
    /// Last prefetched line of the stream.
    front: i8,
    /// Request that prefetched each line of `brought`.
    triggers: [Position; LINES as usize],
}

/// One core's streamer.
#[derive(Debug, Clone)]
pub struct Streamer {
    /// Page of each entry; `u64::MAX` for none.
    keys: [u64; PAGES],
    /// Lower bits of `keys`, which every request compares.
    tags: [u32; PAGES],
    /// Last use of each entry: the thread's access, from 1.
    used: Slots,
    /// Entry of the last request, which often serves the next.
    last: usize,
    pages: Vec<Page>,
}

impl Default for Streamer {
    fn default() -> Self {
        let page = Page {
            brought: 0,
            last: NO_LINE,
            direction: 0,
            front: 0,
            triggers: [Position::default(); LINES as usize],
        };
        Self {
            keys: [u64::MAX; PAGES],
            tags: [u32::MAX; PAGES],
            used: Slots::new(PAGES),
            last: 0,
            pages: vec![page; PAGES],
        }
    }
}

impl Streamer {
    /// Handles a request for a line (its address divided by 64). Returns the distance in the thread's
    /// accesses to the one that prefetched it, at most 255; 0 for none. Calls `useless` with the index of the
    /// triggering access of each line that was prefetched and never used.
    pub fn request(&mut self, process: u32, line: u64, at: Position, useless: &mut dyn FnMut(u32)) -> u8 {
        let key = u64::from(process) << 44 | line >> 6;
        let entry = self.entry(key, at, useless);
        let line = (line & 63) as i8;
        let page = &mut self.pages[entry];
        let bit = 1 << line;
        let trigger = if page.brought & bit == 0 {
            0
        } else {
            page.brought &= !bit;
            at.of_thread.wrapping_sub(page.triggers[line as usize].of_thread).min(255) as u8
        };
        page.follow(line);
        page.prefetch(at);
        trigger
    }

    /// Reports the lines that were prefetched and never requested.
    pub fn finish(&mut self, useless: &mut dyn FnMut(u32)) {
        self.pages.iter_mut().for_each(|page| page.give_up(useless));
    }

    /// Returns the page's entry, replacing the least recently used one if the page is not watched.
    fn entry(&mut self, key: u64, at: Position, useless: &mut dyn FnMut(u32)) -> usize {
        if self.keys[self.last] != key {
            self.last = self.watched(key).unwrap_or_else(|| {
                let (oldest, _) = self.used.earliest();
                self.pages[oldest].give_up(useless);
                (self.keys[oldest], self.tags[oldest]) = (key, key as u32);
                oldest
            });
        }
        self.used.set(self.last, u64::from(at.of_thread) + 1);
        self.last
    }

    /// Finds the page's entry, comparing all tags at once.
    fn watched(&self, key: u64) -> Option<usize> {
        let equal = |(entry, &tag): (usize, &u32)| u32::from(tag == key as u32) << entry;
        let mut alike: u32 = self.tags.iter().enumerate().map(equal).sum();
        while alike != 0 {
            let entry = alike.trailing_zeros() as usize;
            if self.keys[entry] == key {
                return Some(entry);
            }
            alike &= alike - 1;
        }
        None
    }
}

impl Page {
    fn follow(&mut self, line: i8) {
        let step = line - self.last;
        let goes_on =
            self.direction != 0 && step * self.direction >= 0 && (self.front - line) * self.direction >= 0;
        if !goes_on {
            self.direction = if step.abs() == 1 { step } else { 0 };
            self.front = line;
        }
        self.last = line;
    }

    fn prefetch(&mut self, at: Position) {
        if self.direction == 0 {
            return;
        }
        for _ in 0..PER_REQUEST {
            let next = self.front + self.direction;
            if !(0..LINES).contains(&next) || (next - self.last).abs() > AHEAD {
                return;
            }
            self.front = next;
            self.brought |= 1 << next;
            self.triggers[next as usize] = at;
        }
    }

    /// Drops the page's stream and reports its unused lines.
    fn give_up(&mut self, useless: &mut dyn FnMut(u32)) {
        while self.brought != 0 {
            useless(self.triggers[self.brought.trailing_zeros() as usize].index);
            self.brought &= self.brought - 1;
        }
        self.direction = 0;
        self.last = NO_LINE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns each request's trigger, and how many lines each request prefetched in vain.
    fn run(lines: impl IntoIterator<Item = u64>) -> (Vec<u8>, Vec<u8>) {
        let mut streamer = Streamer::default();
        let (mut triggers, mut useless) = (Vec::new(), Vec::new());
        for (index, line) in lines.into_iter().enumerate() {
            useless.push(0);
            let at = Position { index: index as u32, of_thread: index as u32 };
            triggers.push(streamer.request(0, line, at, &mut |index| useless[index as usize] += 1));
        }
        streamer.finish(&mut |index| useless[index as usize] += 1);
        (triggers, useless)
    }

    #[test]
    fn a_stream_is_found_at_its_second_line_and_run_ahead_of_by_twenty() {
        let (triggers, useless) = run(0..64);
        assert_eq!(triggers[..8], [0, 0, 1, 2, 2, 3, 3, 4]);
        assert!(triggers[40..].iter().all(|&distance| distance == 20), "{triggers:?}");
        assert_eq!(useless, [0; 64]);
        assert_eq!(run((0..64).rev()).0, triggers, "backward as forward");
    }

    #[test]
    fn a_stream_ends_with_its_page() {
        let (triggers, _) = run(0..192);
        let missed: Vec<usize> = (0..192).filter(|&index| triggers[index] == 0).collect();
        assert_eq!(missed, [0, 1, 64, 65, 128, 129]);
    }

    #[test]
    fn what_a_broken_stream_brought_is_counted_to_who_asked_for_it() {
        let (_, useless) = run(0..=10);
        // Requests 1 to 10 sent two lines each, 2 to 21; nobody requested 11 and above.
        assert_eq!(useless, [0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2]);
    }

    #[test]
    fn scattered_requests_make_no_stream() {
        let (triggers, useless) = run((0..64).map(|index| index * 37 % 64));
        assert_eq!((triggers, useless), (vec![0; 64], vec![0; 64]));
    }

    #[test]
    fn as_many_pages_are_followed_as_there_are_entries() {
        let in_turn = |pages: u64| (0..64 * pages).map(move |index| index % pages * 64 + index / pages);
        let prefetched =
            |pages| run(in_turn(pages)).0.iter().filter(|&&distance| distance > 0).count() as u64;
        assert_eq!(prefetched(PAGES as u64), 62 * PAGES as u64);
        assert_eq!(prefetched(PAGES as u64 + 1), 0);
    }

    #[test]
    fn a_line_of_another_process_is_another_line() {
        let mut streamer = Streamer::default();
        let mut request = |process, line, index| {
            streamer.request(process, line, Position { index, of_thread: index }, &mut |_| ())
        };
        assert_eq!((request(0, 0, 0), request(0, 1, 1), request(1, 2, 2), request(0, 2, 3)), (0, 0, 0, 2));
    }

    proptest! {
        #[test]
        fn a_trigger_is_an_earlier_request_of_the_page_within_reach(
            lines in prop::collection::vec(0u64..256, 1..400),
        ) {
            let (triggers, useless) = run(lines.iter().copied());
            let found = triggers.iter().enumerate().filter(|&(_, distance)| (1..255).contains(distance));
            for (index, &distance) in found {
                let trigger = lines[index - usize::from(distance)];
                prop_assert_eq!(trigger / 64, lines[index] / 64);
                prop_assert!(trigger.abs_diff(lines[index]) <= AHEAD as u64);
            }
            let useful = triggers.iter().filter(|&&distance| distance > 0).count();
            let sent = useful + useless.iter().map(|&lines| usize::from(lines)).sum::<usize>();
            prop_assert!(sent <= PER_REQUEST * lines.len());
        }
    }
}
