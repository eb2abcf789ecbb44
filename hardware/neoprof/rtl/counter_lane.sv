// One lane of the sketch: a counter and a valid bit per entry. Each cycle's access counts up and gives the
// new count, 1 if the entry was not valid ("fresh").
//
// Memories answer LATENCY cycles later and are written 2 cycles after that. The counts of accesses ahead come
// from their results meanwhile: one cycle ahead in the cycle of the addition, further ahead in the cycle
// before.
module counter_lane #(
    parameter int INDEX_BITS = 19,
    parameter int COUNTER_BITS = 16,
    parameter int SEGMENT_BITS = 7,
    parameter int CLEAR_ROW_BITS = 10,
    parameter int LATENCY = 3,
    parameter bit MONOLITHIC = 1'b0
) (
    input logic                  clk,
    input logic                  rst_n,
    input logic                  valid,
    input logic                  epoch,
    input logic [INDEX_BITS-1:0] index,

    input logic [               1:0] clear,
    input logic [CLEAR_ROW_BITS-1:0] clear_row,

    // LATENCY + 2 cycles after the access.
    output logic                    result_valid,
    output logic [  INDEX_BITS-1:0] result_index,
    output logic [COUNTER_BITS-1:0] result_count,
    output logic                    result_fresh
);
  localparam int WINDOW = LATENCY + 2;  // accesses ahead that a read can miss

  logic [WINDOW:1] same_first, same_merge, valid_past, epoch_past;
  logic [WINDOW*INDEX_BITS:1] index_past;
  logic same_add;
  hazards #(.INDEX_BITS(INDEX_BITS), .DISTANCES(WINDOW)) hazard (
      .clk, .rst_n, .valid, .epoch, .index, .same(same_first), .index_past, .valid_past, .epoch_past
  );
  delay #(.WIDTH(WINDOW), .CYCLES(LATENCY - 1)) same_delay (.clk, .in(same_first), .out(same_merge));
  always_ff @(posedge clk) same_add <= same_merge[1];

  logic was_set;
  valid_bits #(
      .INDEX_BITS(INDEX_BITS),
      .CLEAR_ROW_BITS(CLEAR_ROW_BITS),
      .LATENCY(LATENCY),
      .WINDOW(WINDOW),
      .MONOLITHIC(MONOLITHIC)
  ) bits (
      .clk, .valid, .epoch, .index, .index_past, .valid_past, .epoch_past, .clear, .clear_row, .was_set,
      .write_back(result_valid && result_fresh)
  );

  logic [COUNTER_BITS-1:0] stored;
  segmented_ram #(
      .DEPTH_BITS(INDEX_BITS),
      .WIDTH(COUNTER_BITS),
      .SEGMENT_BITS(SEGMENT_BITS),
      .LATENCY(LATENCY),
      .MONOLITHIC(MONOLITHIC)
  ) counters (
      .clk,
      .read_address(index),
      .read_data(stored),
      .write(result_valid),
      .write_address(result_index),
      .write_data(result_count),
      .clear(1'b0),
      .clear_row('0)
  );

  // Results, newest first: at the merge, the access at distance d is the one at d - 2.
  logic [(LATENCY+1)*COUNTER_BITS-1:0] results;
  logic [COUNTER_BITS-1:0] merged, value, base;
  logic valid_before;
  assign result_count = results[COUNTER_BITS-1:0];
  always_comb begin
    merged = stored;
    for (int distance = WINDOW; distance >= 2; distance--) begin
      if (same_merge[distance]) merged = results[COUNTER_BITS*(distance-2)+:COUNTER_BITS];
    end
    base = same_add ? result_count : value;
    if (!valid_before) base = '0;
  end

  always_ff @(posedge clk) begin
    value <= merged;
    valid_before <= was_set || same_merge != '0;
    results <= {results[LATENCY*COUNTER_BITS-1:0], base == '1 ? base : base + 1'b1};
    result_fresh <= !valid_before;
  end
  assign result_valid = valid_past[WINDOW];
  assign result_index = index_past[INDEX_BITS*WINDOW-:INDEX_BITS];

`ifndef SYNTHESIS
  assert property (@(posedge clk) disable iff (!rst_n) result_valid |-> result_count != '0)
  else $error("counter_lane: an access that counted nothing");
  assert property (@(posedge clk) disable iff (!rst_n) result_valid && result_fresh |-> result_count == 1)
  else $error("counter_lane: a fresh entry counts more than 1");
`endif
endmodule
