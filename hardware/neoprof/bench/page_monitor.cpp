// Checks both channels at once, modes, a full FIFO, and that a reset's mark is exactly where it takes effect.
#include "Vdut.h"
#include "bench.h"

int main() {
    Random random(3);
    Unit<Vdut> unit;
    auto &dut = unit.dut;
    dut.rst_n = 0;
    unit.tick();
    dut.rst_n = 1;
    bool mode = false, pending = false;
    unsigned valid = 0, write = 0;
    uint64_t page = 0, both = 0, marks = 0, drops = 0;
    for (int cycle = 0; cycle < 300000; cycle++) {
        // The registers hold the requests of the cycle before.
        dut.full = random.chance(cycle < 100000 ? 0 : 30);
        dut.reset_request = !pending && random.chance(2);
        dut.mode_valid = random.chance(1);
        dut.mode_writes = random.chance(50);
        dut.request_valid = random.below(4);
        dut.request_write = random.below(4);
        dut.request_page = random.next();
        unit.settle();
        unsigned counted = valid & (mode ? 3 : ~write);
        CHECK_EQ(dut.push, (counted || pending) && !dut.full, "whether an entry is put in");
        CHECK_EQ(dut.restart, pending && !dut.full, "a restart");
        CHECK_EQ(dut.passing_reads, valid & ~write, "reads");
        CHECK_EQ(dut.passing_writes, valid & write, "writes");
        CHECK_EQ(dut.passing_dropped, dut.full ? counted : 0, "dropped requests");
        if (dut.push) {
            uint64_t low = dut.push_data;
            for (int channel = 0; channel < 2; channel++) {
                if (counted >> channel & 1) {
                    CHECK_EQ(low >> (16 * channel) & 0xffff, page >> (16 * channel) & 0xffff, "a page");
                }
            }
            CHECK_EQ(low >> 32 & 3, counted, "the channels of an entry");
            CHECK_EQ(low >> 34, pending, "the mark of an entry");
        }
        both += dut.push && counted == 3;
        marks += dut.restart;
        drops += dut.full && counted;
        if (dut.reset_request) pending = true;
        else if (dut.restart) pending = false;
        if (dut.mode_valid) mode = dut.mode_writes;
        valid = dut.request_valid;
        write = dut.request_write;
        page = dut.request_page;
        unit.tick();
    }
    if (!both || !marks || !drops) CHECK_EQ(0, 1, "cases that were met");
    return passed("page_monitor");
}
