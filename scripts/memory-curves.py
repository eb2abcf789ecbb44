#!/usr/bin/env python3
"""Draws the simulated curves of memory beside those that the tiers were given, into docs/pictures/memory-curves.svg.

    cargo run --release -p isotherm-machine --example curves > build/memory-curves.csv
    scripts/memory-curves.py build/memory-curves.csv
"""

import csv
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Measured families, and the model of a CXL expander; the profiles' derived curves are left out.
TITLES = {
    "xeon-5218-ddr4": "Xeon Gold 5218, DDR4",
    "epyc-7742-ddr4": "EPYC 7742, DDR4-3200",
    "xeon-8480-ddr5": "Xeon Platinum 8480+, DDR5-4800",
    "xeon-9480-hbm": "Xeon Max 9480, HBM2",
    "grace-lpddr5": "NVIDIA Grace, LPDDR5",
    "cxl-model": "CXL expander (maker's model)",
}
# Okabe and Ito's colours, which colour-blind people tell apart, from few reads to reads alone.
COLOURS = ["#d55e00", "#e69f00", "#009e73", "#56b4e9", "#0072b2"]
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT, COLUMNS = 340, 232, 46, 30, 40, 88, 3


def read(rows):
    family = {}
    for row in csv.DictReader(rows):
        point = (float(row["bandwidth_gb_s"]), float(row["latency_ns"]))
        family.setdefault(float(row["read_percent"]), []).append(point)
    return family


def measured(name):
    with open(ROOT / "machines/curves" / f"{name}.csv") as file:
        return read(line for line in file if not line.startswith("#"))


def simulated(path):
    families = {}
    with open(path) as file:
        for row in csv.DictReader(file):
            point = (float(row["bandwidth_gb_s"]), float(row["latency_ns"]))
            families.setdefault(row["curve"], {}).setdefault(float(row["read_percent"]), []).append(point)
    return families


def panel(name, given, points, left, top):
    right = max(bandwidth for curve in given.values() for bandwidth, _ in curve)
    high = math.ceil(max(latency for curve in given.values() for _, latency in curve) / 100) * 100

    def x(bandwidth):
        return left + LEFT + bandwidth / right * (WIDTH - LEFT - RIGHT)

    def y(latency):
        return top + HEIGHT - BOTTOM - min(latency, high) / high * (HEIGHT - TOP - BOTTOM)

    parts = [f'<text x="{left + LEFT}" y="{top + 18}" font-weight="bold">{TITLES[name]}</text>']
    for latency in range(0, high + 1, 100 if high <= 500 else 200):
        parts.append(
            f'<path d="M{x(0):.0f} {y(latency):.1f}H{x(right):.0f}" stroke="#ddd"/>'
            f'<text x="{x(0) - 6:.0f}" y="{y(latency) + 4:.0f}" text-anchor="end">{latency}</text>'
        )
    for bandwidth in (0, right / 2, right):
        parts.append(f'<text x="{x(bandwidth):.0f}" y="{top + HEIGHT - 24}" text-anchor="middle">{bandwidth:.0f}</text>')
    colours = COLOURS if len(given) > 3 else COLOURS[::2]
    for index, (percent, curve) in enumerate(sorted(given.items())):
        colour = colours[index]
        line = " ".join(f"{x(bandwidth):.1f},{y(latency):.1f}" for bandwidth, latency in curve)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        for bandwidth, latency in points[percent]:
            if bandwidth <= curve[-1][0]:
                parts.append(f'<circle cx="{x(bandwidth):.1f}" cy="{y(latency):.1f}" r="2.2" fill="{colour}"/>')
        parts.append(
            f'<text x="{x(right) + 10:.0f}" y="{top + TOP + 14 + 17 * index}" fill="{colour}">{percent:.0f} % reads</text>'
        )
    return parts


def main():
    families = simulated(sys.argv[1])
    height = HEIGHT * math.ceil(len(TITLES) / COLUMNS) + 18
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH * COLUMNS} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH * COLUMNS}" height="{height}" fill="#fff"/>',
    ]
    for index, name in enumerate(TITLES):
        parts += panel(name, measured(name), families[name], index % COLUMNS * WIDTH, index // COLUMNS * HEIGHT)
    parts.append(
        f'<text x="{WIDTH * COLUMNS / 2}" y="{height - 8}" text-anchor="middle">bandwidth in GB/s and latency in ns: '
        "lines as given, dots as a simulated chase beside load measures them</text></svg>"
    )
    target = ROOT / "docs/pictures/memory-curves.svg"
    target.write_text("\n".join(parts) + "\n")
    print(target.relative_to(ROOT))


main()
