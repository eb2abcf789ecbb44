#!/usr/bin/env python3
"""Breaks the hardware in one place at a time, expects a bench to notice, and prints which bench did."""

import argparse
import shutil
import sys
from pathlib import Path

import run

# Each mutation: its name; file; text that occurs exactly once, and its replacement; the benches that may
# notice, in turn.
CORE = "neoprof_core"
MUTATIONS = [
    (
        "count: result one cycle ahead not forwarded",
        "counter_lane",
        "base = same_add ? result_count : value;",
        "base = value;",
        "counter_lane",
    ),
    (
        "count: result two cycles ahead not forwarded",
        "counter_lane",
        "distance >= 2",
        "distance >= 3",
        "counter_lane",
    ),
    (
        "count: furthest result not forwarded",
        "counter_lane",
        "for (int distance = WINDOW;",
        "for (int distance = WINDOW - 1;",
        "counter_lane",
    ),
    (
        "count: oldest result forwarded, not the newest",
        "counter_lane",
        "for (int distance = WINDOW; distance >= 2; distance--)",
        "for (int distance = 2; distance <= WINDOW; distance++)",
        "counter_lane",
    ),
    ("count: forwarded across a reset", "hazards", " && epoch == epoch_past[distance]", "", "counter_lane"),
    ("count: forwarded from a bubble", "hazards", "valid && valid_past[distance]", "valid", "counter_lane"),
    (
        "count: does not saturate",
        "counter_lane",
        "base == '1 ? base : base + 1'b1",
        "base + 1'b1",
        "counter_lane",
    ),
    (
        "valid bit: accesses ahead not seen",
        "counter_lane",
        "was_set || same_merge != '0",
        "was_set",
        "counter_lane",
    ),
    (
        "valid bit: never set",
        "counter_lane",
        ".write_back(result_valid && result_fresh)",
        ".write_back(1'b0)",
        "counter_lane",
    ),
    (
        "valid bit: furthest neighbour ahead is lost",
        "valid_bits",
        "distance <= WINDOW; distance++",
        "distance <= WINDOW - 1; distance++",
        "counter_lane",
    ),
    (
        "valid bit: a write forgets its group",
        "valid_bits",
        "group_next <= group_now | gained_now;",
        "group_next <= gained_now;",
        "counter_lane",
    ),
    (
        "valid bit: the other set is read",
        "valid_bits",
        "epoch_past[LATENCY])+:8]",
        "!epoch_past[LATENCY])+:8]",
        "counter_lane",
    ),
    (
        "hot bit: result one cycle ahead not forwarded",
        "hot_filter",
        "(same_add ? results[0] : value)",
        "value",
        "hot_filter",
    ),
    (
        "hot bit: result two cycles ahead not forwarded",
        "hot_filter",
        "distance >= 2",
        "distance >= 3",
        "hot_filter",
    ),
    (
        "hot bit: furthest result not forwarded",
        "hot_filter",
        "for (int distance = WINDOW;",
        "for (int distance = WINDOW - 1;",
        "hot_filter",
    ),
    ("hot bit: survives a reset", "hot_filter", "!fresh_now && (same_add", "(same_add", "hot_filter"),
    (
        "hot bit: one lane's is enough to filter",
        "hot_filter",
        "assign push = valid_now && hot && marked != '1",
        "assign push = valid_now && hot && marked == '0",
        "hot_filter",
    ),
    (
        "hot bit: set though the buffer is full",
        "hot_filter",
        "(push || fresh_now);",
        "(push || refused || fresh_now);",
        "hot_filter",
        "results[LATENCY-1:0], push ||",
        "results[LATENCY-1:0], push || refused ||",
    ),
    (
        "threshold: reached is above",
        "hot_filter",
        "estimate > threshold",
        "estimate >= threshold",
        "hot_filter",
    ),
    ("hot buffer: never full", "hot_fifo", "full = length[ENTRY_BITS]", "full = 1'b0", "hot_fifo", CORE),
    (
        "hot buffer: full one early",
        "hot_fifo",
        "full = length[ENTRY_BITS]",
        "full = &length[ENTRY_BITS-1:0]",
        "hot_fifo",
    ),
    ("hot buffer: kept at a reset", "hot_fifo", "if (!rst_n || restart)", "if (!rst_n)", "hot_fifo"),
    (
        "FIFO between clocks: full missed",
        "async_fifo",
        "~read_gray_here[DEPTH_BITS:DEPTH_BITS-1]",
        "~read_gray_here[DEPTH_BITS], read_gray_here[DEPTH_BITS-1]",
        "async_fifo",
    ),
    (
        "FIFO between clocks: empty ignores the wrap",
        "async_fifo",
        "assign empty = read_gray == write_gray_here;",
        "assign empty = read_gray[DEPTH_BITS-1:0] == write_gray_here[DEPTH_BITS-1:0];",
        "async_fifo",
    ),
    (
        "crossing: a command arrives twice",
        "command_crossing",
        "request_here[2] != request_here[1]",
        "request_here[2] != request_here[0]",
        "command_crossing",
    ),
    (
        "clear: begins before accesses ahead are through",
        CORE,
        ".mark_through(counted_mark)",
        ".mark_through(in_mark)",
        CORE,
    ),
    (
        "clear: the set in use",
        "clear_unit",
        "mark_epoch ? 2'b01 : 2'b10",
        "mark_epoch ? 2'b10 : 2'b01",
        "clear_unit",
    ),
    ("clear: leaves the last row", "clear_unit", "row == '1", "row == '1 - 1'b1", "clear_unit"),
    ("clear: a second reset does not wait", "intake", "mark_waits && !clearing", "mark_waits", "intake"),
    ("clear: pages overtake the mark", "intake", "(ready && !mark_waits) ? left", "ready ? left", "intake"),
    (
        "intake: second page of an entry lost",
        "intake",
        "(!mark_waits && left == next)",
        "!mark_waits",
        "intake",
    ),
    (
        "page monitor: second channel lost",
        "page_monitor",
        "assign counted = valid &",
        "assign counted = (valid & (~valid + 1'b1)) &",
        "page_monitor",
    ),
    (
        "page monitor: mark lost at a full FIFO",
        "page_monitor",
        "restart = pending && !full",
        "restart = pending",
        "page_monitor",
    ),
    (
        "state monitor: the restart's own cycle lost",
        "state_monitor",
        "{1'b0, before_now} +",
        "restart ? '0 : {1'b0, before_now} +",
        "state_monitor",
    ),
    ("histogram: every access enters a bin", "histogram", "below == '0 && ", "", "histogram"),
    (
        "histogram: kept at a reset",
        "histogram",
        "if (!rst_n || reached_restart) touched",
        "if (!rst_n) touched",
        "histogram",
    ),
    (
        "hash: a page's bits shifted",
        "h3_hash",
        "HASH_SEED, LANE, PLACE,",
        "HASH_SEED, LANE, PLACE + 1,",
        "h3_hash",
    ),
    (
        "memory: segments chosen a cycle late",
        "segmented_ram",
        ".CYCLES(level)",
        ".CYCLES(level + 1)",
        "segmented_ram",
    ),
]


def break_it(mutation, rtl):
    """Copies the hardware to `rtl` and applies the mutation there."""
    _, file, old, new, *rest = mutation
    shutil.rmtree(rtl, ignore_errors=True)
    shutil.copytree(run.RTL, rtl)
    path = rtl / f"{file}.sv"
    text = path.read_text()
    rest = [word for word in rest if word not in run.BENCHES]
    for before, after in [(old, new), *zip(rest[::2], rest[1::2])]:
        if text.count(before) != 1:
            sys.exit(f"mutate: {path.name}: expected '{before}' once, found it {text.count(before)} times")
        text = text.replace(before, after)
    path.write_text(text)


def try_it(mutation, out):
    """Returns the bench that noticed and its message; None if none did."""
    rtl = out / "rtl"
    break_it(mutation, rtl)
    for bench in [word for word in mutation[4:] if word in run.BENCHES]:
        good, text = run.run(bench, run.BENCHES[bench][0], out, rtl)
        if not good:
            lines = [
                line
                for line in text.splitlines()
                if "expected" in line or "Assertion" in line or "within" in line
            ]
            return bench, (lines or text.splitlines() or ["no text"])[0]
    return None


def shortened(text):
    """Returns a failure's message without its place."""
    text = text.split("Assertion failed in ")[-1]
    return ": ".join(text.split(": ")[1:])[:90]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=run.HERE.parents[2] / "build/neoprof/mutate")
    parser.add_argument("--only", default="", help="run only mutations whose name contains this text")
    arguments = parser.parse_args()
    missed = 0
    chosen = [mutation for mutation in MUTATIONS if arguments.only in mutation[0]]
    print("| broken | noticed by | how |\n|---|---|---|", flush=True)
    for mutation in chosen:
        found = try_it(mutation, arguments.out)
        missed += found is None
        bench, text = found or ("**nobody**", "")
        print(f"| {mutation[0]} | {bench} | {shortened(text)} |", flush=True)
    print(f"\n{len(chosen) - missed} passed, {missed} failed")
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
