#!/usr/bin/env python3
"""Switches off each mechanism of the policy `isotherm`, one at a time, and shows what changes.

    scripts/isotherm-ablation.py build        make a library of the policy without each mechanism
    scripts/isotherm-ablation.py run          compare them on both halves of scripts/isotherm-policy.py's inputs

A library holds the policy's own source with the change below, in build/ablation.
"""

import argparse
import concurrent.futures
import importlib.util
import math
import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build/ablation"
# Each mechanism's file, and the text by which it is switched off.
MECHANISMS = {
    "shrinkage": [("rates.rs", "let mean = self.around + self.own * (f64::from(count) - self.around);",
                   "return Rate { mean: f64::from(count), variance: f64::from(count) };\n        #[allow(unreachable_code)]\n"
                   "        let mean = self.around;")],
    "short-memory": [("rates.rs", "self.leader = usize::from(self.told() <= 0.0);", "self.leader = 1;")],
    "half-life": [("rates.rs", "if lead > TELLS", "if lead > f64::MAX"),
                  ("rates.rs", "if lead < -TELLS", "if lead < f64::MIN")],
    "pages-first": [("rates.rs", "if self.within.abs() > TELLS { self.within } else { self.lead }", "self.lead")],
    "within-the-run": [("rates.rs", "2f64.sqrt()).min(most);", "2f64.sqrt()).min(most.max(f64::MAX));")],
    "caution": [("swaps.rs", "const CAUTION: f64 = 1.0;", "const CAUTION: f64 = 0.0;")],
    "threads": [("books.rs", "let worth = self.worth(sample.tier) * part;",
                 "let worth = self.worth(sample.tier) * (self.elapsed() / self.spent.running.0.max(1) as f64).min(1.0);")],
    "neighbours": [("parts.rs", "const NEIGHBOURS: usize = 8;", "const NEIGHBOURS: usize = 1 << 40;")],
    "lost": [("books.rs", "const LOST: f64 = 0.25;", "const LOST: f64 = 1.0;")],
    "idle": [("books/worth.rs", "shown.or_else(|| self.idle.get(tier.index()).copied())",
              "if self.has_latencies() { shown } else { self.idle.get(tier.index()).copied() }")],
    "stall": [("books/worth.rs", "(Some(stall), _) if stall > 0.0 => stall,", "(Some(stall), _) if stall > f64::MAX => stall,"),
              ("books/worth.rs", "self.stalls.iter().any(", "false && self.stalls.iter().any(")],
    "tier-stall": [("books/worth.rs", "Some(stall) if self.tell_stalls() =>", "Some(stall) if false && self.tell_stalls() =>")],
    "even": [("books.rs", "const EVENED: f64 = 4.0;", "const EVENED: f64 = 1.0;")],
    "together": [("books/worth.rs", "self.stall().min(together) * self.saving(tier, home)", "self.stall().min(together.max(f64::MAX)) * self.saving(tier, home)")],
    "weights": [("rates.rs", "if sum > 0.0 { f64::from(squares / sum) } else { 1.0 }", "if sum > 0.0 { squares.signum().into() } else { 1.0 }")],
    "unit": [("rates.rs", "(share / self.share).log2().max(0.0)", "(0.0 * share / self.share).max(0.0)")],
    "call": [("books.rs", "const CALL: f64 = 16.0;", "const CALL: f64 = 0.0;")],
    "short-looks": [("mod.rs", "Nanos(4_000_000));", "Nanos(100_000_000));")],
    "relief": [("mod.rs", "self.books.overload(pair.upper, pair.lower) * stay", "f64::MIN")],
    "price": [("mod.rs", "let margin = swap / value;", "let margin = 0.0 * swap;")],
    "way-back": [("mod.rs", "const MOVES_OF_SWAP: f64 = 4.0;", "const MOVES_OF_SWAP: f64 = 2.0;"),
                 ("mod.rs", "self.books.allowance() - self.displaced as f64 * price", "self.books.allowance()")],
    "books": [("books.rs", "TRUST * self.elapsed() + kept * self.confirmed() - self.cost",
               "f64::MAX + 0.0 * kept * self.confirmed()")],
    "claims": [("books.rs", "self.saved.min(CLAIMED * self.stake.proved())", "self.saved")],
    "stake": [("books.rs", "self.stake.left(allowed", "1e9 + 0.0 * self.stake.left(allowed")],
    "losses": [("books.rs", "(AT_STAKE * proved + self.saved.min(0.0))", "AT_STAKE * proved")],
    "overspent": [("books.rs", "(TRUST - overspent / time).max(0.0)", "TRUST + 0.0 * overspent")],
    "others-loss": [("stake.rs", "(2.0 * known).min(most / home)", "2.0 * known")],
    "places": [("back.rs", "if count > 0 && up.len() > swaps {", "if false {")],
    "owed-samples": [("mod.rs", "let allowed = if owed {", "let allowed = if false {")],
    "trial": [("mod.rs", "const TRIAL: f64 = 32.0;", "const TRIAL: f64 = 1e9;")],
    "back-off": [("mod.rs", "self.overhead /= 1.5;", "")],
    "denser": [("mod.rs", "self.overhead *= 2.0;", "")],
    "waking": [("mod.rs", "if self.books.changed() {", "if self.books.changed() && false {")],
    "waiting": [("mod.rs", "self.due = (waiting > TRIAL).then", "self.due = (waiting > f64::MAX).then")],
    "spread": [("swaps.rs", "self.due += self.taken;\n        let taken = self.due >= self.of;\n"
                "        self.due -= if taken { self.of } else { 0 };\n        taken",
                "let taken = self.taken > 0;\n        self.taken -= u32::from(taken);\n        taken")],
}
# In a library, the crate's own names stand for these.
NAMES = {"use crate::prelude::*;": "use isotherm_core::parameters::Parameters;\nuse isotherm_core::*;",
         "use crate::support::SAMPLE_BYTES;": "const SAMPLE_BYTES: u64 = 16;"}
LIBRARY = """mod isotherm;
struct Settings;
impl Settings {
    const SPECS: &[isotherm_core::parameters::Spec] = &[];
}
isotherm_policy::export! {
    name: "NAME", title: "NAME", paper: "not published", help: "isotherm", settings: Settings, policy: isotherm::Isotherm,
}
"""


def changed(text, old, new, name):
    if text.count(old) != 1:
        raise SystemExit(f"ablation: {name}: the source has {text.count(old)} times: {old}")
    return text.replace(old, new)


def build(isotherm):
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    subprocess.run([isotherm, "policy", "new", "ablated"], cwd=FOLDER, check=True, capture_output=True)
    crate = FOLDER / "ablated"
    (crate / "src/policy.rs").unlink()
    # Itself, as a library: it must do as the one inside.
    for name, changes in {"nothing": [], **MECHANISMS}.items():
        source = crate / "src/isotherm"
        shutil.rmtree(source, ignore_errors=True)
        shutil.copytree(ROOT / "crates/policies/src/isotherm", source)
        for old, new in NAMES.items():
            (source / "mod.rs").write_text(changed((source / "mod.rs").read_text(), old, new, name))
        for file, old, new in changes:
            (source / file).write_text(changed((source / file).read_text(), old, new, name))
        (crate / "src/lib.rs").write_text(LIBRARY.replace("NAME", f"without-{name}"))
        command = ["cargo", "build", "--release", "--quiet", "--config", "profile.release.strip=true"]
        subprocess.run(command, cwd=crate, check=True, env={**os.environ, "RUSTFLAGS": "-A warnings"})
        shutil.copy(crate / "target/release/libablated_policy.so", FOLDER / f"without-{name}.so")
        print(f"built without {name}", flush=True)


def mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values))


def run(options):
    spec = importlib.util.spec_from_file_location("policy", ROOT / "scripts/isotherm-policy.py")
    policy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(policy)
    names = options.inputs or [name for half in ("dev", "held") for name in policy.halves()[half]]
    options.half = "dev"
    chosen = ["isotherm", "first-touch", *(str(FOLDER / f"without-{name}.so") for name in ["nothing", *MECHANISMS])]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        simulated = list(pool.map(lambda name: policy.simulate(name, ",".join(chosen), options), names))
    missing = [name for name, all in zip(names, simulated) if not all]
    if missing:
        raise SystemExit(f"ablation: no result for {', '.join(missing)}: `make demo` records shop and sort")
    runs = {(name, run["fast"], run["policy"]): run for name, all in zip(names, simulated) for run in all}
    places = [(name, fast) for name in names for fast in options.fast.split(",")]

    def compared(one, other, figure):
        return [figure(runs[(*place, one)]) / figure(runs[(*place, other)]) for place in places]

    def long_run(run):
        return run["long_run"]["slowdown"]

    def whole(run):
        return run["slowdown"]

    def moves(run):
        return run["promotions"] + run["demotions"]

    print("| without | last rounds | whole runs | its best input | its worst | worst against first-touch, whole | moves |")
    print("|---" * 7 + "|")
    for name in ["nothing", *MECHANISMS]:
        without = f"without-{name}"
        last = compared(without, "isotherm", long_run)
        low, high = min(last), max(last)
        worst = max(compared(without, "first-touch", whole)) - 1
        total = [sum(moves(runs[(*place, one)]) for place in places) for one in (without, "isotherm")]
        print(f"| {name} | {mean(last) - 1:+.2%} | {mean(compared(without, 'isotherm', whole)) - 1:+.2%} "
              f"| `{' '.join(places[last.index(low)])}` {low - 1:+.1%} | `{' '.join(places[last.index(high)])}` {high - 1:+.1%} "
              f"| {worst:+.2%} | {total[0] / max(total[1], 1):.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("step", choices=["build", "run"])
    parser.add_argument("inputs", nargs="*", help="only these")
    parser.add_argument("--isotherm", default=str(ROOT / "target/release/isotherm"))
    parser.add_argument("--fast", default="1:8")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if options.step == "build":
        build(options.isotherm)
    else:
        run(options)


if __name__ == "__main__":
    main()
