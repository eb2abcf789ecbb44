// Checks order, length, the exact capacity, counted refusals, and that a restart empties the buffer.
#include "Vdut.h"
#include "bench.h"

int main() {
    Random random(10);
    Unit<Vdut> unit;
    auto &dut = unit.dut;
    dut.rst_n = 0;
    unit.tick();
    dut.rst_n = 1;
    std::deque<uint64_t> pages;
    uint64_t refused = 0, fulls = 0;
    int since = 0;  // cycles since the head may have changed
    for (int cycle = 0; cycle < 300000; cycle++) {
        bool filling = cycle % 2000 < 1000;
        CHECK_EQ(dut.full, pages.size() == 16, "full");
        CHECK_EQ(dut.length, pages.size(), "the length");
        CHECK_EQ(dut.refused, refused, "refusals");
        if (since >= 3 && !pages.empty()) CHECK_EQ(dut.head, pages.front(), "the oldest page");
        fulls += dut.full;
        bool wants = random.chance(filling ? 60 : 5);
        dut.restart = random.below(3000) == 0;
        dut.push = wants && !dut.full && !dut.restart;
        dut.refused_one = wants && dut.full && !dut.restart;
        dut.push_page = random.below(1 << 20);
        dut.pop = since >= 3 && !pages.empty() && !dut.restart && random.chance(50);
        since++;
        if (pages.empty() || dut.pop || dut.restart) since = 0;
        if (dut.pop) pages.pop_front();
        if (dut.push) pages.push_back(dut.push_page);
        refused += dut.refused_one;
        if (dut.restart) pages.clear(), refused = 0;
        unit.tick();
    }
    if (!fulls) CHECK_EQ(0, 1, "a full buffer that was met");
    return passed("hot_fifo");
}
