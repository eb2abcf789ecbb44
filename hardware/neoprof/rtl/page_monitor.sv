// Watches the requests of all channels and forwards the pages of those that count to the core's FIFO. All
// requests of one cycle form one entry, so their order is known and none is lost. Requests that find the FIFO
// full are dropped and counted.
//
// A reset enters the same FIFO as a mark before the requests of its cycle, so every counter of the device
// restarts at the same point of the stream.
module page_monitor #(
    parameter int CHANNELS = 2,
    parameter int ADDRESS_BITS = 32
) (
    input  logic                             clk,
    input  logic                             rst_n,
    input  logic [             CHANNELS-1:0] request_valid,
    input  logic [             CHANNELS-1:0] request_write,
    input  logic [CHANNELS*ADDRESS_BITS-1:0] request_page,

    input  logic reset_request,  // one cycle
    input  logic mode_valid,
    input  logic mode_writes,

    // To the state monitor: the requests of this cycle, and whether counting restarts with it.
    output logic [CHANNELS-1:0] passing_reads,
    output logic [CHANNELS-1:0] passing_writes,
    output logic [CHANNELS-1:0] passing_dropped,
    output logic                restart,

    // To the FIFO: the mark, the channels that have a page, their pages.
    output logic                                        push,
    output logic [CHANNELS*ADDRESS_BITS + CHANNELS : 0] push_data,
    input  logic                                        full
);
  logic [CHANNELS-1:0] valid, write, counted;
  logic [CHANNELS*ADDRESS_BITS-1:0] page;
  logic counts_writes, pending;

  always_ff @(posedge clk) begin
    page <= request_page;
    if (!rst_n) begin
      valid <= '0;
      write <= '0;
      counts_writes <= 1'b0;
      pending <= 1'b0;
    end else begin
      valid <= request_valid;
      write <= request_write;
      if (mode_valid) counts_writes <= mode_writes;
      if (reset_request) pending <= 1'b1;
      else if (restart) pending <= 1'b0;
    end
  end

  assign counted = valid & (~write | {CHANNELS{counts_writes}});
  assign restart = pending && !full;
  assign push = (counted != '0 || pending) && !full;
  assign push_data = {pending, counted, page};
  assign passing_reads = valid & ~write;
  assign passing_writes = valid & write;
  assign passing_dropped = full ? counted : '0;
endmodule
