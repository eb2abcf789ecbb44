"""What `isotherm run` costs the program that it tiers: programs with and without it, interleaved.

    make bench-live [LIVE="--windows 400 --policy freqtier"]

Programs: the planted one (crates/planted; a fixed number of operations, 10 % of 256 MiB take 90 % of them)
and, where they are installed, redis-server under redis-benchmark (a fixed number of requests over 100,000
keys of 512 bytes). Isotherm runs with `--shadow` and its default source and budget.

Two ways. **Windows**: in one run the engine is paused and resumed in turns (scripts/live_windows.py); this is
the one to judge by. **Pairs** of runs (`--pairs`), which show what start and end cost too, and how far runs
differ without any cause.

A pair is one run without Isotherm and one with it, next to each other; which comes first alternates. Two
times are taken:

- wall: of the whole command, start and end included; of redis, of the requests. It tells what a user sees, on
a machine that
  is idle otherwise.
- cpu: user and system time of the program's own threads, page faults included and the agent's thread apart,
which runs beside
  them and counts as the engine's. It holds on a busy machine too. Planted: the rusage of everything, less the
  engine's and the agent's time in the summary. Redis: its own INFO, main thread.

A slowdown is the median over pairs, or windows, of (time with / time without - 1), with the interval that
holds the medians of 95 % of 10,000 samples drawn from them with replacement (bootstrap, seeded); what
disturbs both of a pair alike cancels out. Beside that of pairs stands that of the shortest times. The cpu
clock is the one to judge by: work is fixed, so it is also operations and requests for each second of the
program's processor time. What it leaves out is the time that threads wait for a page; the summary's own
account of lost time, which has both, is printed for that. The engine's share includes its agent in the
program. Promised (SPECIFICATION.md): a slowdown of at most 2 %, an engine of at most 3 % of a core. The exit
status does not say whether that was met.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import live_windows

PLANTED = ["planted", "--size", "256M", "--skip-final-check", "--operations"]
OPERATIONS = 40_000_000
REQUESTS = 800_000
KEYS, VALUE = 100_000, 512
# Seconds until windows begin: the policy starts once memory has stopped growing.
WARM = 5


def run_under(options, folder, command):
    """The command line that runs `command` under Isotherm, where its summary will be, and its control
    socket."""
    summary, control = folder / "summary.json", folder / "control.sock"
    isotherm = [options.folder / "isotherm", "run", "--shadow", "--quiet", "--policy", options.policy]
    isotherm += ["--overhead", options.overhead] if options.overhead else []
    return [*isotherm, "--control", control, "--summary", summary, "--", *command], summary, control


def planted(options, folder, tiered):
    """One run of the planted program: wall and cpu seconds, and the summary if it was tiered."""
    command = [options.folder / "examples" / "target", *PLANTED, str(options.operations)]
    summary = None
    if tiered:
        command, summary, _ = run_under(options, folder, command)
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"bench-live: {command[0]} ended with {process.returncode}")
    cpu = usage.ru_utime + usage.ru_stime
    if not tiered:
        return wall, cpu, None
    summary = json.loads(summary.read_text())
    agents = sum(source["agent_cpu_ns"] for source in summary["sources"])
    return wall, cpu - (summary["engine"]["cpu_ns"] + agents) / 1e9, summary


def load_redis(socket, requests, tests):
    call = [
        "redis-benchmark",
        "-s",
        socket,
        "-t",
        tests,
        "-n",
        str(requests),
        "-r",
        str(KEYS),
        "-d",
        str(VALUE),
    ]
    subprocess.run([*call, "-P", "16", "-c", "20", "-q"], stdout=subprocess.DEVNULL, check=True)


@contextlib.contextmanager
def redis_server(options, folder, tiered):
    """A server that is filled: its socket and, if it is tiered, where its summary will be and the control
    socket."""
    socket = folder / "redis.sock"
    command = ["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder]
    summary = control = None
    if tiered:
        command, summary, control = run_under(options, folder, command)
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        for path in (socket, control) if tiered else (socket,):
            live_windows.wait_for(path, server)
        load_redis(socket, 2 * KEYS, "set")
        yield socket, summary, control
        subprocess.run(
            ["redis-cli", "-s", socket, "SHUTDOWN", "NOSAVE"], stdout=subprocess.DEVNULL, check=True
        )
        server.wait(20)
    finally:
        if server.poll() is None:
            server.terminate()
            server.wait()


def redis(options, folder, tiered):
    """As `planted`, of a server that is filled first; its start is not timed."""
    with redis_server(options, folder, tiered) as (socket, summary, _):
        meter = live_windows.RedisMeter(socket)
        begin = meter.read()
        load_redis(socket, options.requests // 2, "get,set")
        _, wall, cpu = (after - before for before, after in zip(begin, meter.read()))
    return wall, cpu, json.loads(summary.read_text()) if tiered else None


def planted_windows(options, folder):
    """One run in windows: these, and the summary."""
    laps = folder / "laps"
    # An operation takes some tens of nanoseconds; the run is ended once the windows are over.
    command = [options.folder / "examples" / "target", *PLANTED, str(10**12), "--laps", laps]
    command, summary, control = run_under(options, folder, command)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        live_windows.wait_for(control, process)
        time.sleep(WARM)
        found = live_windows.switch(control, options.windows, options.window)
        # The program's last laps are still in its buffer.
        time.sleep(1)
    finally:
        process.terminate()
        process.wait()
    return live_windows.of_laps(found, laps), json.loads(summary.read_text())


def redis_windows(options, folder):
    """As `planted_windows`; another process loads the server all the time."""
    with redis_server(options, folder, True) as (socket, summary, control):
        call = [
            "redis-benchmark",
            "-s",
            socket,
            "-t",
            "get",
            "-n",
            str(2**31 - 1),
            "-r",
            str(KEYS),
            "-P",
            "16",
            "-c",
            "20",
            "-q",
        ]
        load = subprocess.Popen(call, stdout=subprocess.DEVNULL)
        try:
            time.sleep(WARM)
            found = live_windows.switch(
                control, options.windows, options.window, live_windows.RedisMeter(socket)
            )
        finally:
            load.terminate()
            load.wait()
    return found, json.loads(summary.read_text())


def bootstrap(values):
    """The median, and the bounds of 95 % of the medians of samples with replacement."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(10_000))
    return statistics.median(values), medians[250], medians[-251]


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return middle, low, high


def measure_windows(name, program, options, folder):
    """Runs the windows and prints what came of them."""
    windows, summary = program(options, folder)
    sources = summary["sources"]
    paused = sum(end[1] - begin[1] + live_windows.SETTLE for working, begin, end in windows if not working)
    on = summary["duration_ns"] / 1e9 - paused
    print(
        f"{name}: {options.windows} windows of {options.window} s at work, each between two paused ones; median (95 %)"
    )
    for clock, index in (("wall", 1), ("cpu", 2)):
        print(
            f"  {clock:4}  slowdown %+.2f %% (%+.2f..%+.2f)"
            % bootstrap(live_windows.slowdowns(windows, index))
        )
    print(
        f"  {sum(source['delivered'] for source in sources) / on:.0f} samples/s at work; lost time by its own account"
        f" {100 * sum(source['program_ns'] for source in sources) / 1e9 / on:.2f} %; engine"
        f" {100 * summary['engine']['cpu_ns'] / 1e9 / on:.2f} % of a core without its agent, of the time at work"
    )


def measure(name, program, options, folder):
    """Runs the pairs and prints what came of them."""
    program(options, folder, False)
    plain, tiered = [], []
    for pair in range(options.pairs):
        for kind in (False, True) if pair % 2 == 0 else (True, False):
            (tiered if kind else plain).append(program(options, folder, kind))
    print(f"{name}: {options.pairs} pairs; medians (quartiles)")
    for index, clock in enumerate(("wall", "cpu")):
        without, under = ([run[index] for run in runs] for runs in (plain, tiered))
        ratios = [100 * (b / a - 1) for a, b in zip(without, under)]
        best = 100 * (min(under) / min(without) - 1)
        print(
            f"  {clock:4}  without {'%.3f (%.3f-%.3f)' % quartiles(without)} s,"
            f" with {'%.3f (%.3f-%.3f)' % quartiles(under)} s:"
            f" slowdown {'%+.2f %% (95 %%: %+.2f..%+.2f)' % bootstrap(ratios)}, of the best {best:+.2f} %"
        )
    summaries = [run[2] for run in tiered]
    engine = quartiles([100 * summary["engine"]["cpu_share"] for summary in summaries])
    own = [100 * summary["engine"]["cpu_ns"] / summary["duration_ns"] for summary in summaries]
    samples = [
        sum(source["delivered"] for source in summary["sources"]) * 1e9 / summary["duration_ns"]
        for summary in summaries
    ]
    lost = [
        100 * sum(source["program_ns"] for source in summary["sources"]) / summary["duration_ns"]
        for summary in summaries
    ]
    sources = ", ".join(source["name"] for source in summaries[0]["sources"])
    print(
        f"  engine {'%.2f (%.2f-%.2f)' % engine} % of a core, {statistics.median(own):.2f} % without its agent;"
        f" {statistics.median(samples):.0f} samples/s by {sources}; lost time by its own account {statistics.median(lost):.2f} %"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "release"
    parser.add_argument("--folder", type=pathlib.Path, default=default, help="where the binaries are")
    parser.add_argument("--windows", type=int, default=400, help="at work; 0 for none")
    parser.add_argument("--window", type=float, default=0.25, help="seconds of each")
    parser.add_argument("--pairs", type=int, default=0, help="pairs of runs; at least 2, or 0 for none")
    parser.add_argument("--overhead", help="isotherm's budget, in place of its default")
    parser.add_argument("--policy", default="hybridtier")
    parser.add_argument("--operations", type=int, default=OPERATIONS, help="of the planted program")
    parser.add_argument("--requests", type=int, default=REQUESTS, help="to redis")
    parser.add_argument("--only", choices=("planted", "redis"))
    options = parser.parse_args()
    programs = {"planted": (planted_windows, planted), "redis": (redis_windows, redis)}
    if not (shutil.which("redis-server") and shutil.which("redis-benchmark")):
        print("redis: skipped: install redis-server and redis-tools")
        del programs["redis"]
    with tempfile.TemporaryDirectory(prefix="bench-live-") as folder:
        folder = pathlib.Path(folder)
        for name, (windows, pairs) in programs.items():
            if options.only not in (None, name):
                continue
            if options.windows > 0:
                measure_windows(name, windows, options, folder)
            if options.pairs > 0:
                measure(name, pairs, options, folder)


if __name__ == "__main__":
    main()
