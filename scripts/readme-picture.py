#!/usr/bin/env python3
"""Draws the README's picture from the demo's recording of sqlite3: slowdown in the long run by the share of
memory that is fast. Takes some ten minutes.

    scripts/readme-picture.py --binary target/release/isotherm
"""

import argparse
import json
import math
import pathlib
import subprocess

# Names and colours (Okabe and Ito's, which colour-blind people tell apart), in the order of the legend.
LINES = {
    "all-slow": ("all memory slow", "#999999"),
    "first-touch": ("first-touch (Linux' default)", "#0072b2"),
    "hybridtier": ("HybridTier", "#d55e00"),
    "pact": ("PACT", "#009e73"),
    "belady": ("best placement (bound)", "#000000"),
}
SIZES = ["3.125%", "6.25%", "12.5%", "25%", "50%", "100%"]
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 720, 320, 64, 16, 52, 236


def runs(binary, trace):
    command = [binary, "simulate", trace, "--for", "10min", "--fast", ",".join(SIZES)]
    command += ["--policy", ",".join(LINES), "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["runs"]


def picture(runs):
    top = max(run["long_run"]["slowdown"] for run in runs)
    low, high = 1.0, math.ceil(top * 20) / 20

    def x(share):
        return LEFT + (math.log2(share) + 5) / 5 * (WIDTH - LEFT - RIGHT)

    def y(slowdown):
        return TOP + (high - slowdown) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    step = 0.05 if high - low <= 0.5 else 0.2
    for index in range(int(round((high - low) / step)) + 1):
        value = low + index * step
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#dddddd"/>'
            f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.2f}</text>'
        )
    for size in SIZES:
        share = float(size.rstrip("%")) / 100
        label = "all" if share == 1 else f"1/{round(1 / share)}"
        parts.append(f'<text x="{x(share):.1f}" y="{HEIGHT - 30}" text-anchor="middle">{label}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">share of memory that is fast</text>')
    parts.append(
        f'<text transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">'
        "time / time with all memory fast</text>"
    )
    for index, (policy, (name, colour)) in enumerate(LINES.items()):
        points = sorted(
            (run["fast_bytes"] / run["footprint_bytes"], run["long_run"]["slowdown"])
            for run in runs
            if run["policy"] == policy
        )
        path = " ".join(f"{x(min(share, 1)):.1f},{y(slowdown):.1f}" for share, slowdown in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        row = TOP + 18 + 24 * index
        parts.append(
            f'<line x1="{WIDTH - RIGHT + 16}" x2="{WIDTH - RIGHT + 40}" y1="{row}" y2="{row}" stroke="{colour}"'
            f' stroke-width="2.5"/><text x="{WIDTH - RIGHT + 48}" y="{row + 4}">{name}</text>'
        )
    return "\n".join(parts + ["</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="target/release/isotherm")
    parser.add_argument("--trace", default="build/demo/shop.trace")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("docs/pictures/sqlite3.svg"))
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(picture(runs(options.binary, options.trace)))


if __name__ == "__main__":
    main()
