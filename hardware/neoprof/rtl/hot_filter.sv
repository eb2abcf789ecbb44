// Finds pages whose least count exceeds the threshold and that were not reported since the last reset. A
// report sets a hot bit for each lane's entry; one that finds the buffer full sets none, so the page is
// reported again.
module hot_filter #(
    parameter int LANES = 2,
    parameter int INDEX_BITS = 19,
    parameter int COUNTER_BITS = 16,
    parameter int ADDRESS_BITS = 32,
    parameter int SEGMENT_BITS = 2,
    parameter int LATENCY = 3,
    parameter bit MONOLITHIC = 1'b0
) (
    input logic                          clk,
    input logic                          rst_n,
    input logic [      COUNTER_BITS-1:0] threshold,
    input logic                          valid,
    input logic                          epoch,
    input logic [      ADDRESS_BITS-1:0] page,
    input logic [  LANES*INDEX_BITS-1:0] index,
    input logic [LANES*COUNTER_BITS-1:0] count,
    input logic [             LANES-1:0] fresh,

    // LATENCY + 1 cycles after the access.
    input  logic                    full,
    output logic                    push,
    output logic                    refused,
    output logic [ADDRESS_BITS-1:0] push_page
);
  localparam int WINDOW = LATENCY + 2;

  // The estimate, then the comparison with the threshold, delayed until the hot bits are known.
  logic [COUNTER_BITS-1:0] least, estimate;
  logic hot_early, hot, valid_now;
  always_comb begin
    least = count[COUNTER_BITS-1:0];
    for (int lane = 1; lane < LANES; lane++) begin
      if (count[COUNTER_BITS*lane+:COUNTER_BITS] < least) least = count[COUNTER_BITS*lane+:COUNTER_BITS];
    end
  end
  always_ff @(posedge clk) begin
    estimate <= least;
    hot_early <= estimate > threshold;
  end
  delay #(.WIDTH(1), .CYCLES(LATENCY - 1)) hot_delay (.clk, .in(hot_early), .out(hot));
  delay #(.WIDTH(ADDRESS_BITS), .CYCLES(LATENCY + 1)) page_delay (.clk, .in(page), .out(push_page));

  logic [LANES-1:0] marked;
  for (genvar lane = 0; lane < LANES; lane++) begin : gen_lane
    logic [WINDOW:1] same_first, same_merge, valid_past, epoch_past;
    /* verilator lint_off UNUSEDSIGNAL */
    logic [WINDOW*INDEX_BITS:1] index_past;  // the oldest is the one written
    /* verilator lint_on UNUSEDSIGNAL */
    logic same_add, stored, merged, value, fresh_now, write;
    logic [LATENCY:0] results;  // hot bits after the accesses ahead, newest first

    hazards #(.INDEX_BITS(INDEX_BITS), .DISTANCES(WINDOW)) hazard (
        .clk, .rst_n, .valid, .epoch, .index(index[INDEX_BITS*lane+:INDEX_BITS]),
        .same(same_first), .index_past, .valid_past, .epoch_past
    );
    delay #(.WIDTH(WINDOW), .CYCLES(LATENCY - 1)) same_delay (.clk, .in(same_first), .out(same_merge));
    delay #(.WIDTH(1), .CYCLES(LATENCY + 1)) fresh_delay (.clk, .in(fresh[lane]), .out(fresh_now));

    segmented_ram #(
        .DEPTH_BITS(INDEX_BITS),
        .WIDTH(1),
        .SEGMENT_BITS(SEGMENT_BITS),
        .LATENCY(LATENCY),
        .MONOLITHIC(MONOLITHIC)
    ) bits (
        .clk,
        .read_address(index[INDEX_BITS*lane+:INDEX_BITS]),
        .read_data(stored),
        .write,
        .write_address(index_past[INDEX_BITS*WINDOW-:INDEX_BITS]),
        .write_data(results[0]),
        .clear(1'b0),
        .clear_row('0)
    );

    always_comb begin
      merged = stored;
      for (int distance = WINDOW; distance >= 2; distance--) begin
        if (same_merge[distance]) merged = results[distance-2];
      end
    end
    assign marked[lane] = !fresh_now && (same_add ? results[0] : value);
    always_ff @(posedge clk) begin
      same_add <= same_merge[1];
      value <= merged;
      results <= {results[LATENCY-1:0], push || marked[lane]};
      write <= valid_now && (push || fresh_now);
    end
`ifndef SYNTHESIS
    assert property (@(posedge clk) disable iff (!rst_n) write |-> valid_past[WINDOW])
    else $error("hot_filter: a hot bit written without an access");
    // Accesses of different epochs never share an entry: the second is fresh.
    assert property (@(posedge clk) disable iff (!rst_n) valid_now && same_add
                     && epoch_past[LATENCY+1] == epoch_past[WINDOW] |-> !fresh_now)
    else $error("hot_filter: a fresh entry that was met just before");
`endif
  end

  assign valid_now = gen_lane[0].valid_past[LATENCY+1];
  assign push = valid_now && hot && marked != '1 && !full;
  assign refused = valid_now && hot && marked != '1 && full;
endmodule
