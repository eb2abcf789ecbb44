#!/usr/bin/env python3
"""Measures what the daemon costs: beside 50 idle programs in 10 groups, and beside 10 busy ones.

    scripts/bench-daemon.py [--binary target/release/isotherm] [--seconds 30] [--busy 10]

Everything runs in shadow mode on this machine, with the log of operations. Prints processor time as a share of
one core, resident memory, samples a second, and the log's size in an hour. Engines of busy programs take part of their work in the programs (hint faults): the
daemon's figure has only its own threads and agents.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

GROUPS = 10


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_megabytes(pid):
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure(binary, folder, program, arguments, count, seconds, policy):
    """Runs `count` programs, spread over the groups, and a daemon beside them."""
    names = [f"bench-{os.getpid()}-{group}" for group in range(GROUPS)]
    for name in names:
        shutil.copy(program, folder / name)
    groups = "".join(f'[[group]]\nname = "{name}"\ncommand = "{name}"\n' for name in names)
    config, socket = folder / "isotherm.toml", folder / "socket"
    config.write_text(f'shadow = true\nlisten = "off"\nlog = "{folder}/log"\npolicy = "{policy}"\n{groups}')
    programs = [
        subprocess.Popen([folder / names[at % GROUPS], *arguments], stdout=subprocess.DEVNULL)
        for at in range(count)
    ]
    command = [binary, "daemon", "--config", config, "--socket", socket]
    daemon, started = subprocess.Popen(command, stderr=subprocess.DEVNULL), time.monotonic()
    try:
        # Programs are found and their memory is read first.
        time.sleep(10)
        before, began = processor_seconds(daemon.pid), time.monotonic()
        samples = sampled(binary, socket)
        time.sleep(seconds)
        passed = time.monotonic() - began
        used = (processor_seconds(daemon.pid) - before) / passed
        memory, samples = resident_megabytes(daemon.pid), (sampled(binary, socket) - samples) / passed
        # Its last file is written at its end.
        daemon.terminate()
        daemon.wait()
        log = sum(file.stat().st_size for file in (folder / "log").glob("*.parquet"))
        return used, memory, samples, log / 1e6 * 3600 / (time.monotonic() - started)
    finally:
        for process in [daemon, *programs]:
            process.kill()
            process.wait()


def sampled(binary, socket):
    status = json.loads(subprocess.check_output([binary, "top", "--json", "--socket", socket]))
    followed = sum(len(group["programs"]) for group in status["groups"])
    assert followed, "the daemon follows no program"
    return sum(group["samples"] for group in status["groups"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="target/release/isotherm")
    parser.add_argument("--target", default="target/release/examples/live-target")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--busy", type=int, default=10)
    options = parser.parse_args()
    cases = [
        ("50 idle programs", shutil.which("sleep"), ["3600"], 50, "isotherm"),
        # The default policy hardly samples where nothing is to be gained.
        (f"{options.busy} busy programs", options.target,
         ["planted", "--size", "64M", "--operations", "100000000000"], options.busy, "hybridtier"),
    ]
    for name, program, arguments, count, policy in cases:
        with tempfile.TemporaryDirectory() as folder:
            used, memory, samples, log = measure(
                options.binary, pathlib.Path(folder), program, arguments, count, options.seconds, policy)
        print(f"{name} under {policy} in {min(count, GROUPS)} groups: {100 * used:.2f} % of a core, {memory:.0f} MB, "
              f"{samples:.0f} samples a second, a log of {log:.1f} MB an hour", flush=True)


main()
