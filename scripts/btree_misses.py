"""The native B+-tree (crates/alloc/programs/btree.c) under several allocators: builds it, records it, reads
its misses."""

import itertools
import os
import pathlib
import shutil
import subprocess

SOURCE = pathlib.Path(__file__).parent.parent / "crates/alloc/programs/btree.c"
LOADER = "/lib64/ld-linux-x86-64.so.2"
JEMALLOC = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
# The recorder's emulator describes each page of a reservation: a small one suffices here.
REGION_SIZE = 128 << 20


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
    options = ["--no-aslr", "--quiet", *([] if dependence else ["--no-dependence"])]
    subprocess.run(
        [binary, "record", *options, "-o", trace, "--", *command],
        check=True,
        env=environment,
        stdout=subprocess.DEVNULL,
    )


def count_misses(binary, trace):
    """How many misses a recording has."""
    info = subprocess.run([binary, "trace", "info", trace], check=True, capture_output=True, text=True).stdout
    return int(info.split()[1])


def read_misses(binary, trace, command, size, **how):
    """Records the program with (records, reads); returns the addresses of its reads' misses: those behind as
    many as it has without reads."""
    records, reads = size
    record(binary, trace, [*command, records, "0"], **how)
    loading = count_misses(binary, trace)
    record(binary, trace, [*command, records, reads], **how)
    head = subprocess.Popen(
        [binary, "trace", "head", "-n", str(count_misses(binary, trace)), trace], stdout=subprocess.PIPE
    )
    next(head.stdout)
    return [int(line.split(b"\t")[3], 16) for line in itertools.islice(head.stdout, loading, None)]


def needed(counts, share):
    """How many of the most popular ones have this share of all."""
    left = sum(counts.values()) * share
    for number, (_, count) in enumerate(counts.most_common(), 1):
        left -= count
        if left <= 0:
            return number
    return len(counts)
