// Every bit's word, and their sums, two cycles later, a page each cycle.
#include "Vdut.h"
#include "bench.h"

static uint32_t word(uint64_t seed, int lane, int bit) {
    uint64_t z = seed + 0x9e3779b97f4a7c15ull * (64 * lane + bit + 1);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return (z ^ z >> 31) & ((1 << 19) - 1);
}

int main() {
    Random random(6);
    Unit<Vdut> unit;
    std::deque<uint32_t> expected;
    for (int cycle = 0; cycle < 100000; cycle++) {
        uint32_t page = cycle < 32 ? 1u << cycle : random.next();
        uint32_t sum = 0;
        for (int bit = 0; bit < 32; bit++) {
            if (page >> bit & 1) sum ^= word(5, 1, bit);
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
