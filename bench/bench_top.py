#!/usr/bin/env python3
"""The processor time of dpnode top: the program in a terminal of its own, a played daemon (tests/lib/played_daemon.py) with many members and a new
round every few seconds, and keys that move the selection.

    python3 bench/bench_top.py --binaries build/release [--members 64] [--seconds 60] [--size 120x40] [--every 1s] [--rounds 500]

Prints the time of the whole process, its start with all known rounds included, and the share of one core that it used after the first 5 seconds."""
import argparse
import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "lib"))
from played_daemon import PlayedDaemon, run_of  # noqa: E402
from vt52 import Terminal  # noqa: E402

ROUND_S, WARM_S, KEY_S = 4, 5, 2
TICKS = os.sysconf("SC_CLK_TCK")


def used_by(pid):
    """Seconds of processor time so far: to the microsecond where the kernel tells it, else to a tick."""
    try:
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[0]) / 1e9
    except OSError:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / TICKS


def growing(members, rounds, began):
    """A run that had so many rounds at the begin."""
    whole = run_of(members, rounds + 10_000 // ROUND_S, events=1000)
    told = whole["rounds"]({"last": 10**6})[0]

    def now():
        return rounds + int(time.monotonic() - began) // ROUND_S

    def status(_):
        whole["status"]["run"].update(round=now(), slot=now())
        whole["status"]["run"]["loss"] = 3 + 1 / now()
        return whole["status"]

    def newest(parameters):
        known = told[:now()]
        return known[-min(parameters.get("last", 20), len(known)):], {"count": 0}

    return {**whole, "status": status, "rounds": newest}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default="build/release")
    parser.add_argument("--members", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--size", default="120x40")
    parser.add_argument("--every", default="1s")
    wanted = parser.parse_args()
    columns, rows = map(int, wanted.size.split("x"))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s")
        daemon = PlayedDaemon(path, growing(wanted.members, wanted.rounds, time.monotonic()))
        command = [os.path.join(wanted.binaries, "dpnode"), "top", "--socket", path, "--every", wanted.every]
        screen = Terminal(command, columns, rows, {"TERM": "xterm-256color"})
        screen.screen.feed = lambda data: None # It is no VT52, and nobody looks.
        began = time.monotonic()
        warm, warm_at, key_at = None, 0.0, began + KEY_S
        while time.monotonic() - began < wanted.seconds:
            screen.read(0.2)
            if warm is None and time.monotonic() - began >= WARM_S:
                warm, warm_at = used_by(screen.process.pid), time.monotonic()
            if time.monotonic() >= key_at:
                screen.press("j")
                key_at += KEY_S
        used, ended = used_by(screen.process.pid), time.monotonic()
        screen.press("q")
        status = screen.end()
        screen.close()
        daemon.close()
    looks = sum(method == "status" for method, _ in daemon.asked)
    print(f"{wanted.members} members, {wanted.size}, every {wanted.every}: {looks} looks in {wanted.seconds} s; {used:.3f} s of processor time, "
          f"{100 * (used - warm) / (ended - warm_at):.2f} % of a core after {WARM_S} s, {1000 * warm:.0f} ms in them; "
          f"{len(screen.raw) / looks / 1000:.1f} kB to the terminal per look")
    return status


if __name__ == "__main__":
    sys.exit(main())
