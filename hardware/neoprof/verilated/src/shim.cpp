// The functions that Rust calls, for one set of sizes: the build script defines NAME, DUT, CHANNELS and
// ADDRESS_BITS.
#include <cstdint>
#include <memory>

#include "verilated.h"

namespace {
struct Device {
    VerilatedContext context;
    DUT dut{&context};
};
static_assert(CHANNELS * ADDRESS_BITS <= 64, "pages of all channels fit a word");
}  // namespace

extern "C" {
void *NAME(new)() {
    auto device = new Device;
    device->dut.mem_rst_n = device->dut.core_rst_n = 0;
    device->dut.eval();
    return device;
}

void NAME(free)(void *device) { delete static_cast<Device *>(device); }

// Begins or ends the hardware reset.
void NAME(reset)(void *device, bool active) {
    auto &dut = static_cast<Device *>(device)->dut;
    dut.mem_rst_n = dut.core_rst_n = !active;
}

// Runs one cycle of the named clocks. Pages and flags are those of channel 0 and up.
void NAME(tick)(void *device, bool mem, bool core, uint32_t valid, uint32_t write, const uint64_t *pages) {
    auto &dut = static_cast<Device *>(device)->dut;
    if (mem) {
        uint64_t all = 0;
        for (int channel = 0; channel < CHANNELS; channel++) {
            if (valid >> channel & 1) all |= pages[channel] << (channel * ADDRESS_BITS % 64);
        }
        dut.request_valid = valid;
        dut.request_write = write;
        dut.request_page = all;
    }
    dut.mem_clk = mem;
    dut.core_clk = core;
    dut.eval();
    dut.mem_clk = 0;
    dut.core_clk = 0;
    dut.eval();
}

void NAME(bus)(void *device, bool valid, bool write, uint32_t address, uint64_t data) {
    auto &dut = static_cast<Device *>(device)->dut;
    dut.bus_valid = valid;
    dut.bus_write = write;
    dut.bus_address = address;
    dut.bus_write_data = data;
}

// Bit 0: the register request is done; bit 1: busy.
uint32_t NAME(flags)(void *device) {
    auto &dut = static_cast<Device *>(device)->dut;
    return dut.bus_ready | dut.busy << 1;
}

uint64_t NAME(data)(void *device) { return static_cast<Device *>(device)->dut.bus_read_data; }
}
