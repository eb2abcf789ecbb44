// Delays a value by at least one cycle.
module delay #(
    parameter int WIDTH = 1,
    parameter int CYCLES = 1
) (
    input  logic             clk,
    input  logic [WIDTH-1:0] in,
    output logic [WIDTH-1:0] out
);
  // Separate registers simulate faster than one wide register.
  for (genvar cycle = 0; cycle < CYCLES; cycle++) begin : gen_cycle
    logic [WIDTH-1:0] value;
    if (cycle == 0) begin : gen_first
      always_ff @(posedge clk) value <= in;
    end else begin : gen_next
      always_ff @(posedge clk) value <= gen_cycle[cycle-1].value;
    end
  end
  assign out = gen_cycle[CYCLES-1].value;
endmodule
