// The H3 hash of one lane in two stages: each set bit of the page selects a word; groups of six words are
// XORed, then the groups.
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

  for (genvar group = 0; group < GROUPS; group++) begin : gen_group
    localparam int TERMS = ADDRESS_BITS - GROUP * group < GROUP ? ADDRESS_BITS - GROUP * group : GROUP;
    // The XOR of the group's words up to this one; separate signals simulate faster than slices of a wide
    // one.
    for (genvar term = 0; term < TERMS; term++) begin : gen_term
      localparam int PLACE = GROUP * group + term;
      localparam logic [63:0] WORD = neoprof_pkg::hash_word(HASH_SEED, LANE, PLACE, INDEX_BITS);
      logic [INDEX_BITS-1:0] word, sum;
      assign word = page[PLACE] ? WORD[INDEX_BITS-1:0] : '0;
      if (term == 0) begin : gen_first
        assign sum = word;
      end else begin : gen_next
        assign sum = gen_term[term-1].sum ^ word;
      end
    end
    logic [INDEX_BITS-1:0] partial, total;
    always_ff @(posedge clk) partial <= gen_term[TERMS-1].sum;
    if (group == 0) begin : gen_first
      assign total = partial;
    end else begin : gen_next
      assign total = gen_group[group-1].total ^ partial;
    end
  end
  always_ff @(posedge clk) index <= gen_group[GROUPS-1].total;
endmodule
