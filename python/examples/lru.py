"""LRU over sampled accesses in Python: the same moves as Isotherm's policy `lru` in Rust.

    python -m isotherm simulate mine.trace --policy lru,python/examples/lru.py:Lru

Recency is a time for each page: the newest samples have the largest, adopted pages have ever smaller ones. The
oldest pages stand in a queue that is sorted once for many evictions; an entry whose page was used since is
passed over.
"""

import numpy as np

import isotherm

FAST, SLOW, NOWHERE = 0, 1, 255
NEVER = np.iinfo(np.int64).min
# Pages that a walk of the page table reads, and oldest pages that are sorted at once.
SCAN = 1024
SORTED = 1 << 14


class Lru(isotherm.Policy):
    """Promotes every sampled page and demotes the least recently sampled ones."""

    name = "python-lru"
    period = None
    batch = 4096
    free_reserve = 0.02

    def __init__(self, setup):
        self.sampling = isotherm.Sampling(period=self.period, batch=self.batch)
        self.last = np.full(setup.pages, NEVER)
        self.place = np.empty(setup.pages, np.int64)
        self.listed = 0
        self.newest, self.oldest = 0, 0
        self.queue, self.queued_at = np.empty(0, np.int64), np.empty(0, np.int64)
        self.cursor, self.phantom = 0, 0
        self.walked, self.wanted_room = 0, 0
        self.sampled = np.empty(0, np.uint32)

    @property
    def metadata_bytes(self):
        # Two links for each page, the pages of the last walk, room for wanted pages and samples.
        return 8 * (len(self.last) + self.walked) + 4 * self.wanted_room + 16 * self.batch

    def observe(self, samples):
        self.sampled = samples.page

    def grow(self, pages):
        # A running program's memory grows after the policy was made.
        more = pages - len(self.last)
        if more > 0:
            self.last = np.concatenate([self.last, np.full(more, NEVER)])
            self.place = np.concatenate([self.place, np.empty(more, np.int64)])

    def step(self, view):
        self.grow(view.pages)
        pages, self.sampled = self.sampled, self.sampled[:0]
        touches = 4 * len(pages)
        wanted = self.touch_all(pages, view)
        moves = None
        if len(wanted) and view.tiers > 1:
            victims = np.empty(0, np.int64)
            overflow = self.overflow(len(wanted), view)
            if overflow > 0:
                touches += self.adopt(overflow, len(wanted), view)
                evicted = self.evict(overflow)
                touches += 3 * len(evicted)
                victims = evicted[view.tiers_of(evicted) == FAST]
            wanted = wanted[self.last[wanted] != NEVER]
            tiers = np.repeat(np.array([SLOW, FAST], np.uint8), [len(victims), len(wanted)])
            moves = np.concatenate([victims, wanted]), tiers
        view.charge(touches=touches)
        return moves

    def touch_all(self, pages, view):
        """Makes pages the newest, in their order; returns the slow ones among those that were not listed."""
        tiers = view.tiers_of(pages)
        if (tiers == NOWHERE).any():
            pages, tiers = pages[tiers != NOWHERE], tiers[tiers != NOWHERE]
        unlisted = self.last[pages] == NEVER
        new, new_tiers = pages[unlisted], tiers[unlisted]
        if len(new):
            # The first of several samples of a page: written backwards, it is what stays.
            order = np.arange(len(new))
            self.place[new[::-1]] = order[::-1]
            first = self.place[new] == order
            new, new_tiers = new[first], new_tiers[first]
            self.listed += len(new)
        # The last of several samples of a page counts.
        self.last[pages] = np.arange(self.newest + 1, self.newest + 1 + len(pages))
        self.newest += len(pages)
        wanted = new[new_tiers != FAST]
        if len(wanted) > self.wanted_room:
            self.wanted_room = max(4, 1 << (len(wanted) - 1).bit_length())
        return wanted

    def overflow(self, wanted, view):
        capacity = view.capacity(FAST)
        kept = int(np.ceil(capacity * self.free_reserve))
        return capacity - view.free(FAST) + wanted - max(capacity - kept, 0)

    def adopt(self, needed, wanted, view):
        """Lists fast pages that were never sampled as the oldest; returns the pages read."""
        missing = max(view.capacity(FAST) - view.free(FAST) - (self.listed - wanted), 0)
        if missing <= self.phantom:
            return 0
        start, wrapped, complete = self.cursor, False, False
        adopted = read = 0
        while adopted < needed and missing > 0 and not complete:
            after, pages, tiers = view.walk(self.cursor, SCAN)
            self.walked = len(pages)
            read += len(pages)
            found = pages[(tiers == FAST) & (self.last[pages] == NEVER)][::-1].astype(np.int64)
            self.last[found] = np.arange(self.oldest - 1, self.oldest - 1 - len(found), -1)
            self.oldest -= len(found)
            self.listed += len(found)
            self.queue = np.concatenate([found[::-1], self.queue])
            self.queued_at = np.concatenate([self.last[found[::-1]], self.queued_at])
            adopted += len(found)
            missing = max(missing - len(found), 0)
            complete = (wrapped and after >= start) if after is not None else (wrapped or start == 0)
            wrapped |= after is None
            self.cursor = start if complete else (after or 0)
        if complete:
            self.phantom = missing
        return read

    def evict(self, count):
        """Takes the oldest pages off the list, at most so many."""
        evicted = []
        while count > 0 and self.listed > 0:
            if not len(self.queue):
                self.sort()
            valid = np.flatnonzero(self.last[self.queue] == self.queued_at)[:count]
            used = valid[-1] + 1 if len(valid) == count else len(self.queue)
            pages = self.queue[valid]
            self.queue, self.queued_at = self.queue[used:], self.queued_at[used:]
            self.last[pages] = NEVER
            self.listed -= len(pages)
            count -= len(pages)
            evicted.append(pages)
        return np.concatenate(evicted) if evicted else np.empty(0, np.int64)

    def sort(self):
        listed = np.flatnonzero(self.last != NEVER)
        if len(listed) > SORTED:
            listed = listed[np.argpartition(self.last[listed], SORTED)[:SORTED]]
        self.queue = listed[np.argsort(self.last[listed])]
        self.queued_at = self.last[self.queue]

    def settle(self, pages, tiers, status):
        stays = (status != isotherm.Status.MOVED) & (status != isotherm.Status.ALREADY_THERE)
        if not stays.any():
            return
        gone = status == isotherm.Status.GONE
        back = pages[stays & ~gone & (tiers != FAST)]
        self.listed += int((self.last[back] == NEVER).sum())
        self.last[back] = np.arange(self.newest + 1, self.newest + 1 + len(back))
        self.newest += len(back)
        out = pages[gone | (stays & (tiers == FAST))]
        self.listed -= int((self.last[out] != NEVER).sum())
        self.last[out] = NEVER
