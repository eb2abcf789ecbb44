// Checks that the histogram, updated bin by bin, equals a scan of all counters at any time, after any reset,
// and with saturated counters.
#include "Vdut.h"
#include "bench.h"

const int BINS = 32, ENTRIES = 256, MAX = 255;

static int bin_of(unsigned count) {
    for (int group = 0, low = 0;; group++) {
        for (int place = 0; place < 8; place++, low += 1 << group) {
            if (count < (unsigned)low + (1u << group)) return std::min(8 * group + place, BINS - 1);
        }
    }
}

int main() {
    Random random(11);
    Unit<Vdut> unit;
    auto &dut = unit.dut;
    dut.rst_n = 0;
    unit.tick();
    dut.rst_n = 1;
    std::vector<unsigned> counts(ENTRIES);
    for (int round = 0; round < 400; round++) {
        int span = 1 << random.below(9), accesses = random.below(4000);
        for (int i = 0; i < accesses; i++) {
            dut.valid = random.chance(90);
            dut.restart = !dut.valid && random.below(400) == 0;
            auto &count = counts[random.below(span)];
            if (dut.valid) dut.count = count += count < MAX;
            if (dut.restart) std::fill(counts.begin(), counts.end(), 0);
            unit.tick();
        }
        dut.valid = dut.restart = 0;
        for (int i = 0; i < 4; i++) unit.tick();
        dut.capture = 1;
        unit.tick();
        dut.capture = 0;
        int cycles = 0;
        while (dut.capturing) unit.tick(), cycles++;
        CHECK_EQ(cycles, BINS, "cycles of a capture");
        std::vector<unsigned> expected(BINS);
        for (unsigned count : counts) expected[bin_of(count)]++;
        for (int bin = 0; bin < BINS; bin++) {
            CHECK_EQ(dut.unread, BINS - bin, "bins unread");
            unit.tick(), unit.tick();
            CHECK_EQ(dut.head, expected[bin], "a bin");
            dut.pop = 1;
            unit.tick();
            dut.pop = 0;
        }
        CHECK_EQ(dut.unread, 0, "bins unread");
    }
    return passed("histogram");
}
