//! Arming and disarming: moves pages to the store and back, whatever the program does meanwhile.
//!
//! - *Regions* are the program's mappings that are registered with userfaultfd while windows in them are
//!   armed. Whole mappings are registered, because registering a part splits a mapping, and `mremap` fails
//!   across a split.
//! - The first touch of a page that was never present also faults in a registered region. Its windows are
//!   then closed and it is unregistered, so that the kernel handles the fault (with huge pages).
//! - Changes of mappings arrive as events. While one is under way the kernel answers `EAGAIN` to every move;
//!   [`super::agent`]'s loop reads messages and tries again.
//! - The kernel removes contents some time after the event was read. Pages armed in between would come back
//!   with the removed contents, so nothing is armed there for [`QUARANTINE`].

use super::child::Child;
use super::gate;
use super::mappings::{BUFFER, Maps};
use super::presence::{Presence, Present, RUNS};
use super::protocol::{Closed, Counter, Fault as Seen, Record, Shared, State};
use super::settled::Share;
use super::store::Store;
use super::tables::{REGIONS, Region, Tables};
use super::window::{Run, Window};
use crate::sys::agent as sys;
use crate::sys::pages::PAGE;
use crate::sys::range::Range64;
use crate::sys::userfaultfd::{Fault, MOVE_ALLOW_HOLES, MOVE_QUIETLY, Message, Userfault};

/// Nanoseconds for which nothing is armed where contents were removed.
const QUARANTINE: u64 = 2_000_000_000;
/// Pages of a window that the kernel may hold before the rest is left alone.
const PATIENCE: u32 = 4;

/// A message's consequence for the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    None,
    /// A fault was answered, and its record is in the ring.
    Answered {
        requested: bool,
    },
    /// A racer was touched: its page.
    Raced(u64),
    Doorbell,
    /// The store itself was touched: the program locks all of its memory.
    Locked,
}

/// Why pages are armed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Sample,
    /// A policy asked for them.
    Request,
    Race,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Order {
    pub(super) start: u64,
    pub(super) pages: u64,
    pub(super) huge: bool,
    pub(super) purpose: Purpose,
    pub(super) now: u64,
    /// Monotonic nanoseconds, or the program's processor time `used`, at which to close it.
    pub(super) until: u64,
    pub(super) look: u64,
    pub(super) used: u64,
    /// The program's processor time so far.
    pub(super) began: u64,
    pub(super) share: Share,
}

/// Most ranges that only the agent may touch: its own memory and the libraries that it uses.
const OWN: usize = 64;

pub(super) struct Mechanism {
    pub(super) userfault: Userfault,
    pub(super) maps: Maps,
    pub(super) presence: Presence,
    pub(super) store: Store,
    pub(super) doorbell: u64,
    /// Memory that the agent itself reaches: armed, it would wait for itself.
    own: [Range64; OWN],
}

impl Mechanism {
    /// Maps the store and the doorbell. `own` is the agent's memory so far.
    pub(super) fn new(
        userfault: Userfault,
        maps: Maps,
        presence: Presence,
        own: [Range64; 2],
    ) -> Result<Self, State> {
        let state = |error| if error == libc::ENOMEM { State::NoMemory } else { State::Unsupported };
        let store = Store::new(&userfault).map_err(state)?;
        let doorbell = sys::map(PAGE).map_err(state)?;
        userfault.register(doorbell).map_err(state)?;
        let doorbell = doorbell.start;
        let mut mechanism =
            Self { userfault, maps, presence, store, doorbell, own: [Range64::default(); OWN] };
        let door = Range64::new(doorbell, PAGE);
        for range in own.into_iter().chain(gate::own()).chain([mechanism.store.range(), door]) {
            mechanism.own_also(range);
        }
        Ok(mechanism)
    }

    /// Adds the memory of the libraries that the agent uses; `buffer` is for reading.
    pub(super) fn own_libraries(&mut self, buffer: &mut [u8; BUFFER]) {
        let own = &mut self.own;
        self.maps.walk(buffer, |mapping| {
            if mapping.library {
                add_own(own, mapping.range);
            }
            true
        });
    }

    pub(super) fn own_also(&mut self, range: Range64) {
        add_own(&mut self.own, range);
    }

    pub(super) fn is_own(&self, range: Range64) -> bool {
        self.own.iter().any(|own| own.overlaps(range))
    }

    /// Arms the present pages of the range; `None` if none is present or may be armed now.
    pub(super) fn arm<'a>(
        &self,
        tables: &'a mut Tables,
        shared: &Shared,
        order: Order,
    ) -> Option<&'a mut Window> {
        let wanted = Range64::new(order.start, order.pages * PAGE);
        let mut runs = [Present::default(); RUNS];
        let (found, _) = self.presence.scan(wanted, &mut runs).ok()?;
        // Moving a part of a huge page would split it.
        let fits = |run: &Present| !run.huge || (order.huge && run.range == wanted);
        if found == 0 || !runs[..found].iter().any(fits) || tables.is_quarantined(wanted, order.now) {
            return None;
        }
        let requested = order.purpose != Purpose::Sample;
        let at = tables.free_window(order.huge, requested)?;
        if tables.is_used(wanted) {
            return None;
        }
        self.ensure_region(tables, wanted)?;
        let arming = gate::Arming::begin();
        let window = tables.begin(at, order.start, order.pages, self.store.slot(at));
        (window.requested, window.races) = (requested, order.purpose == Purpose::Race);
        window.since = order.now;
        (window.until, window.used, window.began) = (order.until, order.used, order.began);
        window.share = order.share;
        for run in runs[..found].iter().filter(|run| fits(run)) {
            if !self.arm_allowed(window, shared, run) {
                break;
            }
        }
        drop(arming);
        window.armed_at_first = window.armed;
        shared.add(Counter::Armed, u64::from(window.armed));
        if window.armed == 0 {
            let bounds = tables.end(at);
            tables.release(bounds);
            return None;
        }
        if !requested {
            tables.look_by(order.now, order.look);
        }
        Some(tables.window(at))
    }

    /// Moves a run to the store but for what is excluded; returns false if the rest should be left alone.
    fn arm_allowed(&self, window: &mut Window, shared: &Shared, run: &Present) -> bool {
        let mut rest = run.range;
        loop {
            let part = gate::Arming::allowed(rest);
            if part.length() == 0 || (run.huge && part != run.range) {
                return true;
            }
            let page = |address: u64| ((address - window.bounds.start) / PAGE) as usize;
            let (mut next, end) = (page(part.start), page(part.end));
            while let Some((first, pages)) = window.wanted(next, end) {
                if !self.move_out(window, shared, first, pages) {
                    return false;
                }
                next = first + pages;
            }
            rest.start = part.end;
        }
    }

    /// Moves pages to the store; returns false if the rest of the window should be left alone.
    fn move_out(&self, window: &mut Window, shared: &Shared, first: usize, pages: usize) -> bool {
        let (mut page, mut busy) = (first, 0);
        while page < first + pages {
            let home = window.bounds.start + page as u64 * PAGE;
            let bytes = (first + pages - page) as u64 * PAGE;
            let stored = Range64::new(window.stored(page), bytes);
            let (moved, result) = self.userfault.move_pages(stored.start, home, bytes, MOVE_QUIETLY);
            let moved = self.really((moved / PAGE, result), stored, true) as usize;
            (page..page + moved).for_each(|page| window.mark(page, true));
            page += moved;
            match result {
                Ok(()) => return true,
                Err(_) if moved > 0 => {}
                // Shared, pinned, or gone since.
                Err(libc::EBUSY | libc::ENOENT) if busy < PATIENCE => {
                    shared.add(Counter::Busy, 1);
                    (page, busy) = (page + 1, busy + 1);
                }
                Err(_) => return false,
            }
        }
        true
    }

    /// Registers the mapping that holds the range, unless it is registered. Fails unless all of the range may
    /// be armed: a policy may ask for any address.
    fn ensure_region(&self, tables: &mut Tables, wanted: Range64) -> Option<()> {
        if self.is_own(wanted) {
            return None;
        }
        if let Some(at) = tables.regions.iter().position(|region| region.range.overlaps(wanted)) {
            let region = tables.regions[at];
            return (region.range.covers(wanted) && !region.closing).then_some(());
        }
        let free = tables.regions.iter().position(|region| region.is_free())?;
        let mapping = self.maps.at(&mut tables.maps_buffer, wanted.start)?;
        if !mapping.plain || !mapping.range.covers(wanted) {
            return None;
        }
        let range = if self.is_own(mapping.range) { wanted } else { mapping.range };
        self.userfault.register(range).ok()?;
        tables.regions[free] = Region { range, closing: false };
        Some(())
    }

    /// Answers a message; `used` tells the program's processor time so far.
    pub(super) fn answer(
        &self,
        tables: &mut Tables,
        shared: &Shared,
        message: Message,
        now: u64,
        used: impl FnOnce() -> u64,
    ) -> Event {
        match message {
            Message::Fault(fault) => return self.fault(tables, shared, fault, now, used),
            Message::Fork(descriptor) => Child::new(Userfault::of_child(descriptor)).serve(tables),
            Message::Remove(range) => {
                tables.quarantine(range, now + QUARANTINE);
                tables.disturb(shared, range, |window| window.remove(range));
            }
            Message::Unmap(range) => {
                tables.disturb(shared, range, |window| window.unmap(range));
                tables.cut(range);
            }
            Message::Remap { from, to, length } => {
                let old = Range64::new(from, length);
                tables.disturb(shared, old, |window| window.remap(old, to));
                tables.cut(old);
                tables.add_ghost(Range64::new(to, length));
            }
            Message::Other => {}
        }
        Event::None
    }

    fn fault(
        &self,
        tables: &mut Tables,
        shared: &Shared,
        message: Fault,
        now: u64,
        used: impl FnOnce() -> u64,
    ) -> Event {
        let Fault { address, write: store, thread } = message;
        let page = Range64::new(address & !(PAGE - 1), PAGE);
        if page.start == self.doorbell {
            return Event::Doorbell;
        }
        if self.store.range().contains(address) {
            return Event::Locked;
        }
        let Some((window, at)) = tables.find(address) else {
            self.miss(tables, page);
            return Event::None;
        };
        if !window.is_armed(at) {
            if window.has_returned(at) {
                // Another thread was first.
                self.userfault.wake(page);
            } else {
                tables.close_region(page);
            }
            return Event::None;
        }
        let requested = window.requested;
        if window.races {
            if !self.bring_back(window, shared, at) {
                self.userfault.wake(page);
            }
            return Event::Raced(page.start);
        }
        if window.told != at as u32 + 1 {
            let since = if requested {
                now.saturating_sub(window.since)
            } else {
                let exposed = window.exposed_by(now, used(), at);
                window.exposed = exposed;
                if window.is_huge() { 0 } else { exposed.max(1) }
            };
            // Recorded before the thread goes on: this may be its last access.
            let settled = window.is_settled(at);
            shared.push(Record::Fault(Seen { time: now, address, since, thread, store, requested, settled }));
            window.told = at as u32 + 1;
        }
        if !self.bring_back(window, shared, at) {
            self.userfault.wake(page);
            return Event::None;
        }
        window.faults += 1;
        shared.add(Counter::Faults, 1);
        Event::Answered { requested }
    }

    /// Moves one page back, or all of a huge one.
    fn bring_back(&self, window: &mut Window, shared: &Shared, page: usize) -> bool {
        if window.is_huge() {
            window.closing = true;
            return self.put_back(window, shared);
        }
        let Some(run) = window.armed_run(page) else { return true };
        self.put_run_back(window, shared, Run { pages: 1, ..run })
    }

    /// Resolves a fault at a page that no window holds and that was never present.
    fn miss(&self, tables: &mut Tables, page: Range64) {
        if tables.close_region(page) {
            return;
        }
        // Registered outside of any region: a mapping grew or moved meanwhile.
        let mapping = self.maps.at(&mut tables.maps_buffer, page.start).map_or(page, |mapping| mapping.range);
        if mapping.contains(page.start) && !tables.is_used(mapping) && !self.is_own(mapping) {
            let _ = self.userfault.unregister(mapping);
        } else {
            let _ = self.userfault.zero(page);
        }
        self.userfault.wake(page);
    }

    /// Moves all armed pages of the window back; returns false if more messages must be read first.
    fn put_back(&self, window: &mut Window, shared: &Shared) -> bool {
        let mut next = 0;
        while let Some(run) = window.armed_run(next) {
            next = run.first;
            if !self.put_run_back(window, shared, run) {
                return false;
            }
        }
        true
    }

    /// Moves a run back as far as one call reaches; returns false if more messages must be read first.
    fn put_run_back(&self, window: &mut Window, shared: &Shared, run: Run) -> bool {
        let Run { first, pages, home } = run;
        let stored = Range64::new(window.stored(first), pages as u64 * PAGE);
        let (told, result) = self.userfault.move_pages(home, stored.start, stored.length(), MOVE_ALLOW_HOLES);
        let moved = self.really((told / PAGE, result), stored, false) as usize;
        if moved as u64 > told / PAGE {
            // Those who wait for them were not woken.
            self.userfault.wake(Range64::new(home, moved as u64 * PAGE));
        }
        (first..first + moved).for_each(|page| window.mark(page, false));
        match result {
            Ok(()) => true,
            // The reason comes with the next call.
            Err(_) if moved > 0 => true,
            Err(libc::EAGAIN) => false,
            Err(libc::EINVAL) if pages > 1 => (0..pages).all(|at| {
                let page = Run { first: first + at, pages: 1, home: home + at as u64 * PAGE };
                self.put_run_back(window, shared, page)
            }),
            Err(_) => self.copy_back(window, shared, first, home),
        }
    }

    /// Returns how many pages a call has moved, from the first on, to the store or from there. While Linux
    /// 6.18 compacts memory, it moves pages and answers `EEXIST`, or too few. What the store lacks must not
    /// be copied from there: the agent would wait for itself.
    fn really(&self, (told, result): (u64, Result<(), i32>), stored: Range64, out: bool) -> u64 {
        if result.is_ok() { told } else { told.max(self.presence.leading(stored, out)) }
    }

    /// Copies a page back that cannot be moved: it is pinned, or its mapping is protected or locked now.
    fn copy_back(&self, window: &mut Window, shared: &Shared, page: usize, home: u64) -> bool {
        match self.userfault.copy(home, window.stored(page), PAGE) {
            Ok(()) => shared.add(Counter::Copied, 1),
            // The program installed a guard there (`MADV_GUARD_INSTALL`): the old contents are gone.
            Err(libc::EEXIST) => self.userfault.wake(Range64::new(home, PAGE)),
            Err(_) => return false,
        }
        window.mark(page, false);
        window.stale = true;
        true
    }

    /// Closes due windows, or all, telling `closed`, and regions without any; returns whether none is open.
    /// `used` tells the program's processor time so far.
    pub(super) fn close(
        &self,
        tables: &mut Tables,
        shared: &Shared,
        (now, all): (u64, bool),
        used: impl Fn() -> u64,
        mut closed: impl FnMut(&Window),
    ) -> bool {
        let mut open = 0;
        for at in tables.numbers() {
            let window = tables.window(at);
            let due = all || window.closing || window.until <= now || window.armed == 0;
            // Read before the pages are back: what nobody has touched until then.
            let untouched = window.armed_bits();
            if due && !window.requested && (!window.is_huge() || window.faults == 0) {
                window.exposed = window.exposed_by(now, used(), window.middle());
            }
            if !due || !self.put_back(window, shared) {
                window.closing |= due;
                open += 1;
                continue;
            }
            if !window.requested && !window.disturbed {
                let Window { exposed, bounds, .. } = *window;
                let huge = window.is_huge();
                // A huge page comes back whole at its first touch.
                let untouched = if huge && window.faults > 0 { 0 } else { untouched };
                shared.push(Record::Closed(Closed { start: bounds.start, untouched, exposed, huge }));
            }
            closed(window);
            if std::mem::take(&mut window.stale) {
                self.store.clean(&self.userfault, at);
            }
            let bounds = tables.end(at);
            tables.release(bounds);
        }
        self.close_regions(tables, all);
        open == 0 && tables.regions.iter().all(|region| region.is_free())
    }

    fn close_regions(&self, tables: &mut Tables, all: bool) {
        for at in 0..REGIONS {
            let Region { range, closing } = tables.regions[at];
            if range.end == 0 || tables.is_used(range) || !(all || closing) {
                continue;
            }
            self.unregister(tables, range, at);
            tables.regions[at] = Region { range: Range64::default(), closing: false };
        }
    }

    /// Unregisters each mapping in the range, in whole unless another region shares it.
    fn unregister(&self, tables: &mut Tables, range: Range64, region: usize) {
        let mut address = range.start;
        while address < range.end {
            let Some(mapping) = self.maps.at(&mut tables.maps_buffer, address) else { return };
            let mapping = mapping.range;
            if mapping.start >= range.end || mapping.end <= address {
                return;
            }
            let mut others = tables.regions.iter().enumerate();
            let shared = others.any(|(at, other)| at != region && other.range.overlaps(mapping));
            let part = if shared || tables.is_used(mapping) || self.is_own(mapping) {
                Range64 { start: mapping.start.max(range.start), end: mapping.end.min(range.end) }
            } else {
                mapping
            };
            // A mapping of another kind that took this one's place refuses, rightly.
            let _ = self.userfault.unregister(part);
            address = mapping.end;
        }
    }

    /// Releases threads that ring the doorbell: unregistering wakes them, and the kernel gives the page. It
    /// stays until [`Self::renew_doorbell`]: missing again at once, it would keep slow threads ringing.
    pub(super) fn answer_doorbell(&self) {
        let _ = self.userfault.unregister(Range64::new(self.doorbell, PAGE));
    }

    /// Renews the doorbell after an answer, once no thread is forking.
    pub(super) fn renew_doorbell(&self) {
        let page = Range64::new(self.doorbell, PAGE);
        sys::drop_pages(page);
        let _ = self.userfault.register(page);
    }
}

impl Drop for Mechanism {
    /// All pages are back by then. Closing the descriptor would unregister the rest, too late for `munmap`.
    fn drop(&mut self) {
        let page = Range64::new(self.doorbell, PAGE);
        // The page stays mapped: a thread may be about to read it.
        let _ = self.userfault.unregister(page);
        // Memory that is still registered must not be unmapped: `munmap` waits until the event is read.
        if self.userfault.unregister(self.store.range()).is_ok() {
            sys::unmap(self.store.range());
        }
    }
}

fn add_own(own: &mut [Range64; OWN], range: Range64) {
    // Libraries have few mappings; with more, the last place grows over what lies between.
    match own.iter().position(|own| own.end == 0) {
        Some(free) => own[free] = range,
        None => {
            let last = &mut own[OWN - 1];
            *last = Range64 { start: last.start.min(range.start), end: last.end.max(range.end) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::sys::mmap::{Arena, SharedValue};

    /// As Linux 6.18 does while it compacts memory; the agent waited for itself, and the program for it.
    #[test]
    fn regression_pages_that_the_kernel_moved_without_saying_so_come_back() {
        let Ok(userfault) = Userfault::open() else { return eprintln!("skipped: needs CAP_SYS_PTRACE") };
        let (maps, presence) = (Maps::open().unwrap(), Presence::open().unwrap());
        let mechanism = Mechanism::new(userfault, maps, presence, [Range64::default(); 2]).ok().unwrap();
        let mut tables: Arena<Tables> = Arena::new().unwrap();
        let (shared, _) = SharedValue::<Shared>::create().unwrap();
        let home = sys::map(8 * PAGE).unwrap();
        let pages = || (0..8u8).map(|page| (page, home.start + u64::from(page) * PAGE));
        pages().for_each(|(page, address)| sys::write_byte(address, page + 1));
        mechanism.userfault.register(home).unwrap();
        let slot = mechanism.store.slot(0);
        let quietly = |to, from, pages: u64| {
            assert_eq!(mechanism.userfault.move_pages(to, from, pages * PAGE, MOVE_QUIETLY).1, Ok(()));
        };
        let window = tables.begin(0, home.start, 8, slot);
        quietly(slot, home.start, 3);
        assert!(mechanism.move_out(window, &shared, 0, 8));
        assert_eq!(window.armed, 8);
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || tell.send(sys::touch(home.start)));
        while mechanism.userfault.read(&mut [[0; 4]]) == 0 {
            sys::nap();
        }
        quietly(home.start, slot, 2);
        assert!(mechanism.put_back(window, &shared));
        assert_eq!((window.armed, shared.counters[Counter::Copied as usize].load(Relaxed)), (0, 0));
        assert_eq!(told.recv_timeout(std::time::Duration::from_secs(10)), Ok(1), "who waits is woken");
        assert!(pages().all(|(page, address)| sys::touch(address) == page + 1));
        mechanism.userfault.unregister(home).unwrap();
        sys::unmap(home);
    }
}
