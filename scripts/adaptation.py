#!/usr/bin/env python3
"""How long policies need to adapt after two thirds of the hot data changed (HybridTier, Table 3).

Prints a table in Markdown: for each workload and size of the fast tier, the modelled time from the change until the hit
ratio of loads is first within 1 % of its steady state, the median of the run's last tenth. Hits, not a request's median
latency as in the paper: the simulator sees accesses, and a streamed value's time hardly depends on its place. Intervals
are a thousandth of the run; a running median over eleven of them keeps noise from ending the search early. Behind the
time stand the hit ratios before the change, in the tenth of the run after it, and in the last tenth.
"""

import argparse
import json
import statistics
import subprocess

INTERVALS = 1000
MEDIAN_OVER = 11
# Footprint and operations with which a run covers about an hour of the paper's time, the change in the middle.
WORKLOADS = {"cachelib-cdn": ("32M", "1M"), "cachelib-social": ("32M", "8M")}


def simulate(binary, workload, policies, sizes, seed, change_at):
    """Runs the workload with a change of its hot set and returns the runs."""
    command = [binary, "simulate", "--workload", workload, "--policy", ",".join(policies), "--fast", ",".join(sizes)]
    footprint, operations = WORKLOADS[workload]
    command += ["--set", f"{workload}.footprint={footprint}", "--set", f"{workload}.operations={operations}"]
    command += ["--set", f"{workload}.change_at={change_at}", "--intervals", str(INTERVALS), "--seed", str(seed)]
    return json.loads(subprocess.run([*command, "--json"], check=True, stdout=subprocess.PIPE).stdout)["runs"]


def smoothed_hit_ratios(timeline):
    """The hit ratio of loads around each interval."""
    ratios = [interval["load_hits"] / max(interval["loads"], 1) for interval in timeline]
    half = MEDIAN_OVER // 2
    return [statistics.median(ratios[max(0, i - half) : i + half + 1]) for i in range(len(ratios))]


def adaptation(run, change_at):
    """The time from the change until the steady state is reached, in modelled nanoseconds; None if it never is."""
    timeline = run["timeline"]
    ratios = smoothed_hit_ratios(timeline)
    change = change_interval(timeline, change_at)
    steady = statistics.median(ratios[-len(timeline) // 10 :])
    # The median reaches over the change: look from where it no longer sees what was before.
    for index in range(change + MEDIAN_OVER // 2 + 1, len(ratios)):
        if ratios[index] >= 0.99 * steady:
            return timeline[index]["end_ns"] - timeline[change]["end_ns"]
    return None


def ratios_around(run, change_at):
    """The hit ratio of loads in the tenth of the run before the change, in the tenth after it, and in the last tenth."""
    timeline = run["timeline"]
    change, tenth = change_interval(timeline, change_at), len(timeline) // 10
    parts = [timeline[change - tenth : change], timeline[change + 1 : change + 1 + tenth], timeline[-tenth:]]
    return [sum(i["load_hits"] for i in part) / sum(i["loads"] for i in part) for part in parts]


def cell(run, change_at):
    """One policy's cell of the table."""
    time, scale = adaptation(run, change_at), run["time_scale"]
    text = "not reached" if time is None else f"{time * scale / 60e9:.1f} min"
    return text + ", " + " / ".join(f"{100 * ratio:.1f}" for ratio in ratios_around(run, change_at)) + " %"


def change_interval(timeline, change_at):
    """The last interval before the change: requests make about equally many misses all along."""
    accesses, total = 0, sum(interval["accesses"] for interval in timeline)
    for index, interval in enumerate(timeline):
        accesses += interval["accesses"]
        if accesses >= change_at * total:
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
        runs = simulate(options.binary, workload, policies, sizes, options.seed, options.change_at)
        for size in sizes:
            of_size = {run["policy"]: run for run in runs if run["fast"] == size}
            times = [adaptation(of_size[policy], options.change_at) for policy in policies]
            cells = [cell(of_size[policy], options.change_at) for policy in policies]
            ratio = f"{times[1] / times[0]:.1f}" if times[0] and times[1] else "-"
            print(f"| {workload} | {size} | " + " | ".join(cells) + f" | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
