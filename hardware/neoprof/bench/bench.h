// What all benches share: a device under test, its clock, random numbers, and checks that name what failed.
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
    // Inputs changed after the edge are seen by what is combinational.
    void settle() { dut.eval(); }
};

inline int passed(const char *name) {
    std::printf("%s passed\n", name);
    return 0;
}
