// Checks that a page is reported once at any distance from the report, that a full buffer sets no hot bit,
// and that fresh entries are not hot.
#include "Vdut.h"
#include "bench.h"

const int LATENCY = 3, RESULT = LATENCY + 1, LANES = 2, INDICES = 32;

struct Access {
    bool valid = false;
    uint64_t page = 0, index[LANES] = {}, count[LANES] = {};
    bool fresh[LANES] = {};
};

struct Filter : Unit<Vdut> {
    std::deque<Access> ahead;
    bool hot[LANES][INDICES] = {}, seen[LANES][INDICES] = {}, epoch = false;
    uint64_t reports = 0, refusals = 0, threshold = 10;

    Filter() {
        dut.rst_n = 0;
        dut.threshold = threshold;
        tick();
        dut.rst_n = 1;
    }
    void cycle(Access access, bool full) {
        for (int lane = 0; lane < LANES && access.valid; lane++) {
            bool &met = seen[lane][access.index[lane]];
            access.fresh[lane] = !met;
            met = true;
        }
        dut.valid = access.valid;
        dut.epoch = epoch;
        dut.page = access.page;
        dut.index = access.index[0] | access.index[1] << 5;
        dut.count = access.count[0] | access.count[1] << 8;
        dut.fresh = access.fresh[0] | access.fresh[1] << 1;
        dut.full = full;
        settle();
        // The result of the access LATENCY + 1 cycles ago with the buffer's current fullness.
        if ((int)ahead.size() == RESULT) {
            expect(ahead.front(), full);
            ahead.pop_front();
        }
        ahead.push_back(access);
        tick();
    }
    void expect(const Access &access, bool full) {
        bool all = true, above = true;
        for (int lane = 0; lane < LANES; lane++) {
            if (access.valid && access.fresh[lane]) hot[lane][access.index[lane]] = false;
            all &= hot[lane][access.index[lane]];
            above &= access.count[lane] > threshold;
        }
        bool report = access.valid && above && !all;
        CHECK_EQ(dut.push, report && !full, "a report");
        CHECK_EQ(dut.refused, report && full, "a refusal");
        if (dut.push) CHECK_EQ(dut.push_page, access.page, "the page of a report");
        for (int lane = 0; lane < LANES; lane++) hot[lane][access.index[lane]] |= report && !full;
        reports += report && !full;
        refusals += report && full;
    }
    void access(uint64_t a, uint64_t b, uint64_t count, bool full = false) {
        Access access;
        access.valid = true;
        access.page = a << 8 | b;
        access.index[0] = a;
        access.index[1] = b;
        access.count[0] = access.count[1] = count;
        cycle(access, full);
    }
    void idle(int cycles) {
        for (int i = 0; i < cycles; i++) cycle(Access(), false);
    }
    // As after a reset, every entry is fresh again.
    void forget() {
        epoch = !epoch;
        for (auto &lane : seen)
            for (bool &met : lane) met = false;
    }
    // The same, with no hot bit left in the memories that could stand for a missed result.
    void clean() {
        forget();
        for (int index = 0; index < INDICES; index++) access(index, index, 1);
        idle(10);
    }
};

int main() {
    Random random(9);
    Filter filter;
    filter.clean();
    // Reported once and not again at any distance, with bubbles or other pages between.
    for (int distance = 1; distance <= 10; distance++) {
        for (int filled = 0; filled < 2; filled++) {
            uint64_t before = filter.reports;
            for (int again = 0; again < 4; again++) {
                filter.access(3, 4, 11);
                for (int i = 1; i < distance; i++) filled ? filter.access(8 + i, 8 + i, 1) : filter.idle(1);
            }
            filter.idle(10);
            CHECK_EQ(filter.reports - before, 1, "reports of one page");
            filter.clean();
        }
    }
    // One lane shared with a reported page, at each distance: still to be reported, for each lane in turn.
    for (int distance = 1; distance <= 10; distance++) {
        for (int lane = 0; lane < 2; lane++) {
            uint64_t before = filter.reports;
            filter.access(3, 4, 11);
            filter.idle(distance - 1);
            lane ? filter.access(3, 5, 11) : filter.access(6, 4, 11);
            filter.idle(10);
            CHECK_EQ(filter.reports - before, 2, "reports of two pages that share a lane");
            filter.clean();
        }
    }
    // A reset at each distance behind a report: the old hot bits do not count.
    for (int distance = 1; distance <= 12; distance++) {
        uint64_t before = filter.reports;
        filter.access(3, 4, 11);
        filter.idle(distance - 1);
        filter.forget();
        filter.access(3, 4, 1);
        filter.access(3, 4, 11);
        filter.idle(10);
        CHECK_EQ(filter.reports - before, 2, "reports before and after a reset");
        filter.clean();
    }
    // A count at the threshold does not exceed it; a full buffer refuses and leaves the page to be reported
    // later.
    uint64_t before = filter.reports;
    filter.access(1, 1, 10);
    for (int i = 0; i < RESULT; i++) filter.access(2, 2, 11, true);
    for (int i = 0; i < RESULT; i++) filter.access(2, 2, 11, true);
    CHECK_EQ(filter.reports - before, 0, "reports into a full buffer");
    filter.idle(10);
    filter.access(2, 2, 11);
    filter.idle(10);
    CHECK_EQ(filter.reports - before > 0, 1, "a report once there is room");
    filter.clean();

    for (int phase = 0; phase < 60; phase++) {
        int span = 1 << random.below(6), share = 30 + random.below(71), full = random.below(3) * 20;
        for (int i = 0; i < 5000; i++) {
            Access access;
            access.valid = random.chance(share);
            access.page = random.below(1 << 16);
            for (int lane = 0; lane < LANES; lane++) {
                access.index[lane] = random.below(span);
                access.count[lane] = random.below(20);
            }
            if (random.below(300) == 0) filter.forget();
            filter.cycle(access, random.chance(full));
        }
    }
    if (!filter.refusals) CHECK_EQ(0, 1, "refusals that were met");
    return passed("hot_filter");
}
