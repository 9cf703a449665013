#!/usr/bin/env python3
"""Who fetches, or who gives, is killed in the middle of a transfer: the fetch goes on where it was, from whoever is left. One run
for both tests."""

import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from daemons import CliError, Folder, place_for_tests, wait_for  # noqa: E402
from small_run import state_roots_agree  # noqa: E402
from web import Web  # noqa: E402

PATIENCE_S = 60
RATE = 1_500_000 # bytes per second of each connection, once a transfer is watched
LOST = 4 # MiB that two givers may have sent within the last second
ENOUGH = 11 # of 14
# About 3.6 million parameters: a state of 15 MB, in chunks of 256 KiB. After ten rounds it is fewer bytes than all updates.
MANIFEST = """name: large
model: {layers: 2, width: 384, heads: 6, context: 16, vocab: 300}
train: {batch: 1, lr: 1e-3, warmup_tokens: 100, total_tokens: 10000000}
round: {time: 0.3, steps_max: 1, codec: int8}
gossip: {time: 0.5}
vote: {uptime: 0}
"""


class Transfer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """The first two nodes are in a run that stands still after ten rounds."""
        cls.folder = Folder(systemtest.BINARIES, "dpnode-test-", place_for_tests())
        cls.addClassCleanup(cls.folder.__exit__)
        cls.web = Web(cls.folder, 4)
        cls.addClassCleanup(cls.web.end)
        cls.first, cls.second = members = cls.web.nodes[:2]
        manifest = os.path.join(cls.folder.path, "large.yaml")
        with open(manifest, "w", encoding="utf-8") as file:
            file.write(MANIFEST)
        text = systemtest.tiny_text(os.path.join(cls.folder.path, "text.txt"))
        cls.token = cls.first.start().ask("run", "create", manifest, "--text", text)["invite"]
        cls.second.start().ask("join", "-", stdin=cls.token)
        wait_for(lambda: all(n.run().get("applied", 0) >= 10 for n in members), PATIENCE_S, "ten rounds")
        while not cls.stand_still(members):
            pass
        cls.web.tell(f"set * rate={RATE}")

    @classmethod
    def stand_still(cls, members):
        """Paused with one state, and with the same one saved; else on again for a round."""
        for node in members:
            node.ask("pause")
        state_roots_agree(members, PATIENCE_S)
        saved = {n.run()["checkpoint_round"] for n in members}
        if len(saved) > 1:
            for node in members:
                node.ask("resume")
            begin = cls.first.run()["round"]
            wait_for(lambda: cls.first.run()["round"] > begin, PATIENCE_S, "one more round")
        return len(saved) == 1

    def join(self, node):
        """In the background: dpnode join says how far the fetch is until it has ended."""
        node.start()
        joining = subprocess.Popen(node.command("join", "-"), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(joining.wait)
        self.addCleanup(joining.kill)
        joining.stdin.write(self.token)
        joining.stdin.close()

    def until_level(self, node):
        wait_for(lambda: node.run().get("applied", 0) >= self.first.run()["applied"], PATIENCE_S, "the state is there")
        node.ask("pause")
        state_roots_agree([self.first, node], PATIENCE_S)

    def fetched(self, node):
        """Of the state: MiB that are here, while it is being fetched; else 0."""
        try:
            told = re.search(r"([0-9.]+) of ([0-9.]+) MiB fetched", node.ask("why")["answer"])
        except CliError: # it is still idle, or starting
            return 0.0
        return float(told[1]) if told and 12 < float(told[2]) < 16 else 0.0 # and not of updates besides

    def test_52_a_joiner_that_is_killed_goes_on_where_it_was(self):
        joiner = self.web.nodes[2]
        self.join(joiner)
        before = wait_for(lambda: max(0, self.fetched(joiner) - ENOUGH), PATIENCE_S, "most of the state is there") + ENOUGH
        joiner.kill()
        joiner.start()
        wait_for(lambda: self.fetched(joiner) >= before - LOST, PATIENCE_S, "what was there before is there")
        self.web.tell("set * rate=0")
        self.until_level(joiner)

    def test_52_then_a_giver_that_is_killed_is_not_missed(self):
        joiner = self.web.nodes[3]
        self.web.tell(f"set * rate={RATE}")
        self.join(joiner)
        members = self.web.nodes[:3]
        given = {n: n.run()["bytes_sent"] for n in members}
        wait_for(lambda: self.fetched(joiner) > 3, PATIENCE_S, "a part of the state has come")
        giver = max(members, key=lambda n: n.run()["bytes_sent"] - given[n])
        self.assertGreater(giver.run()["bytes_sent"] - given[giver], 1_000_000)
        giver.kill()
        self.first = next(n for n in members if n is not giver)
        here = self.fetched(joiner)
        self.assertGreater(here, 0) # in the middle of it
        wait_for(lambda: self.fetched(joiner) > here or self.fetched(joiner) == 0, PATIENCE_S, "others give")
        self.until_level(joiner)


if __name__ == "__main__":
    systemtest.main()
