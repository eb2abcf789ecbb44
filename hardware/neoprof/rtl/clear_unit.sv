// Clears the set of valid bits that a reset's mark left behind, one row per cycle, while the other set is in
// use; after power-on it clears both.
module clear_unit #(
    parameter int ROW_BITS = 10
) (
    input  logic                clk,
    input  logic                rst_n,
    input  logic                mark_accepted,  // a mark enters the pipeline; another must wait from here on
    input  logic                mark_through,   // nothing ahead of the mark uses the old set any more
    input  logic                mark_epoch,     // the set in use after the mark
    output logic                usable,
    output logic                clearing,
    output logic [         1:0] clear,          // the sets to clear
    output logic [ROW_BITS-1:0] row
);
  always_ff @(posedge clk) begin
    if (!rst_n) begin
      usable <= 1'b0;
      clearing <= 1'b1;
      clear <= 2'b11;
      row <= '0;
    end else begin
      if (mark_accepted) clearing <= 1'b1;
      if (mark_through) clear <= mark_epoch ? 2'b01 : 2'b10;
      if (clear != '0) begin
        row <= row + 1'b1;
        if (row == '1) begin
          clear <= '0;
          clearing <= 1'b0;
          usable <= 1'b1;
        end
      end
    end
  end

`ifndef SYNTHESIS
  assert property (@(posedge clk) disable iff (!rst_n) !((mark_accepted || mark_through) && clear != '0))
  else $error("clear_unit: a mark while a set is being cleared");
`endif
endmodule
