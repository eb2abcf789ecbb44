// The hot-page buffer: first in, first out. Its oldest page is visible three cycles after it was added.
module hot_fifo #(
    parameter int ADDRESS_BITS = 32,
    parameter int ENTRY_BITS = 14
) (
    input  logic                                 clk,
    input  logic                                 rst_n,
    input  logic                                 restart,
    input  logic                                 push,
    input  logic [             ADDRESS_BITS-1:0] push_page,
    input  logic                                 refused_one,
    output logic                                 full,
    input  logic                                 pop,
    output logic [             ADDRESS_BITS-1:0] head,
    output logic [                 ENTRY_BITS:0] length,
    output logic [neoprof_pkg::STATE_BITS-1:0] refused
);
  logic [ENTRY_BITS-1:0] read_at, write_at, store_at;
  logic [ADDRESS_BITS-1:0] store_page;
  logic store;

  assign full = length[ENTRY_BITS];
  block_ram #(.DEPTH_BITS(ENTRY_BITS), .WIDTH(ADDRESS_BITS)) pages (
      .clk,
      .read_address(read_at),
      .read_data(head),
      .write(store),
      .write_address(store_at),
      .write_data(store_page)
  );

  always_ff @(posedge clk) begin
    store <= push;
    store_at <= write_at;
    store_page <= push_page;
    if (!rst_n || restart) begin
      read_at <= '0;
      write_at <= '0;
      length <= '0;
      refused <= '0;
    end else begin
      if (push) write_at <= write_at + 1'b1;
      if (pop) read_at <= read_at + 1'b1;
      if (push && !pop) length <= length + 1'b1;
      if (pop && !push) length <= length - 1'b1;
      if (refused_one && refused != '1) refused <= refused + 1'b1;
    end
  end

`ifndef SYNTHESIS
  assert property (@(posedge clk) disable iff (!rst_n) !(push && full))
  else $error("hot_fifo: pushed while full");
  assert property (@(posedge clk) disable iff (!rst_n) !(pop && length == '0))
  else $error("hot_fifo: popped while empty");
  assert property (@(posedge clk) disable iff (!rst_n) !(restart && (push || pop)))
  else $error("hot_fifo: used in the cycle of a restart");
`endif
endmodule
