// The registers: Table I of the paper, and version, sizes, mode, status and losses at offsets that it leaves
// free. A request stays until `bus_ready`, which takes 2 cycles or until its work is done: a command to the
// other clock domain, a reset on its way through the pipeline, a capture.
module register_file #(
    parameter int LANES = 2,
    parameter int INDEX_BITS = 19,
    parameter int COUNTER_BITS = 16,
    parameter int ADDRESS_BITS = 32,
    parameter int ENTRY_BITS = 14,
    parameter int BINS = 64,
    parameter int CHANNELS = 2,
    parameter logic [63:0] HASH_SEED = 64'd1
) (
    input  logic        clk,
    input  logic        rst_n,
    input  logic        bus_valid,
    input  logic        bus_write,
    input  logic [11:0] bus_address,
    input  logic [63:0] bus_write_data,
    output logic        bus_ready,       // one cycle
    output logic [63:0] bus_read_data,

    output logic [COUNTER_BITS-1:0] threshold,
    input  logic                    busy,
    input  logic                    clearing,

    output logic                                   command_start,
    output logic [                            2:0] command,
    input  logic                                   command_finished,
    input  logic                                   reset_through,
    input  logic [4*neoprof_pkg::STATE_BITS-1:0] sampled,

    output logic                                 hot_pop,
    input  logic [             ADDRESS_BITS-1:0] hot_head,
    input  logic [                 ENTRY_BITS:0] hot_length,
    input  logic [neoprof_pkg::STATE_BITS-1:0] hot_refused,

    output logic                    capture,
    input  logic                    capturing,
    output logic                    bin_pop,
    input  logic [    INDEX_BITS:0] bin_head,
    input  logic [$clog2(BINS):0] bins_unread
);
  localparam int STATE_BITS = neoprof_pkg::STATE_BITS;
  localparam logic [63:0] SIZES = {
    8'd0, 8'(CHANNELS), 8'(BINS), 8'(ENTRY_BITS), 8'(ADDRESS_BITS), 8'(COUNTER_BITS), 8'(INDEX_BITS), 8'(LANES)
  };
  localparam logic [2:0] IDLE = 3'd0;
  localparam logic [2:0] SETTLE = 3'd1;  // a buffer's head comes out of its memory
  localparam logic [2:0] COMMAND = 3'd2;
  localparam logic [2:0] THROUGH = 3'd3;  // the reset's mark is on its way
  localparam logic [2:0] CAPTURE = 3'd4;
  localparam logic [2:0] ANSWER = 3'd5;

  logic [2:0] state;
  logic [1:0] settled;
  logic counts_writes, through_seen, of_state, of_buffer, resets;
  assign of_state = !bus_write && (bus_address == neoprof_pkg::GET_NR_SAMPLE || bus_address == neoprof_pkg::GET_RD_CNT
      || bus_address == neoprof_pkg::GET_WR_CNT || bus_address == neoprof_pkg::ACCESSES_DROPPED);
  assign of_buffer = !bus_write
      && (bus_address == neoprof_pkg::GET_HOT_PAGE || bus_address == neoprof_pkg::GET_HIST);
  assign resets = bus_write && bus_address == neoprof_pkg::RESET && bus_write_data[0];

  logic [63:0] value;
  always_comb begin
    case (bus_address)
      neoprof_pkg::IDENTITY: value = neoprof_pkg::IDENTITY_VALUE;
      neoprof_pkg::PARAMETERS: value = SIZES;
      neoprof_pkg::SEED: value = HASH_SEED;
      neoprof_pkg::SET_THRESHOLD: value = 64'(threshold);
      neoprof_pkg::GET_NR_HOT_PAGE: value = 64'(hot_length);
      neoprof_pkg::GET_HOT_PAGE: value = hot_length == '0 ? neoprof_pkg::EMPTY : 64'(hot_head);
      neoprof_pkg::GET_NR_SAMPLE: value = 64'(sampled[0+:STATE_BITS]);
      neoprof_pkg::GET_RD_CNT: value = 64'(sampled[STATE_BITS+:STATE_BITS]);
      neoprof_pkg::GET_WR_CNT: value = 64'(sampled[2*STATE_BITS+:STATE_BITS]);
      neoprof_pkg::GET_NR_HIST_BIN: value = 64'(bins_unread);
      neoprof_pkg::GET_HIST: value = bins_unread == '0 ? neoprof_pkg::EMPTY : 64'(bin_head);
      neoprof_pkg::MODE: value = {63'd0, counts_writes};
      neoprof_pkg::STATUS: value = {62'd0, clearing, busy};
      neoprof_pkg::HOT_REFUSED: value = 64'(hot_refused);
      neoprof_pkg::ACCESSES_DROPPED: value = 64'(sampled[3*STATE_BITS+:STATE_BITS]);
      default: value = '0;
    endcase
  end

  assign hot_pop = state == ANSWER && !bus_write && bus_address == neoprof_pkg::GET_HOT_PAGE && hot_length != '0;
  assign bin_pop = state == ANSWER && !bus_write && bus_address == neoprof_pkg::GET_HIST && bins_unread != '0;

  always_ff @(posedge clk) begin
    command_start <= 1'b0;
    capture <= 1'b0;
    bus_ready <= 1'b0;
    if (reset_through) through_seen <= 1'b1;
    if (!rst_n) begin
      state <= IDLE;
      threshold <= '1;
      counts_writes <= 1'b0;
      through_seen <= 1'b0;
    end else begin
      case (state)
        IDLE: begin
          settled <= '0;
          through_seen <= 1'b0;
          if (bus_valid && !bus_ready) begin
            state <= SETTLE;
            if (resets || of_state || (bus_write && bus_address == neoprof_pkg::MODE)) begin
              state <= COMMAND;
              command_start <= 1'b1;
              command <= resets ? {1'b0, neoprof_pkg::COMMAND_RESET}
                  : of_state ? {1'b0, neoprof_pkg::COMMAND_SAMPLE} : {bus_write_data[0], neoprof_pkg::COMMAND_MODE};
            end else if (bus_write && bus_address == neoprof_pkg::SET_HIST_EN && bus_write_data[0]) begin
              state <= CAPTURE;
              capture <= 1'b1;
            end
          end
        end
        SETTLE: begin
          settled <= settled + 1'b1;
          if (settled == 2'd3 || !of_buffer) state <= ANSWER;
        end
        COMMAND: if (command_finished) state <= resets ? THROUGH : ANSWER;
        THROUGH: if (through_seen) state <= ANSWER;
        CAPTURE: if (!capture && !capturing) state <= ANSWER;
        default: begin
          state <= IDLE;
          bus_ready <= 1'b1;
          bus_read_data <= value;
          if (bus_write && bus_address == neoprof_pkg::MODE) counts_writes <= bus_write_data[0];
          if (bus_write && bus_address == neoprof_pkg::SET_THRESHOLD) begin
            threshold <= bus_write_data > 64'({COUNTER_BITS{1'b1}}) ? '1 : bus_write_data[COUNTER_BITS-1:0];
          end
        end
      endcase
    end
  end
endmodule
