#!/usr/bin/env python3
"""Compiles each unit of ../rtl with verilator, together with its bench, and runs it."""

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
RTL = HERE.parent / "rtl"

# Benches and their units (top modules of the same name), each with the parameters that the bench assumes.
LANE = {"INDEX_BITS": 7, "COUNTER_BITS": 4, "SEGMENT_BITS": 2, "CLEAR_ROW_BITS": 4, "LATENCY": 3}
RAM = {"DEPTH_BITS": 8, "WIDTH": 8, "SEGMENT_BITS": 3, "LATENCY": 3}
FILTER = {"LANES": 2, "INDEX_BITS": 5, "COUNTER_BITS": 8, "ADDRESS_BITS": 16, "SEGMENT_BITS": 2, "LATENCY": 3}
CORE = {
    "LANES": 2,
    "INDEX_BITS": 7,
    "COUNTER_BITS": 4,
    "ADDRESS_BITS": 16,
    "ENTRY_BITS": 3,
    "BINS": 16,
    "SEGMENT_BITS": 2,
    "HOT_SEGMENT_BITS": 1,
}
BENCHES = {
    "async_fifo": [{"WIDTH": 16, "DEPTH_BITS": 3}],
    "command_crossing": [{}],
    "page_monitor": [{"CHANNELS": 2, "ADDRESS_BITS": 16}],
    "state_monitor": [{"CHANNELS": 2}],
    "intake": [{"CHANNELS": 2, "ADDRESS_BITS": 16}],
    "h3_hash": [{"LANE": 1, "HASH_SEED": "64'd5"}],
    "segmented_ram": [RAM, RAM | {"MONOLITHIC": "1'b1"}],
    "clear_unit": [{"ROW_BITS": 4}],
    "counter_lane": [LANE, LANE | {"MONOLITHIC": "1'b1"}],
    "hot_filter": [FILTER],
    "hot_fifo": [{"ADDRESS_BITS": 20, "ENTRY_BITS": 4}],
    "histogram": [{"INDEX_BITS": 8, "COUNTER_BITS": 8, "BINS": 32}],
    "neoprof_core": [CORE, CORE | {"LATENCY": 2}, CORE | {"LATENCY": 5, "MONOLITHIC": "1'b1"}],
}


def call(command, **options):
    return subprocess.run([str(word) for word in command], text=True, capture_output=True, **options)


def must(command):
    done = call(command)
    if done.returncode:
        sys.exit(f"bench: {' '.join(str(word) for word in command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def runtime(out):
    """Compiles verilator's own sources once. Returns their folder and objects."""
    include = Path(must(["verilator", "--getenv", "VERILATOR_ROOT"]).strip()) / "include"
    objects = []
    for name in ("verilated", "verilated_threads"):
        target = out / f"{name}.o"
        if not target.exists():
            must(
                [
                    "g++",
                    "-O1",
                    "-std=c++17",
                    "-I",
                    include,
                    "-I",
                    include / "vltstd",
                    "-c",
                    include / f"{name}.cpp",
                    "-o",
                    target,
                ]
            )
        objects.append(target)
    return include, objects


def run(name, parameters, out, rtl=RTL):
    """Compiles and runs one bench. Returns whether it passed, and its output."""
    out.mkdir(parents=True, exist_ok=True)
    include, objects = runtime(out)
    folder = out / name
    if folder.exists():
        for old in folder.iterdir():
            old.unlink()
    must(
        [
            "verilator",
            "--cc",
            "--assert",
            "-O3",
            "--unroll-count",
            "1024",
            "--top-module",
            name,
            "--prefix",
            "Vdut",
            "--Mdir",
            folder,
            "-y",
            rtl,
            *[f"-G{key}={value}" for key, value in parameters.items()],
            rtl / "neoprof_pkg.sv",
            rtl / f"{name}.sv",
        ]
    )
    must(
        [
            "g++",
            "-O1",
            "-std=c++17",
            "-I",
            include,
            "-I",
            include / "vltstd",
            "-I",
            folder,
            "-I",
            HERE,
            HERE / f"{name}.cpp",
            *sorted(folder.glob("*.cpp")),
            *objects,
            "-o",
            folder / "bench",
        ]
    )
    try:
        done = call([folder / "bench"], timeout=120)
    except subprocess.TimeoutExpired:
        return False, "no end within 120 s"
    return done.returncode == 0, (done.stdout + done.stderr).strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE.parents[2] / "build/neoprof/bench")
    parser.add_argument("names", nargs="*", help="benches to run (default: all)")
    arguments = parser.parse_args()
    runs = passes = 0
    for name in arguments.names or BENCHES:
        if name not in BENCHES:
            parser.error(f"expected one of {', '.join(BENCHES)}, not {name}")
        for parameters in BENCHES[name]:
            good, text = run(name, parameters, arguments.out)
            runs, passes = runs + 1, passes + good
            print(text if good else f"{name} FAILED: {text}", flush=True)
    print(f"{passes} passed, {runs - passes} failed")
    sys.exit(passes != runs)


if __name__ == "__main__":
    main()
