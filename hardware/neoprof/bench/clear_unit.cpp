// Checks that each set's rows are written once each, in as many cycles as there are rows, and that marks wait
// exactly that long.
#include "Vdut.h"
#include "bench.h"

const int ROWS = 16;

int main() {
    Unit<Vdut> unit;
    auto &dut = unit.dut;
    dut.rst_n = 0;
    unit.tick();
    dut.rst_n = 1;
    CHECK_EQ(dut.usable, 0, "usable before clearing");
    for (int row = 0; row < ROWS; row++) {
        CHECK_EQ(dut.clear, 3, "both sets after power-on");
        CHECK_EQ(dut.row, row, "the row");
        CHECK_EQ(dut.usable, 0, "usable before all rows are cleared");
        unit.tick();
    }
    bool epoch = false;
    for (int round = 0; round < 10; round++) {
        CHECK_EQ(dut.clear, 0, "clearing though all is cleared");
        CHECK_EQ(dut.clearing, 0, "clearing though all is cleared");
        CHECK_EQ(dut.usable, 1, "usable");
        dut.mark_accepted = 1;
        unit.tick();
        dut.mark_accepted = 0;
        for (int cycle = 0; cycle < 7; cycle++) {
            CHECK_EQ(dut.clearing, 1, "a mark on its way");
            CHECK_EQ(dut.clear, 0, "clearing before the mark is through");
            unit.tick();
        }
        epoch = !epoch;
        dut.mark_epoch = epoch;
        dut.mark_through = 1;
        unit.tick();
        dut.mark_through = 0;
        for (int row = 0; row < ROWS; row++) {
            CHECK_EQ(dut.clear, epoch ? 1 : 2, "the set left behind");
            CHECK_EQ(dut.row, row, "the row");
            CHECK_EQ(dut.clearing, 1, "clearing");
            unit.tick();
        }
    }
    return passed("clear_unit");
}
