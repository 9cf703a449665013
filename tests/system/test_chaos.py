#!/usr/bin/env python3
"""A short chaos run: nodes are killed and restarted, no round is lost, and no process or file remains."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import BINARIES, wait_for  # noqa: E402

KEYS = ("committed, gossip, lost, duplicate, parity_ok, gap_p50_s, gap_p99_s, gap_max_s, detect_p50_s, detect_p99_s, "
        "false_detections, rejoin_p50_s, rejoin_p99_s, goodput_ratio, loss_ratio, rss_max_bytes, fds_max, verdict, "
        "detect_stop_p99_s, kill_round_ratio, stop_round_p99_s, rss_slope_mib_h, fds_slope, store_max_bytes, "
        "store_quota_bytes").split(", ")


def processes_with(text):
    """Ids of processes that have text in their command line."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if text.encode() in file.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


class Chaos(unittest.TestCase):
    def setUp(self):
        # In memory if possible: this tests processes, and a busy disk would dominate its time.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        place = tempfile.TemporaryDirectory(prefix="dpc", dir=memory)
        self.addCleanup(place.cleanup)
        self.folder = place.name

    def command(self, *words):
        return [os.path.join(BINARIES, "dpchaos"), *words]

    def bench(self, *words):
        return subprocess.run(self.command(*words), env={**os.environ, "TMPDIR": self.folder}, capture_output=True,
                              text=True, timeout=200, check=False)

    def holds(self, done):
        """Checks that no rule is broken; time goals are for benches on a quiet machine. Returns the report."""
        told = json.loads(done.stdout.splitlines()[-1])
        if "mounted" in told.get("error", {}).get("what", ""):
            self.skipTest("no disk can be mounted here")
        self.assertIn(told.get("verdict"), ("PASS", "MISSED"), told)
        self.assertEqual(done.returncode, 0 if told["verdict"] == "PASS" else 1, told)
        self.assertEqual((told["lost"], told["duplicate"], told["parity_ok"], told["not_rejoined"], told["audit_findings"]),
                         (0, 0, True, 0, 0))
        self.assertEqual(told["audited"], told["nodes"])
        return told

    def nothing_is_left(self):
        self.assertEqual(os.listdir(self.folder), [])
        self.assertEqual(processes_with(self.folder), [])

    def test_kills_behind_a_bad_link_lose_nothing(self):
        done = self.bench("--nodes", "3", "--kill-every", "3s", "--duration", "13s", "--control-share", "30",
                          "--proxy", "delay=2ms,loss=0.2%,stall=50ms", "--seed", "5", "--kinds", "kill", "--json")
        told = self.holds(done)
        self.assertEqual([k for k in KEYS if k not in told], [])
        self.assertEqual(told["kills"], 4)
        self.assertEqual(told["rejoined"] + told["killed_before"], 4)
        self.assertGreater(told["committed"], 3)
        self.assertGreater(told["states_compared"], told["committed"])
        self.nothing_is_left()

    def passes(self, *words):
        """Runs a bench without a control; returns its output."""
        done = self.bench("--nodes", "4", "--kill-every", "2s", "--control-share", "0", "--json", *words)
        told = self.holds(done)
        self.assertIsNone(told["rss_slope_mib_h"]) # so short a run says nothing of it
        self.nothing_is_left()
        return told

    def test_freezes_cuts_and_dead_trainers_lose_nothing(self):
        told = self.passes("--duration", "12s", "--kinds", "kill,stop,cut,worker", "--seed", "4")
        self.assertEqual((told["mode"], told["parts"]), ("sparse", False))
        self.assertEqual([k for k in ("stops", "cuts", "workers") if told[k] == 0], [])
        self.assertGreater(told["detections_stop"], 0)

    def test_full_disks_lose_nothing(self):
        told = self.passes("--duration", "8s", "--kinds", "disk", "--seed", "2", "--mode", "average", "--parts")
        self.assertGreater(told["disks"], 0)
        self.assertEqual((told["mode"], told["parts"]), ("average", True))
        with open("/proc/self/mounts", encoding="utf-8") as mounts:
            self.assertNotIn(self.folder, mounts.read())

    def test_an_interrupted_run_leaves_nothing_behind(self):
        bench = subprocess.Popen(self.command("--nodes", "3", "--duration", "60s", "--json", "--kinds", "stop,cut"),
                                 env={**os.environ, "TMPDIR": self.folder}, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        wait_for(lambda: len(processes_with(self.folder)) >= 3, 60, "the daemons run")
        bench.send_signal(signal.SIGTERM)
        self.assertEqual(bench.wait(30), 130)
        self.nothing_is_left()

    def test_mistakes_are_told(self):
        done = self.bench("--nodes", "2", "--proxy", "lag=3s")
        self.assertEqual(done.returncode, 64)
        self.assertIn("line 3, column 7: delay=, jitter=", done.stderr)
        self.nothing_is_left()
        for words in (["--nodes", "99"], ["--kill-every", "often"], ["--seed", "x"], ["--control-share", "101"],
                      ["--kinds", "kill,fire"], ["--mode", "fast"]):
            self.assertEqual(self.bench(*words).returncode, 64, words)
        self.assertEqual(self.bench("--nodes", "2", "--parts").returncode, 65) # Of the sparse default there are none.
        self.assertEqual(subprocess.run([os.path.join(BINARIES, "dpnode"), "bench", "speed"], capture_output=True,
                                        check=False).returncode, 64)


if __name__ == "__main__":
    systemtest.main()
