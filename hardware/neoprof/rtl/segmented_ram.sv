// A memory of segments with one read port and one write port: each segment answers into its own register, and
// multiplexers of LATENCY - 1 stages select the answer. A read in the cycle of a write to the same word
// returns the old value. `clear` writes 0 into one row of all segments at once.
//
// MONOLITHIC describes the same behaviour, cycle by cycle, as one array, which simulates many times faster.
module segmented_ram #(
    parameter int DEPTH_BITS = 19,
    parameter int WIDTH = 16,
    parameter int SEGMENT_BITS = 7,  // log2 of the segments
    parameter int LATENCY = 3,  // from the cycle of the address to that of the data, at least 2
    parameter bit MONOLITHIC = 1'b0
) (
    input  logic                               clk,
    input  logic [             DEPTH_BITS-1:0] read_address,
    output logic [                  WIDTH-1:0] read_data,
    input  logic                               write,
    input  logic [             DEPTH_BITS-1:0] write_address,
    input  logic [                  WIDTH-1:0] write_data,
    input  logic                               clear,
    input  logic [DEPTH_BITS-SEGMENT_BITS-1:0] clear_row
);
  localparam int SEGMENTS = 1 << SEGMENT_BITS;
  localparam int ROW_BITS = DEPTH_BITS - SEGMENT_BITS;

  if (MONOLITHIC) begin : gen_monolithic
    logic [WIDTH-1:0] mem[1 << DEPTH_BITS];
    logic [LATENCY*WIDTH-1:0] stages;
    // Written with a blocking assignment after the read: nothing else reads the array, and delayed writes of
    // many rows simulate slowly.
    /* verilator lint_off BLKSEQ */
    always_ff @(posedge clk) begin
      stages <= {stages[(LATENCY-1)*WIDTH-1:0], mem[read_address]};
      if (clear) begin
        for (int segment = 0; segment < SEGMENTS; segment++) begin
          mem[DEPTH_BITS'(segment<<ROW_BITS)|DEPTH_BITS'(clear_row)] = '0;
        end
      end else if (write) begin
        mem[write_address] = write_data;
      end
    end
    /* verilator lint_on BLKSEQ */
    assign read_data = stages[(LATENCY-1)*WIDTH+:WIDTH];
  end else begin : gen_segments
    // Level 0: the segments' answers; each further level: a stage of multiplexers.
    localparam int STEP = (SEGMENT_BITS + LATENCY - 2) / (LATENCY - 1);
    logic [SEGMENTS*WIDTH-1:0] answers;
    for (genvar segment = 0; segment < SEGMENTS; segment++) begin : gen_segment
      logic selected;
      if (SEGMENTS == 1) begin : gen_only
        assign selected = 1'b1;
      end else begin : gen_one_of_many
        assign selected = write_address[DEPTH_BITS-1:ROW_BITS] == SEGMENT_BITS'(segment);
      end
      block_ram #(.DEPTH_BITS(ROW_BITS), .WIDTH(WIDTH)) ram (
          .clk,
          .read_address(read_address[ROW_BITS-1:0]),
          .read_data(answers[WIDTH*segment+:WIDTH]),
          .write(clear || (write && selected)),
          .write_address(clear ? clear_row : write_address[ROW_BITS-1:0]),
          .write_data(clear ? '0 : write_data)
      );
    end
    for (genvar level = 0; level < LATENCY; level++) begin : gen_level
      localparam int DONE = STEP * level < SEGMENT_BITS ? STEP * level : SEGMENT_BITS;
      localparam int LEFT = 1 << (SEGMENT_BITS - DONE);
      logic [LEFT*WIDTH-1:0] values;
      if (level == 0) begin : gen_answers
        assign values = answers;
      end else begin : gen_select
        localparam int BEFORE = STEP * (level - 1) < SEGMENT_BITS ? STEP * (level - 1) : SEGMENT_BITS;
        localparam int WAYS = 1 << (DONE - BEFORE);
        // The segment's number, delayed by as many cycles as the previous level.
        logic [DEPTH_BITS-1:0] segment_now;
        delay #(.WIDTH(DEPTH_BITS), .CYCLES(level)) segment_delay (
            .clk, .in(read_address >> (ROW_BITS + BEFORE)), .out(segment_now)
        );
        for (genvar value = 0; value < LEFT; value++) begin : gen_value
          logic [WAYS*WIDTH-1:0] choice;
          assign choice = gen_level[level-1].values[WAYS*WIDTH*value+:WAYS*WIDTH];
          always_ff @(posedge clk) begin
            values[WIDTH*value+:WIDTH] <= choice[WIDTH*(32'(segment_now)&(WAYS-1))+:WIDTH];
          end
        end
      end
    end
    assign read_data = gen_level[LATENCY-1].values;
  end
endmodule
