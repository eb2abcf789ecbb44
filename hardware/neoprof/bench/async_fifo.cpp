// Checks order and completeness between two clocks of every ratio, and that the FIFO is full after exactly
// its capacity.
#include "Vdut.h"
#include "bench.h"

struct Fifo {
    VerilatedContext context;
    Vdut dut{&context};
    std::deque<uint64_t> expected;
    void reset() {
        dut.write_rst_n = dut.read_rst_n = 0;
        for (int i = 0; i < 4; i++) edge(true, true);
        dut.write_rst_n = dut.read_rst_n = 1;
    }
    void edge(bool write, bool read) {
        dut.eval();
        dut.write_clk = write;
        dut.read_clk = read;
        dut.eval();
        dut.write_clk = dut.read_clk = 0;
        dut.eval();
    }
};

int main() {
    Random random(1);
    Fifo fifo;
    fifo.reset();
    // Exactly eight entries fit and come out in order.
    for (uint64_t i = 0; i < 8; i++) {
        CHECK_EQ(fifo.dut.full, 0, "full before the eighth entry");
        fifo.dut.push = 1;
        fifo.dut.push_data = 100 + i;
        fifo.edge(true, false);
    }
    fifo.dut.push = 0;
    CHECK_EQ(fifo.dut.full, 1, "full after the eighth entry");
    for (int i = 0; i < 3; i++) fifo.edge(false, true);
    for (uint64_t i = 0; i < 8; i++) {
        CHECK_EQ(fifo.dut.empty, 0, "empty before the last");
        CHECK_EQ(fifo.dut.head, 100 + i, "order");
        fifo.dut.pop = 1;
        fifo.edge(false, true);
    }
    fifo.dut.pop = 0;
    CHECK_EQ(fifo.dut.empty, 1, "empty after the last");
    for (int i = 0; i < 3; i++) fifo.edge(true, false);
    CHECK_EQ(fifo.dut.full, 0, "full though all was read");

    uint64_t next = 0, fullest = 0;
    for (int cycle = 0; cycle < 400000; cycle++) {
        int phase = cycle / 20000 % 4;
        bool write = random.chance(phase == 0 ? 100 : phase == 1 ? 30 : 70);
        bool read = random.chance(phase == 0 ? 100 : phase == 2 ? 30 : 70);
        fifo.dut.push = write && !fifo.dut.full && random.chance(80);
        fifo.dut.push_data = next & 0xffff;
        fifo.dut.pop = read && !fifo.dut.empty && random.chance(80);
        if (fifo.dut.pop) {
            CHECK_EQ(fifo.dut.head, fifo.expected.front(), "an entry");
            fifo.expected.pop_front();
        }
        if (fifo.dut.push) fifo.expected.push_back(next++ & 0xffff);
        if (fifo.expected.size() > fullest) fullest = fifo.expected.size();
        fifo.edge(write, read);
        if (fifo.expected.size() > 8) CHECK_EQ(fifo.expected.size(), 8, "entries in the FIFO");
    }
    CHECK_EQ(fullest, 8, "how full it was");
    return passed("async_fifo");
}
