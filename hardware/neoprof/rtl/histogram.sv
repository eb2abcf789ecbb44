// The histogram of the first lane, updated with each access rather than read out of the sketch: a count that
// reaches a bin's lowest value comes from the bin below, so each bin has one counter of the entries at or
// above its lowest value. A capture takes the counters' differences, from the highest bin down, in BINS
// cycles.
//
// Bins come in groups of 8; those of group g are 2^g counts wide.
module histogram #(
    parameter int INDEX_BITS = 19,
    parameter int COUNTER_BITS = 16,
    parameter int BINS = 64
) (
    input logic                    clk,
    input logic                    rst_n,
    input logic                    restart,
    input logic                    valid,
    input logic [COUNTER_BITS-1:0] count,

    input  logic                    capture,  // one cycle
    output logic                    capturing,
    input  logic                    pop,
    output logic [    INDEX_BITS:0] head,     // the next bin, two cycles after the pop
    output logic [$clog2(BINS):0] unread
);
  localparam int BIN_BITS = $clog2(BINS);
  // A saturated counter is never at a bin's lowest value: 2^n + 7 with n >= 4 ends in ones.
  localparam int SUM_BITS = COUNTER_BITS + 1;

  // The bin of a count c: the highest bit of c + 8 gives the group, the three bits below it the place in the
  // group.
  logic [SUM_BITS-1:0] sum, below;
  logic [2:0] place;
  logic [7:0] bin_full;
  logic sum_valid, sum_restart;
  always_comb begin
    place = '0;
    below = '0;
    bin_full = '0;
    for (int group = 0; group + 3 < SUM_BITS; group++) begin
      if (sum[group+3]) begin
        place = sum[group+:3];
        below = sum & ((SUM_BITS'(1) << group) - 1'b1);
        bin_full = {5'(group), place};
      end
    end
  end

  logic reached_valid, reached_restart;
  logic [BIN_BITS-1:0] reached;
  always_ff @(posedge clk) begin
    sum <= {1'b0, count} + SUM_BITS'(8);
    reached <= bin_full[BIN_BITS-1:0];
    if (!rst_n) begin
      {sum_valid, sum_restart, reached_valid, reached_restart} <= '0;
    end else begin
      sum_valid <= valid;
      sum_restart <= restart;
      reached_valid <= sum_valid && below == '0 && 32'(bin_full) < BINS;
      reached_restart <= sum_restart;
    end
  end

  // Entries that reached each bin; 0 until touched.
  logic [INDEX_BITS:0] at_least[BINS];
  logic [BINS-1:0] touched;
  logic [INDEX_BITS:0] so_far;
  assign so_far = touched[reached] ? at_least[reached] : '0;
  always_ff @(posedge clk) begin
    if (reached_valid) at_least[reached] <= so_far + 1'b1;
    if (!rst_n || reached_restart) touched <= '0;
    else if (reached_valid) touched[reached] <= 1'b1;
  end

  logic [INDEX_BITS:0] captured[BINS];
  logic [INDEX_BITS:0] here, above;
  logic [BIN_BITS-1:0] bin, read_at;
  // All entries are at or above bin 0.
  assign here = bin == '0 ? {1'b1, {INDEX_BITS{1'b0}}} : touched[bin] ? at_least[bin] : '0;
  always_ff @(posedge clk) begin
    head <= captured[read_at];
    if (capturing) captured[bin] <= here - above;
    if (!rst_n || reached_restart) begin
      capturing <= 1'b0;
      unread <= '0;
    end else if (capture) begin
      capturing <= 1'b1;
      bin <= BIN_BITS'(BINS - 1);
      above <= '0;
      read_at <= '0;
      unread <= '0;
    end else if (capturing) begin
      above <= here;
      bin <= bin - 1'b1;
      if (bin == '0) begin
        capturing <= 1'b0;
        unread <= (BIN_BITS + 1)'(BINS);
      end
    end else if (pop) begin
      read_at <= read_at + 1'b1;
      unread <= unread - 1'b1;
    end
  end

`ifndef SYNTHESIS
  assert property (@(posedge clk) disable iff (!rst_n) capturing |-> here >= above)
  else $error("histogram: fewer entries at or above a bin than above it");
  assert property (@(posedge clk) disable iff (!rst_n) !(pop && unread == '0))
  else $error("histogram: popped while empty");
  assert property (@(posedge clk) disable iff (!rst_n) !(reached_valid && reached == '0))
  else $error("histogram: a count came to bin 0");
`endif
endmodule
