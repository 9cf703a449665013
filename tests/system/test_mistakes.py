#!/usr/bin/env python3
"""Mistakes of newcomers: each is answered with a code, the cause and a remedy. docs/OPERATIONS.md lists them with their tests, of which these are
those that no other file has."""

import glob
import json
import os
import re
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import BINARIES, SystemTest, wait_for  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PATIENCE_S = 60


def dpnode(*words):
    return subprocess.run([os.path.join(BINARIES, "dpnode"), *words], capture_output=True, text=True, timeout=60, check=False)


class Mistakes(SystemTest):
    def port_of(self, node):
        """doctor's word about the port of a node."""
        done = dpnode("doctor", "--json", "--socket", node.socket)
        return {finding["name"]: finding for finding in json.loads(done.stdout)["checks"]}["port"]

    def filtered(self):
        """A port of loopback at which packets are dropped: of a listener that accepts nobody, and whose queue is full."""
        wall = socket.socket()
        self.addCleanup(wall.close)
        wall.bind(("127.0.0.1", 0))
        wall.listen(0)
        for _ in range(4):
            line = socket.socket()
            self.addCleanup(line.close)
            line.setblocking(False)
            line.connect_ex(wall.getsockname())
        return f"127.0.0.1:{wall.getsockname()[1]}"

    def test_probes_that_come_too_early_say_not_yet(self):
        first, token = self.found()
        for check in ("live", "ready"):
            done = dpnode("status", "--check", check, "--socket", os.path.join(self.folder.path, "none.s"))
            self.assertEqual(done.returncode, 1)
            for line in ("error E0101: no daemon is running", "why: ", "fix: dpnode up"):
                self.assertIn(line, done.stderr)
        first.process.send_signal(signal.SIGSTOP) # it accepts, and does not answer
        node = self.folder.node("node")
        node.environment = {"DPNODE_TOKEN": token}
        node.start()
        wait_for(lambda: node.ask("status")["state"] == "joining", PATIENCE_S, "it joins")
        self.assertEqual([dpnode("status", "--check", check, "--socket", node.socket).returncode for check in ("live", "ready")], [0, 1])
        first.process.send_signal(signal.SIGCONT)
        wait_for(lambda: dpnode("status", "--check", "ready", "--socket", node.socket).returncode == 0, PATIENCE_S, "it is ready")

    def test_a_token_file_that_is_not_there_starts_no_daemon(self):
        where, missing = os.path.join(self.folder.path, "d"), os.path.join(self.folder.path, "token.txt")
        done = dpnode("join", missing, "--dir", where, "--socket", os.path.join(self.folder.path, "s"), "--json")
        error = json.loads(done.stdout)["error"]
        self.assertEqual((error["code"], done.returncode), ("E0203", 65))
        self.assertEqual(error["why"], f"{missing}: No such file or directory")
        self.assertFalse(os.path.exists(where))

    def test_an_expired_token_names_the_time_and_the_clock(self):
        first, _ = self.found()
        token = first.ask("invite", "--expires", "1s")["token"]
        wait_for(lambda: dpnode("token", "inspect", token).returncode == 1, PATIENCE_S, "it expires")
        error = self.fails("E0201", 65, self.folder.node("node").start().ask, "join", token)
        self.assertRegex(error["why"], r"expired \d+ s ago by this machine's clock; .*or set the clock if it is wrong")
        self.assertIn("dpnode invite", error["fix"])

    def test_half_a_token_names_the_place(self):
        _, token = self.found()
        error = self.fails("E0203", 65, self.folder.node("node").start().ask, "join", token[:len(token) // 2])
        self.assertRegex(error["why"], r"damaged (at character \d+|between characters \d+ and \d+) of \d+")
        self.assertIn("copy the whole token again", error["fix"])

    def test_a_filtered_port_is_named_on_both_sides(self):
        at = self.filtered()
        first, token = self.found("first", "--advertise", at)
        error = self.fails("E0202", 75, self.folder.node("node").start().ask, "join", "-", stdin=token)
        self.assertRegex(error["why"], rf"tried for \d+ s {at}; no connection succeeded")
        self.assertIn("dpnode doctor", error["fix"])
        told = self.port_of(first)
        self.assertEqual(told["level"], "warn")
        self.assertIn(f"peers dial {at}; no connection from here succeeds: a firewall blocks it", told["why"])
        self.assertIn("open the TCP port", told["fix"])

    def test_a_name_without_an_address_is_named(self):
        first, token = self.found("first", "--advertise", "nowhere.invalid:7717")
        error = self.fails("E0202", 75, self.folder.node("node").start().ask, "join", "-", stdin=token)
        self.assertRegex(error["why"], r"tried for \d+ s nowhere.invalid:7717; the name nowhere.invalid has no address: ")
        self.assertIn("dpnode doctor", error["fix"])
        told = self.port_of(first)
        self.assertEqual(told["level"], "warn")
        self.assertIn("or a name has no address", told["why"])

    def test_a_library_that_is_no_backend_is_named(self):
        path = self.file("libdpnode_broken.so", "not a library")
        done = dpnode("doctor", "--json", "--backend", path)
        device = {finding["name"]: finding for finding in json.loads(done.stdout)["checks"]}["device"]
        self.assertEqual((done.returncode, device["level"]), (0, "warn"), device)
        self.assertRegex(device["why"], rf"{path} does not load: .*; the CPU computes instead")
        self.assertIn("--backend cpu", device["fix"])
        manifest = self.file("tiny.yaml", systemtest.TINY)
        text = systemtest.tiny_text(os.path.join(self.folder.path, "text.txt"))
        done = dpnode("train", manifest, "--text", text, "--out", os.path.join(self.folder.path, "out"), "--backend", path, "--json")
        error = json.loads(done.stdout.splitlines()[-1])["error"]
        self.assertEqual((done.returncode, error["code"]), (78, "E0514"), error)
        self.assertIn(path, error["why"])
        self.assertIn("--backend auto", error["fix"])
        node = self.folder.node("node", "--backend", path)
        node.environment = {"DPNODE_BACKEND": path}
        node.start().create(manifest, "--text", text)
        wait_for(lambda: node.run().get("counted", 0) > 0, PATIENCE_S, "it trains all the same")
        self.assertIn("cpu: ", node.run()["device"])

    def test_a_majority_that_is_down_is_named_with_its_voters(self):
        first, token = self.found()
        others = [self.joined(name, token, "--name", name) for name in ("ann", "bob")]
        wait_for(lambda: first.run().get("voters") == 3, PATIENCE_S, "three vote")
        self.assertNotIn("Start these voters", first.ask("why")["answer"])
        for node in others:
            node.kill()
        answer = wait_for(lambda: (lambda text: "; away: " in text and text)(first.ask("why")["answer"]), PATIENCE_S, "it is told")
        self.assertIn("no majority of the 3 voters is reachable", answer)
        for name in ("ann", "bob"):
            self.assertRegex(answer, rf"{name} \(\w+\)")
        self.assertIn("Start these voters: dpnode up", answer)
        self.assertIn("no majority of the voters is reachable (dpnode why)", dpnode("status", "--socket", first.socket).stdout)
        others[0].start()
        wait_for(lambda: first.run().get("quorum"), PATIENCE_S, "two of three decide again")

    def test_each_row_of_the_page_names_a_test_and_codes_that_there_are(self):
        with open(os.path.join(ROOT, "docs", "OPERATIONS.md"), encoding="utf-8") as file:
            section = file.read().split("\n## Mistakes of the first days\n")[1].split("\n## ")[0]
        rows = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("| ") and "---" not in line][1:]
        tests = ""
        for path in glob.glob(os.path.join(ROOT, "tests", "system", "*.py")):
            with open(path, encoding="utf-8") as file:
                tests += file.read()
        with open(os.path.join(ROOT, "docs", "ERRORS.md"), encoding="utf-8") as file:
            codes = set(re.findall(r"^\| (E\d{4}) ", file.read(), re.MULTILINE))
        self.assertEqual(len(rows), 13)
        for _, said, fix, test in rows:
            name = re.fullmatch(r" `(test_\w+)` ", test).group(1)
            self.assertEqual(tests.count(f"    def {name}(self):"), 1, name)
            self.assertLessEqual(set(re.findall(r"E\d{4}", said)), codes)
            self.assertTrue(fix.strip())


if __name__ == "__main__":
    systemtest.main()
