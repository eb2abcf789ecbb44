"""How fast the lab counts accesses, and what guests side by side and snapshots save.

    make bench-lab [BENCH="--against OLD/libisotherm_lab_plugin.so --rounds 3"]

- **accesses a second**: those that the plugin counts of a program, by the processor time that QEMU takes for
  it: a guest that runs the program less one that runs `true`. Other work on the host hardly changes that.
- **limit**: the same accesses by the processor time without the plugin (`isotherm lab shell --uncounted`):
  what QEMU's emulation leaves. No plugin is faster.
- **against**: another plugin's pace, in turns with this one's. On the deterministic machine both must count
  the same to the last digit; the script fails where they do not.
- **side by side**: the time of `isotherm lab compare` with one guest after the other, by that with as many as
  it chooses.
- **start**: the time from the command to the first output of a shell's first command: of a guest that boots
  and is saved, by that of one that starts from its snapshot.
"""

import argparse
import json
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

MACHINE = "small"
HASHES = "d = {str(i): i * i for i in range(400000)}; print(sum(map(hash, d.values())))"
SUMS = "print(sum(i * i % 7 for i in range(3000000)))"


def programs(folder):
    """The programs, by what bounds them."""
    planted = [str(folder / "examples" / "live-target"), "planted", "--skip-final-check", "--size", "64M"]
    return {
        "planted, random pages": [*planted, "--operations", "16000000"],
        "a table of Python": ["/usr/bin/python3", "-c", HASHES],
        "arithmetic of Python": ["/usr/bin/python3", "-c", SUMS],
        "a sort of lines": ["/bin/sh", "-c", "seq 1 1000000 | sort -r -S 64M | cksum"],
    }


def children():
    """Processor seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Lab:
    """The lab's verbs under a plugin, which has one name whatever it is: a guest has its environment."""

    def __init__(self, options, folder):
        self.isotherm, self.folder = str(options.folder / "isotherm"), folder
        self.plugin = folder / "plugin.so"
        self.environment = {"PATH": "/usr/bin:/bin", "ISOTHERM_LAB_PLUGIN": str(self.plugin)}
        self.environment["HOME"] = str(pathlib.Path.home())

    def call(self, words, text=None):
        """Processor seconds of a command, and its standard error."""
        before = children()
        done = subprocess.run([self.isotherm, "lab", *words], env=self.environment, input=text, check=False,
                              capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"bench-lab: {done.stderr.strip().splitlines()[-1]}")
        return children() - before, done.stderr

    def counted(self, plugin, program, machine=MACHINE):
        """Processor seconds of a counted run, its accesses, and all that the plugin wrote."""
        shutil.copyfile(plugin, self.plugin)
        run = self.folder / "run"
        shutil.rmtree(run, ignore_errors=True)
        words = ["run", "--machine", machine, "--kernel-tiering", "none", "--json", "--folder", str(run)]
        seconds, errors = self.call([*words, "--", *program])
        accesses = json.loads(errors.strip().splitlines()[-1])["runs"][0]["measured"]["accesses"]
        return seconds, accesses, (run / "measured.json").read_bytes()

    def uncounted(self, program):
        """Processor seconds of a run without a plugin."""
        line = " ".join(f"'{word}'" for word in program)
        return self.call(["shell", "--uncounted", "--machine", MACHINE], line + "\n")[0]


def paces(lab, plugins, rounds, program):
    """Million accesses a second of each plugin, and without one; medians of rounds in turns."""
    found = {name: [] for name in (*plugins, "limit")}
    for plugin in plugins.values():
        lab.counted(plugin, ["true"])  # The first guest of a kind boots, the others start from its snapshot.
    lab.uncounted(["true"])
    for _ in range(rounds):
        for name, plugin in plugins.items():
            seconds, accesses, _ = lab.counted(plugin, program)
            found[name].append(accesses / (seconds - lab.counted(plugin, ["true"])[0]) / 1e6)
        found["limit"].append(accesses / (lab.uncounted(program) - lab.uncounted(["true"])) / 1e6)
    return {name: statistics.median(each) for name, each in found.items()}


def check_counts(lab, plugins, program):
    """Fails unless all plugins count the same on the deterministic machine."""
    written = {lab.counted(plugin, program, "deterministic")[2] for plugin in plugins.values()}
    if len(written) > 1:
        raise SystemExit("bench-lab: the plugins' counts differ on the machine deterministic")


def side_by_side(lab, options, program):
    """Seconds of four guests one after the other, and side by side."""
    shutil.copyfile(options.plugin, lab.plugin)
    words = ["compare", "--machine", MACHINE, "--kernel", "none,demotion,numab,damon", "--policies", ""]
    found = []
    lab.call([*words, "--quiet", "--", "true"])  # Leaves the snapshot.
    for jobs in (["--jobs", "1"], []):
        began = time.monotonic()
        lab.call([*words, *jobs, "--quiet", "--", *program])
        found.append(time.monotonic() - began)
    return found


def starts(lab, options, rounds):
    """Seconds until a guest has booted and was saved, and until one has started from the snapshot: medians."""
    shutil.copyfile(options.plugin, lab.plugin)
    environment = lab.environment | {"ISOTHERM_CACHE": str(lab.folder / "cache")}
    cache = lab.folder / "cache" / "lab"
    cache.mkdir(parents=True)
    for name in ("kernel", "root"):
        (cache / name).symlink_to(pathlib.Path.home() / ".cache" / "isotherm" / "lab" / name)
    found = {"boot": [], "snapshot": []}
    for _ in range(rounds):
        shutil.rmtree(cache / "snapshots", ignore_errors=True)
        for seconds in found.values():
            began = time.monotonic()
            with subprocess.Popen([lab.isotherm, "lab", "shell", "--machine", MACHINE], env=environment,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as shell:
                shell.stdin.write(b"echo started\n")
                shell.stdin.close()
                shell.stdout.read(1)
                seconds.append(time.monotonic() - began)
        if len(list((cache / "snapshots").iterdir())) != 1:
            raise SystemExit("bench-lab: the second guest did not start from the first one's snapshot")
    return [statistics.median(seconds) for seconds in found.values()]


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    release = pathlib.Path("target/release")
    parser.add_argument("--folder", type=pathlib.Path, default=release.absolute(), help="with isotherm")
    parser.add_argument("--against", type=pathlib.Path, help="another build of the plugin")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("accesses", "guests", "starts"), help="one part of it")
    options = parser.parse_args()
    options.plugin = options.folder / "libisotherm_lab_plugin.so"
    plugins = {"this": options.plugin}
    if options.against:
        plugins["against"] = options.against
    work = programs(options.folder.absolute())
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(options, pathlib.Path(folder))
        if options.only in (None, "accesses"):
            print("| program | " + " | ".join([*plugins, "limit"]) + " |\n|" + "---|" * (len(plugins) + 2))
            for name, program in work.items():
                found = paces(lab, plugins, options.rounds, program)
                print(f"| {name} | " + " | ".join(f"{pace:.1f}" for pace in found.values()) + " |", flush=True)
            planted = next(iter(work.values()))
            check_counts(lab, plugins, [*planted[:-1], "2000000"])
            print("\nmillion accesses a second; counts on the machine deterministic are equal\n")
        if options.only in (None, "guests"):
            alone, beside = side_by_side(lab, options, next(iter(work.values())))
            print(f"four guests: {alone:.1f} s one after the other, {beside:.1f} s side by side")
        if options.only in (None, "starts"):
            boot, snapshot = starts(lab, options, options.rounds)
            print(f"start: {boot:.2f} s by a boot, {snapshot:.2f} s from a snapshot, {boot / snapshot:.1f} times")
    return 0


if __name__ == "__main__":
    sys.exit(main())
