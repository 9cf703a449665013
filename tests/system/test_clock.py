#!/usr/bin/env python3
"""Both sides report a wrong clock of a machine with its difference, and the node corrects for it if most members agree. Skipped if libdpclock.so
(tests/fault/clock_shim.c), which sets the wrong clock, is not built."""

import json
import os
import re
import signal
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from daemons import stored_addresses  # noqa: E402
from systemtest import BINARIES, TINY, CliError, SystemTest, tiny_text, wait_for  # noqa: E402

SHIM = os.path.join(BINARIES, "libdpclock.so")
PATIENCE_S = 40
MINUTE_S = 60
DAY_S = 24 * 60 * MINUTE_S


class Clock(SystemTest):
    def setUp(self):
        super().setUp()
        if not os.path.exists(SHIM):
            self.skipTest("no libdpclock.so here")

    def wrong(self, node, seconds):
        """Sets this node's clock ahead, from its next start on."""
        path = os.path.join(self.folder.path, node.name + ".clock")
        with open(path, "r+b" if os.path.exists(path) else "wb") as file: # in place: it is mapped
            file.write(struct.pack("q", seconds))
        node.environment = {"LD_PRELOAD": SHIM, "DPCLOCK_FILE": path}

    def log(self, node):
        with open(node.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def logs(self, node, words):
        wait_for(lambda: re.search(words, self.log(node)), PATIENCE_S, f"{node.name} logs {words!r}; see {node.tail()}")

    def counted(self, node, more=2):
        begin = node.run().get("counted", 0)
        wait_for(lambda: node.run().get("counted", 0) >= begin + more, PATIENCE_S, f"{node.name} is counted")

    def three(self):
        first, token = self.found()
        nodes = [first]
        for name in ("second", "third"):
            node = self.folder.node(name)
            self.wrong(node, 0)
            nodes.append(node.start())
            node.ask("join", "-", "--name", name, stdin=token)
        for node in nodes:
            self.counted(node)
        # A node that is refused because of its clock learns no addresses: it must know both from before.
        wait_for(lambda: all(f":{other.port}" in (stored_addresses(nodes[2]) or "") for other in nodes[:2]), PATIENCE_S, "third knows both")
        return nodes

    def doctor(self, node):
        """The finding of doctor about the clock. The node's settings do not matter here."""
        done = subprocess.run([os.path.join(BINARIES, "dpnode"), "doctor", "--json", "--socket", node.socket,
                               "--dir", node.dir], capture_output=True, timeout=60, check=False)
        return {finding["name"]: finding for finding in json.loads(done.stdout)["checks"]}["clock"]

    def test_a_clock_that_is_minutes_off_is_corrected_for_where_most_agree(self):
        first, second, third = self.three()
        third.kill()
        self.wrong(third, -10 * MINUTE_S)
        third.start()
        self.logs(third, r"clock.corrected.*this machine's clock is (10 min 0|9 min 59) s behind, by the clocks of 2 of 3 members")
        self.logs(first, r"(refused .*: its clock|clock of third .*) is (10 min \d|9 min 59) s behind this machine's")
        clock = third.run()["clock"]
        self.assertLess(abs(clock["corrected_ms"] - 600000), 5000)
        self.counted(third)
        self.assertIn("this node uses theirs", third.ask("why")["answer"])
        found = self.doctor(third)
        self.assertEqual(found["level"], "warn")
        self.assertIn("behind the clocks of 2 of 3 members", found["what"])
        self.wrong(third, 0) # somebody sets it right, while it runs
        self.logs(third, "clock.right")
        self.assertNotIn("clock", third.run())
        self.counted(third)
        self.assertNotIn("clock.corrected", self.log(first) + self.log(second))

    def test_a_clock_that_is_set_back_while_a_node_runs_or_joins_changes_no_span(self):
        first, token = self.found()
        node = self.folder.node("second")
        self.wrong(node, 0)
        node.start()
        first.process.send_signal(signal.SIGSTOP) # it accepts, and does not answer
        joining = subprocess.Popen(node.command("join", "-"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        joining.stdin.write(token)
        joining.stdin.close()
        wait_for(lambda: node.ask("status")["state"] == "joining", PATIENCE_S, "it joins")
        self.wrong(node, -MINUTE_S)
        first.process.send_signal(signal.SIGCONT)
        self.assertEqual(joining.wait(PATIENCE_S), 0)
        told = json.loads(joining.stdout.read().splitlines()[-1])
        joining.stdout.close()
        self.assertLess(told["ms"], 1000 * PATIENCE_S)
        self.assertLess(node.ask("status")["uptime_s"], 2 * PATIENCE_S)

    def test_a_clock_that_is_behind_by_days_is_named_on_both_sides_and_not_followed(self):
        first, _, third = self.three()
        third.kill()
        self.wrong(third, -400 * DAY_S)
        third.start()
        self.logs(third, r"clock of \w+ .* is 400 days ahead of this machine's; its certificate is not valid at that time")
        self.logs(first, r"(refused .*: its clock|clock of third .*) is 400 days behind this machine's")
        wait_for(lambda: third.run().get("clock"), PATIENCE_S, "it knows")
        self.assertEqual(third.run()["clock"]["corrected_ms"], 0)
        answer = third.ask("why")["answer"]
        self.assertIn("this machine's clock is 400 days behind", answer)
        self.assertIn("timedatectl", answer)
        wait_for(lambda: "400 days behind the clocks of 2 of 3 members, which agree" in self.doctor(third)["what"], PATIENCE_S,
                 "doctor says so")
        self.assertEqual(self.doctor(third)["level"], "warn")
        before = self.log(first).count("third")
        self.counted(first, 6)
        self.assertLess(self.log(first).count("third") - before, 40, "no link comes and goes all the time")

    def test_join_names_a_clock_that_is_behind(self):
        first, token = self.found()
        node = self.folder.node("late")
        self.wrong(node, -20 * MINUTE_S)
        node.start()
        with self.assertRaises(CliError) as told:
            node.ask("join", "-", stdin=token)
        self.assertEqual((told.exception.error["code"], told.exception.status), ("E0210", 75))
        self.assertRegex(told.exception.error["why"], r"becomes valid in 1[5-9] min; wait, or set this machine's clock")
        self.assertIn("timedatectl", told.exception.error["fix"])
        self.wrong(node, -3 * MINUTE_S) # too little for the token, too much for the founder's certificate
        with self.assertRaises(CliError) as told:
            node.ask("join", "-", stdin=token)
        self.assertEqual((told.exception.error["code"], told.exception.status), ("E0210", 75))
        self.assertRegex(told.exception.error["why"], r"this machine's clock is (3 min \d|2 min 59) s behind that of the only peer")
        self.wrong(node, 10 * DAY_S) # past the token's time, which may be the clock's fault too
        with self.assertRaises(CliError) as told:
            node.ask("join", "-", stdin=token)
        self.assertEqual(told.exception.error["code"], "E0201")
        self.assertRegex(told.exception.error["why"], r"expired . days ago by this machine's clock.*set the clock if it is wrong")
        self.assertEqual(first.run()["members"], 1)


if __name__ == "__main__":
    systemtest.main()
