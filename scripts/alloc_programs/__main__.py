"""Runs real programs with and without libisotherm_alloc.so: what they do must be the same. Prints a table,
with processor times.

make alloc-programs                               all, and writes the table of docs/reference/alloc.md
scripts/alloc-programs.sh redis,git               these
"""

import argparse
import datetime
import math
import pathlib
import sys

import programs
import python_tests
import stress
from run import ROOT, Failed, Side, processor_time

PAGE = ROOT / "docs/reference/alloc.md"
MARKS = "<!-- programs -->", "<!-- end of programs -->"


def same(alone, under):
    return ([] if alone == under else [f"without {str(alone)[:200]}, with {str(under)[:200]}"]), ""


def told(_, under):
    return [], under


# Name: what it does (in the table), what runs, how results are compared.
CHECKS = {
    "python": ("Python's own tests, no small-object allocator", python_tests.run, python_tests.compare),
    "redis": ("redis: all of redis-benchmark, DEBUG RELOAD and BGSAVE with digests", programs.redis, same),
    "sqlite": ("sqlite3: 30 kinds of statements, integrity, dump", programs.sqlite, same),
    "compiler": ("g++ -O2: object of `templates.cpp`, and what it prints", programs.compiler, same),
    "git": ("git: 40 commits, clone, gc, fsck, all objects", programs.git, same),
    "map": ("C++: std::map in threads, operators", programs.cxx_map, same),
    "rust": ("Rust: ripgrep, 4 threads", programs.rust, same),
    "node": ("node: garbage, 4 workers, compression, a process", programs.node, same),
    "stress": ("stress: 40 million calls, 8 threads, forks", stress.stress, told),
    "memcheck": ("valgrind's memcheck: C and C++ programs, stress", stress.memcheck, told),
    "sanitizers": ("the C and C++ programs by themselves, ASan and UBSan", stress.sanitizers, told),
}
# These have no other side.
LIBRARY_ONLY = {"stress", "memcheck", "sanitizers"}
# These take minutes; the others run twice on each side.
ONCE = LIBRARY_ONLY | {"python"}


def run_all(run, sides, built, rounds):
    """The last result and the least processor time of each side; sides take turns, so that what is cached
    helps both."""
    results, seconds = {}, {}
    for turn in range(rounds):
        for preload in sides[:: -1 if turn % 2 else 1]:
            with Side(preload, built) as side:
                before = processor_time()
                results[preload] = run(side)
                seconds[preload] = min(seconds.get(preload, math.inf), processor_time() - before)
    return results, seconds


def run_one(name, library, built):
    """A row of the table, and whether all holds."""
    what, run, compare = CHECKS[name]
    sides = [library] if name in LIBRARY_ONLY else [None, library]
    problems, summary, seconds = [], "", {}
    try:
        results, seconds = run_all(run, sides, built, 1 if name in ONCE else 2)
        problems, summary = compare(results.get(None), results[library])
    except Failed as failure:
        problems = [str(failure)]
    for problem in problems:
        print(f"{name}: {problem}", file=sys.stderr)
    times = [f"{seconds[side]:.1f}" if side in seconds else "" for side in (None, library)]
    ratio = f"{seconds[library] / seconds[None]:.2f}" if len(seconds) == 2 else ""
    result = f"{'**failed**' if problems else 'passed'}{': ' + summary if summary else ''}"
    return f"| {what} | {result} | {times[0]} | {times[1]} | {ratio} |", not problems


def write(rows):
    """Puts the table between its marks."""
    before, _, rest = PAGE.read_text().partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    PAGE.write_text("\n".join([before + MARKS[0], *rows, MARKS[1] + after]))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("built", type=pathlib.Path, help="the folder of libisotherm_alloc.so")
    parser.add_argument("names", nargs="?", default=",".join(CHECKS), help="of " + ", ".join(CHECKS))
    options = parser.parse_args()
    names = options.names.split(",")
    unknown = [name for name in names if name not in CHECKS]
    if unknown:
        parser.error(f"expected some of {', '.join(CHECKS)}, not '{unknown[0]}'")
    built = options.built.resolve()
    rows = [
        f"Processor seconds of all processes, the lesser of two runs (of Python's tests: one); {datetime.date.today()}.",
        "",
        "| what | result | without | with | ratio |",
        "|---|---|---|---|---|",
    ]
    print("\n".join(rows), flush=True)
    passed = True
    for name in names:
        row, holds = run_one(name, built / "libisotherm_alloc.so", built)
        print(row, flush=True)
        rows.append(row)
        passed &= holds
    if names == list(CHECKS) and passed:
        write(rows)
    sys.exit(0 if passed else 1)


main()
