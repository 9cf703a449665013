#!/usr/bin/env python3
"""Certificates are renewed before they end: a run of real daemons continues while their clocks are set 250 and then 380 days ahead. A node that was
away all the time has an expired certificate and is not let in. Skipped if libdpclock.so (tests/fault/clock_shim.c) is not built."""

import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import BINARIES, TINY, SystemTest, tiny_text, wait_for  # noqa: E402

SHIM = os.path.join(BINARIES, "libdpclock.so")
DAY_S = 24 * 60 * 60


class Renewal(SystemTest):
    def setUp(self):
        super().setUp()
        if not os.path.exists(SHIM):
            self.skipTest("no libdpclock.so here")

    def days_later(self, node, days):
        """Sets this node's clock ahead by so many days, from its next start on."""
        path = os.path.join(self.folder.path, node.name + ".clock")
        with open(path, "wb") as file:
            file.write(struct.pack("q", days * DAY_S))
        node.environment = {"LD_PRELOAD": SHIM, "DPCLOCK_FILE": path}

    @staticmethod
    def log(node):
        with open(node.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def all_later(self, nodes, days):
        for node in nodes:
            node.kill()
        for node in nodes:
            self.days_later(node, days)
            node.start()
        before = nodes[0].run()["round"]
        for node in nodes:
            wait_for(lambda node=node: node.run().get("round", 0) >= before + 3, 60, f"{node.name} goes on {days} days later")
            wait_for(lambda node=node: node.run().get("counted", 0) >= 1, 60, f"{node.name} is counted {days} days later")

    def test_members_are_renewed_before_their_certificates_end_and_an_absent_one_is_not(self):
        first = self.folder.node("first")
        self.days_later(first, 0)
        first.start()
        text = tiny_text(os.path.join(self.folder.path, "text.txt"))
        token = first.create(self.file("tiny.yaml", TINY), "--text", text)["invite"]
        others = []
        for name in ("second", "third", "away"):
            node = self.folder.node(name)
            self.days_later(node, 0)
            others.append(node.start())
            node.ask("join", "-", "--name", name, stdin=token)
        wait_for(lambda: first.run()["members"] == 4, 60, "four members")
        away = others.pop()
        away.kill()
        nodes = [first, *others]
        self.all_later(nodes, 250)
        for node in others:
            wait_for(lambda node=node: "certificate.renewed" in self.log(node), 60, f"{node.name} is renewed: {node.tail()}")
        self.assertNotIn("certificate.renewed", self.log(first))  # Its certificate is of 400 days.
        self.all_later(nodes, 380)
        wait_for(lambda: "certificate.renewed" in self.log(first), 60, "the founder renews itself with the root key")
        self.days_later(away, 380)
        away.start()
        before = first.run()["round"]
        wait_for(lambda: first.run()["round"] >= before + 15, 60, "rounds while it tries")
        self.assertLess(away.run()["round"], before)
        self.assertFalse(any(peer["linked"] for peer in away.ask("peers")["peers"] if not peer["self"]))
        self.assertNotIn("certificate.renewed", self.log(away))


if __name__ == "__main__":
    systemtest.main()
