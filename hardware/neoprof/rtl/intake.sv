// Takes entries from the FIFO and forwards their pages, one per cycle, channel 0 first. A reset's mark goes
// first; it waits while the valid bits of the last reset are being cleared, and so does everything behind it.
module intake #(
    parameter int CHANNELS = 2,
    parameter int ADDRESS_BITS = 32
) (
    input  logic                                        clk,
    input  logic                                        rst_n,
    input  logic [CHANNELS*ADDRESS_BITS + CHANNELS : 0] head,
    input  logic                                        empty,
    output logic                                        pop,

    input  logic usable,          // the sketch is cleared after power-on
    input  logic clearing,        // a mark must wait
    output logic mark_accepted,   // a mark is forwarded in this cycle

    output logic                    valid,
    output logic                    mark,
    output logic                    epoch,  // the page's set of valid bits
    output logic [ADDRESS_BITS-1:0] page
);
  logic [CHANNELS-1:0] left, done, next;
  logic [ADDRESS_BITS-1:0] next_page;
  logic ready, mark_waits, mark_done;

  assign ready = usable && !empty;
  assign mark_waits = head[CHANNELS*ADDRESS_BITS+CHANNELS] && !mark_done;
  assign mark_accepted = ready && mark_waits && !clearing;
  assign left = head[CHANNELS*ADDRESS_BITS+:CHANNELS] & ~done;
  assign next = (ready && !mark_waits) ? left & (~left + 1'b1) : '0;
  // Leave the entry with its last page, or with its mark if that is all.
  assign pop = ready && ((mark_accepted && left == '0) || (!mark_waits && left == next));

  always_comb begin
    next_page = '0;
    for (int channel = 0; channel < CHANNELS; channel++) begin
      if (next[channel]) next_page = next_page | head[ADDRESS_BITS*channel+:ADDRESS_BITS];
    end
  end

  always_ff @(posedge clk) begin
    page <= next_page;
    if (!rst_n) begin
      valid <= 1'b0;
      mark <= 1'b0;
      epoch <= 1'b0;
      done <= '0;
      mark_done <= 1'b0;
    end else begin
      valid <= next != '0;
      mark <= mark_accepted;
      if (mark_accepted) epoch <= !epoch;
      done <= pop ? '0 : done | next;
      mark_done <= !pop && (mark_done || mark_accepted);
    end
  end

`ifndef SYNTHESIS
  assert property (@(posedge clk) disable iff (!rst_n) !(valid && mark))
  else $error("intake: a page and a mark at once");
  assert property (@(posedge clk) disable iff (!rst_n) ready |-> head[CHANNELS*ADDRESS_BITS+:CHANNELS+1] != '0)
  else $error("intake: an entry of nothing");
`endif
endmodule
