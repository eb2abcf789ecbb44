// Constants and functions shared by several units. Offsets: Table I of the paper, and offsets that it leaves
// free.
package neoprof_pkg;
  localparam logic [63:0] IDENTITY_VALUE = 64'h4e45_4f50_524f_4601;
  localparam logic [63:0] EMPTY = '1;

  localparam logic [11:0] IDENTITY = 12'h000;
  localparam logic [11:0] PARAMETERS = 12'h008;
  localparam logic [11:0] SEED = 12'h010;
  localparam logic [11:0] RESET = 12'h100;
  localparam logic [11:0] SET_THRESHOLD = 12'h200;
  localparam logic [11:0] GET_NR_HOT_PAGE = 12'h300;
  localparam logic [11:0] GET_HOT_PAGE = 12'h400;
  localparam logic [11:0] GET_NR_SAMPLE = 12'h500;
  localparam logic [11:0] GET_RD_CNT = 12'h600;
  localparam logic [11:0] GET_WR_CNT = 12'h700;
  localparam logic [11:0] SET_HIST_EN = 12'h800;
  localparam logic [11:0] GET_NR_HIST_BIN = 12'h900;
  localparam logic [11:0] GET_HIST = 12'ha00;
  localparam logic [11:0] MODE = 12'hb00;
  localparam logic [11:0] STATUS = 12'hc00;
  localparam logic [11:0] HOT_REFUSED = 12'hd00;
  localparam logic [11:0] ACCESSES_DROPPED = 12'hd08;

  // Bits of the counters of cycles, requests and losses.
  localparam int STATE_BITS = 48;

  // Commands of the core to the memory clock's domain.
  localparam logic [1:0] COMMAND_SAMPLE = 2'd0;
  localparam logic [1:0] COMMAND_RESET = 2'd1;
  localparam logic [1:0] COMMAND_MODE = 2'd2;

  // The n-th output (from 1) of SplitMix64 started at `seed`, the source of the hash functions.
  function automatic [63:0] split_mix(input [63:0] seed, input [31:0] n);
    reg [63:0] z;
    begin
      z = seed + 64'h9e37_79b9_7f4a_7c15 * {32'b0, n};
      z = (z ^ (z >> 30)) * 64'hbf58_476d_1ce4_e5b9;
      z = (z ^ (z >> 27)) * 64'h94d0_49bb_1331_11eb;
      split_mix = z ^ (z >> 31);
    end
  endfunction

  // The word that a set bit of the page selects in a lane's hash. The words of the lowest bits form a
  // triangle with ones on its diagonal, a lower one in even lanes and an upper one in odd lanes, so that
  // consecutive pages, aligned and as many as a lane has entries, all meet different ones.
  function automatic [63:0] hash_word(input [63:0] seed, input integer lane, input integer place,
                                      input integer index_bits);
    reg [63:0] drawn, one;
    begin
      drawn = split_mix(seed, 64 * lane + place + 1);
      one = 64'd1 << place;
      if (place >= index_bits) hash_word = drawn;
      else if (lane % 2 == 0) hash_word = (drawn & (one - 1)) | one;
      else hash_word = (drawn & ~((one << 1) - 1)) | one;
    end
  endfunction
endpackage
