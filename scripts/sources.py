"""What each access source costs a program, and how much of its hot memory it finds.

    make sources [SOURCES="--size 1G --seconds 30 --only damon,hint-faults --write"]

The planted program (crates/planted) has 4 GiB, of which a tenth takes nine tenths of the accesses: once as
one block (contiguous), once as single pages spread over all (scattered). For each source and layout it runs
under `isotherm run --shadow`, with room for the hot memory on the fast tier.

- **found**: the share of the planted hot pages that the policy has on the fast tier after `--seconds`; chance
  alone gives a tenth.
- **cost**: what the program loses. The engine is paused and resumed at its control socket, and neighbouring
  windows are compared by the program's processor time per operation (scripts/live_windows.py); the median of
  the windows.
- **processor**: time of the engine, its agents and the kernel's thread, as a share of one processor.

A source that cannot be used here gets the reason in place of figures. `--write` leaves the figures (the worst
cost and the mean of what was found) where sessions look for them; only a run with the default size should.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import live_windows

FIGURES = pathlib.Path("/var/lib/isotherm/sources.json")
SOURCES = ("hint-faults", "idle-pages", "accessed-bits", "damon")
LAYOUTS = ("contiguous", "scattered")
HOT = "10%"
PAGE = 4096


def size(text):
    """Bytes of a size such as 4G."""
    return int(text[:-1]) << {"M": 20, "G": 30}[text[-1]]


def planted(report):
    """The addresses of the planted hot pages."""
    lines = report.read_text().splitlines()
    start = next(int(line.split()[1], 16) for line in lines if line.startswith("range "))
    hot = next(line for line in lines if line.startswith("hot 0 "))
    return {start + PAGE * int(page) for page in hot.split()[2:]}


def found(engine, hot):
    """The share of the hot pages that is on the fast tier."""
    ranges = [line.split() for line in engine.ask("fast", live_windows.is_whole).splitlines()]
    ranges = [(int(line[1], 16), int(line[2], 16)) for line in ranges if len(line) == 3]
    return sum(page in hot for start, end in ranges for page in range(start, end, PAGE)) / len(hot)


def run(options, source, layout, folder):
    """Runs the program under a source; returns its figures, or why there are none."""
    control, summary, report, laps = (folder / name for name in ("control", "summary", "report", "laps"))
    fast = size(options.size) // 10
    command = [options.folder / "isotherm", "run", "--shadow", "--quiet", "--source", source]
    command += ["--policy", options.policy, "--overhead", options.overhead, "--fast", str(fast)]
    command += ["--control", control, "--summary", summary, "--", options.target, "planted"]
    command += ["--size", options.size, "--hot", HOT, "--share", "90%", "--layout", layout]
    command += ["--operations", str(10**12), "--skip-final-check", "--report", report, "--laps", laps]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        while not report.exists():
            if process.poll() is not None:
                return process.stderr.read().strip().splitlines()[-1]
            time.sleep(0.1)
        time.sleep(options.seconds)
        share = found(live_windows.Lines(control), planted(report))
        windows = live_windows.switch(control, options.windows, options.window)
        wait_for_laps(laps, windows[-1][2])
    finally:
        process.terminate()
        process.wait()
    result = json.loads(summary.read_text())
    cost = statistics.median(live_windows.slowdowns(live_windows.of_laps(windows, laps), 2)) / 100
    return {"found": share, "cost": cost, "processor": result["engine"]["cpu_share"]}


def wait_for_laps(laps, end):
    """Waits, at most two minutes, for the program to write the laps of its buffer up to this time."""
    for _ in range(600):
        # The last line may be a part of one.
        lines = laps.read_text().splitlines()[:-1]
        if lines and int(lines[-1].split()[1]) / 1e9 > end:
            return
        time.sleep(0.2)


def line(source, layout, figures):
    """A line of the table."""
    if isinstance(figures, str):
        return f"| `{source}` | {layout} | {figures} | | |"
    cells = " | ".join(f"{100 * figures[name]:.1f} %" for name in ("found", "cost", "processor"))
    return f"| `{source}` | {layout} | {cells} |"


def main():
    """Measures, prints the table, and writes the figures if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    release = pathlib.Path("target/release")
    parser.add_argument("--folder", type=pathlib.Path, default=release, help="with isotherm")
    parser.add_argument("--size", default="4G", help="memory of the program")
    parser.add_argument("--seconds", type=float, default=60, help="until the hot memory must be found")
    parser.add_argument("--windows", type=int, default=20, help="with the engine at work")
    parser.add_argument("--window", type=float, default=0.5, help="seconds of each")
    parser.add_argument("--policy", default="hybridtier")
    parser.add_argument("--overhead", default="2%")
    parser.add_argument("--only", default=",".join(SOURCES), help="sources, comma-separated")
    parser.add_argument("--write", action="store_true", help=f"writes {FIGURES}")
    options = parser.parse_args()
    options.target = options.folder / "examples" / "live-target"
    measured = []
    print("| source | hot memory | found | cost | processor |\n|---|---|---|---|---|")
    for source in options.only.split(","):
        runs = []
        for layout in LAYOUTS:
            with tempfile.TemporaryDirectory() as folder:
                runs.append(run(options, source, layout, pathlib.Path(folder)))
            print(line(source, layout, runs[-1]), flush=True)
        if not any(isinstance(figures, str) for figures in runs):
            cost = min(max(0.0, *(figures["cost"] for figures in runs)), 1.0)
            share = statistics.mean(figures["found"] for figures in runs)
            measured.append({"name": source, "cost": cost, "found": share})
    if options.write:
        FIGURES.parent.mkdir(parents=True, exist_ok=True)
        figures = {"memory_bytes": size(options.size), "sources": measured}
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
