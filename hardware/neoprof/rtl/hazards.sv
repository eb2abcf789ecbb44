// Finds the accesses just ahead in a pipeline that meet the same entry, so that their results are used before
// they are in memory. Distance d: the access d cycles before.
module hazards #(
    parameter int INDEX_BITS = 19,
    parameter int DISTANCES = 5
) (
    input  logic                  clk,
    input  logic                  rst_n,
    input  logic                  valid,
    input  logic                  epoch,
    input  logic [INDEX_BITS-1:0] index,

    output logic [           DISTANCES:1] same,        // of the access one cycle ago
    output logic [DISTANCES*INDEX_BITS:1] index_past,  // of the access d cycles ago in [INDEX_BITS*d-:INDEX_BITS]
    output logic [           DISTANCES:1] valid_past,
    output logic [           DISTANCES:1] epoch_past
);
  for (genvar distance = 1; distance <= DISTANCES; distance++) begin : gen_distance
    logic [INDEX_BITS-1:0] past;
    assign index_past[INDEX_BITS*distance-:INDEX_BITS] = past;
    if (distance == 1) begin : gen_newest
      always_ff @(posedge clk) past <= index;
    end else begin : gen_older
      always_ff @(posedge clk) past <= gen_distance[distance-1].past;
    end
    always_ff @(posedge clk) begin
      same[distance] <= valid && valid_past[distance] && epoch == epoch_past[distance]
          && index == past;
    end
  end

  always_ff @(posedge clk) begin
    epoch_past <= {epoch_past[DISTANCES-1:1], epoch};
    if (!rst_n) valid_past <= '0;
    else valid_past <= {valid_past[DISTANCES-1:1], valid};
  end
endmodule
