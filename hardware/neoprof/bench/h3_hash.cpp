// Checks every bit's word and their sums, two cycles later, one page per cycle.
#include "Vdut.h"
#include "bench.h"

int main() {
    Random random(6);
    Unit<Vdut> unit;
    std::deque<uint32_t> expected;
    for (int cycle = 0; cycle < 100000; cycle++) {
        uint32_t page = cycle < 32 ? 1u << cycle : random.next();
        uint32_t sum = 0;
        for (int bit = 0; bit < 32; bit++) {
            if (page >> bit & 1) sum ^= hash_word(5, 1, bit, 19);
        }
        expected.push_back(sum);
        unit.dut.page = page;
        unit.tick();
        if (expected.size() == 2) {
            CHECK_EQ(unit.dut.index, expected.front(), "an index");
            expected.pop_front();
        }
    }
    return passed("h3_hash");
}
