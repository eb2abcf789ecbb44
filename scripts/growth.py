#!/usr/bin/env python3
"""How time and memory of record, simulate, size and a report grow with misses and the memory that they touch.

    scripts/growth.py --binary target/release/isotherm --synthetic target/release/examples/synthetic

Records a program that makes the accesses of a synthetic trace, writes that trace, runs each other verb on it
under LRU, and notes the wall time, the processor time and the memory that it had at most. Writes a table to docs/generated/growth.md and a picture
to docs/pictures/growth.svg; with `--quick`, small ones to build/growth. What the machine's memory does not hold
stands in the table with Isotherm's own line.
"""

import argparse
import math
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MISSES = {"10M": 10e6, "100M": 100e6, "1G": 1e9}
MEMORY = {"1G": 2**30, "10G": 10 * 2**30, "100G": 100 * 2**30}
QUICK = ({"1M": 1e6, "4M": 4e6}, {"1G": 2**30, "2G": 2**31})
PAGE = 4096
# Okabe and Ito's colours, which colour-blind people tell apart.
VERBS = {
    "record": (["record", "--cache", "2M", "--no-dependence", "--output", "recorded.trace", "--"], "#cc79a7"),
    "simulate": (["simulate", "--policy", "lru", "--fast", "1:8", "--json"], "#0072b2"),
    "size": (["size", "--policy", "lru", "--json"], "#d55e00"),
    "report": (
        ["simulate", "--policy", "lru", "--fast", "1:8", "--json", "--report", "growth.html"],
        "#009e73",
    ),
}
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 380, 300, 56, 30, 44, 16


def measure(binary, verb, folder, program=None):
    """Runs a verb on the trace in a folder, or on a program. Returns wall seconds, processor seconds and bytes, or
    its error."""
    options, _ = VERBS[verb]
    command = [binary, *options, *program] if program else [binary, *options[:1], "big.trace", *options[1:], "-q"]
    start = time.monotonic()
    with open(folder / "errors", "wb") as errors:
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    if status != 0:
        return (folder / "errors").read_text().strip() or f"status {status}"
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def rows(binary, synthetic, misses, memory):
    for name, count in misses.items():
        for size, held in memory.items():
            if held / PAGE > count:
                continue
            with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
                folder = pathlib.Path(folder)
                row = {"misses": name, "count": count, "memory": size}
                yield recorded(binary, [synthetic, str(int(count)), str(held), "-"], folder, row, held)
                subprocess.run([synthetic, str(int(count)), str(held), folder / "big.trace"], check=True)
                bytes = sum(part.stat().st_size for part in (folder / "big.trace").iterdir())
                for verb in list(VERBS)[1:]:
                    yield told({**row, "verb": verb, "trace": bytes, "measured": measure(binary, verb, folder)})


def told(row):
    print(row["verb"], row["misses"], row["memory"], row["measured"], flush=True)
    return row


def recorded(binary, program, folder, row, held):
    """Records the program, if this machine's memory holds it."""
    available = re.search(r"MemAvailable: +(\d+) kB", pathlib.Path("/proc/meminfo").read_text())[1]
    row = {**row, "verb": "record", "trace": 0}
    if held > 0.9 * 1024 * int(available):
        return told({**row, "measured": "the program takes more memory than this machine has free"})
    measured = measure(binary, "record", folder, program)
    trace = folder / "recorded.trace"
    bytes = sum(part.stat().st_size for part in trace.iterdir()) if trace.exists() else 0
    shutil.rmtree(trace, ignore_errors=True)
    return told({**row, "trace": bytes, "measured": measured})


def table(rows):
    lines = [
        "# Growth",
        "",
        "`make growth` writes this page: synthetic traces under LRU, whose hottest hundredth of the pages takes",
        "nearly half of the misses. Memory is what the process had at most; for `record`, what the recorded program",
        "had in QEMU. There is no row of more pages than misses.",
        "",
        "![Time and memory by misses](../pictures/growth.svg)",
        "",
        "| verb | misses | memory touched | trace | wall time | processor time | memory | ns a miss | bytes a miss |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: list(VERBS).index(row["verb"])):
        head = f"| {row['verb']} | {row['misses']} | {row['memory']} | {row['trace'] / 1e6:.0f} MB "
        if isinstance(row["measured"], str):
            lines.append(f"{head}| {row['measured']} | | | | |")
            continue
        wall, processor, memory = row["measured"]
        figures = f"| {wall:.1f} s | {processor:.1f} s | {memory / 1e9:.2f} GB "
        each = f"| {processor / row['count'] * 1e9:.0f} | {memory / row['count']:.0f} |"
        lines.append(head + figures + each)
    return "\n".join(lines) + "\n"


def picture(rows):
    """Draws time and memory against misses, both on logarithmic scales: a line of slope 1 is linear."""
    measured = [row for row in rows if not isinstance(row["measured"], str)]
    parts = []
    for panel, (title, index, unit) in enumerate([("processor time, s", 1, 1), ("memory, GB", 2, 1e9)]):
        values = [row["measured"][index] / unit for row in measured]
        low, high = (math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))))
        first, last = (math.log10(f(row["count"] for row in measured)) for f in (min, max))

        def place(count, value):
            x = (math.log10(count) - first) / max(last - first, 1e-9) * (WIDTH - LEFT - RIGHT)
            y = (high - math.log10(value)) / max(high - low, 1) * (HEIGHT - TOP - BOTTOM)
            return panel * WIDTH + LEFT + x, TOP + y

        def text(x, y, words, anchor="middle"):
            parts.append(f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{words}</text>')

        text(panel * WIDTH + WIDTH / 2, 16, title)
        for power in range(low, high + 1):
            x, y = place(10**first, 10.0**power)
            parts.append(f'<path d="M{x:.0f} {y:.0f}h{WIDTH - LEFT - RIGHT}" stroke="#ddd"/>')
            text(x - 6, y + 4, f"{10.0**power:g}", "end")
        for name, count in sorted({(row["misses"], row["count"]) for row in measured}, key=lambda it: it[1]):
            text(place(count, 1)[0], HEIGHT - BOTTOM + 18, name)
        for verb, (_, colour) in VERBS.items():
            for size in {row["memory"]: None for row in measured}:
                of = [row for row in measured if (row["verb"], row["memory"]) == (verb, size)]
                points = [place(row["count"], row["measured"][index] / unit) for row in of]
                line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
                parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
                for (x, y), row in zip(points, of):
                    label = f"<title>{verb}, {row['misses']} misses, {size}</title>"
                    parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}">{label}</circle>')
        for number, (verb, (_, colour)) in enumerate(VERBS.items()):
            x, y = panel * WIDTH + LEFT + 8 + 90 * number, HEIGHT - 8
            parts.append(f'<circle cx="{x}" cy="{y - 4}" r="3" fill="{colour}"/>')
            text(x + 8, y, verb, "start")
    size = f'viewBox="0 0 {2 * WIDTH} {HEIGHT}" width="{2 * WIDTH}" height="{HEIGHT}"'
    style = 'font-family="sans-serif" font-size="12" fill="#333"'
    back = '<rect width="100%" height="100%" fill="#fff"/>'
    body = "\n".join(parts)
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n{back}\n{body}\n</svg>\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=pathlib.Path, required=True)
    parser.add_argument("--synthetic", type=pathlib.Path, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--misses", help="only these, such as 10M,100M")
    arguments = parser.parse_args()
    misses, memory = QUICK if arguments.quick else (MISSES, MEMORY)
    if arguments.misses:
        misses = {name: misses[name] for name in arguments.misses.split(",")}
    (ROOT / "build").mkdir(exist_ok=True)
    quick = ROOT / "build" / "growth"
    page, drawn = ROOT / "docs" / "generated" / "growth.md", ROOT / "docs" / "pictures" / "growth.svg"
    if arguments.quick:
        page, drawn = quick / "generated" / "growth.md", quick / "pictures" / "growth.svg"
    found = []
    for row in rows(arguments.binary.resolve(), arguments.synthetic.resolve(), misses, memory):
        found.append(row)
        # What was measured stays if the rest is interrupted.
        for path, text in [(page, table(found)), (drawn, picture(found))]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


if __name__ == "__main__":
    main()
