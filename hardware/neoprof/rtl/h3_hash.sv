// The H3 hash of one lane in two stages: each set bit of the page selects a word, groups of six words are XORed, then
// the groups.
module h3_hash #(
    parameter int LANE = 0,
    parameter int ADDRESS_BITS = 32,
    parameter int INDEX_BITS = 19,
    parameter logic [63:0] HASH_SEED = 64'd1
) (
    input  logic                    clk,
    input  logic [ADDRESS_BITS-1:0] page,
    output logic [  INDEX_BITS-1:0] index
);
  localparam int GROUP = 6;
  localparam int GROUPS = (ADDRESS_BITS + GROUP - 1) / GROUP;
  logic [GROUPS*GROUP*INDEX_BITS-1:0] words;
  logic [GROUPS*INDEX_BITS-1:0] sums, partial;
  logic [INDEX_BITS-1:0] total;

  for (genvar bit_number = 0; bit_number < GROUPS * GROUP; bit_number++) begin : gen_word
    if (bit_number < ADDRESS_BITS) begin : gen_wired
      localparam logic [63:0] WORD = neoprof_pkg::hash_word(HASH_SEED, LANE, bit_number, INDEX_BITS);
      assign words[INDEX_BITS*bit_number+:INDEX_BITS] = page[bit_number] ? WORD[INDEX_BITS-1:0] : '0;
    end else begin : gen_absent
      assign words[INDEX_BITS*bit_number+:INDEX_BITS] = '0;
    end
  end

  always_comb begin
    sums = '0;
    for (int group = 0; group < GROUPS; group++) begin
      for (int term = 0; term < GROUP; term++) begin
        sums[INDEX_BITS*group+:INDEX_BITS] =
            sums[INDEX_BITS*group+:INDEX_BITS] ^ words[INDEX_BITS*(GROUP*group+term)+:INDEX_BITS];
      end
    end
    total = '0;
    for (int group = 0; group < GROUPS; group++) total = total ^ partial[INDEX_BITS*group+:INDEX_BITS];
  end

  always_ff @(posedge clk) begin
    partial <= sums;
    index <= total;
  end
endmodule
