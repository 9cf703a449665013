#!/usr/bin/env python3
"""Strangers fill the port of a node: newcomers still join at once, rounds continue, and memory does not grow."""

import os
import resource
import statistics
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import SystemTest, wait_for  # noqa: E402

FLOOD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib", "flood.py")
JOIN_S = 3 # at the median; one of them may wait for the other programs of this machine
KEPT_OUT_S = 8
MEMORY_KB = 64 << 10
ROUNDS = 12


class Reserved(unittest.TestCase):
    def test_two_tests_are_never_given_one_port(self):
        code = "import random, daemons; random.seed(1); print(daemons.free_port(), flush=True); input()"
        environment = {**os.environ, "PYTHONPATH": os.path.dirname(FLOOD)}
        given = []
        for _ in range(2): # the same choices in both, and nobody listens yet
            test = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                    env=environment)
            self.addCleanup(test.communicate, "\n")
            given.append(int(test.stdout.readline()))
        self.assertNotEqual(given[0], given[1])


class Port(SystemTest):
    def setUp(self):
        super().setUp()
        self.first, self.token = self.found()
        self.second = self.joined("second", self.token)
        for node in (self.first, self.second):
            wait_for(lambda node=node: node.run().get("counted", 0) >= 2, 40, f"{node.name} is counted; see {node.tail()}")

    def flood(self, *words):
        """Returns once all of its connections were opened."""
        flood = subprocess.Popen([sys.executable, FLOOD, str(self.first.port), *map(str, words)], stdout=subprocess.PIPE,
                                 text=True)
        self.addCleanup(flood.stdout.close)
        self.addCleanup(flood.wait)
        self.addCleanup(flood.kill)
        self.assertEqual(int(flood.stdout.readline()), words[0])

    def memory_kb(self):
        with open(f"/proc/{self.first.process.pid}/status", encoding="utf-8") as file:
            return int(next(line for line in file if line.startswith("VmRSS")).split()[1])

    def joins(self, name, host):
        """The seconds of a join; each newcomer is in another network of loopback, or in that of the strangers."""
        node = self.folder.node(name, host=host).start()
        began = time.monotonic()
        node.ask("join", "-", stdin=self.token)
        took = time.monotonic() - began
        self.assertLessEqual(took, KEPT_OUT_S, f"{name} of {host} joins; see {node.tail()}")
        node.end()
        return took

    def all_join(self, *hosts):
        took = [self.joins(f"late{number}", host) for number, host in enumerate(hosts)]
        self.assertLessEqual(statistics.median(took), JOIN_S, took)

    def rounds_go_on(self):
        """Checks that rounds continue without a pause, and count the attacked node."""
        begin = self.first.run()
        last, until = begin["round"], time.monotonic() + 5
        while last < begin["round"] + ROUNDS:
            now = self.first.run()
            if now["round"] > last:
                last, until = now["round"], time.monotonic() + 5
            self.assertLess(time.monotonic(), until, f"a round after {last}; see {self.first.tail()}")
            time.sleep(0.02)
        self.assertGreaterEqual(now["counted"] - begin["counted"], (now["round"] - begin["round"]) * 3 // 4)

    def test_ten_thousand_strangers_of_a_hundred_networks_keep_nobody_out(self):
        if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 10500:
            self.skipTest("too few descriptors for ten thousand connections here")
        before = self.memory_kb()
        self.flood(10000, 100, 2000)
        wait_for(lambda: self.first.run()["accepts_refused"] > 5000, 20, "strangers give way")
        self.rounds_go_on()
        self.all_join("127.0.0.1", "127.0.250.9", "127.0.5.9", "127.0.5.1")
        self.rounds_go_on()
        self.assertLess(self.memory_kb() - before, MEMORY_KB)
        self.assertLess(len(os.listdir(f"/proc/{self.first.process.pid}/fd")), 512)

    def test_sixty_four_silent_ones_of_four_addresses_keep_nobody_out(self):
        self.flood(64, 4, 200, "near")
        self.all_join("127.0.0.9", "127.0.250.9", "127.0.0.1")
        self.rounds_go_on()


if __name__ == "__main__":
    systemtest.main()
