"""Counts the pages that cover a share of a B-tree's reads under several allocators, from recordings of its misses.

    scripts/alloc-grouping.py --binary target/release/isotherm --library target/release/libisotherm_alloc.so

Beside them stands the bound: lines of 64 bytes, which is the size of its objects, packed into pages by popularity.
"""

import argparse
import collections
import math
import os
import pathlib
import subprocess
import tempfile

SOURCE = pathlib.Path(__file__).parent.parent / "crates/alloc/programs/btree.c"
LOADER = "/lib64/ld-linux-x86-64.so.2"
JEMALLOC = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
SHARES = (0.25, 0.5, 0.75, 0.9)
LOADING = 0.25  # of the misses are taken to be those of loading: ten reads follow each insertion


def compile_program(folder, option):
    program = folder / ("btree" + option)
    subprocess.run(["gcc", "-O2", option, SOURCE, "-o", program], check=True)
    return program


def misses(binary, folder, name, command):
    """The addresses of a recording's misses."""
    trace = folder / (name + ".trace")
    # The recorder's emulator describes each page of a reservation: a small one suffices here.
    environment = os.environ | {"ISOTHERM_ALLOC_REGION_SIZE": "128M"}
    record = [binary, "record", "--no-dependence", "--quiet", "-o", trace, "--", *command]
    subprocess.run(record, check=True, env=environment, stdout=subprocess.DEVNULL)
    info = subprocess.run([binary, "trace", "info", trace], check=True, capture_output=True, text=True).stdout
    rows = info.split()[1]
    head = subprocess.Popen([binary, "trace", "head", "-n", rows, trace], stdout=subprocess.PIPE)
    next(head.stdout)
    return [int(line.split(b"\t")[3], 16) for line in head.stdout]


def needed(counts, share):
    """How many of the most popular ones have this share of all."""
    left = sum(counts.values()) * share
    for number, (_, count) in enumerate(counts.most_common(), 1):
        left -= count
        if left <= 0:
            return number
    return len(counts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default="target/release/isotherm")
    parser.add_argument("--library", default="target/release/libisotherm_alloc.so")
    parser.add_argument("--records", default="300000")
    parser.add_argument("--reads", default="3000000")
    arguments = parser.parse_args()
    size = [arguments.records, arguments.reads]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        plain, pointers = (compile_program(folder, f"-f{no}omit-frame-pointer") for no in ("", "no-"))
        library = os.path.abspath(arguments.library)
        runs = {
            "glibc": [plain, *size],
            "jemalloc": [LOADER, "--preload", JEMALLOC, plain, *size],
            "context": [LOADER, "--preload", library, plain, *size],
            "context, frame pointers": [LOADER, "--preload", library, pointers, *size],
        }
        print("pages for".ljust(24), *(f"{share:7.0%}" for share in SHARES), "    bound at 50%")
        for name, command in runs.items():
            addresses = misses(arguments.binary, folder, name.replace(", ", "-").replace(" ", "-"), command)
            addresses = addresses[int(len(addresses) * LOADING):]
            pages = collections.Counter(address >> 12 for address in addresses)
            lines = collections.Counter(address >> 6 for address in addresses)
            bound = math.ceil(needed(lines, 0.5) / 64)
            print(name.ljust(24), *(f"{needed(pages, share):7}" for share in SHARES), f"{bound:12}")


if __name__ == "__main__":
    main()
