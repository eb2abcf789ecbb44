// Checks that each access counts up from the count that all earlier ones left, however close: directed
// hazards at every distance, in counters and in valid bits of one group, then random streams, with resets
// between accesses.
#include "Vdut.h"
#include "bench.h"

const int LATENCY = 3, RESULT = LATENCY + 2, INDICES = 128, ROWS = 16, MAX = 15;

struct Lane : Unit<Vdut> {
    struct Expected {
        bool valid;
        uint64_t index, count, fresh;
    };
    std::deque<Expected> expected;
    std::map<uint64_t, uint64_t> counts;
    bool epoch = false;
    // Rows still to be cleared, after the cycles in which the old epoch's accesses pass.
    int wait = -1, row = ROWS;

    Lane() {
        dut.rst_n = 0;
        tick();
        dut.rst_n = 1;
        dut.clear = 3;
        for (dut.clear_row = 0; dut.clear_row < ROWS - 1; dut.clear_row++) tick();
        tick();
        dut.clear = 0;
    }
    void cycle(bool valid, uint64_t index) {
        dut.valid = valid;
        dut.epoch = epoch;
        dut.index = index;
        dut.clear = row < ROWS ? (epoch ? 1 : 2) : 0;
        dut.clear_row = row;
        Expected news{valid, index, 0, 0};
        if (valid) {
            news.fresh = !counts.count(index);
            auto &count = counts[index];
            count += count < MAX;
            news.count = count;
        }
        expected.push_back(news);
        tick();
        if (row < ROWS) row++;
        if (wait >= 0 && wait-- == 0) row = 0;
        if ((int)expected.size() < RESULT) return;
        auto now = expected.front();
        expected.pop_front();
        CHECK_EQ(dut.result_valid, now.valid, "whether there is a result");
        if (!now.valid) return;
        CHECK_EQ(dut.result_index, now.index, "a result's index");
        CHECK_EQ(dut.result_count, now.count, "a count");
        CHECK_EQ(dut.result_fresh, now.fresh, "a fresh entry");
    }
    void access(uint64_t index) { cycle(true, index); }
    void idle(int cycles) {
        for (int i = 0; i < cycles; i++) cycle(false, 0);
    }
    bool clearing() { return wait >= 0 || row < ROWS; }
    // The mark itself takes a cycle.
    void reset() {
        cycle(false, 0);
        epoch = !epoch;
        counts.clear();
        wait = RESULT - 1;
    }
    void reset_and_clear() {
        reset();
        idle(2 * ROWS);
    }
};

int main() {
    Random random(8);
    Lane lane;
    // The same entry again at each distance, separated by bubbles or other entries, three times in a row.
    for (int distance = 1; distance <= 10; distance++) {
        for (int filled = 0; filled < 2; filled++) {
            for (int again = 0; again < 4; again++) {
                lane.access(40);
                for (int i = 1; i < distance; i++) lane.cycle(filled, 64 + i);
            }
            lane.idle(20);
            lane.access(40);
            lane.idle(20);
            lane.reset_and_clear();
        }
    }
    // A neighbour in the same group of valid bits at each distance: neither loses its bit.
    for (int distance = 1; distance <= 10; distance++) {
        for (int between = 0; between < 2; between++) {
            lane.access(48);
            for (int i = 1; i < distance; i++) lane.cycle(between, 49 + (i & 3));
            lane.access(55);
            lane.idle(20);
            for (int index = 48; index < 56; index++) lane.access(index);
            lane.idle(20);
            lane.reset_and_clear();
        }
    }
    // A reset between two accesses to one entry at each distance, and within a run of them.
    for (int distance = 1; distance <= 10; distance++) {
        for (int i = 0; i < 5; i++) lane.access(9);
        lane.reset();
        for (int i = 1; i < distance; i++) lane.cycle(false, 0);
        for (int i = 0; i < 40; i++) lane.access(9 + (i % 7 == 6));
        lane.idle(2 * ROWS);
    }
    for (int phase = 0; phase < 60; phase++) {
        int span = 1 << random.below(8), share = 30 + random.below(71);
        for (int i = 0; i < 5000; i++) {
            if (!lane.clearing() && random.below(200) == 0) lane.reset();
            else lane.cycle(random.chance(share), random.below(span));
        }
    }
    return passed("counter_lane");
}
