// Counts the memory's cycles, reads, writes and the requests that the core missed since the last restart,
// whose own cycle counts as the first. Counters saturate.
module state_monitor #(
    parameter int CHANNELS = 2
) (
    input  logic                clk,
    input  logic                rst_n,
    input  logic                restart,
    input  logic [CHANNELS-1:0] passing_reads,
    input  logic [CHANNELS-1:0] passing_writes,
    input  logic [CHANNELS-1:0] passing_dropped,

    input  logic                                    sample,  // keep the counts of this cycle
    output logic [4*neoprof_pkg::STATE_BITS-1:0] sampled   // dropped, writes, reads, cycles
);
  localparam int STATE_BITS = neoprof_pkg::STATE_BITS;
  logic [4*STATE_BITS-1:0] counts;
  logic [4*3-1:0] news;

  function automatic [2:0] ones(input [CHANNELS-1:0] bits);
    begin
      ones = '0;
      for (int channel = 0; channel < CHANNELS; channel++) ones = ones + {2'b0, bits[channel]};
    end
  endfunction

  assign news = {ones(passing_dropped), ones(passing_writes), ones(passing_reads), 3'd1};

  for (genvar counter = 0; counter < 4; counter++) begin : gen_counter
    logic [STATE_BITS-1:0] before_now;
    logic [STATE_BITS:0] sum;
    assign before_now = restart ? '0 : counts[STATE_BITS*counter+:STATE_BITS];
    assign sum = {1'b0, before_now} + {{STATE_BITS - 2{1'b0}}, news[3*counter+:3]};
    always_ff @(posedge clk) begin
      if (!rst_n) counts[STATE_BITS*counter+:STATE_BITS] <= '0;
      else counts[STATE_BITS*counter+:STATE_BITS] <= sum[STATE_BITS] ? '1 : sum[STATE_BITS-1:0];
    end
  end

  always_ff @(posedge clk) begin
    if (!rst_n) sampled <= '0;
    else if (sample) sampled <= counts;
  end
endmodule
