"""Draws Jenga's Fig. 2, 5, 11 and 12 from runs of our own, and prints their numbers as tables in Markdown.

    make jenga-figures          pictures into docs/papers/jenga, about fifteen minutes

- Table 1's applications with two sizes of the fast tier: jenga_applications.py.
- Fig. 2 and 5, grouping: crates/alloc/programs/btree.c is recorded under each allocator; counted are the
last-level misses of its reads,
  by page and by object. The bound are lines of 64 bytes, packed into pages by popularity.
- Fig. 11, cooling: policies `jenga` and `memtis` in the simulator, workloads and machine as in the scoreboard
(jenga.toml).
- Fig. 12, depth: the program under the real allocator at each depth; each recording is replayed under policy
`jenga`.
"""

import argparse
import collections
import json
import math
import pathlib
import random
import subprocess
import tempfile
import time

import matplotlib

import btree_misses
import jenga_applications
from btree_misses import JEMALLOC, REGION_SIZE, needed, under

matplotlib.use("svg")
matplotlib.rcParams.update(
    {"svg.hashsalt": "isotherm", "svg.fonttype": "none", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3}
)
from matplotlib import pyplot  # noqa: E402  (the backend is chosen first)

SHARES = (0.25, 0.5, 0.75, 0.9)
INTERVALS = {"100K": 100_000, "500K": 500_000, "1M": 1_000_000, "2M": 2_000_000}
# Of each workload in Fig. 11: settings, the working set's share of the footprint, and by how much the run is
# smaller than the paper's, as in the scoreboard (crates/score/figures/jenga.toml).
COOLED = {"flexkvs": ([], "20%", 160), "btree": (["allocator=glibc"], "27%", 477)}
ACCESSES = "50M"
DEPTHS = range(1, 11)
# The native program's records and reads; smaller where there are many runs.
GROUPING_SIZE, DEPTH_SIZE = ("1000000", "3000000"), ("300000", "1500000")
# The paper's machine; 8 of its 30 GB.
MACHINE, WORKING_SET, SCALED_FROM = "jenga", "27%", 30 << 30


def save(figure, folder, name):
    figure.savefig(folder / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
    pyplot.close(figure)


def print_table(head, rows):
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print(flush=True)


def grouping(options, folder, scratch):
    """Fig. 2 and 5."""
    plain = [btree_misses.compile_program(scratch)]
    pointers = [btree_misses.compile_program(scratch, True)]
    runs = {
        "glibc": plain,
        "jemalloc": under(JEMALLOC, plain),
        "context": under(options.library, plain),
        "context, frame pointers": under(options.library, pointers),
    }
    figure, axes = pyplot.subplots(figsize=(4.5, 3.2))
    rows = []
    for name, command in runs.items():
        addresses = btree_misses.read_misses(
            options.binary, scratch / "grouping.trace", command, GROUPING_SIZE
        )
        pages = collections.Counter(address >> 12 for address in addresses)
        lines = collections.Counter(address >> 6 for address in addresses)
        parts = (f"{needed(pages, share)} ({needed(pages, share) / len(pages):.0%})" for share in SHARES)
        rows.append([name, len(pages), *parts, math.ceil(needed(lines, 0.5) / 64)])
        draw_cumulated(axes, sorted(pages.values(), reverse=True), name)
        if name == "glibc":
            hottest = [count for _, count in lines.most_common()]
            bound = [sum(hottest[at : at + 64]) for at in range(0, len(hottest), 64)]
            draw_cumulated(axes, bound, "by popularity")
        if name == "context":
            contexts(folder, lines)
    axes.set_xlabel("pages, hottest first")
    axes.set_ylabel("share of misses")
    axes.legend()
    save(figure, folder, "grouping")
    print_table(["allocator", "pages", *(f"for {share:.0%}" for share in SHARES), "bound for 50%"], rows)


def draw_cumulated(axes, counts, name):
    total, at, points = sum(counts), 0, [0.0]
    for count in counts:
        at += count
        points.append(at / total)
    step = max(len(points) // 400, 1)
    axes.plot(range(0, len(points), step), points[::step], label=name)


def contexts(folder, lines):
    """Fig. 5: misses of objects by the region that their context was hashed to."""
    regions = collections.defaultdict(list)
    for line, count in lines.items():
        regions[line * 64 // REGION_SIZE].append(count)
    # What lies outside of the regions (stack, globals) are a few lines.
    regions = {region: counts for region, counts in regions.items() if len(counts) >= 64}
    order = sorted(regions, key=lambda region: -sum(regions[region]) / len(regions[region]))
    figure, axes = pyplot.subplots(figsize=(4.5, 3.2))
    draw, rows = random.Random(1), []
    for number, region in enumerate(order, 1):
        counts = sorted(regions[region])
        some = draw.sample(counts, min(60, len(counts)))
        axes.scatter([number + draw.uniform(-0.3, 0.3) for _ in some], some, s=4)
        quantile = [counts[int((len(counts) - 1) * share)] for share in (0.1, 0.5, 0.9)]
        rows.append([number, len(counts), f"{sum(counts) / sum(lines.values()):.1%}", *quantile])
    axes.set_yscale("log")
    axes.set_xlabel("region (one or more calling contexts)")
    axes.set_ylabel("misses of an object")
    save(figure, folder, "contexts")
    print_table(["region", "objects", "of all misses", "misses an object: 10 %", "50 %", "90 %"], rows)


def simulate_all(options, arguments):
    command = [options.binary, "simulate", "--machine", MACHINE, "--quiet", "--json", *arguments]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["runs"]


def simulate(options, arguments):
    return simulate_all(options, arguments)[0]


def applications(options, *_):
    """Table 1's applications."""
    limit = ["--max-accesses", ACCESSES]
    jenga_applications.applications(
        lambda arguments: simulate_all(options, [*arguments, *limit]), print_table
    )


def cooling(options, folder, _):
    """Fig. 11."""
    figure, (moves_axes, speed_axes) = pyplot.subplots(1, 2, figsize=(8.5, 3.2))
    rows = []
    for workload, (settings, fast, scale) in COOLED.items():
        found = {"jenga": [], "memtis": []}
        for policy, runs in found.items():
            own = ["allocator=context"] if policy == "jenga" and settings else settings
            for samples in INTERVALS.values():
                # What is set is taken as it is: only defaults are scaled.
                interval = f"{policy}.cooling_samples={samples // scale}"
                arguments = [
                    "--workload",
                    workload,
                    "--policy",
                    policy,
                    "--fast",
                    fast,
                    "--scale",
                    str(scale),
                ]
                arguments += ["--max-accesses", ACCESSES]
                for setting in [interval, *(f"{workload}.{setting}" for setting in own)]:
                    arguments += ["--set", setting]
                run = simulate(options, arguments)
                runs.append((run["promotions"] + run["demotions"], run["slowdown"]))
        moves = [[run[0] for run in runs] for runs in found.values()]
        speed = [[run[1] for run in runs] for runs in found.values()]
        moves_axes.plot(
            list(INTERVALS),
            [memtis / max(jenga, 1) for jenga, memtis in zip(*moves)],
            marker="o",
            label=workload,
        )
        speed_axes.plot(
            list(INTERVALS), [memtis / jenga for jenga, memtis in zip(*speed)], marker="o", label=workload
        )
        for policy, counts, slowdowns in zip(found, moves, speed):
            rows.append(
                [workload, policy, *(f"{count}, {slow:.2f}" for count, slow in zip(counts, slowdowns))]
            )
    moves_axes.set_ylabel("moves, Memtis / Jenga")
    speed_axes.set_ylabel("slowdown, Memtis / Jenga")
    for axes in (moves_axes, speed_axes):
        axes.set_xlabel("samples between coolings")
        axes.axhline(1, color="#888888", linewidth=0.8)
        axes.legend()
    save(figure, folder, "cooling")
    print_table(["workload", "policy", *(f"every {interval}" for interval in INTERVALS)], rows)


def depth(options, folder, scratch):
    """Fig. 12."""
    command = under(options.library, [btree_misses.compile_program(scratch)])
    rows = []
    for number in DEPTHS:
        trace = scratch / "depth.trace"
        settings = {"ISOTHERM_ALLOC_DEPTH": str(number)}
        addresses = btree_misses.read_misses(
            options.binary, trace, command, DEPTH_SIZE, settings=settings, dependence=True
        )
        pages = collections.Counter(address >> 12 for address in addresses)
        regions = collections.Counter(page * 4096 // REGION_SIZE for page in pages)
        footprint = sum(regions.values()) * 4096
        scale = ["--scale", str(round(SCALED_FROM / footprint))]
        run = simulate(options, [trace, "--policy", "jenga", "--fast", WORKING_SET, *scale])
        used = sum(1 for count in regions.values() if count >= 16)
        rows.append(
            [number, used, needed(pages, 0.5), f"{100 * run['load_hit_ratio']:.1f}", f"{run['slowdown']:.3f}"]
        )
    figure, axes = pyplot.subplots(figsize=(4.5, 3.2))
    axes.plot([row[0] for row in rows], [float(row[4]) for row in rows], marker="o", label="slowdown")
    axes.set_xlabel("return addresses of a context")
    axes.set_ylabel("slowdown against all memory fast")
    other = axes.twinx()
    other.plot(
        [row[0] for row in rows],
        [row[2] for row in rows],
        marker="s",
        color="#c8501e",
        label="pages for 50 % of misses",
    )
    other.set_ylabel("pages for 50 % of misses")
    other.grid(False)
    figure.legend(loc="upper center", ncols=2)
    save(figure, folder, "depth")
    print_table(["depth", "regions in use", "pages for 50 %", "hit ratio of loads, %", "slowdown"], rows)


FIGURES = {"applications": applications, "grouping": grouping, "cooling": cooling, "depth": depth}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default="target/release/isotherm")
    parser.add_argument("--library", default="target/release/libisotherm_alloc.so")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("docs/papers/jenga"))
    parser.add_argument("--only", choices=FIGURES)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    for name, figure in FIGURES.items():
        if options.only in (None, name):
            start = time.monotonic()
            with tempfile.TemporaryDirectory() as scratch:
                figure(options, options.output, pathlib.Path(scratch))
            print(f"<!-- {name}: {time.monotonic() - start:.0f} s -->\n")


if __name__ == "__main__":
    main()
