#!/usr/bin/env python3
"""Measures what SPECIFICATION.md promises of sweeps, with the Python package whose interpreter runs this script.

    build/python/bin/python scripts/bench-sweep.py [processes] [ray] [dask]

For each executor:

- The time of one sweep with one worker and with two, beside what the machine itself has to give.
- The overhead of a task, one worker: the time that more tasks take, each, less that of a call of `simulate`.
- The processor time of the sweeping process for each task that does nothing, 2,000 of them in flight at once,
  as 1,000 workers have them.
"""

import argparse
import contextlib
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile
import time

# Ray listens on loopback alone, and its workers are no nicer than others. `simulate` has one thread here.
os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0", RAY_worker_niceness="0",
                  RAYON_NUM_THREADS="1")

import isotherm
from isotherm import _executors, _sweep

EXECUTORS = ("processes", "ray", "dask")
POLICIES = ["lru", "isotherm", "hybridtier", "memtis"]
IN_FLIGHT = 2000
MOST_MS = 50


@contextlib.contextmanager
def executor(name, workers):
    """Yields the arguments of `sweep` for an executor of so many workers."""
    if name == "processes":
        yield {"workers": workers}
    elif name == "ray":
        import ray

        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, configure_logging=False)
        yield {"executor": "ray"}
        ray.shutdown()
    else:
        from distributed import Client, LocalCluster

        asked = dict(n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
        with LocalCluster(**asked) as cluster, Client(cluster) as client:
            yield {"executor": client}


def export(folder, accesses):
    trace = pathlib.Path(folder) / f"{accesses}.trace"
    line = ["workloads", "cachelib-cdn", "--export", trace, "--max-accesses", accesses, "--quiet"]
    subprocess.run([sys.executable, "-m", "isotherm", *map(str, line)], check=True, capture_output=True)
    return trace


def least(work, times=3):
    """Returns the shortest time of several, which other programs disturb the least."""
    taken = []
    for _ in range(times):
        begun = time.monotonic()
        work()
        taken.append(time.monotonic() - begun)
    return min(taken)


def machine():
    """Prints by how much the machine itself is faster with two programs: other programs, and its owner, share it."""
    loop = [sys.executable, "-c", "for i in range(30_000_000): pass"]

    def loops(count):
        running = [subprocess.Popen(loop) for _ in range(count)]
        for program in running:
            program.wait()

    one, two = least(lambda: loops(1)), least(lambda: loops(2))
    print(f"two plain loops at once: {2 * one / two:.2f} times as fast as one after the other", flush=True)


class Bench:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.large, self.small = export(folder, "3M"), export(folder, "10k")
        self.outputs = itertools.count()

    def sweep(self, given, trace, policies, tasks):
        output = self.folder / f"rows-{next(self.outputs)}"
        isotherm.sweep(trace, policies, "1:4", seeds=range(tasks), output=output, quiet=True, **given)

    def scaling(self, name):
        tasks, taken = 8, []
        for workers in (1, 2):
            with executor(name, workers) as given:
                # Workers start, and import the package. Those of `processes` begin with each sweep.
                self.sweep(given, self.small, "lru", 2 * workers)
                taken.append(least(lambda: self.sweep(given, self.large, POLICIES, tasks)))
        one, two = taken
        print(f"{name}: {tasks} tasks take {one:.1f} s with one worker, {two:.1f} s with two: {one / two:.2f} times "
              "as fast", flush=True)

    def overhead(self, name):
        few, many = 20, 120

        def simulate():
            for seed in range(many - few):
                isotherm.simulate(self.small, policy="lru", fast="1:4", seed=seed, quiet=True)

        simulate()
        alone = least(simulate)
        with executor(name, 1) as given:
            self.sweep(given, self.small, "lru", 2)
            taken = [least(lambda: self.sweep(given, self.small, "lru", tasks)) for tasks in (few, many)]
        overhead, alone = (taken[1] - taken[0] - alone) / (many - few) * 1000, alone / (many - few) * 1000
        print(f"{name}: {overhead:.1f} ms of overhead a task, beside {alone:.1f} ms of `simulate`", flush=True)
        return overhead

    def dispatch(self, name):
        with executor(name, 2) as given:
            made = _executors.executor(given.get("executor"), nothing, None)
            made.room = lambda: IN_FLIGHT
            tasks = [_sweep.Task(f"{number}", "nothing", {}, {}, {}, {}, "") for number in range(2 * IN_FLIGHT)]
            begun = time.process_time()
            _sweep._run(tasks, made, 0, True)
            each = (time.process_time() - begun) / len(tasks) * 1000
        print(f"{name}: {each:.2f} ms of the sweeping process for a task, {IN_FLIGHT} in flight", flush=True)


def nothing(task, threads):
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("executors", nargs="*", help=f"of {', '.join(EXECUTORS)}; all by default")
    names = parser.parse_args().executors or EXECUTORS
    if wrong := set(names) - set(EXECUTORS):
        parser.error(f"{', '.join(wrong)}: expected executors of {', '.join(EXECUTORS)}")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder)
        overheads = []
        for name in names:
            machine()
            bench.scaling(name)
            overheads.append(bench.overhead(name))
            if name != "processes":
                bench.dispatch(name)
    return 0 if max(overheads) < MOST_MS else 1


if __name__ == "__main__":
    sys.exit(main())
