// Shared by all benches: a device under test, its clock, random numbers, and checks that name what failed.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <vector>

#include "verilated.h"

#define CHECK_EQ(got, expected, what)                                                                        \
    do {                                                                                                     \
        uint64_t got_value = (got), expected_value = (expected);                                             \
        if (got_value != expected_value) {                                                                   \
            std::printf("%s:%d: %s: expected %llu, got %llu\n", __FILE__, __LINE__, what,                    \
                        (unsigned long long)expected_value, (unsigned long long)got_value);                  \
            std::exit(1);                                                                                    \
        }                                                                                                    \
    } while (0)

// xorshift64* (Vigna, 2016): the same numbers in every run.
struct Random {
    uint64_t state;
    explicit Random(uint64_t seed) : state(seed) {}
    uint64_t next() {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        return state * 0x2545f4914f6cdd1dull >> 8;
    }
    uint64_t below(uint64_t bound) { return next() % bound; }
    bool chance(uint64_t percent) { return below(100) < percent; }
};

// The word that a set bit of the page selects in a lane's hash.
inline uint64_t hash_word(uint64_t seed, int lane, int bit, int index_bits) {
    uint64_t z = seed + 0x9e3779b97f4a7c15ull * (64 * lane + bit + 1);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    if (bit < index_bits) {
        // A triangle with ones on the diagonal: lower in even lanes, upper in odd ones.
        for (int other = 0; other < 64; other++) {
            bool kept = lane % 2 ? other > bit : other < bit;
            if (!kept) z &= ~(1ull << other);
        }
        z |= 1ull << bit;
    }
    return z & ((1ull << index_bits) - 1);
}

// A unit with one clock.
template <class Dut>
struct Unit {
    VerilatedContext context;
    Dut dut{&context};
    uint64_t cycles = 0;
    void tick() {
        dut.clk = 0;
        dut.eval();
        dut.clk = 1;
        dut.eval();
        cycles++;
    }
    // Combinational outputs see inputs that changed after the edge.
    void settle() { dut.eval(); }
};

inline int passed(const char *name) {
    std::printf("%s passed\n", name);
    return 0;
}
