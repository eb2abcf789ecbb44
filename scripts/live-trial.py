"""Whether what a live run reports holds: the same server, run again and again, against its own counts.

    make live-trial [TRIAL="--runs 20 --seconds 60"]

The server (crates/planted, mode `server`) reads records of 128 MiB by Zipf's law and counts its accesses to
each page in a shared file. Isotherm runs it with `--shadow --fast 64M`, its default overhead and source. Once
a second the script asks the engine at its control socket which memory is on the fast tier (`fast`) and reads
the counts. The truth is the share of the accesses counted between two such looks that went to the memory
that was fast at the second of them.

Printed for each figure that has an interval: the figures of all runs, how many intervals contain the median of
the runs, how far runs lie from each other (in how many of them the figure is within 5 points of the median),
and how far from the truth. The exit status is 1 unless nine of ten intervals of each figure contain its
median, and nine of ten runs, those without a figure included, have a hit ratio within 5 points of the median
and of their truth.
"""

import argparse
import array
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import live_windows

PAGE = 4096
# Points by which a run may differ.
POINTS = 0.05
# Of ten runs, so many must be right.
SHARE = 0.9
# Seconds between two looks at the fast tier.
LOOK = 1.0


def read_counts(path):
    counts = array.array("Q")
    counts.frombytes(path.read_bytes())
    return counts


def fast_pages(engine, start, pages):
    """The server's pages on the fast tier, numbered from its first one."""
    first, *lines = engine.ask("fast", live_windows.is_whole).strip().split("\n")
    assert first == "ok", first
    for line in lines:
        _, first, end = line.split()
        first, end = ((int(address, 16) - start) // PAGE for address in (first, end))
        yield from range(max(first, 0), min(end, pages))


class Truth:
    """Accesses to fast and to all memory, counted between looks."""

    def __init__(self):
        self.times, self.fast, self.all = [], [], []

    def add(self, seconds, before, now, fast):
        self.times.append(seconds)
        self.all.append(sum(now) - sum(before))
        self.fast.append(sum(now[page] - before[page] for page in fast))

    def ratio(self, since=0.0):
        kept = [index for index, moment in enumerate(self.times) if moment > since]
        return sum(self.fast[index] for index in kept) / max(1, sum(self.all[index] for index in kept))


def run(options, number):
    """One run: its result, and the true hit ratios of all of it and of its second half."""
    with tempfile.TemporaryDirectory(prefix="live-trial-") as folder:
        folder = pathlib.Path(folder)
        control, summary = folder / "control.sock", folder / "summary.json"
        counts, report = folder / "counts", folder / "report"
        command = [options.folder / "isotherm", "run", "--shadow", "--quiet", "--fast", options.fast]
        command += ["--policy", options.policy, "--control", control, "--summary", summary]
        command += ["--overhead", options.overhead] if options.overhead else []
        command += ["--source", options.source] if options.source else []
        command += ["--", options.target, "server", "--size", options.size, "--seconds", str(options.seconds)]
        command += ["--idle", options.idle] if options.idle else []
        command += ["--counts", counts, "--report", report, "--pause", str(options.pause)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            live_windows.wait_for(control, process)
            live_windows.wait_for(report, process)
            engine = live_windows.Lines(control)
            start, end = (int(word, 16) for word in report.read_text().split()[1:3])
            truth, began = Truth(), time.monotonic()
            before = read_counts(counts)
            while process.poll() is None:
                time.sleep(LOOK)
                try:
                    fast = list(fast_pages(engine, start, (end - start) // PAGE))
                except (ConnectionError, TimeoutError):
                    break
                now = read_counts(counts)
                truth.add(time.monotonic() - began, before, now, fast)
                before = now
            process.wait()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        if process.returncode != 0:
            sys.exit(f"live-trial: run {number} ended with {process.returncode}")
        result = json.loads(summary.read_text())
    half = (time.monotonic() - began) / 2
    return result, truth.ratio(), truth.ratio(half)


def judge(name, figures, intervals, truths, points, close):
    """Prints what the runs say of one figure; returns whether it holds. `close`: whether it must be the same
    in all runs."""
    known = [figure for figure in figures if figure is not None]
    if not known:
        print(f"{name}: not known in any of {len(figures)} runs")
        return False
    middle = statistics.median(known)
    covered = sum(1 for interval in intervals if interval and interval[0] <= middle <= interval[1])
    near = sum(1 for figure in known if abs(figure - middle) <= points)
    wide = [interval[1] - interval[0] for interval in intervals if interval]
    line = f"{name}: median {middle:.3f}, {min(known):.3f} to {max(known):.3f}; known in {len(known)} of"
    line += f" {len(figures)}; within {points:g} of the median {near}; intervals with the median {covered}"
    line += f" (median width {statistics.median(wide):.3f})" if wide else ""
    holds = covered >= SHARE * len(known) and (near >= SHARE * len(figures) or not close)
    if truths:
        errors = [abs(f - t) for f, t in zip(figures, truths) if f is not None]
        right = sum(1 for error in errors if error <= points)
        holds &= right >= SHARE * len(figures) or not close
        line += f"; within {points:g} of the truth {right}, at most {max(errors):.3f} from it"
    print(line)
    return holds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "release"
    parser.add_argument("--folder", type=pathlib.Path, default=default, help="where the binaries are")
    parser.add_argument("--target", type=pathlib.Path, help="the server; by default in examples/ there")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--size", default="128M")
    parser.add_argument("--fast", default="64M")
    parser.add_argument("--idle", help="memory of the server that it never reads")
    parser.add_argument("--pause", type=int, default=0, help="of the server before each request, in microseconds")
    parser.add_argument("--policy", default="hybridtier")
    parser.add_argument("--overhead", help="isotherm's budget, in place of its default")
    parser.add_argument("--source", help="the access source, in place of the best one")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the runs' results")
    options = parser.parse_args()
    options.target = options.target or options.folder / "examples" / "live-target"
    rows = []
    for number in range(options.runs):
        result, truth, half = run(options, number)
        rows.append((result, truth, half))
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            (options.keep / f"{number}.json").write_text(json.dumps(result))
        intervals = result.get("intervals") or {}
        shown = [
            f"{name} {result[name]} {intervals.get(name)}"
            for name in ("hit_ratio", "final_hit_ratio", "slowdown_at_most")
        ]
        samples = sum(source["delivered"] for source in result["sources"])
        print(
            f"run {number}: {'; '.join(shown)}; truth {truth:.3f}, second half {half:.3f}; {samples} samples;"
            f" {result['traffic']['promotions']} promoted; {result['verdict']['sentence']}",
            flush=True,
        )
    results = [row[0] for row in rows]
    of = lambda name: [(result.get("intervals") or {}).get(name) for result in results]  # noqa: E731
    ratios, finals = ([r[name] for r in results] for name in ("hit_ratio", "final_hit_ratio"))
    holds = judge("hit ratio", ratios, of("hit_ratio"), [row[1] for row in rows], POINTS, True)
    holds &= judge("second half", finals, of("final_hit_ratio"), [row[2] for row in rows], POINTS, False)
    slowdowns = [r["slowdown_at_most"] for r in results]
    holds &= judge("slowdown at most", slowdowns, of("slowdown_at_most"), None, POINTS, False)
    sys.exit(0 if holds else 1)


if __name__ == "__main__":
    main()
