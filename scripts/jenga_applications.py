"""Jenga's Table 1: hits, moves and slowdown of each application with a fast tier of the working set and of 16
GB.

Workloads, shares and scales are those of the scoreboard (crates/score/figures/jenga.toml,
docs/generated/scoreboard.json). Counted is the whole run, with its loading; the scoreboard leaves that out.
"""

import json
import pathlib
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIZES = ("wss", "16GB")
OTHERS = ("memtis", "memtis-qc", "hybridtier", "tpp", "nbt", "nomad")
SHOWN = ("jenga", "memtis", "memtis-qc")


def scales():
    """By how much each workload's run is smaller than the paper's."""
    board = json.loads((ROOT / "docs/generated/scoreboard.json").read_text())
    comparisons = next(paper for paper in board["papers"] if paper["name"] == "jenga")["comparisons"]
    mean = next(comparison for comparison in comparisons if comparison["id"] == "jenga.fig7.mean")
    return {row["workload"]: round(row["run"]["scale"]) for row in mean["rows"]}


def runs_of(simulate, workload, scale):
    """The run of each policy and size: Jenga on the layout by contexts, the others on glibc's."""
    own = workload.get("set", {})
    found = {}
    for policies in (["jenga"], OTHERS):
        settings = own | ({"allocator": "context"} if "allocator" in own and policies == ["jenga"] else {})
        arguments = ["--workload", workload["name"], "--policy", ",".join(policies), "--scale", str(scale)]
        arguments += ["--fast", ",".join(workload["sizes"][size] for size in SIZES)]
        for name, value in settings.items():
            arguments += ["--set", f"{workload['name']}.{name}={value}"]
        runs = simulate(arguments)
        # One size after another, or one policy after another: each run says which it is.
        for run in runs:
            found.setdefault(run["policy"], []).append(run)
    for several in found.values():
        several.sort(key=lambda run: run["fast_bytes"])
    return found


def applications(simulate, print_table):
    figures = tomllib.loads((ROOT / "crates/score/figures/jenga.toml").read_text())
    totals = {(policy, size): [] for policy in SHOWN for size in SIZES}
    rows = []
    for name, scale in scales().items():
        found = runs_of(simulate, figures["workload"][name], scale)
        for index, size in enumerate(SIZES):
            cells = []
            for policy in SHOWN:
                run = found[policy][index]
                moves = 100 * (run["promotions"] + run["demotions"]) * 4096 / run["footprint_bytes"]
                totals[policy, size].append((100 * run["load_hit_ratio"], moves, run["slowdown"]))
                cells.append(f"{100 * run['load_hit_ratio']:.0f}, {moves:.0f}, {run['slowdown']:.2f}")
            best = min(OTHERS, key=lambda policy: found[policy][index]["slowdown"])
            ahead = found[best][index]["slowdown"] / found["jenga"][index]["slowdown"] - 1
            rows.append(
                [name, size, *cells, f"{best}, {found[best][index]['slowdown']:.2f}", f"{100 * ahead:+.0f} %"]
            )
    for size in SIZES:
        means = ([sum(part) / len(part) for part in zip(*totals[policy, size])] for policy in SHOWN)
        rows.append(
            ["mean", size, *(f"{hits:.0f}, {moves:.0f}, {slow:.2f}" for hits, moves, slow in means), "", ""]
        )
    print_table(["application", "fast tier", *SHOWN, "best other", "Jenga's speed against it"], rows)
