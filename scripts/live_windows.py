"""Slowdown within one run: the engine is paused and resumed at its control socket, and neighbouring windows
are compared.

Runs differ by far more than what is to be measured (memory that lies elsewhere, a host that is busier), and
so do minutes; half seconds that follow each other hardly do. Each window with the engine at work is set
against the mean of the paused ones before and after it. What stays while it is paused (the library in the
program, its sleeping thread) is in both.
"""

import socket
import statistics
import time

# After a switch: windows of armed pages close, the other state is reached.
SETTLE = 0.02


class Lines:
    """A unix socket that is spoken to in lines."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(str(path))

    def ask(self, line, whole):
        """Sends a line; returns the answer once `whole` says that it is complete."""
        self.socket.sendall(line.encode() + b"\n")
        answer = b""
        while not whole(answer):
            piece = self.socket.recv(1 << 16)
            if not piece:
                raise ConnectionError(f"no answer to '{line}'")
            answer += piece
        return answer.decode()


def is_whole(answer):
    """Whether an engine's answer is complete: it ends with an empty line."""
    return answer.endswith(b"\n\n")


def wait_for(path, process):
    """Waits until a program has made a file."""
    patience = time.monotonic() + 60
    while not path.exists():
        if process.poll() is not None or time.monotonic() > patience:
            raise SystemExit(f"{path.name} did not appear")
        time.sleep(0.02)


class RedisMeter:
    """What a server has done: requests, and seconds of its main thread."""

    def __init__(self, path):
        self.lines = Lines(path)

    def read(self):
        def whole(answer):
            head, found, body = answer.partition(b"\r\n")
            return found and len(body) >= int(head[1:]) + 2

        text = self.lines.ask("INFO all", whole)
        values = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        cpu = float(values["used_cpu_sys_main_thread"]) + float(values["used_cpu_user_main_thread"])
        return int(values["total_commands_processed"]), time.monotonic(), cpu


def switch(control, windows, seconds, meter=None):
    """Pauses and resumes; returns for each window whether the engine was at work, and its begin and end (of
    the meter, or times)."""
    engine = Lines(control)
    read = meter.read if meter else time.monotonic
    found = []
    for number in range(2 * windows + 1):
        working = number % 2 == 1
        answer = engine.ask("resume" if working else "pause", is_whole)
        if not answer.startswith("ok"):
            raise SystemExit(f"bench-live: {answer.strip()}")
        time.sleep(SETTLE)
        begin = read()
        time.sleep(seconds)
        found.append((working, begin, read()))
    engine.ask("resume", is_whole)
    return found


def of_laps(found, file):
    """The windows with laps (operations, time, processor time) in place of times."""
    # The last line may be a part of one.
    laps = [tuple(map(int, line.split())) for line in file.read_text().splitlines()[:-1]]
    laps = [(operations, now / 1e9, cpu / 1e9) for operations, now, cpu in laps]
    windows, at = [], 0
    for working, begin, end in found:
        while at < len(laps) and laps[at][1] < begin:
            at += 1
        last = at
        while last + 1 < len(laps) and laps[last + 1][1] <= end:
            last += 1
        if last <= at:
            raise SystemExit("bench-live: a window without laps; give longer ones (--window)")
        windows.append((working, laps[at], laps[last]))
    return windows


def slowdowns(windows, clock):
    """In percent, of each window at work against its neighbours; `clock` is 1 for time, 2 for processor
    time."""
    cost = [(end[clock] - begin[clock]) / max(end[0] - begin[0], 1) for _, begin, end in windows]
    pairs = ((cost[at], statistics.mean((cost[at - 1], cost[at + 1]))) for at in range(1, len(cost) - 1, 2))
    return [100 * (at_work / paused - 1) for at_work, paused in pairs]
