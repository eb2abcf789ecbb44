// Carries one command at a time from the core's clock to the memory's, and its completion back. The command
// and its answer stay unchanged meanwhile, so only the toggles need synchronising.
module command_crossing (
    input  logic       core_clk,
    input  logic       core_rst_n,
    input  logic       start,
    input  logic [2:0] start_command,
    output logic       finished,

    input  logic       mem_clk,
    input  logic       mem_rst_n,
    output logic       arrived,
    output logic [2:0] command,
    input  logic       done
);
  logic request, acknowledge;
  logic [2:0] request_here, acknowledge_here;

  always_ff @(posedge core_clk) begin
    if (!core_rst_n) begin
      request <= 1'b0;
      command <= '0;
      acknowledge_here <= '0;
    end else begin
      acknowledge_here <= {acknowledge_here[1:0], acknowledge};
      if (start) begin
        request <= !request;
        command <= start_command;
      end
    end
  end
  assign finished = acknowledge_here[2] != acknowledge_here[1];

  always_ff @(posedge mem_clk) begin
    if (!mem_rst_n) begin
      acknowledge <= 1'b0;
      request_here <= '0;
    end else begin
      request_here <= {request_here[1:0], request};
      if (done) acknowledge <= !acknowledge;
    end
  end
  assign arrived = request_here[2] != request_here[1];

`ifndef SYNTHESIS
  assert property (@(posedge core_clk) disable iff (!core_rst_n) start |-> request == acknowledge_here[2])
  else $error("command_crossing: a second command before the first was done");
`endif
endmodule
