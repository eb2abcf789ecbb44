"""Runs commands with and without the allocator, and measures their processor time."""

import os
import pathlib
import resource
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "crates/alloc/programs"
JEMALLOC = pathlib.Path("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2")


class Failed(Exception):
    """A check does not hold."""


class Side:
    """One side of a comparison: an environment (with or without the library) and a folder that goes with
    it."""

    def __init__(self, library, built):
        self.built = built
        self.library = library
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="alloc-programs-"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def environment(self, **more):
        # Nothing from the user's own settings: both sides are alike but for the library.
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        kept |= {"LC_ALL": "C.UTF-8", "TZ": "UTC", "TMPDIR": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        if self.library:
            kept["LD_PRELOAD"] = str(self.library)
        return kept | more

    def start(self, *command, **more):
        command = [str(word) for word in command]
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment(**more),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
        )

    def run(self, *command, status=0, text=None, **more):
        """What a command prints; anything that it says on standard error, or another status, fails."""
        command = [str(word) for word in command]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment(**more),
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
        )
        if status is not None and done.returncode != status:
            raise Failed(
                f"{' '.join(command)[:60]}: status {done.returncode}: {(done.stdout + done.stderr)[-300:]}"
            )
        return done.stdout


def require(holds, what):
    if not holds:
        raise Failed(what)


def processor_time():
    """Seconds of all children that were waited for, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
