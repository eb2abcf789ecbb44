// The valid bits of one lane, in two sets: one in use while the other is cleared, so counting never pauses.
// They lie in groups of 8, and these in banks of which a row is cleared per cycle.
//
// A group is read LATENCY cycles before it is written. Bits are only added, so a write adds those of all
// accesses ahead that its read missed and needs none of their results.
module valid_bits #(
    parameter int INDEX_BITS = 19,
    parameter int CLEAR_ROW_BITS = 10,
    parameter int LATENCY = 3,
    parameter int WINDOW = 5,  // accesses ahead that a read can miss
    parameter bit MONOLITHIC = 1'b0
) (
    input logic                         clk,
    input logic                         valid,
    input logic                         epoch,
    input logic [       INDEX_BITS-1:0] index,
    input logic [WINDOW*INDEX_BITS : 1] index_past,
    input logic [             WINDOW:1] valid_past,
    input logic [             WINDOW:1] epoch_past,

    input logic [               1:0] clear,
    input logic [CLEAR_ROW_BITS-1:0] clear_row,

    output logic was_set,    // LATENCY cycles after the access; misses what accesses ahead have set
    input  logic write_back  // two cycles later: set the bit
);
  localparam int GROUP_BITS = INDEX_BITS - 3;
  logic [7:0] gained, gained_now, group_now, group_next, group_last;
  logic [15:0] groups;

  always_comb begin
    gained = 8'd1 << index[2:0];
    for (int distance = 1; distance <= WINDOW; distance++) begin
      if (valid && valid_past[distance] && epoch == epoch_past[distance]
          && index_past[INDEX_BITS*distance-:GROUP_BITS] == index[INDEX_BITS-1-:GROUP_BITS]) begin
        gained = gained | (8'd1 << index_past[INDEX_BITS*(distance-1)+1+:3]);
      end
    end
  end
  delay #(.WIDTH(8), .CYCLES(LATENCY)) gained_delay (.clk, .in(gained), .out(gained_now));

  assign group_now = groups[8*32'(epoch_past[LATENCY])+:8];
  assign was_set = group_now[index_past[INDEX_BITS*(LATENCY-1)+1+:3]];
  always_ff @(posedge clk) begin
    group_next <= group_now | gained_now;
    group_last <= group_next;
  end

  for (genvar set = 0; set < 2; set++) begin : gen_set
    logic write;
    assign write = write_back && epoch_past[WINDOW] == 1'(set);
    segmented_ram #(
        .DEPTH_BITS(GROUP_BITS),
        .WIDTH(8),
        .SEGMENT_BITS(GROUP_BITS - CLEAR_ROW_BITS),
        .LATENCY(LATENCY),
        .MONOLITHIC(MONOLITHIC)
    ) bits (
        .clk,
        .read_address(index[INDEX_BITS-1:3]),
        .read_data(groups[8*set+:8]),
        .write,
        .write_address(index_past[INDEX_BITS*WINDOW-:GROUP_BITS]),
        .write_data(group_last),
        .clear(clear[set]),
        .clear_row
    );
`ifndef SYNTHESIS
    assert property (@(posedge clk) !(write && clear[set]))
    else $error("valid_bits: a write into the set that is being cleared");
`endif
  end
endmodule
