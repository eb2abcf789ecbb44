"""The native B+-tree (crates/alloc/programs/btree.c) under several allocators: builds it, records it, reads its misses."""

import os
import pathlib
import shutil
import subprocess

SOURCE = pathlib.Path(__file__).parent.parent / "crates/alloc/programs/btree.c"
LOADER = "/lib64/ld-linux-x86-64.so.2"
JEMALLOC = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
# The recorder's emulator describes each page of a reservation: a small one suffices here.
REGION_SIZE = 128 << 20
LOADING = 0.25  # of the misses are taken to be those of loading: ten reads follow each insertion


def compile_program(folder, frame_pointers=False):
    """The program, built in `folder`."""
    option = f"-f{'no-' if frame_pointers else ''}omit-frame-pointer"
    program = folder / ("btree" + option)
    subprocess.run(["gcc", "-O2", option, SOURCE, "-o", program], check=True)
    return program


def under(library, command):
    """The command line that runs `command` with `library` in front; without one as it is."""
    return [LOADER, "--preload", os.path.abspath(library), *command] if library else command


def record(binary, trace, command, settings=None, dependence=False):
    """Records the misses of `command`; `settings` are the allocator's. Without `dependence` it is faster."""
    shutil.rmtree(trace, ignore_errors=True)
    environment = os.environ | {"ISOTHERM_ALLOC_REGION_SIZE": str(REGION_SIZE)} | (settings or {})
    call = [binary, "record", *([] if dependence else ["--no-dependence"]), "--quiet", "-o", trace, "--", *command]
    subprocess.run(call, check=True, env=environment, stdout=subprocess.DEVNULL)


def read_misses(binary, trace):
    """The addresses of the misses of a recording's reads."""
    info = subprocess.run([binary, "trace", "info", trace], check=True, capture_output=True, text=True).stdout
    head = subprocess.Popen([binary, "trace", "head", "-n", info.split()[1], trace], stdout=subprocess.PIPE)
    next(head.stdout)
    addresses = [int(line.split(b"\t")[3], 16) for line in head.stdout]
    return addresses[int(len(addresses) * LOADING) :]


def needed(counts, share):
    """How many of the most popular ones have this share of all."""
    left = sum(counts.values()) * share
    for number, (_, count) in enumerate(counts.most_common(), 1):
        left -= count
        if left <= 0:
            return number
    return len(counts)
