#!/usr/bin/env python3
"""bench_install.py BINARIES FOLDER [RUNS]: what a fresh Debian 12 takes to become a training node, and what the installed daemon costs while it is idle.

Each run unpacks a Debian 12 with systemd into FOLDER (tests/lib/machine.py), fetches what apt needs, and then measures: apt install of the package of
script/package deb; the idle daemon for a minute; dpnode join; the time until a round has counted the node. The founder runs outside of the machine, from
BINARIES, with the demo. Needs root, mmdebstrap and the package."""

import glob
import json
import os
import shutil
import statistics
import sys
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
import machine  # noqa: E402
from daemons import Folder, wait_for  # noqa: E402

PACKAGES = os.path.join(ROOT, "build", "package")
IDLE_S = 60
PATIENCE_S = 600


def idle(pid):
    """Resident bytes of a process, of which anonymous, and the share of one processor that it uses for a while."""
    def ticks():
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            words = file.read().rsplit(")", 1)[1].split()
        return int(words[11]) + int(words[12])

    before = ticks()
    began = time.monotonic()
    time.sleep(IDLE_S)
    used = (ticks() - before) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - began)
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        rows = dict(line.split(":", 1) for line in file)
    return int(rows["VmRSS"].split()[0]) * 1024, int(rows["RssAnon"].split()[0]) * 1024, used


def run(binaries, place, deb):
    with Folder(binaries, "bench-", place) as folder:
        one = machine.Machine(folder.path, PACKAGES)
        try:
            one.unpack()
            shutil.copy(deb, one.path("root"))
            package = "/root/" + os.path.basename(deb)
            one.fetch(package)
            if os.stat("/proc/self/ns/net").st_ino == NETWORK:
                machine.own_network()
            founder = folder.node("founder").start()
            token = founder.create("--demo", "kjv")["invite"]
            one.boot()
            told = {"install_s": one.timed("apt-get", "-y", "-qq", "install", package)}
            # Namespaces of processes are nested: this one sees the daemon under another number.
            inside = int(one.must("systemctl", "show", "-P", "MainPID", "dpnoded"))
            pid = next(int(path.split("/")[2]) for path in glob.glob("/proc/[0-9]*/status") if is_it(path, one.init, inside))
            told["rss_bytes"], told["anonymous_bytes"], told["processor"] = idle(pid)
            began = time.monotonic()
            one.must("dpnode", "join", token)
            told["join_s"] = time.monotonic() - began

            def counted():
                status = json.loads(one.must("dpnode", "status", "--json"))
                return (status.get("run", {}).get("counted") or 0) > 0
            wait_for(counted, PATIENCE_S, "a round has counted the machine")
            told["counted_s"] = time.monotonic() - began
        finally:
            one.end()
        return told


def is_it(path, init, inside):
    """Is this the process that has this number in the namespace of that process 1?"""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            rows = dict(line.split(":", 1) for line in file)
        return rows["NSpid"].split()[-1] == str(inside) and os.stat(os.path.dirname(path) + "/ns/pid").st_ino == \
            os.stat(f"/proc/{init}/ns/pid").st_ino
    except (OSError, KeyError):
        return False


NETWORK = os.stat("/proc/self/ns/net").st_ino


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    reason = machine.reason_for_none()
    debs = glob.glob(os.path.join(PACKAGES, "dpnode_*.deb"))
    if reason or not debs:
        sys.exit("bench_install: " + (reason or "no package: script/package deb"))
    told = [run(sys.argv[1], sys.argv[2], debs[0]) for _ in range(int(sys.argv[3]) if len(sys.argv) == 4 else 3)]
    for one in told:
        print(json.dumps({name: round(value, 5) for name, value in one.items()}))
    for name in told[0]:
        print(f"{name}: median {statistics.median(one[name] for one in told):.5g}")


if __name__ == "__main__":
    main()
