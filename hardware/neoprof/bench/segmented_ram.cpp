// Checks reads LATENCY cycles later, of the values before a write in the same cycle, and rows cleared in all
// segments. It is compiled for both descriptions of the memory: because they answer alike, the faster one may
// be simulated.
#include "Vdut.h"
#include "bench.h"

int main() {
    const int latency = 3, words = 256, rows = 32;
    Random random(7);
    Unit<Vdut> unit;
    auto &dut = unit.dut;
    std::vector<uint64_t> memory(words);
    for (int i = 0; i < words; i++) {  // known contents
        dut.write = 1;
        dut.write_address = i;
        dut.write_data = memory[i] = i * 37 & 0xff;
        unit.tick();
    }
    std::deque<uint64_t> expected;
    for (int cycle = 0; cycle < 300000; cycle++) {
        int span = cycle % 1000 < 500 ? 4 : words;
        dut.read_address = random.below(span) * (words / span);
        dut.write = random.chance(60);
        dut.write_address = random.below(span) * (words / span);
        dut.write_data = random.below(256);
        dut.clear = random.chance(2);
        dut.clear_row = random.below(rows);
        expected.push_back(memory[dut.read_address]);
        if (dut.clear) {
            for (int word = dut.clear_row; word < words; word += rows) memory[word] = 0;
        } else if (dut.write) {
            memory[dut.write_address] = dut.write_data;
        }
        unit.tick();
        if ((int)expected.size() == latency) {
            CHECK_EQ(dut.read_data, expected.front(), "a word");
            expected.pop_front();
        }
    }
    return passed("segmented_ram");
}
