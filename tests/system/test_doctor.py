#!/usr/bin/env python3
"""dpnode doctor: without a daemon, with one, with a port in use, and for a run that does not fit."""

import json
import os
import shutil
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import BINARIES, SystemTest  # noqa: E402

CHECKS = ["worker", "daemon", "cpu", "memory", "device", "files", "shm", "congestion", "clock", "directory", "space",
          "disk", "port", "run"]
GIANT = """name: giant
model: {layers: 40, heads: 16, width: 2048, context: 1024}
"""


class Doctor(SystemTest):
    def doctor(self, *words, binaries=BINARIES, path=None, **environment):
        """Exit status, and findings by their name."""
        self.said = subprocess.run(
            [os.path.join(binaries, "dpnode"), "doctor", "--json", *words], capture_output=True, timeout=60,
            env={**os.environ, "DPNODE_DIR": os.path.join(self.folder.path, "d"), "DPNODE_LISTEN": "127.0.0.1:0",
                 "DPNODE_SOCKET": os.path.join(self.folder.path, "s"), "PATH": path or os.environ["PATH"], **environment},
            check=False)
        told = json.loads(self.said.stdout)
        if "error" in told:
            return self.said.returncode, told["error"]
        levels = [finding["level"] for finding in told["checks"]]
        self.assertEqual([told[level] for level in ("ok", "warn", "fail")],
                         [levels.count(level) for level in ("ok", "warn", "fail")])
        for finding in told["checks"]:
            self.assertTrue(finding["level"] == "ok" or finding["why"] and finding["fix"], finding)
        self.assertEqual(self.said.returncode, 1 if told["fail"] else 0)
        self.told = told
        return self.said.returncode, {finding["name"]: finding for finding in told["checks"]}

    def test_a_machine_is_looked_at_without_a_daemon(self):
        status, found = self.doctor()
        self.assertEqual(status, 0, found)
        # doctor leaves out checks that the kernel does not support.
        self.assertLessEqual(set(found), set(CHECKS))
        for name in ("worker", "daemon", "cpu", "device", "directory", "disk", "port", "run"):
            self.assertIn(name, found)
        self.assertIn("no daemon is running", found["run"]["what"])
        self.assertIn("cpu: ", found["device"]["what"])
        self.assertEqual(os.listdir(self.folder.path), [], "the tried files are gone")

    def test_a_person_reads_lines_and_a_sum(self):
        done = subprocess.run([os.path.join(BINARIES, "dpnode"), "doctor", "--dir", self.folder.path + "/d",
                               "--listen", "127.0.0.1:0", "--socket", self.folder.path + "/s"],
                              capture_output=True, timeout=60, check=False, text=True)
        lines = done.stdout.splitlines()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(lines[0].split()[:2], ["ok", "worker"])
        self.assertRegex(lines[-1], r"^\d+ passed, \d+ warnings?, 0 failed$")

    def test_a_taken_port_and_a_directory_that_is_a_file_are_in_the_way(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            status, found = self.doctor("--listen", f"127.0.0.1:{port}", "--dir", self.file("file", ""))
        self.assertEqual((status, found["port"]["level"], found["directory"]["level"]), (1, "fail", "fail"))
        self.assertIn("in use by another program", found["port"]["why"])
        self.assertNotIn("disk", found)

    def test_a_backend_that_is_not_installed_is_a_warning(self):
        status, found = self.doctor("--backend", "cuda9")
        self.assertEqual((status, found["device"]["level"]), (0, "warn"), found["device"])
        self.assertIn("the CPU computes instead", found["device"]["why"])

    def test_a_plugin_is_tried_and_named(self):
        plain = os.path.join(BINARIES, "plugins", "libdpnode_plain.so")
        if not os.path.exists(plain):
            self.skipTest("no plugin is built")
        status, found = self.doctor("--backend", plain)
        self.assertEqual((status, found["device"]["level"]), (0, "ok"), found["device"])
        self.assertIn("plain: ", found["device"]["what"])

    def test_an_unknown_setting_is_reported_in_the_daemons_words(self):
        status, found = self.doctor(DPNODE_THREADS="many")
        self.assertEqual((status, found["daemon"]["level"]), (1, "fail"))
        self.assertIn("not a number", found["daemon"]["why"])

    def test_programs_that_are_missing_are_in_the_way(self):
        shutil.copy(os.path.join(BINARIES, "dpnode"), self.folder.path)
        status, found = self.doctor(binaries=self.folder.path, path="/nonexistent")
        self.assertEqual((status, found["worker"]["level"], found["daemon"]["level"]), (1, "fail", "fail"))
        self.assertNotIn("device", found)

    def test_a_run_that_fits_and_one_that_does_not(self):
        status, found = self.doctor(self.file("small.yaml", systemtest.TINY))
        self.assertEqual((status, found["plan"]["level"]), (0, "ok"), found["plan"])
        self.assertTrue(self.told["plan"]["fits"])
        status, found = self.doctor(self.file("giant.yaml", GIANT)) # of 2 * 10^9 parameters
        if not self.told["plan"]["fits"]: # which machines of 100 GiB can hold
            self.assertEqual((status, found["plan"]["level"]), (1, "fail"), found["plan"])
            self.assertIn("giant does not fit", found["plan"]["what"])
        status, error = self.doctor(self.file("bad.yaml", "nome: x\n"))
        self.assertEqual((status, error["code"]), (65, "E0301"))

    def test_with_a_daemon_it_says_more(self):
        node = self.folder.node("alice").start()
        status, found = self.doctor("--socket", node.socket)
        self.assertEqual((status, found["run"]["level"]), (0, "ok"), found)
        self.assertIn("idle", found["run"]["what"])
        self.assertEqual(node.dir, found["directory"]["what"], "the daemon's own")

    def test_with_a_run_it_names_the_device_and_compares_clocks(self):
        node, _ = self.found("alice")
        systemtest.wait_for(lambda: node.run()["round"] >= 2, 60, "two rounds")
        status, found = self.doctor("--socket", node.socket)
        self.assertEqual(status, 0, found)
        self.assertIn(", on cpu: ", found["run"]["what"])
        self.assertIn(f"listens on port {node.port}", found["port"]["what"])
        self.assertEqual(found["port"]["level"], "ok", found["port"])
        if found["clock"]["level"] == "ok": # else this machine's is not kept at all
            self.assertIn("ms of the run", found["clock"]["what"])
        self.assertIn("cpu: ", node.run()["device"])
        self.assertIn("on cpu: ", node.ask("why")["answer"])


    def test_an_address_where_nobody_answers_is_a_warning(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            gone = other.getsockname()[1]
        node, _ = self.found("alice", "--advertise", f"127.0.0.1:{gone}")
        status, found = self.doctor("--socket", node.socket)
        self.assertEqual((status, found["port"]["level"]), (0, "warn"), found["port"])
        self.assertIn(f"127.0.0.1:{gone}; no connection from here succeeds", found["port"]["why"])


if __name__ == "__main__":
    systemtest.main()
