"""What each access source costs a program, and how much of its hot memory it finds.

    make sources [SOURCES="--size 1G --seconds 30 --only damon,hint-faults --write"]
    isotherm lab shell --uncounted --machine FILE <<<"python3 scripts/sources.py --only none,none,damon"

The planted program (crates/planted) has 4 GiB, of which a tenth takes nine tenths of the accesses: once as
one block (contiguous), once as single pages spread over all (scattered). For each source and layout it runs
under `isotherm run --shadow`, with room for the hot memory on the fast tier.

- **found**: the share of the planted hot pages that the policy has on the fast tier after `--seconds`; chance
  alone gives a tenth.
- **cost**: what the program loses. The engine is paused and resumed at its control socket, and neighbouring
  windows are compared by the program's processor time per operation (scripts/live_windows.py); the median of
  the windows.
- **processor**: time of the engine, its agents and the kernel's thread, as a share of one processor.

- **pace**: million operations a second in those `--seconds`. The source `none` is the program without
  `isotherm run`; what a source's pace lacks of that is its whole cost. It means something where nothing else
  takes time: in the lab's guest of one processor whose clock is its instructions (`deterministic = true`),
  with a first node of 6 GiB.

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
NONE = "none"
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


def program(options, layout, folder):
    """The words that start the program, which writes its report and laps into the folder."""
    words = [options.target, "planted", "--size", options.size, "--hot", HOT, "--share", "90%"]
    words += ["--layout", layout, "--operations", str(10**12), "--skip-final-check"]
    return words + ["--report", folder / "report", "--laps", folder / "laps"]


def start(command, report):
    """Starts a program and waits until its memory is filled; returns it, or why there is none."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not report.exists():
        if process.poll() is not None:
            return process.stderr.read().strip().splitlines()[-1]
        time.sleep(0.1)
    return process


def alone(options, layout, folder):
    """Runs the program without a source; returns its pace, or why there is none."""
    process = start(program(options, layout, folder), folder / "report")
    if isinstance(process, str):
        return process
    try:
        return {"pace": pace(folder / "laps", options.seconds)}
    finally:
        process.terminate()
        process.wait()


def run(options, source, layout, folder):
    """Runs the program under a source; returns its figures, or why there are none."""
    if source == NONE:
        return alone(options, layout, folder)
    control, summary, report, laps = (folder / name for name in ("control", "summary", "report", "laps"))
    fast = size(options.size) // 10
    command = [options.folder / "isotherm", "run", "--shadow", "--quiet", "--source", source]
    command += ["--policy", options.policy, "--overhead", options.overhead, "--fast", str(fast)]
    command += ["--control", control, "--summary", summary, "--", *program(options, layout, folder)]
    process = start(command, report)
    if isinstance(process, str):
        return process
    try:
        operations = pace(laps, options.seconds)
        share = found(live_windows.Lines(control), planted(report))
        windows = live_windows.switch(control, options.windows, options.window)
        wait_for_laps(laps, windows[-1][2])
    finally:
        process.terminate()
        process.wait()
    result = json.loads(summary.read_text())
    cost = statistics.median(live_windows.slowdowns(live_windows.of_laps(windows, laps), 2)) / 100
    processor = result["engine"]["cpu_share"]
    return {"found": share, "cost": cost, "processor": processor, "pace": operations}


def pace(laps, seconds):
    """A program's million operations a second, in its next so many seconds."""
    begin = time.monotonic()
    time.sleep(seconds)
    end = time.monotonic()
    wait_for_laps(laps, end)
    lines = [tuple(map(int, line.split()[:2])) for line in laps.read_text().splitlines()[:-1]]
    within = [(done, now) for done, now in lines if begin <= now / 1e9 <= end]
    (first, began), (last, ended) = within[0], within[-1]
    return (last - first) / (ended - began) * 1e3


def wait_for_laps(laps, end):
    """Waits, at most two minutes, for the program to write the laps of its buffer up to this time."""
    for _ in range(600):
        # The last line may be a part of one.
        lines = laps.read_text().splitlines()[:-1] if laps.exists() else []
        if lines and int(lines[-1].split()[1]) / 1e9 > end:
            return
        time.sleep(0.2)


def line(source, layout, figures):
    """A line of the table; figures that a run without a source lacks stay empty."""
    if isinstance(figures, str):
        return f"| `{source}` | {layout} | {figures} | | | |"
    shares = (figures.get(name) for name in ("found", "cost", "processor"))
    cells = ["" if share is None else f"{100 * share:.1f} %" for share in shares]
    return f"| `{source}` | {layout} | {' | '.join(cells)} | {figures['pace']:.3f} |"


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
    parser.add_argument("--layouts", default=",".join(LAYOUTS), help="comma-separated")
    parser.add_argument("--only", default=",".join(SOURCES), help="sources, comma-separated")
    parser.add_argument("--write", action="store_true", help=f"writes {FIGURES}")
    options = parser.parse_args()
    options.target = options.folder / "examples" / "live-target"
    options.layouts = options.layouts.split(",")
    measured = []
    print("| source | hot memory | found | cost | processor | pace |\n|---|---|---|---|---|---|")
    for source in options.only.split(","):
        runs = []
        for layout in options.layouts:
            with tempfile.TemporaryDirectory() as folder:
                runs.append(run(options, source, layout, pathlib.Path(folder)))
            print(line(source, layout, runs[-1]), flush=True)
        if source != NONE and not any(isinstance(figures, str) for figures in runs):
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
