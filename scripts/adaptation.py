#!/usr/bin/env python3
"""How long policies need to adapt after two thirds of the hot data changed (HybridTier, Table 3).

Prints a table in Markdown: for each workload and size of the fast tier, the modelled time from the change
until the hit ratio of loads is first within 1 % of its steady state, the median of the run's last tenth.
Hits, not a request's median latency as in the paper: the simulator sees accesses, and a streamed value's time
hardly depends on its place. Intervals are a thousandth of the run; a running median over eleven of them keeps
noise from ending the search early. Behind the time stand the hit ratios before the change, in the tenth of
the run after it, and in the last tenth.
"""

import argparse
import json
import statistics
import subprocess

INTERVALS = 1000
MEDIAN_OVER = 11
# Footprint and operations with which a run covers about an hour of the paper's time, the change in the
# middle.
WORKLOADS = {"cachelib-cdn": ("32M", 1_000_000), "cachelib-social": ("32M", 8_000_000)}


def simulate(binary, workload, policies, sizes, seed, operations, change_at):
    """Runs so many operations, with a change of the hot set after a share of them (0: none), and returns the
    runs."""
    command = [
        binary,
        "simulate",
        "--workload",
        workload,
        "--machine",
        "freqtier-cxl1",
        "--policy",
        ",".join(policies),
        "--fast",
        ",".join(sizes),
    ]
    settings = {"footprint": WORKLOADS[workload][0], "operations": operations, "change_at": change_at}
    for name, value in settings.items():
        command += ["--set", f"{workload}.{name}={value}"]
    command += ["--intervals", str(INTERVALS), "--seed", str(seed)]
    return json.loads(subprocess.run([*command, "--json"], check=True, stdout=subprocess.PIPE).stdout)["runs"]


def accesses_before(binary, workload, seed, operations, change_at):
    """The accesses before the change, loading included: those of a run that ends where it would come."""
    (run,) = simulate(binary, workload, ["first-touch"], ["1:8"], seed, int(operations * change_at), 0)
    return sum(interval["accesses"] for interval in run["timeline"])


def smoothed_hit_ratios(timeline):
    """The hit ratio of loads around each interval."""
    ratios = [interval["load_hits"] / max(interval["loads"], 1) for interval in timeline]
    half = MEDIAN_OVER // 2
    return [statistics.median(ratios[max(0, i - half) : i + half + 1]) for i in range(len(ratios))]


def adaptation(run, before):
    """The time from the change until the steady state is reached, in modelled nanoseconds; None if it never
    is."""
    timeline = run["timeline"]
    ratios = smoothed_hit_ratios(timeline)
    change = change_interval(timeline, before)
    steady = statistics.median(ratios[-len(timeline) // 10 :])
    # The median reaches over the change: look from where it no longer sees what was before.
    for index in range(change + MEDIAN_OVER // 2 + 1, len(ratios)):
        if ratios[index] >= 0.99 * steady:
            return timeline[index]["end_ns"] - timeline[change]["end_ns"]
    return None


def ratios_around(run, before):
    """The hit ratio of loads in the tenth of the run before the change, in the tenth after it, and in the
    last tenth."""
    timeline = run["timeline"]
    change, tenth = change_interval(timeline, before), len(timeline) // 10
    parts = [timeline[change - tenth : change], timeline[change + 1 : change + 1 + tenth], timeline[-tenth:]]
    return [sum(i["load_hits"] for i in part) / sum(i["loads"] for i in part) for part in parts]


def cell(run, before):
    """One policy's cell of the table."""
    time, scale = adaptation(run, before), run["time_scale"]
    text = "not reached" if time is None else f"{time * scale / 60e9:.1f} min"
    return text + ", " + " / ".join(f"{100 * ratio:.1f}" for ratio in ratios_around(run, before)) + " %"


def change_interval(timeline, before):
    """The interval in which the change comes, after `before` accesses."""
    accesses = 0
    for index, interval in enumerate(timeline):
        accesses += interval["accesses"]
        if accesses >= before:
            return index
    return len(timeline) - 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default="target/release/isotherm")
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--fast", default="1:16,1:8,1:4")
    parser.add_argument("--policies", default="hybridtier,memtis,memtis-qc")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--change-at", type=float, default=0.5)
    options = parser.parse_args()
    policies, sizes = options.policies.split(","), options.fast.split(",")
    print("| workload | fast | " + " | ".join(policies) + f" | {policies[1]} / {policies[0]} |")
    print("|---|---|" + "---|" * (len(policies) + 1))
    for workload in options.workloads.split(","):
        run = (options.seed, WORKLOADS[workload][1], options.change_at)
        before = accesses_before(options.binary, workload, *run)
        runs = simulate(options.binary, workload, policies, sizes, *run)
        for size in sizes:
            of_size = {run["policy"]: run for run in runs if run["fast"] == size}
            times = [adaptation(of_size[policy], before) for policy in policies]
            cells = [cell(of_size[policy], before) for policy in policies]
            ratio = f"{times[1] / times[0]:.1f}" if times[0] and times[1] else "-"
            print(f"| {workload} | {size} | " + " | ".join(cells) + f" | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
