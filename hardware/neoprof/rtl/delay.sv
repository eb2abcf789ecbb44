// The same value so many cycles later, at least one.
module delay #(
    parameter int WIDTH = 1,
    parameter int CYCLES = 1
) (
    input  logic             clk,
    input  logic [WIDTH-1:0] in,
    output logic [WIDTH-1:0] out
);
  logic [CYCLES*WIDTH-1:0] stages;
  if (CYCLES == 1) begin : gen_one
    always_ff @(posedge clk) stages <= in;
  end else begin : gen_more
    always_ff @(posedge clk) stages <= {stages[(CYCLES-1)*WIDTH-1:0], in};
  end
  assign out = stages[(CYCLES-1)*WIDTH+:WIDTH];
endmodule
