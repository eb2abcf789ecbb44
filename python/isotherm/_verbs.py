"""The verbs of isotherm as functions."""

import inspect
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading

from . import _isotherm, _policy


def _line(verb, given):
    """Returns a verb's command line; classes among its policies are registered."""

    def name(policy):
        return _policy.register(policy) if callable(policy) else policy

    policy = given.get("policy")
    if policy is not None:
        several = isinstance(policy, (list, tuple))
        given = dict(given, policy=[name(one) for one in policy] if several else name(policy))
    return _isotherm.line(verb, given)


def _follow(job, quiet):
    """Waits for a job, with a progress bar where tqdm is there. Ctrl-C ends the job and is raised at once."""
    bar = None
    try:
        # Most work ends before a bar is worth a look.
        ended = job.wait(0.5)
        while not ended:
            if bar is None and not quiet:
                bar = _bar()
            if bar is not None:
                what, done, steps = job.position()
                bar.set_description_str(what, refresh=False)
                bar.total = steps
                bar.n = done
                bar.refresh()
            ended = job.wait(0.1)
    except BaseException:
        job.stop()
        raise
    finally:
        if bar is not None:
            bar.close()
    return job.result()


def _bar():
    """Returns a bar that is shown where someone looks; None where tqdm is missing."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(leave=False, disable=None)


def options(verb):
    """Returns a verb's options: a dictionary of names with the default (as text) and the meaning of each."""
    told = _isotherm.options(verb)
    return {name: {"default": None if flag else default, "help": help} for name, flag, default, help in told}


def _arguments(given):
    """Returns the options among a function's arguments, without what is Python's alone."""
    return {name.rstrip("_"): value for name, value in given.items() if name != "quiet"}


def simulate(
    trace=None,
    *,
    workload=None,
    process=None,
    machine=None,
    page_size=None,
    set=None,
    seed=None,
    scale=None,
    max_accesses=None,
    max_memory=None,
    report=None,
    quiet=False,
    for_=None,
    rounds=None,
    policy=None,
    fast=None,
    intervals=None,
):
    """Replays a trace or a workload under tiering policies on a modelled machine.

    All runs, one for each policy and size, go in parallel over all cores.

    Args:
        trace: path of a trace, or a `Trace`.
        workload: name of a workload instead (`python -m isotherm workloads`).
        process: replay only the trace's processes of this name.
        machine: a machine's name or a TOML file.
        page_size: "base" (4 KiB) or "huge" (2 MiB).
        set: parameters, as {"lru.batch": 4096, "machine.core.cores": 8}.
        seed: seed of every random choice.
        scale: how much smaller the run is than the policies' papers: a number or "auto".
        max_accesses: replay at most so many accesses (a number or "10M").
        max_memory: memory that the run may take (bytes or "4G").
        report: write a report to this HTML file.
        quiet: show no progress bar.
        for_, rounds: replay the input again and again, for a time such as "10min" or so many rounds.
        policy: one or a list of names ("all" for all), libraries' paths, and classes in Python (`Policy`).
        fast: one or a list of sizes of the fast tier: "1:8" (fast to slow), "25%" of the footprint, "64M".
        intervals: number of intervals in each run's timeline.

    Returns:
        A `Simulation`: tables `runs`, `timelines` and `pages`, and `json`. Times are in nanoseconds, sizes in
        bytes, ratios from 0 to 1.

    Raises:
        ValueError: an input, option or policy is wrong; the message says which, and what was expected.
        RuntimeError: the work failed.
        KeyboardInterrupt: at Ctrl-C, at once; the work ends.
    """
    line = _line("simulate", _arguments(locals()))
    return _follow(_isotherm.simulate(["--quiet", *line]), quiet)


def size(
    trace=None,
    *,
    workload=None,
    process=None,
    machine=None,
    page_size=None,
    set=None,
    seed=None,
    scale=None,
    max_accesses=None,
    max_memory=None,
    report=None,
    quiet=False,
    for_=None,
    rounds=None,
    policy=None,
    budget=None,
    price=None,
    footprint=None,
    seeds=None,
    sample=None,
):
    """Finds the least fast memory that keeps a program within a slowdown.

    Args: those of `simulate`, without `fast` and `intervals`, and
        budget: slowdown allowed against all memory fast: "5%" or 0.05.
        price: prices of a GB, as {"dram": 8, "cxl": 3} or "dram=8,cxl=3".
        footprint: the program's memory on the machine to be sized, if not the recording's (bytes or "64G").
        seeds: number of sub-samples for confidence intervals.
        sample: approximate accesses of a sub-sample (a number or "1M").

    Returns:
        The result of `isotherm size --json` as a dictionary.

    Raises:
        As `simulate`.
    """
    if isinstance(price, dict):
        price = ",".join(f"{name}={value}" for name, value in price.items())
    line = _line("size", _arguments(locals()))
    return json.loads(_follow(_isotherm.size(["--quiet", *line]), quiet))


def hit_ratios(trace=None, algorithms=("lru", "arc", "twoq", "belady"), pages=(1024,), *, workload=None,
               process=None, page_size=None, set=None, seed=None, max_accesses=None, quiet=False):
    """Returns the hit ratios of caches of pages: no tiers, no time, every miss fetches its page.

    Args:
        trace, workload, process, page_size, set, seed, max_accesses: the input, as in `simulate`.
        algorithms: names among "lru", "arc", "twoq" and "belady" (MIN).
        pages: capacities in pages, each at least 1.
        quiet: show no progress bar.

    Returns:
        A list of dictionaries with `policy`, `pages`, `accesses`, `hits` and `hit_ratio` (0 to 1).

    Raises:
        As `simulate`.
    """
    algorithms, pages = list(algorithms), list(pages)
    if not pages or min(pages) < 1:
        raise ValueError(f"pages {pages}: expected capacities of at least 1 page")
    given = dict(trace=trace, workload=workload, process=process, page_size=page_size, set=set, seed=seed,
                 max_accesses=max_accesses)
    line = ["--quiet", *_line("simulate", given)]
    accesses, found = _follow(_isotherm.hits(line, algorithms, pages), quiet)
    return [
        {"policy": name, "pages": pages, "accesses": accesses, "hits": hits, "hit_ratio": hits / accesses}
        for name, pages, hits in found
    ]


def _command(verb, line, output=None):
    """Runs a verb in a process of its own; returns its exit status, standard output and last words."""
    command = [sys.executable, "-m", "isotherm", verb, *line]
    with subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE) as child:
        said = []
        out = []
        readers = [threading.Thread(target=_pass_on, args=(child.stderr, said))]
        if output is not None:
            readers.append(threading.Thread(target=lambda: out.append(child.stdout.read())))
        for reader in readers:
            reader.start()
        try:
            child.wait()
        except BaseException:
            _interrupt(child)
            raise
        finally:
            for reader in readers:
                reader.join()
    return child.returncode, b"".join(out), said


def _pass_on(stream, said):
    """Shows what a process says, where Python's own standard error goes, and keeps Isotherm's lines."""
    for line in stream:
        text = line.decode(errors="replace")
        sys.stderr.write(text)
        if text.startswith(("isotherm: ", "error: ")):
            said.append(text.split(": ", 1)[1].strip())


def _interrupt(child):
    """Ends a process as Ctrl-C does: it may finish what it has begun, such as a trace, within seconds."""
    try:
        child.send_signal(signal.SIGINT)
        child.wait(10)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        child.kill()


def _failed(verb, status, said):
    """Raises the error of a verb that has no result."""
    message = said[-1] if said else f"isotherm {verb} ended with status {status}"
    raise (ValueError if status == 2 else RuntimeError)(message)


def record(
    command,
    *,
    output,
    cache=None,
    ways=None,
    no_dependence=False,
    no_aslr=False,
    max_size=None,
    max_time=None,
    process=None,
    sites=False,
    compressibility=False,
    max_memory=None,
    quiet=False,
):
    """Records an unmodified program's last-level cache misses as a trace.

    Args:
        command: the program and its arguments, as a list.
        output: path of the trace, which must not exist yet.
        cache: size of the modelled last-level cache (bytes or "2M").
        ways: ways of that cache.
        no_dependence: do not track which miss an address depends on: twice as fast.
        no_aslr: disable address space randomisation, so that recordings can be compared.
        max_size, max_time: stop recording at this size ("1G") or after this time ("30s"); the program runs on.
        process: record only processes of this name.
        sites: record allocation sites.
        compressibility: note how well each page compresses, for machines with compressed memory.
        max_memory: memory that the recorder may take.
        quiet: print only the program's own output.

    Returns:
        The `Trace`. The program's exit status is not looked at.

    Raises:
        ValueError, RuntimeError: nothing was recorded; the message says why.
        KeyboardInterrupt: at Ctrl-C; what was recorded is there.
    """
    line = _line("record", _arguments(locals()))
    is_there = os.path.lexists(output)
    status, _, said = _command("record", ["--quiet", *line] if quiet else line)
    if is_there or not os.path.isdir(output):
        _failed("record", status, said)
    return _isotherm.Trace(output)


class Run:
    """A live run: `status`, the program's exit status, and `result`, the summary as a dictionary.

    docs/reference/live-schema.md explains the summary.
    """

    def __init__(self, status, result):
        self.status = status
        self.result = result

    def __repr__(self):
        return f"<isotherm.Run under {self.result.get('policy')}: exit status {self.status}>"


def run(
    command,
    *,
    policy=None,
    cgroup=None,
    fast=None,
    tiers=None,
    shadow=False,
    model_counters=False,
    source=None,
    control=None,
    daemon=None,
    overhead=None,
    rate=None,
    machine=None,
    page_size=None,
    set=None,
    seed=None,
    scale=None,
    summary=None,
    report=None,
    alloc=None,
    descendants=False,
    quiet=False,
):
    """Runs a program with its memory tiered; without a slow tier, reports what would move.

    Args:
        command: the program and its arguments, as a list.
        policy: a name, a library's path, or "FILE.py:CLASS"; a class must stand in a file.
        fast: limit of fast memory: bytes, "1:4" or "25%" of the mapped memory.
        shadow: move nothing.
        overhead: time that the program may lose to a source inside it, such as "2%".
        rate: limit of migration in bytes a second.
        report, summary: write the result to an HTML or a JSON file.
        quiet: print no text but the program's output.
        Others: as `python -m isotherm run --help` tells.

    Returns:
        A `Run`.

    Raises:
        ValueError, RuntimeError: the program did not run, or was not tiered; the message says why.
    """
    if callable(policy):
        policy = f"{os.path.realpath(inspect.getsourcefile(policy))}:{policy.__qualname__}"
    with tempfile.TemporaryDirectory() as folder:
        given = _arguments(locals())
        del given["folder"]
        given["summary"] = summary or os.path.join(folder, "summary.json")
        line = _line("run", given)
        status, _, said = _command("run", ["--quiet", *line] if quiet else line)
        try:
            with open(given["summary"], encoding="utf-8") as file:
                return Run(status, json.load(file))
        except (OSError, ValueError):
            _failed("run", status, said)


def score(paper=None, *, only=None, quick=False, seed=None, output=None, update=False, report=None, max_memory=None,
          quiet=False):
    """Reproduces the papers' comparisons; all take about an hour.

    Args:
        paper, only: a paper, or comparisons by their names.
        quick: smaller runs, in minutes.
        seed: seed of every random choice.
        output: folder for scoreboard.md and scoreboard.json.
        update: replace the entries of a partial run in that folder's scoreboard.
        report: write a page to this HTML file.
        max_memory: memory that the runs may take.
        quiet: print no progress.

    Returns:
        The scoreboard as a dictionary, as in docs/generated/scoreboard.json.

    Raises:
        As `simulate`.
    """
    line = _line("score", _arguments(locals()))
    status, out, said = _command("score", ["--json", *(["--quiet"] if quiet else []), *line], subprocess.PIPE)
    if status != 0:
        _failed("score", status, said)
    return json.loads(out)


def convert(input, output, *, from_, cache=None, ways=None):
    """Converts another tool's output to a trace.

    Args:
        input: the tool's file; for "drmemtrace" also the directory of its threads' files.
        output: path of the trace, which must not exist yet.
        from_: "perf", "lackey", "damon", "memtierd", "drmemtrace", "champsim", "oracle-general" or "trace".
        cache, ways: size and ways of the cache through which the accesses of lackey, drmemtrace and champsim
            pass.

    Returns:
        The `Trace`.

    Raises:
        ValueError: the input is not of this format; the message says where.
    """
    options = {"--cache": cache, "--ways": ways}
    given = [f"{name}={value}" for name, value in options.items() if value is not None]
    return _isotherm.Trace(_trace("convert", [f"--from={from_}", *given], input, output))


def export(trace, output, *, to="oracle-general", page_size="base"):
    """Writes a trace in another tool's format: libCacheSim's oracleGeneral, an object for each page.

    Returns:
        The path of the file, which must not exist yet.

    Raises:
        ValueError: as `convert`.
    """
    return _trace("export", [f"--to={to}", f"--page-size={page_size}"], trace, output)


def _trace(verb, options, input, output):
    status, _, said = _command("trace", [verb, *options, "--output", os.fspath(output), "--", os.fspath(input)])
    if status != 0:
        _failed("trace", status, said)
    return output
