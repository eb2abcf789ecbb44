// Checks that pages leave in order, one per cycle without a pause, and that a mark precedes its entry's pages
// and waits for clearing.
#include "Vdut.h"
#include "bench.h"

struct Entry {
    bool mark;
    unsigned valid;
    uint64_t pages;
};

int main() {
    Random random(5);
    Unit<Vdut> unit;
    auto &dut = unit.dut;
    dut.rst_n = 0;
    unit.tick();
    dut.rst_n = 1;
    std::deque<Entry> fifo;
    std::deque<int64_t> expected;  // pages, -1 for a mark
    uint64_t supplied = 0, pages = 0, pauses = 0;
    bool epoch = false, was_usable = false;
    int clearing = 0;
    for (int cycle = 0; cycle < 300000; cycle++) {
        bool busy_phase = cycle % 10000 < 5000;
        if (fifo.size() < 8 && (busy_phase || random.chance(30))) {
            Entry entry{random.chance(3), (unsigned)random.below(4), random.next() & 0xffffffff};
            if (!entry.mark && !entry.valid) entry.valid = 1;
            fifo.push_back(entry);
            if (entry.mark) expected.push_back(-1);
            for (int channel = 0; channel < 2; channel++) {
                if (entry.valid >> channel & 1) expected.push_back(entry.pages >> (16 * channel) & 0xffff), supplied++;
            }
        }
        dut.usable = cycle > 100;
        dut.empty = fifo.empty();
        if (!fifo.empty()) {
            dut.head = fifo.front().pages | (uint64_t)fifo.front().valid << 32 | (uint64_t)fifo.front().mark << 34;
        }
        dut.clearing = clearing > 0;
        unit.settle();
        bool accepted = dut.mark_accepted, popped = dut.pop, had = !fifo.empty();
        if (dut.clearing) CHECK_EQ(accepted, 0, "a mark while clearing");
        bool waits = had && fifo.front().mark && dut.clearing;
        unit.tick();
        clearing = accepted ? 20 : clearing - (clearing > 0);
        if (popped) fifo.pop_front();
        if (!was_usable && !dut.usable) CHECK_EQ(dut.valid | dut.mark, 0, "what leaves before the sketch is usable");
        if (dut.mark) {
            epoch = !epoch;
            CHECK_EQ((uint64_t)expected.front(), (uint64_t)-1, "a mark in its turn");
            expected.pop_front();
        }
        if (dut.valid) {
            CHECK_EQ(dut.page, (uint64_t)expected.front(), "a page in its turn");
            CHECK_EQ(dut.epoch, epoch, "a page's epoch");
            expected.pop_front();
            pages++;
        }
        if (dut.usable && had && !waits && !dut.valid && !dut.mark) pauses++;
        was_usable = dut.usable;
    }
    CHECK_EQ(pauses, 0, "cycles in which nothing left though something could");
    uint64_t waiting = 0;
    for (int64_t item : expected) waiting += item >= 0;
    CHECK_EQ(pages + waiting, supplied, "pages that left or wait");
    return passed("intake");
}
