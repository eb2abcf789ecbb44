// Checks the whole core against its own model: pages and resets' marks in one stream without a pause, then
// every register.
#include "Vdut.h"
#include "bench.h"

const int LANES = 2, WIDTH = 128, MAX = 15, ENTRIES = 8, BINS = 16;

static unsigned hash(int lane, uint64_t page) {
    unsigned sum = 0;
    for (int bit = 0; bit < 16; bit++) {
        if (page >> bit & 1) sum ^= hash_word(1, lane, bit, 7);
    }
    return sum;
}

struct Model {
    unsigned count[LANES][WIDTH] = {};
    bool hot[LANES][WIDTH] = {};
    std::deque<uint64_t> pages;
    uint64_t refused = 0, threshold = MAX;
    void access(uint64_t page) {
        unsigned least = MAX;
        bool all = true;
        for (int lane = 0; lane < LANES; lane++) {
            unsigned &entry = count[lane][hash(lane, page)];
            entry += entry < MAX;
            least = std::min(least, entry);
            all &= hot[lane][hash(lane, page)];
        }
        if (least <= threshold || all) return;
        if (pages.size() == ENTRIES) {
            refused++;
            return;
        }
        pages.push_back(page);
        for (int lane = 0; lane < LANES; lane++) hot[lane][hash(lane, page)] = true;
    }
    void reset() {
        uint64_t kept = threshold;
        *this = Model();
        threshold = kept;
    }
};

struct Core : Unit<Vdut> {
    std::deque<uint64_t> fifo;
    void step() {
        dut.fifo_empty = fifo.empty();
        dut.fifo_head = fifo.empty() ? 0 : fifo.front();
        settle();
        bool pop = dut.fifo_pop;
        tick();
        if (pop) fifo.pop_front();
        settle();
    }
    uint64_t bus(bool write, unsigned address, uint64_t data = 0) {
        dut.bus_valid = 1;
        dut.bus_write = write;
        dut.bus_address = address;
        dut.bus_write_data = data;
        for (int cycle = 0; cycle < 1000; cycle++) {
            step();
            if (!dut.bus_ready) continue;
            dut.bus_valid = 0;
            uint64_t value = dut.bus_read_data;
            step();
            return value;
        }
        CHECK_EQ(0, 1, "an answer of the registers");
        return 0;
    }
};

static void compare(Core &core, Model &model) {
    CHECK_EQ(core.bus(false, 0xd00), model.refused, "refused reports");
    CHECK_EQ(core.bus(false, 0x200), model.threshold, "the threshold");
    core.bus(true, 0x800, 1);
    unsigned bins[BINS] = {};
    for (unsigned count : model.count[0]) bins[count < 8 ? count : 8 + (count - 8) / 2]++;
    for (int bin = 0; bin < BINS; bin++) {
        CHECK_EQ(core.bus(false, 0x900), BINS - bin, "bins unread");
        CHECK_EQ(core.bus(false, 0xa00), bins[bin], "a bin");
    }
    CHECK_EQ(core.bus(false, 0xa00), ~0ull, "a bin too many");
    while (!model.pages.empty()) {
        CHECK_EQ(core.bus(false, 0x300), model.pages.size(), "hot pages");
        CHECK_EQ(core.bus(false, 0x400), model.pages.front(), "a hot page");
        model.pages.pop_front();
    }
    CHECK_EQ(core.bus(false, 0x400), ~0ull, "a hot page too many");
}

int main() {
    Random random(12);
    Core core;
    Model model;
    core.dut.rst_n = 0;
    core.step();
    core.dut.rst_n = 1;
    for (int i = 0; i < 200; i++) core.step();
    for (int phase = 0; phase < 400; phase++) {
        int span = 1 << random.below(11), share = 30 + random.below(71), marks = random.below(3);
        for (int left = random.below(2000); left > 0; left--) {
            if (core.fifo.size() < 30 && random.chance(share)) {
                unsigned valid = 1 + random.below(3);
                bool mark = (int)random.below(100) < marks;
                uint64_t entry = (uint64_t)mark << 34 | (uint64_t)valid << 32;
                if (mark) model.reset();
                for (int channel = 0; channel < 2; channel++) {
                    uint64_t page = random.below(span);
                    entry |= page << (16 * channel);
                    if (valid >> channel & 1) model.access(page);
                }
                core.fifo.push_back(entry);
            }
            core.step();
        }
        while (core.dut.busy) core.step();
        compare(core, model);
        model.threshold = random.below(16);
        core.bus(true, 0x200, model.threshold == MAX ? 1000 : model.threshold);
    }
    return passed("neoprof_core");
}
