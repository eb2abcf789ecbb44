// Checks exact counts of cycles, reads, writes and losses, from a restart's cycle on.
#include "Vdut.h"
#include "bench.h"

static uint64_t field(const Vdut &dut, int number) {
    uint64_t value = 0;
    for (int bit = 0; bit < 48; bit++) {
        int at = 48 * number + bit;
        value |= (uint64_t)(dut.sampled[at / 32] >> (at % 32) & 1) << bit;
    }
    return value;
}

int main() {
    Random random(4);
    Unit<Vdut> unit;
    auto &dut = unit.dut;
    dut.rst_n = 0;
    unit.tick();
    dut.rst_n = 1;
    uint64_t counts[4] = {}, sampled[4] = {};
    for (int cycle = 0; cycle < 200000; cycle++) {
        dut.restart = random.below(5000) == 0;
        dut.sample = random.chance(5);
        unsigned events[4] = {1, (unsigned)random.below(4), (unsigned)random.below(4), (unsigned)random.below(4)};
        dut.passing_reads = events[1];
        dut.passing_writes = events[2];
        dut.passing_dropped = events[3];
        for (int i = 0; i < 4; i++) {
            if (dut.sample) sampled[i] = counts[i];
            if (dut.restart) counts[i] = 0;
            counts[i] += i == 0 ? 1 : (events[i] & 1) + (events[i] >> 1);
        }
        unit.tick();
        for (int i = 0; i < 4; i++) CHECK_EQ(field(dut, i), sampled[i], "a count");
    }
    return passed("state_monitor");
}
