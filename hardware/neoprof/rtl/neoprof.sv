// NeoProf watches the requests to a CXL memory, counts the accesses of each page in a Count-Min sketch, and
// gives the host the hot pages, the distribution of counts and the memory's load (NeoMem, sections III and
// IV).
//
// It has two clocks: requests are seen in the memory controller's; accesses are counted and registers read in
// the core's. The core must keep up with the requests on average; the FIFO between them absorbs bursts.
module neoprof #(
    parameter int LANES = 2,
    parameter int INDEX_BITS = 19,     // log2 of the entries of a lane
    parameter int COUNTER_BITS = 16,
    parameter int ADDRESS_BITS = 32,
    parameter int ENTRY_BITS = 14,     // log2 of the hot-page buffer's entries
    parameter int BINS = 64,
    parameter int CHANNELS = 2,
    parameter int SEGMENT_BITS = 7,    // log2 of the segments of a lane's counters
    parameter int HOT_SEGMENT_BITS = 5,
    parameter int LATENCY = 3,         // cycles of a read of the sketch's memories, at least 2
    parameter int FIFO_BITS = 6,
    parameter logic [63:0] HASH_SEED = 64'd1,
    parameter bit MONOLITHIC = 1'b0    // see segmented_ram
) (
    input logic                             mem_clk,
    input logic                             mem_rst_n,
    input logic [             CHANNELS-1:0] request_valid,
    input logic [             CHANNELS-1:0] request_write,
    input logic [CHANNELS*ADDRESS_BITS-1:0] request_page,

    input  logic        core_clk,
    input  logic        core_rst_n,
    input  logic        bus_valid,
    input  logic        bus_write,
    input  logic [11:0] bus_address,
    input  logic [63:0] bus_write_data,
    output logic        bus_ready,
    output logic [63:0] bus_read_data,
    output logic        busy            // as in the status register
);
  localparam int ENTRY_WIDTH = CHANNELS * ADDRESS_BITS + CHANNELS + 1;

  logic [2:0] command_core, command_mem;
  logic command_start, command_finished, command_arrived, command_done, reset_pending;
  command_crossing crossing (
      .core_clk, .core_rst_n, .start(command_start), .start_command(command_core), .finished(command_finished),
      .mem_clk, .mem_rst_n, .arrived(command_arrived), .command(command_mem), .done(command_done)
  );

  logic [CHANNELS-1:0] passing_reads, passing_writes, passing_dropped;
  logic [ENTRY_WIDTH-1:0] push_data, head;
  logic restart, push, full, pop, empty, is_reset;
  assign is_reset = command_mem[1:0] == neoprof_pkg::COMMAND_RESET;
  page_monitor #(.CHANNELS(CHANNELS), .ADDRESS_BITS(ADDRESS_BITS)) pages (
      .clk(mem_clk), .rst_n(mem_rst_n), .request_valid, .request_write, .request_page,
      .reset_request(command_arrived && is_reset),
      .mode_valid(command_arrived && command_mem[1:0] == neoprof_pkg::COMMAND_MODE),
      .mode_writes(command_mem[2]),
      .passing_reads, .passing_writes, .passing_dropped, .restart, .push, .push_data, .full
  );

  logic [4*neoprof_pkg::STATE_BITS-1:0] sampled;
  state_monitor #(.CHANNELS(CHANNELS)) states (
      .clk(mem_clk), .rst_n(mem_rst_n), .restart, .passing_reads, .passing_writes, .passing_dropped,
      .sample(command_arrived), .sampled
  );
  // A reset is done when its mark is in the FIFO, anything else at once.
  assign command_done = reset_pending ? restart : (command_arrived && !is_reset);
  always_ff @(posedge mem_clk) begin
    if (!mem_rst_n) reset_pending <= 1'b0;
    else if (command_arrived && is_reset) reset_pending <= 1'b1;
    else if (restart) reset_pending <= 1'b0;
  end

  async_fifo #(.WIDTH(ENTRY_WIDTH), .DEPTH_BITS(FIFO_BITS)) fifo (
      .write_clk(mem_clk), .write_rst_n(mem_rst_n), .push, .push_data, .full,
      .read_clk(core_clk), .read_rst_n(core_rst_n), .pop, .head, .empty
  );

  neoprof_core #(
      .LANES(LANES),
      .INDEX_BITS(INDEX_BITS),
      .COUNTER_BITS(COUNTER_BITS),
      .ADDRESS_BITS(ADDRESS_BITS),
      .ENTRY_BITS(ENTRY_BITS),
      .BINS(BINS),
      .CHANNELS(CHANNELS),
      .SEGMENT_BITS(SEGMENT_BITS),
      .HOT_SEGMENT_BITS(HOT_SEGMENT_BITS),
      .LATENCY(LATENCY),
      .HASH_SEED(HASH_SEED),
      .MONOLITHIC(MONOLITHIC)
  ) core (
      .clk(core_clk), .rst_n(core_rst_n), .fifo_head(head), .fifo_empty(empty), .fifo_pop(pop),
      .bus_valid, .bus_write, .bus_address, .bus_write_data, .bus_ready, .bus_read_data,
      .command_start, .command(command_core), .command_finished, .sampled, .busy
  );
endmodule
