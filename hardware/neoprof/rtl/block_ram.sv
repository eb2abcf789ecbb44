// A memory with one read port and one write port, as in the block RAMs of all vendors.
module block_ram #(
    parameter int DEPTH_BITS = 10,
    parameter int WIDTH = 16
) (
    input  logic                  clk,
    input  logic [DEPTH_BITS-1:0] read_address,
    output logic [     WIDTH-1:0] read_data,
    input  logic                  write,
    input  logic [DEPTH_BITS-1:0] write_address,
    input  logic [     WIDTH-1:0] write_data
);
  logic [WIDTH-1:0] mem[1 << DEPTH_BITS];
  always_ff @(posedge clk) begin
    read_data <= mem[read_address];
    if (write) mem[write_address] <= write_data;
  end
endmodule
