// A FIFO between two clocks whose head is visible without a request. Pointers cross in Gray code through two
// flip-flops (Cummings, "Simulation and Synthesis Techniques for Asynchronous FIFO Design", 2002).
module async_fifo #(
    parameter int WIDTH = 8,
    parameter int DEPTH_BITS = 6
) (
    input  logic             write_clk,
    input  logic             write_rst_n,
    input  logic             push,
    input  logic [WIDTH-1:0] push_data,
    output logic             full,

    input  logic             read_clk,
    input  logic             read_rst_n,
    input  logic             pop,
    output logic [WIDTH-1:0] head,
    output logic             empty
);
  logic [WIDTH-1:0] mem[1 << DEPTH_BITS];
  logic [DEPTH_BITS:0] write_count, write_gray, read_count, read_gray;
  logic [DEPTH_BITS:0] write_gray_meta, write_gray_here, read_gray_meta, read_gray_here;
  logic [DEPTH_BITS:0] write_next, read_next;

  assign write_next = write_count + {{DEPTH_BITS{1'b0}}, push};
  assign read_next = read_count + {{DEPTH_BITS{1'b0}}, pop};
  // Full: the write pointer is ahead by the number of entries, which inverts the two highest bits in Gray
  // code.
  assign full = write_gray == {~read_gray_here[DEPTH_BITS:DEPTH_BITS-1], read_gray_here[DEPTH_BITS-2:0]};
  assign empty = read_gray == write_gray_here;
  assign head = mem[read_count[DEPTH_BITS-1:0]];

  always_ff @(posedge write_clk) begin
    if (push) mem[write_count[DEPTH_BITS-1:0]] <= push_data;
  end

  always_ff @(posedge write_clk) begin
    if (!write_rst_n) begin
      write_count <= '0;
      write_gray <= '0;
      read_gray_meta <= '0;
      read_gray_here <= '0;
    end else begin
      write_count <= write_next;
      write_gray <= write_next ^ (write_next >> 1);
      read_gray_meta <= read_gray;
      read_gray_here <= read_gray_meta;
    end
  end

  always_ff @(posedge read_clk) begin
    if (!read_rst_n) begin
      read_count <= '0;
      read_gray <= '0;
      write_gray_meta <= '0;
      write_gray_here <= '0;
    end else begin
      read_count <= read_next;
      read_gray <= read_next ^ (read_next >> 1);
      write_gray_meta <= write_gray;
      write_gray_here <= write_gray_meta;
    end
  end

`ifndef SYNTHESIS
  assert property (@(posedge write_clk) disable iff (!write_rst_n) !(push && full))
  else $error("async_fifo: pushed while full");
  assert property (@(posedge read_clk) disable iff (!read_rst_n) !(pop && empty))
  else $error("async_fifo: popped while empty");
`endif
endmodule
