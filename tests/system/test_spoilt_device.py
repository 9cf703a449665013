#!/usr/bin/env python3
"""A device that passes its self-test and then fails in every life: after three of them the CPU computes, the node reports it, and rounds continue.
Skipped if the plugins of the tests are not built."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from daemons import wait_for  # noqa: E402
from systemtest import BINARIES, TINY, SystemTest, tiny_text  # noqa: E402

PLUGIN = os.path.join(BINARIES, "plugins", "libdpnode_faulty.so")


class SpoiltDevice(SystemTest):
    def test_the_cpu_computes_after_three_lives_on_it(self):
        if not os.path.exists(PLUGIN):
            self.skipTest("no plugins here")
        node = self.folder.node("a", "--backend", PLUGIN)
        node.environment = {"DP_FAULT": "late-gone"}  # of the card, after five steps
        node.start()
        node.ask("run", "create", self.file("tiny.yaml", TINY), "--text", tiny_text(self.folder.path + "/text.txt"))
        wait_for(lambda: node.run()["trainer_restarts"] == 3, 150, "three lives")
        wait_for(lambda: node.run()["trainer"] == "up", 30, "falling back to the CPU")
        before = node.run()["round"]
        wait_for(lambda: node.run()["round"] > before + 1 and node.run()["listed"] == 1, 60, "rounds that count it")
        told = [event["text"] for event in node.lines("logs", "-n", "200") if event["name"] == "trainer.down"]
        self.assertEqual(len(told), 3, told)
        self.assertTrue(all("it restarts" in text for text in told[:2]), told)
        self.assertIn("falling back to the CPU", told[2])
        self.assertEqual(node.run()["trainer_restarts"], 3)
        self.assertIn("cpu: ", str(node.ask("status")))

    def test_the_cpu_computes_when_no_life_gets_as_far_as_its_name(self):
        if not os.path.exists(PLUGIN):
            self.skipTest("no plugins here")
        node = self.folder.node("a", "--backend", PLUGIN)
        node.environment = {"DP_FAULT": "load-crash"}  # when the model is loaded
        node.start()
        node.ask("run", "create", self.file("tiny.yaml", TINY), "--text", tiny_text(self.folder.path + "/text.txt"))
        wait_for(lambda: node.run()["trainer_restarts"] == 3 and node.run()["trainer"] == "up", 150, "falling back to the CPU")
        before = node.run()["round"]
        wait_for(lambda: node.run()["round"] > before + 1 and node.run()["listed"] == 1, 60, "rounds that count it")
        told = [event["text"] for event in node.lines("logs", "-n", "200") if event["name"] == "trainer.down"]
        self.assertEqual(len(told), 3, told)
        self.assertIn("before it named its device; falling back to the CPU", told[2])
        self.assertEqual(node.run()["trainer_restarts"], 3)


if __name__ == "__main__":
    systemtest.main()
