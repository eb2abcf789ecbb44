// The core's clock domain: from the FIFO's entries to the registers.
module neoprof_core #(
    parameter int LANES = 2,
    parameter int INDEX_BITS = 19,
    parameter int COUNTER_BITS = 16,
    parameter int ADDRESS_BITS = 32,
    parameter int ENTRY_BITS = 14,
    parameter int BINS = 64,
    parameter int CHANNELS = 2,
    parameter int SEGMENT_BITS = 7,
    parameter int HOT_SEGMENT_BITS = 5,
    parameter int LATENCY = 3,
    parameter logic [63:0] HASH_SEED = 64'd1,
    parameter bit MONOLITHIC = 1'b0
) (
    input  logic                                        clk,
    input  logic                                        rst_n,
    input  logic [CHANNELS*ADDRESS_BITS + CHANNELS : 0] fifo_head,
    input  logic                                        fifo_empty,
    output logic                                        fifo_pop,

    input  logic        bus_valid,
    input  logic        bus_write,
    input  logic [11:0] bus_address,
    input  logic [63:0] bus_write_data,
    output logic        bus_ready,
    output logic [63:0] bus_read_data,

    output logic                                   command_start,
    output logic [                            2:0] command,
    input  logic                                   command_finished,
    input  logic [4*neoprof_pkg::STATE_BITS-1:0] sampled,
    output logic                                   busy
);
  // One row of valid bits is cleared per cycle, all of them in at most 1,024.
  localparam int CLEAR_ROW_BITS = INDEX_BITS - 3 < 10 ? INDEX_BITS - 3 : 10;
  localparam int HASH_CYCLES = 2;
  localparam int COUNT_CYCLES = LATENCY + 2;
  localparam int FILTER_CYCLES = LATENCY + 1;

  logic usable, clearing, mark_accepted, in_valid, in_mark, in_epoch;
  logic [ADDRESS_BITS-1:0] in_page;
  intake #(.CHANNELS(CHANNELS), .ADDRESS_BITS(ADDRESS_BITS)) intake_unit (
      .clk, .rst_n, .head(fifo_head), .empty(fifo_empty), .pop(fifo_pop), .usable, .clearing, .mark_accepted,
      .valid(in_valid), .mark(in_mark), .epoch(in_epoch), .page(in_page)
  );

  // Delays need no reset: nothing enters until the valid bits are cleared, long after a reset.
  logic hashed_valid, hashed_epoch, counted_epoch, counted_mark, filtered_mark;
  logic [ADDRESS_BITS-1:0] counted_page;
  delay #(.WIDTH(2), .CYCLES(HASH_CYCLES)) hash_delay (
      .clk, .in({in_valid, in_epoch}), .out({hashed_valid, hashed_epoch})
  );
  delay #(.WIDTH(ADDRESS_BITS + 2), .CYCLES(HASH_CYCLES + COUNT_CYCLES)) count_delay (
      .clk, .in({in_mark, in_epoch, in_page}), .out({counted_mark, counted_epoch, counted_page})
  );
  delay #(.WIDTH(1), .CYCLES(FILTER_CYCLES)) filter_delay (.clk, .in(counted_mark), .out(filtered_mark));

  logic [1:0] clear;
  logic [CLEAR_ROW_BITS-1:0] clear_row;
  logic [LANES-1:0] lane_valid, lane_fresh;
  logic [LANES*INDEX_BITS-1:0] lane_index;
  logic [LANES*COUNTER_BITS-1:0] lane_count;
  clear_unit #(.ROW_BITS(CLEAR_ROW_BITS)) clearer (
      .clk, .rst_n, .mark_accepted, .mark_through(counted_mark), .mark_epoch(counted_epoch),
      .usable, .clearing, .clear, .row(clear_row)
  );

  for (genvar lane = 0; lane < LANES; lane++) begin : gen_lane
    logic [INDEX_BITS-1:0] index;
    h3_hash #(
        .LANE(lane), .ADDRESS_BITS(ADDRESS_BITS), .INDEX_BITS(INDEX_BITS), .HASH_SEED(HASH_SEED)
    ) hash (.clk, .page(in_page), .index);
    counter_lane #(
        .INDEX_BITS(INDEX_BITS),
        .COUNTER_BITS(COUNTER_BITS),
        .SEGMENT_BITS(SEGMENT_BITS),
        .CLEAR_ROW_BITS(CLEAR_ROW_BITS),
        .LATENCY(LATENCY),
        .MONOLITHIC(MONOLITHIC)
    ) counters (
        .clk, .rst_n, .valid(hashed_valid), .epoch(hashed_epoch), .index, .clear, .clear_row,
        .result_valid(lane_valid[lane]),
        .result_index(lane_index[INDEX_BITS*lane+:INDEX_BITS]),
        .result_count(lane_count[COUNTER_BITS*lane+:COUNTER_BITS]),
        .result_fresh(lane_fresh[lane])
    );
  end

  logic [COUNTER_BITS-1:0] threshold;
  logic hot_full, hot_push, hot_refuse, hot_pop;
  logic [ADDRESS_BITS-1:0] hot_page, hot_head;
  logic [ENTRY_BITS:0] hot_length;
  logic [neoprof_pkg::STATE_BITS-1:0] hot_refused;
  hot_filter #(
      .LANES(LANES),
      .INDEX_BITS(INDEX_BITS),
      .COUNTER_BITS(COUNTER_BITS),
      .ADDRESS_BITS(ADDRESS_BITS),
      .SEGMENT_BITS(HOT_SEGMENT_BITS),
      .LATENCY(LATENCY),
      .MONOLITHIC(MONOLITHIC)
  ) filter (
      .clk, .rst_n, .threshold, .valid(lane_valid[0]), .epoch(counted_epoch), .page(counted_page), .index(lane_index),
      .count(lane_count), .fresh(lane_fresh), .full(hot_full), .push(hot_push), .refused(hot_refuse),
      .push_page(hot_page)
  );
  hot_fifo #(.ADDRESS_BITS(ADDRESS_BITS), .ENTRY_BITS(ENTRY_BITS)) hot_pages (
      .clk, .rst_n, .restart(filtered_mark), .push(hot_push), .push_page(hot_page), .refused_one(hot_refuse),
      .full(hot_full), .pop(hot_pop), .head(hot_head), .length(hot_length), .refused(hot_refused)
  );

  logic capture, capturing, bin_pop;
  logic [INDEX_BITS:0] bin_head;
  logic [$clog2(BINS):0] bins_unread;
  histogram #(.INDEX_BITS(INDEX_BITS), .COUNTER_BITS(COUNTER_BITS), .BINS(BINS)) histogram_unit (
      .clk, .rst_n, .restart(counted_mark), .valid(lane_valid[0]), .count(lane_count[COUNTER_BITS-1:0]), .capture,
      .capturing, .pop(bin_pop), .head(bin_head), .unread(bins_unread)
  );

  register_file #(
      .LANES(LANES),
      .INDEX_BITS(INDEX_BITS),
      .COUNTER_BITS(COUNTER_BITS),
      .ADDRESS_BITS(ADDRESS_BITS),
      .ENTRY_BITS(ENTRY_BITS),
      .BINS(BINS),
      .CHANNELS(CHANNELS),
      .HASH_SEED(HASH_SEED)
  ) registers (
      .clk, .rst_n, .bus_valid, .bus_write, .bus_address, .bus_write_data, .bus_ready, .bus_read_data, .threshold,
      .busy, .clearing, .command_start, .command, .command_finished, .reset_through(filtered_mark), .sampled,
      .hot_pop, .hot_head, .hot_length, .hot_refused, .capture, .capturing, .bin_pop, .bin_head, .bins_unread
  );

  // Busy until nothing has entered for the length of the pipeline.
  localparam logic [4:0] DEPTH = 5'(HASH_CYCLES + COUNT_CYCLES + FILTER_CYCLES + 4);
  logic [4:0] draining;
  assign busy = !fifo_empty || draining != '0;
  always_ff @(posedge clk) begin
    if (!rst_n) draining <= '0;
    else if (!fifo_empty) draining <= DEPTH;
    else if (draining != '0) draining <= draining - 1'b1;
  end

`ifndef SYNTHESIS
  assert property (@(posedge clk) disable iff (!rst_n) lane_valid == '0 || lane_valid == '1)
  else $error("neoprof_core: lanes out of step");
`endif
endmodule
