#!/usr/bin/env python3
"""Compares the policy `isotherm` with first touch, NUMA balancing, DAMON and HybridTier on a real kernel: the
table of docs/papers/isotherm.md, "In the lab".

    scripts/isotherm-lab.py                   the six programs of crates/cli/tests/lab/programs.rs (20 minutes)
    scripts/isotherm-lab.py redis sort        these programs
    scripts/isotherm-lab.py --long bfs btree  with four times the work on the same memory, BFS twelve times (an hour
                                              for all); not sort

The guest's machine is `deterministic` with the profile of the default machine, `sapphire-rapids`. Its clock is
instructions, so that runs differ by tiering alone, and the kernel's tiering acts by the modelled clock
(--clock-ratio). That clock has no costs of tiering. The second figure adds those of the program's
threads by the machine's profile: samples (300 ns each at isotherm's fixed period, 1.5 us by frequency), hint
faults (910 ns), the moves that NUMA balancing makes in the fault (830 ns, and the copy), and an interrupt for
each batch of moved pages (1 us). DAMON's checks count as nothing.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = re.compile(r'Program \{\s*name: "(\w+)",\s*what: "[^"]*",\s*fast: "(\w+)",\s*script: "((?:[^"\\]|\\.)*)"', re.S)
# What a longer run of a program has in place of the first.
LONG = {
    "redis": ("50000 300000", "50000 1200000"),
    "sqlite3": ("sqlite3 :memory: <demo/shop.sql", "sed 's/i < 200000/i < 800000/' demo/shop.sql | sqlite3 :memory:"),
    "python3": ("PYTHONHASHSEED=0 /usr/bin/python3 crates/cli/tests/lab/customers.py",
                "sed s/400_000/1600_000/ crates/cli/tests/lab/customers.py | PYTHONHASHSEED=0 /usr/bin/python3 -"),
    "bfs": ("trials=8", "trials=96"),
    "btree": ("operations=500k", "operations=2M"),
}
PATH = "/usr/bin:/bin"
PROFILE = "sapphire-rapids"
# Programs run four to six instructions in a modelled nanosecond; in one of the guest's clock, one.
CLOCK_RATIO = "6"
SAMPLE = {"isotherm": 300, "hybridtier": 1500}
FAULT, MOVE, FLUSH = 910, 1830, 1000


def files_of(script):
    """Returns the files that a script needs: a guest whose clock is instructions has no others of the host."""
    words = re.findall(r"[\w./-]+", script)
    binaries = {shutil.which(word, path=PATH) for word in words} - {None}
    files = {word for word in words if (ROOT / word).is_file()} - binaries
    for name in [word for word in words if word.endswith(".py")]:
        shown = f"import runpy, sys; runpy.run_path({name!r})\n" \
            "for module in list(sys.modules.values()): print('module', getattr(module, '__file__', None))"
        command = ["/usr/bin/python3", "-c", shown]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        files |= set(re.findall(r"^module (/.*)", done.stdout, re.M))
    binaries |= {name for name in files if name.endswith(".so")}
    loaded = subprocess.run(["ldd", *sorted(binaries)], check=True, capture_output=True, text=True).stdout
    return sorted(files | binaries | set(re.findall(r"(/\S+) \(0x", loaded)))


def machine():
    """Writes the guest's machine and returns its file."""
    text = (ROOT / "lab/machines/deterministic.toml").read_text()
    text = text.replace(re.search('^profile = "(.*)"$', text, re.M)[1], PROFILE)
    file = ROOT / "build/isotherm-lab.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def compare(fast, script):
    """Returns the runs of `lab compare`."""
    command = [ROOT / "target/debug/isotherm", "lab", "compare", "--kernel", "none,numab,damon", "--policies",
               "isotherm,hybridtier", "--machine", machine(), "--clock-ratio", CLOCK_RATIO, "--fast", fast,
               "--json", "--time-limit", "1h", "--", "sh", "-c", script, "sh", *files_of(script)]
    environment = {"PATH": PATH, "HOME": os.environ["HOME"]}
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    # The program's own output stands beside it.
    lines = (done.stdout + done.stderr).splitlines()
    return json.loads(next(line for line in lines if line.startswith("{") and '"runs"' in line))["runs"]


def charged(run):
    """Returns a run's modelled time with what tiering takes of the program's threads."""
    counters = run["counts"]["vmstat"]
    samples = run["measured"]["samples"]["taken"] * SAMPLE.get(run["tiering"], 0)
    faults = counters.get("numa_hint_faults", 0) * FAULT + counters.get("pgpromote_success", 0) * MOVE
    flushes = FLUSH * sum(moves["batches"] for moves in run["counts"]["moves"].values())
    return run["measured"]["modelled_ns"] + samples + faults + flushes


def main():
    names = [name for name in sys.argv[1:] if name != "--long"]
    long = "--long" in sys.argv[1:]
    text = (ROOT / "crates/cli/tests/lab/programs.rs").read_text()
    print("| program | NUMA balancing | DAMON | hybridtier | isotherm | moved by isotherm |\n" + "|---" * 6 + "|")
    for name, fast, script in PROGRAM.findall(text):
        if names and name not in names or long and name not in LONG:
            continue
        if long:
            short, longer = LONG[name]
            if short not in script:
                sys.exit(f"{name}: its script has no `{short}` that a longer run could replace")
            script = script.replace(short, longer)
        script = re.sub(r"\\\n\s*", "", script).replace("$BIN", str(ROOT / "target/debug/examples"))
        runs = {run["tiering"]: run for run in compare(fast, script)}
        first, own = runs["none"]["measured"]["modelled_ns"], runs["isotherm"]["counts"]["moved"]
        cells = [f"{runs[tiering]['measured']['modelled_ns'] / first:.3f}, {charged(runs[tiering]) / first:.3f}"
                 for tiering in ("numab", "damon", "hybridtier", "isotherm")]
        print(f"| {name} | {' | '.join(cells)} | {own} |", flush=True)


if __name__ == "__main__":
    main()
