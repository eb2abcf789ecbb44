"""Where the tasks of a sweep run: processes of this machine, Ray or Dask, behind one interface.

An executor takes tasks and tells which have ended:

    room()      tasks that it takes at once
    start(task) begins one
    ended()     waits for a moment; returns pairs of a task and its failure: None, `Failed` or `Lost`
    close()     ends all work that is left
"""

from __future__ import annotations

import importlib
import multiprocessing.connection
import os
import queue
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

WAIT = 0.2
"""Seconds of a wait, after which the caller looks at its bar and the executor's room."""

Work = Callable[[Any, int], Any]
"""Does a task on so many threads; returns None or `Failed`. Names a function that a worker can import."""


class Failed(NamedTuple):
    """A task that ended with an error, which another try would not mend."""

    kind: type
    message: str


class Lost(NamedTuple):
    """A task whose worker died."""

    reason: str


def executor(given: Any, work: Work, workers: int | None):
    """Returns the executor that `isotherm.sweep` was given: None, "ray" or a Dask client."""
    if given is None:
        return Processes(work, workers)
    if workers is not None:
        raise ValueError("workers: expected no number beside an executor, which has its own")
    if isinstance(given, str) and given == "ray":
        return Ray(work)
    if type(given).__module__.split(".")[0] == "distributed":
        return Dask(work, given)
    raise ValueError(f"executor {given!r}: expected None, \"ray\" or a client of Dask")


def _needed(module: str, extra: str):
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ValueError(f"executor: {error}; expected `pip install isotherm[{extra}]`") from None


class Processes:
    """Processes of this machine, a core each.

    They are no `ProcessPoolExecutor`: that one does not say whose worker died, waits for running tasks at
    Ctrl-C, and begins with the user's script.
    """

    def __init__(self, work: Work, workers: int | None = None):
        if workers is not None and workers < 1:
            raise ValueError(f"workers {workers}: expected at least 1")
        self._work = work
        self._workers = workers or len(os.sched_getaffinity(0))
        self._idle: list[tuple] = []
        self._busy: dict[Any, tuple] = {}

    def room(self) -> int:
        return self._workers

    def start(self, task: Any) -> None:
        worker = self._idle.pop() if self._idle else self._spawn()
        try:
            worker[1].send(task)
        except OSError:
            # It died while it had nothing to do.
            self._end(worker)
            return self.start(task)
        self._busy[worker[1]] = (*worker, task)

    def _spawn(self) -> tuple:
        ours, theirs = socket.socketpair()
        with theirs:
            code = f"import sys; sys.path[:] = {sys.path}; from isotherm._executors import serve; serve()"
            words = [sys.executable, "-c", code, str(theirs.fileno()), self._work.__module__, self._work.__name__]
            # A session of its own: Ctrl-C at the terminal is for this process, which ends them.
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()],
                                       start_new_session=True, env={**os.environ, "RAYON_NUM_THREADS": "1"})
        return process, multiprocessing.connection.Connection(ours.detach())

    def ended(self) -> list[tuple]:
        found = []
        for connection in multiprocessing.connection.wait(list(self._busy), WAIT):
            *worker, task = self._busy.pop(connection)
            try:
                failure = connection.recv()
                self._idle.append(tuple(worker))
            except (EOFError, OSError):
                status = self._end(worker)
                failure = Lost(f"it ended by signal {-status}" if status < 0 else f"it ended with status {status}")
            found.append((task, failure))
        return found

    @staticmethod
    def _end(worker) -> int:
        process, connection = worker[:2]
        connection.close()
        if process.poll() is None:
            process.kill()
        return process.wait()

    def close(self) -> None:
        # All at once, for each takes a moment to end.
        workers = [*self._idle, *self._busy.values()]
        for worker in workers:
            worker[0].kill()
        for worker in workers:
            self._end(worker)
        self._idle, self._busy = [], {}


def serve() -> None:
    """Works off the tasks that come over a connection, until it closes: a worker's whole life."""
    descriptor, module, name = sys.argv[1:]
    work = getattr(importlib.import_module(module), name)
    with multiprocessing.connection.Connection(int(descriptor)) as connection:
        while True:
            try:
                task = connection.recv()
            except EOFError:
                return
            connection.send(work(task, 1))


class Ray:
    """The Ray cluster that `ray.init` has joined, or else that of RAY_ADDRESS or a local one."""

    def __init__(self, work: Work):
        self._ray = ray = _needed("ray", "ray")
        self._ours = not ray.is_initialized()
        if self._ours:
            # A local cluster of Ray reports its use to Ray's makers, unless told not to.
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            ray.init(log_to_driver=False)
        self._work = ray.remote(num_cpus=1, max_retries=0)(work)
        self._running: dict[Any, Any] = {}

    def room(self) -> int:
        # As many again wait at the workers, so that none is idle while this process is busy.
        return max(2 * int(self._ray.cluster_resources().get("CPU", 0)), 1)

    def start(self, task: Any) -> None:
        self._running[self._work.remote(task, 1)] = task

    def ended(self) -> list[tuple]:
        running = list(self._running)
        first, rest = self._ray.wait(running, num_returns=1, timeout=WAIT)
        if first and rest:
            first += self._ray.wait(rest, num_returns=len(rest), timeout=0)[0]
        return [(self._running.pop(reference), self._outcome(reference)) for reference in first]

    def _outcome(self, reference) -> Failed | Lost | None:
        errors = self._ray.exceptions
        try:
            return self._ray.get(reference)
        except (errors.RayTaskError, errors.RuntimeEnvSetupError) as error:
            return Failed(RuntimeError, _last_line(error))
        except errors.RayError as error:
            return Lost(_last_line(error))

    def close(self) -> None:
        for reference in self._running:
            self._ray.cancel(reference, force=True)
        if self._ours:
            self._ray.shutdown()


class Dask:
    """The cluster of a Dask client. Its scheduler tries a task of a dead worker again by itself."""

    def __init__(self, work: Work, client: Any):
        self._distributed = _needed("distributed", "dask")
        self._work, self._client = work, client
        self._running: dict[Any, Any] = {}
        self._found: queue.SimpleQueue = queue.SimpleQueue()

    def room(self) -> int:
        return max(2 * sum(self._client.nthreads().values()), 1)

    def start(self, task: Any) -> None:
        future = self._client.submit(_on_dask, self._work, task, pure=False)
        self._running[future] = task
        future.add_done_callback(self._found.put)

    def ended(self) -> list[tuple]:
        found = []
        try:
            future = self._found.get(timeout=WAIT)
            while True:
                found.append((self._running.pop(future), self._outcome(future)))
                future = self._found.get_nowait()
        except queue.Empty:
            return found

    def _outcome(self, future) -> Failed | Lost | None:
        if future.status == "finished":
            return future.result()
        if future.status != "error":
            return Lost(f"its task is {future.status}")
        error = future.exception()
        return Failed(RuntimeError, _last_line(error) or type(error).__name__)

    def close(self) -> None:
        self._client.cancel(list(self._running), force=True)


def _on_dask(work: Work, task: Any):
    from distributed import get_worker

    # Tasks of a worker with several threads share the pool of Isotherm's threads.
    return work(task, get_worker().state.nthreads)


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
