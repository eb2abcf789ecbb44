#!/usr/bin/env python3
"""Compares the policy `isotherm` with first-touch, the bounds and other policies: the tables of
docs/papers/isotherm.md.

    scripts/isotherm-policy.py dev            the half that was looked at while the policy was written
    scripts/isotherm-policy.py held           the half that was not, until version 2 of the policy
    scripts/isotherm-policy.py fresh          other sizes and seeds, run once when version 2 was done
    scripts/isotherm-policy.py adaptation     how soon hits are back after the hot set has changed
    scripts/isotherm-policy.py dev gups redis --fast 1:2,1:16 --policies memtis,jenga

Each row is a workload at one size of the fast tier: long-run slowdowns, the single best other policy there,
what of the distance between first-touch and the oracle is kept, and moves.
"""

import argparse
import concurrent.futures
import json
import math
import random
import subprocess
import sys

# Small inputs: some thousand pages, a few million accesses.
INPUTS = {
    "masim": "footprint=32M operations=2000000",
    "gups": "footprint=16M operations=20000000",
    "cachelib-cdn": "footprint=32M operations=30000",
    "cachelib-social": "footprint=32M operations=300000",
    "btree": "footprint=16M operations=150000",
    "silo": "footprint=16M operations=300000",
    "flexkvs": "footprint=32M",
    "redis": "footprint=16M operations=100000",
    "social-network": "operations=3000 users=500",
    "gapbs-bfs-kron": "scale=17",
    "gapbs-bfs-urand": "scale=17",
    "gapbs-cc-kron": "scale=17",
    "gapbs-cc-urand": "scale=17",
    "gapbs-pr-kron": "scale=17",
    "gapbs-pr-urand": "scale=17",
    "gapbs-bc-kron": "scale=17",
    "gapbs-bc-urand": "scale=17",
    "gapbs-sssp-kron": "scale=16",
    "gapbs-sssp-urand": "scale=16",
    "gapbs-tc-kron": "scale=15",
    "gapbs-tc-urand": "scale=16",
    "graph500": "scale=15",
    "xsbench": "footprint=16M operations=50000",
    "xgboost": "footprint=16M",
    "liblinear": "footprint=16M",
    "bwaves": "footprint=16M",
    "roms": "footprint=16M",
    "gpt2": "footprint=32M operations=8",
    "deepsjeng": "footprint=16M operations=3000000",
    "xz": "footprint=8M",
}
# Other sizes, with another seed of the generators.
FRESH = {
    "masim": "footprint=24M operations=2000000",
    "gups": "footprint=24M operations=20000000",
    "btree": "footprint=24M operations=150000",
    "silo": "footprint=24M operations=300000",
    "redis": "footprint=24M operations=100000",
    "flexkvs": "footprint=24M",
    "gapbs-bc-urand": "scale=16",
    "gapbs-pr-kron": "scale=16",
    "gapbs-bfs-kron": "scale=18",
    "gapbs-cc-urand": "scale=16",
    "graph500": "scale=16",
    "xgboost": "footprint=24M",
    "liblinear": "footprint=24M",
    "roms": "footprint=24M",
    "deepsjeng": "footprint=24M operations=3000000",
    "xz": "footprint=12M",
}
RECORDINGS = ["shop", "sort"]
SEED = 23
FRESH_SEED = 47
RIVALS = "memtis,jenga,neomem,pmu-sampling,multi-clock,freqtier,hybridtier"
# A distance from first-touch to the oracle that is worth a share.
DISTANCE = 1.05


def halves():
    """Splits the inputs by the seed."""
    names = sorted([*INPUTS, *RECORDINGS])
    random.Random(SEED).shuffle(names)
    return {"dev": sorted(names[:16]), "held": sorted(names[16:]), "fresh": list(FRESH)}


def simulate(name, policy, options):
    """Returns the runs of a policy at each size; none if the input is too short for it."""
    fresh = options.half == "fresh"
    command = [options.isotherm, "simulate", "--quiet", "--json", "--fast", options.fast]
    command += ["--rounds", str(options.rounds), "--max-accesses", "5M", "--policy", policy]
    command += ["--seed", str(FRESH_SEED if fresh else 1)]
    if name in RECORDINGS:
        command.append(f"build/demo/{name}.trace")
    else:
        command += ["--workload", name]
        command += [f"--set={name}.{setting}" for setting in (FRESH if fresh else INPUTS)[name].split()]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        print(result.stderr.strip(), file=sys.stderr)
        return []
    return json.loads(result.stdout)["runs"]


def row(name, fast, runs, options):
    slow = {run["policy"]: run["long_run"]["slowdown"] for run in runs}
    whole = {run["policy"]: run["slowdown"] for run in runs}
    moves = {run["policy"]: run["promotions"] + run["demotions"] for run in runs}
    ours, first, oracle = slow["isotherm"], slow["first-touch"], slow["oracle"]
    best = min((policy for policy in options.policies.split(",") if policy in slow), key=slow.get)
    share = (first - ours) / (first - oracle) if first > DISTANCE * oracle else None
    kept = "-" if share is None else f"{share:.0%}"
    print(f"| `{name}` | {fast} | {first:.3f} | {ours:.3f} | {best} {slow[best]:.3f} | {oracle:.3f} "
          f"| {ours / first - 1:+.1%} | {whole['isotherm'] / whole['first-touch'] - 1:+.1%} | {kept} "
          f"| {moves['isotherm']} | {moves[best]} |", flush=True)
    return slow, whole, share


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def adaptation(options):
    """Prints, for a hot set of dependent reads that changes halfway, the hit ratio before the change and
    where it is lowest, and the time until it is back at nine tenths of that of the last tenth."""
    settings = "pattern=chase regions=16 hot_share=0.9 footprint=64M threads=2 phases=2"
    policies = ["isotherm", *options.policies.split(",")]
    print("| reads of a thread | policy | hits before | lowest | adapted after | slowdown |\n" + "|---" * 6 + "|")
    for operations in ("30M", "80M"):
        command = [options.isotherm, "simulate", "--quiet", "--json", "--workload", "masim", "--fast", options.fast,
                   "--intervals", "4000", "--policy", ",".join(policies), "--set", f"masim.operations={operations}"]
        command += [f"--set=masim.{setting}" for setting in settings.split()]
        result = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        for run in json.loads(result.stdout)["runs"]:
            ratios = [interval["hits"] / max(interval["accesses"], 1) for interval in run["timeline"]]
            tenth, middle = len(ratios) // 10, len(ratios) // 2
            low = min(range(middle - tenth, middle + tenth), key=ratios.__getitem__)
            end = sum(ratios[-tenth:]) / tenth
            back = next((i for i in range(low, len(ratios)) if ratios[i] >= 0.9 * end), None)
            # The set changes where hits are first below the lowest third of the way down.
            fall = next(i for i in range(middle - tenth, low + 1) if ratios[i] <= end - (end - ratios[low]) / 3)
            after = "never" if back is None else f"{(run['timeline'][back]['end_ns'] - run['timeline'][fall]['end_ns']) / 1e6:.0f} ms"
            before = sum(ratios[fall - tenth:fall]) / tenth
            print(f"| {operations} | {run['policy']} | {before:.0%} | {ratios[low]:.0%} | {after} | {run['slowdown']:.3f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("half", choices=["dev", "held", "fresh", "adaptation"])
    parser.add_argument("inputs", nargs="*", help="only these")
    parser.add_argument("--isotherm", default="target/release/isotherm")
    parser.add_argument("--fast", default="1:8")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--policies", default=RIVALS)
    parser.add_argument("--jobs", type=int, default=1, help="simulations at a time")
    options = parser.parse_args()
    if options.half == "adaptation":
        return adaptation(options)
    print("| input | fast | first-touch | isotherm | best other | oracle | against first-touch "
          "| as a whole run | of the distance | moves | of the best |")
    print("|---" * 11 + "|")
    policies = ["isotherm", "first-touch", "oracle", *options.policies.split(",")]
    names = options.inputs or halves()[options.half]
    pairs = [(name, policy) for name in names for policy in policies]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        simulated = dict(zip(pairs, pool.map(lambda pair: simulate(*pair, options), pairs)))
    rows = []
    for name in names:
        runs = [run for policy in policies for run in simulated[name, policy]]
        for fast in options.fast.split(","):
            rows.append(row(name, fast, [run for run in runs if run["fast"] == fast], options))
    print("\nGeometric means of slowdowns, last rounds and whole runs, and of isotherm's on the same inputs:")
    for policy in policies:
        both = [figures for *figures, _ in rows if policy in figures[0]]
        means = {one: ", ".join(f"{mean([figure[one] for figure in part]):.3f}" for part in zip(*both))
                 for one in (policy, "isotherm")}
        print(f"{policy} {means[policy]}; isotherm {means['isotherm']} ({len(both)})")
    shares = [max(share, 0.01) for *_, share in rows if share is not None]
    if shares:
        print(f"Of the distance from first-touch to oracle: {mean(shares):.0%} (mean of {len(shares)})")


if __name__ == "__main__":
    main()
