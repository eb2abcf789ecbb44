// Checks that every command arrives once and unchanged, and that its end is reported once, at every ratio of
// the clocks.
#include "Vdut.h"
#include "bench.h"

int main() {
    Random random(2);
    VerilatedContext context;
    Vdut dut{&context};
    auto edge = [&](bool core, bool mem) {
        dut.eval();
        dut.core_clk = core;
        dut.mem_clk = mem;
        dut.eval();
        dut.core_clk = dut.mem_clk = 0;
        dut.eval();
    };
    dut.core_rst_n = dut.mem_rst_n = 0;
    for (int i = 0; i < 5; i++) edge(true, true);
    dut.core_rst_n = dut.mem_rst_n = 1;
    for (int round = 0; round < 5000; round++) {
        int core_share = 10 + random.below(90), mem_share = 10 + random.below(90);
        unsigned command = random.below(8), arrivals = 0, ends = 0, work = random.below(10);
        dut.start = 1;
        dut.start_command = command;
        edge(true, false);
        dut.start = 0;
        dut.start_command = random.below(8);
        int working = -1;
        for (int cycle = 0; cycle < 400; cycle++) {
            bool core = random.chance(core_share), mem = random.chance(mem_share);
            if (mem && dut.arrived) {
                arrivals++;
                working = work;
                CHECK_EQ(dut.command, command, "the command");
            }
            dut.done = mem && working == 0;
            if (mem && working >= 0) working--;
            if (core && dut.finished) ends++;
            edge(core, mem);
            dut.done = 0;
        }
        CHECK_EQ(arrivals, 1, "arrivals of a command");
        CHECK_EQ(ends, 1, "ends of a command");
    }
    return passed("command_crossing");
}
