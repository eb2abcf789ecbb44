"""Sweeps: the simulations of a grid, on many processes or machines, as one data set."""

from __future__ import annotations

import collections
import functools
import hashlib
import inspect
import itertools
import json
import os
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from . import _executors, _isotherm, _verbs
from ._executors import Failed

FORMAT = 1
"""Version of the rows and of what their identities are made of."""
OPTIONS = ("page_size", "process", "scale", "max_accesses", "for", "rounds")
"""Options of all runs that their results depend on."""


class Sweep:
    """The result of `sweep`.

    Attributes:
        path: folder of the data set, with a Parquet file for each task.
        simulated: runs that this call simulated; the others were there.
    """

    def __init__(self, path: str, names: Sequence[str], identities: Sequence[str], simulated: int):
        self.path = path
        self.simulated = simulated
        self._names, self._identities = names, identities

    @functools.cached_property
    def table(self) -> Any:
        """The rows of the grid, in its order, as a `pyarrow.Table`: those of `Simulation.runs`, and where each
        comes from. docs/guide/python.md lists the columns."""
        import pyarrow as pa

        found = pa.concat_tables(map(_read, self._names), promote_options="permissive")
        rows = {identity: row for row, identity in enumerate(found["id"].to_pylist())}
        if missing := sum(identity not in rows for identity in self._identities):
            # Two sweeps have added to one file at the same moment.
            raise RuntimeError(f"{self.path}: {missing} rows were replaced by another sweep's; sweep again")
        return found.take([rows[identity] for identity in self._identities])

    def to_pandas(self) -> Any:
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        import polars

        return polars.DataFrame(self.table)

    def __len__(self) -> int:
        return len(self._identities)

    def __repr__(self) -> str:
        return f"<isotherm.Sweep of {len(self)} runs, {self.simulated} simulated now, in {self.path}>"


class Task(NamedTuple):
    """All policies at one point of the grid that lack their rows: one call of `simulate`, and one file."""

    file: str
    title: str
    given: dict[str, Any]
    settings: dict[str, str]
    policies: dict[str, str]
    """Policies by the identities of their rows."""
    files: dict[str, str]
    """Hashes of policies' and machines' files, by path."""
    build: str


def sweep(
    traces: Any = (),
    policies: Any = None,
    sizes: Any = None,
    machines: Any = None,
    parameters: Any = None,
    *,
    output: str | os.PathLike[str],
    workloads: Any = (),
    seeds: Any = None,
    executor: Any = None,
    workers: int | None = None,
    retries: int = 3,
    page_size: str | None = None,
    process: str | None = None,
    scale: Any = None,
    max_accesses: Any = None,
    max_memory: Any = None,
    for_: str | None = None,
    rounds: int | None = None,
    quiet: bool = False,
) -> Sweep:
    """Simulates every policy on every input, at every size, on every machine, with all parameters and seeds.

    Each result is written as soon as it is there. A run whose row the data set has is not simulated again: a
    sweep that was interrupted goes on when it is called again, and one with more policies adds theirs. A row is
    another one if the input's contents, the policy's or machine's file, a setting or Isotherm itself changed.

    Args:
        traces: paths of traces. On a cluster, paths of all files are on storage that the workers share.
        policies: as `policy` of `simulate`; classes must stand in a file.
        sizes: as `fast` of `simulate`.
        machines: names or TOML files.
        parameters: a list of dictionaries, each as `set` of `simulate`.
        output: folder of the data set, made where it is missing.
        workloads: names of workloads, beside or instead of traces.
        seeds: seeds of random choices.
        executor: None for processes of this machine; "ray" for the cluster that `ray.init` has joined, that of
            RAY_ADDRESS, or a local one; or a `distributed.Client` for Dask's.
        workers: number of local processes; by default one for each core.
        retries: times that a task is tried again after its worker died.
        page_size, process, scale, max_accesses, max_memory, for_, rounds: as in `simulate`, for all runs.
        quiet: show no progress bar.

        Each of the grid's arguments is one value or a list; None is the default of `simulate`.

    Returns:
        A `Sweep`: `table`, a row for each run, and `path`.

    Raises:
        ValueError: an input, option or policy is wrong; the message says where.
        RuntimeError: a task failed, or its worker died again and again.
        KeyboardInterrupt: at Ctrl-C, at once.
    """
    if _at_work:
        # A worker that loads a class of the user's script would begin the script's sweep again, and so on.
        raise RuntimeError("sweep within a sweep's worker: expected it under `if __name__ == \"__main__\":`")
    _needs_pyarrow()
    output = os.path.abspath(output)
    os.makedirs(output, exist_ok=True)
    _clean(output)
    asked = zip(OPTIONS, (page_size, process, scale, max_accesses, for_, rounds))
    shared = {name: _text(value) for name, value in asked if value is not None}
    grid = _grid(output, _listed(traces), _listed(workloads), policies, sizes, machines, parameters, seeds, shared)
    # Looked up in a list: of many files on shared storage, each would take a millisecond.
    there = set(os.listdir(output))
    tasks = [_missing(task) if os.path.basename(task.file) in there else task for task in grid]
    tasks = [task for task in tasks if task.policies]
    if max_memory is not None:
        # Of no influence on the rows.
        tasks = [task._replace(given={**task.given, "max_memory": max_memory}) for task in tasks]
    if tasks:
        _run(tasks, _executors.executor(executor, work, workers), retries, quiet)
    identities = [identity for task in grid for identity in task.policies]
    return Sweep(output, [task.file for task in grid], identities, sum(len(task.policies) for task in tasks))


def _needs_pyarrow() -> None:
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise ValueError(f"sweep: {error}; expected `pip install isotherm[sweep]`") from None


def _listed(given: Any) -> list:
    """Returns one value or several as a list."""
    if given is None:
        return []
    single = isinstance(given, (str, os.PathLike, Mapping)) or not isinstance(given, Iterable)
    return [given] if single or callable(given) else list(given)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _clean(output: str) -> None:
    """Removes what killed workers have left half written."""
    for entry in os.scandir(output):
        if entry.name.startswith(".") and entry.name.endswith(".tmp"):
            _remove(entry.path)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _identity(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def _hash(path: str) -> str:
    """Returns the hash of a file's contents, or of all files of a folder."""
    if os.path.isdir(path):
        names = sorted(os.path.relpath(os.path.join(folder, name), path)
                       for folder, _, names in os.walk(path) for name in names)
        return _identity([(name, _hash(os.path.join(path, name))) for name in names])
    found = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while part := file.read(1 << 20):
                found.update(part)
    except OSError as error:
        raise ValueError(f"{path}: cannot open: {error.strerror}") from None
    return found.hexdigest()[:32]


@functools.lru_cache(maxsize=None)
def _build() -> str:
    return _hash(_isotherm.__file__)


def _grid(output, traces, workloads, policies, sizes, machines, parameters, seeds, shared) -> list[Task]:
    """Returns a task for each point, with all its policies."""
    defaults = {name: told["default"] for name, told in _verbs.options("simulate").items()}
    files: dict[str, str] = {}
    inputs = [_input(trace) for trace in traces] + [({"workload": name}, ["workload", name]) for name in workloads]
    if not inputs:
        raise ValueError("sweep: no input; expected traces or workloads")
    policies = [_policy(policy, files) for policy in _named(_listed(policies) or [defaults["policy"]])]
    sizes = [_text(size) for size in _listed(sizes) or [defaults["fast"]]]
    machines = [_machine(machine, files) for machine in _listed(machines) or [defaults["machine"]]]
    parameters = [{name: _text(value) for name, value in one.items()} for one in _listed(parameters) or [{}]]
    seeds = [_text(seed) for seed in _listed(seeds) or [defaults["seed"]]]
    tasks: dict[str, Task] = {}
    points = itertools.product(inputs, machines, parameters, seeds, sizes)
    for (source, what), (machine, profile), settings, seed, fast in points:
        point = _identity(FORMAT, _build(), what, profile, settings, seed, fast, shared)
        given = {**shared, **source, "machine": machine, "seed": seed, "fast": fast}
        (name,) = source.values()
        title = ", ".join([f"{name} at {fast} on {machine}", f"seed {seed}", *map("=".join, settings.items())])
        rows = {_identity(point, identity): policy for policy, identity in policies}
        tasks[point] = Task(os.path.join(output, f"{point}.parquet"), title, given, settings, rows, files, _build())
    return list(tasks.values())


def _input(trace: Any) -> tuple[dict, list]:
    path = os.path.abspath(trace)
    return {"trace": path}, ["trace", _hash(path)]


def _named(policies: list) -> list:
    """Returns policies with "all" as names: a row's identity has one."""
    if "all" not in policies:
        return policies
    status, out, said = _verbs._command("policies", ["--json"], subprocess.PIPE)
    if status != 0:
        _verbs._failed("policies", status, said)
    every = [entry["name"] for entry in json.loads(out)]
    return list(itertools.chain.from_iterable(every if policy == "all" else [policy] for policy in policies))


def _policy(policy: Any, files: dict[str, str]) -> tuple[str, str]:
    """Returns a policy's name for `simulate`, and what identifies it; notes the hash of its file."""
    if callable(policy):
        try:
            file = inspect.getsourcefile(policy) if inspect.isclass(policy) else None
        except (TypeError, OSError):
            # Written at a prompt.
            file = None
        if not file or not os.path.isfile(file) or "." in policy.__qualname__:
            raise ValueError(f"policy {policy!r}: expected a class of a file's top level, which workers can load")
        policy = f"{file}:{policy.__qualname__}"
    policy = os.fspath(policy)
    file, colon, name = policy.rpartition(":") if ".py:" in policy else (policy, "", "")
    if not colon and "/" not in file and not file.endswith(".so"):
        return policy, policy
    # As written: a link may have the name by which others know it.
    file = os.path.abspath(file)
    files[file] = _hash(file)
    return f"{file}{colon}{name}", f"{files[file]}{colon}{name}"


def _machine(machine: Any, files: dict[str, str]) -> tuple[str, Any]:
    """Returns a machine's name for `simulate`, and what identifies it."""
    machine = os.fspath(machine)
    if not os.path.isfile(machine):
        return machine, machine
    machine = os.path.abspath(machine)
    files[machine] = _hash(machine)
    # With the numbers of the profile that it begins with, too.
    status, out, said = _verbs._command("machines", ["--json", machine], subprocess.PIPE)
    if status != 0:
        _verbs._failed("machines", status, said)
    return machine, json.loads(out)


def _read(path: str, columns: list[str] | None = None):
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # The path as a file: a folder's name may look like a partition's.
        with open(path, "rb") as file:
            return pq.read_table(file, columns=columns)
    except pa.ArrowException as error:
        raise ValueError(f"{path}: {str(error).splitlines()[0]}; remove it to simulate its runs again") from None


def _missing(task: Task) -> Task:
    """Returns the task without the policies whose rows are there, and without the settings of these."""
    if not os.path.exists(task.file):
        return task
    found = _read(task.file, ["id", "policy"])
    there = dict(zip(found["id"].to_pylist(), found["policy"].to_pylist()))
    left = {identity: policy for identity, policy in task.policies.items() if identity not in there}
    # `simulate` refuses settings of a policy that is not among its own.
    others = {name for identity, name in there.items() if name not in left.values()}
    settings = {name: value for name, value in task.settings.items() if name.split(".")[0] not in others}
    return task._replace(policies=left, given={**task.given, "set": settings})


def _run(tasks: list[Task], executor, retries: int, quiet: bool) -> None:
    """Has all tasks done, those of dead workers again; raises the first failure."""
    waiting, running = collections.deque(tasks), 0
    deaths: collections.Counter = collections.Counter()
    bar = None if quiet else _verbs._bar()
    try:
        if bar is not None:
            bar.set_description_str("sweeping")
            bar.total = len(tasks)
        looked, room = time.monotonic(), executor.room()
        while waiting or running:
            if time.monotonic() - looked > 1:
                # Clusters grow and shrink.
                looked, room = time.monotonic(), executor.room()
            while waiting and running < room:
                executor.start(waiting.popleft())
                running += 1
            for task, failure in executor.ended():
                running -= 1
                if isinstance(failure, Failed):
                    raise failure.kind(f"{task.title}: {failure.message}")
                if failure is not None:
                    deaths[task.file] += 1
                    if deaths[task.file] > retries:
                        times = deaths[task.file]
                        raise RuntimeError(f"{task.title}: its worker died {times} times; the last: {failure.reason}")
                    waiting.append(task)
                elif bar is not None:
                    bar.update()
    finally:
        executor.close()
        if bar is not None:
            bar.close()


_at_work = False


def work(task: Task, threads: int) -> Failed | None:
    """Does a task, in a worker."""
    global _at_work
    _at_work = True
    # Of effect before the first simulation: a worker is one of many on its machine.
    os.environ.setdefault("RAYON_NUM_THREADS", str(threads))
    try:
        # An earlier try may have died after it had written its rows.
        task = _missing(task)
        if task.policies:
            _check(task)
            given = {"set": task.settings, **task.given, "policy": list(task.policies.values())}
            line = _isotherm.line("simulate", given)
            _write(task.file, _rows(_verbs._follow(_isotherm.simulate(["--quiet", *line]), True), task))
    except (ValueError, RuntimeError, OSError) as error:
        kind = ValueError if isinstance(error, ValueError) else RuntimeError
        return Failed(kind, str(error))
    return None


def _check(task: Task) -> None:
    """Holds what this worker has against what the sweep was called with."""
    if _build() != task.build:
        host = os.uname().nodename
        raise RuntimeError(f"the worker on {host} has another isotherm; expected the one that runs the sweep")
    for path, expected in task.files.items():
        if _hash(path) != expected:
            raise RuntimeError(f"{path}: changed since the sweep began; call it again")


def _rows(simulation, task: Task):
    """Returns the rows of a task's runs, with where they come from."""
    import pyarrow as pa

    table = simulation.runs.to_arrow()
    if table.num_rows != len(task.policies):
        raise ValueError(f"{len(task.policies)} policies are {table.num_rows} by name; expected names that differ")
    whole = json.loads(simulation.json)
    manifest, source = whole["manifest"], whole["input"]
    options = {name: value for name, value in task.given.items() if name in OPTIONS}
    hashes = manifest["policy_libraries"]
    same = {
        "settings": json.dumps(task.settings, sort_keys=True),
        "options": json.dumps(options, sort_keys=True),
        "input_hash": manifest["input"],
        "input_parameters": json.dumps(source["parameters"], sort_keys=True),
        "input_provenance": json.dumps(source["provenance"], sort_keys=True),
        "machine_hash": _identity(whole["machine"]),
        "binary": manifest["binary"],
    }
    columns = {name: [value] * table.num_rows for name, value in same.items()}
    columns["policy_hash"] = [hashes.get(name) for name in table["policy"].to_pylist()]
    columns["id"] = list(task.policies)
    for name in ("trace", "workload"):
        if name not in table.schema.names:
            columns[name] = [None] * table.num_rows
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values, pa.string()))
    return table


def _write(path: str, rows) -> None:
    """Adds rows to a task's file, which is always whole: a worker may die at any point of this."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if os.path.exists(path):
        rows = pa.concat_tables([_read(path), rows], promote_options="permissive")
    folder, name = os.path.split(path)
    half = os.path.join(folder, f".{name}.{os.uname().nodename}.{os.getpid()}.tmp")
    while True:
        with open(half, "wb") as file:
            pq.write_table(rows, file)
            file.flush()
            os.fsync(file.fileno())
        try:
            return os.replace(half, path)
        except FileNotFoundError:
            # Another sweep into this folder has begun meanwhile, and has cleaned up.
            continue
