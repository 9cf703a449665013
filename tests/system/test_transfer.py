#!/usr/bin/env python3
"""The fetching node, or the serving one, is killed in the middle of a transfer: the fetch continues where it was, from the remaining nodes. One run
for both tests."""

import os
import re
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from daemons import CliError, Folder, place_for_tests, wait_for  # noqa: E402
from small_run import state_roots_agree  # noqa: E402
from web import Web  # noqa: E402

PATIENCE_S = 60
RATE = 1_500_000 # bytes per second of each connection, once a transfer is watched
MIB = 1 << 20
ENOUGH = 11 # MiB of 14
FLIGHTS = 16 * 256 * 1024 # bytes of chunks that are asked of two, at most
FLUSH_S = 1.0 # what came within so long before SIGKILL may not have been durable yet
BLOB = 3_750_000 # bytes of an update: int8, with scales
BESIDE = 1_000_000 # bytes of all else that a joiner is sent meanwhile: records, summaries, heartbeats, pieces of chunks
# About 3.6 million parameters: a state of 15 MB, in chunks of 256 KiB. After ten rounds it has fewer bytes than all updates together.
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
        """The first two nodes are in a run that is paused after ten rounds."""
        cls.folder = Folder(systemtest.BINARIES, "dpnode-test-", place_for_tests())
        cls.addClassCleanup(cls.folder.__exit__)
        cls.web = Web(cls.folder, 4)
        cls.addClassCleanup(cls.web.end)
        cls.first, cls.second = members = cls.web.nodes[:2]
        manifest = os.path.join(cls.folder.path, "large.yaml")
        with open(manifest, "w", encoding="utf-8") as file:
            file.write(MANIFEST)
        text = systemtest.tiny_text(os.path.join(cls.folder.path, "text.txt"))
        cls.token = cls.first.start().create(manifest, "--text", text)["invite"]
        cls.second.start().ask("join", "-", stdin=cls.token)
        wait_for(lambda: all(n.run().get("applied", 0) >= 10 for n in members), PATIENCE_S, "ten rounds")
        while not cls.stand_still(members):
            pass
        cls.web.tell(f"set * rate={RATE}")

    @classmethod
    def stand_still(cls, members):
        """Pauses both; they must have the same state and have saved it, otherwise trains another round."""
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
        """Runs dpnode join in the background; it prints the progress of the fetch until its end."""
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
        """MiB of the state that are here while it is being fetched; otherwise 0."""
        try:
            told = re.search(r"([0-9.]+) of ([0-9.]+) MiB fetched", node.ask("why")["answer"])
        except CliError: # it is still idle, or starting
            return 0.0
        if told is None or not 12 < float(told[2]) < 16: # of updates besides
            return 0.0
        self.state_mib = float(told[2])
        return float(told[1])

    def until_most_is_here(self, node):
        """MiB of the state within the last second: [(time, MiB)], the newest last."""
        here = [(time.monotonic(), 0.0)]
        end = here[0][0] + PATIENCE_S
        while here[-1][1] < ENOUGH:
            self.assertLess(here[-1][0], end, "most of the state does not come")
            time.sleep(0.02)
            here.append((time.monotonic(), self.fetched(node)))
            here = [h for h in here[:-1] if h[0] > here[-1][0] - FLUSH_S - 0.1] + here[-1:]
        return here

    def test_52_a_joiner_that_is_killed_goes_on_where_it_was(self):
        joiner = self.web.nodes[2]
        self.join(joiner)
        here = self.until_most_is_here(joiner)
        before = here[-1][1]
        joiner.kill()
        joiner.start()
        self.until_level(joiner)
        # Only these chunks are fetched (again): missing ones, those that may not have been durable, and updates since the state.
        run = joiner.run()
        missing = self.state_mib - before
        lost = before - min(h[1] for h in here)
        replayed = (run["applied"] - self.first.run()["checkpoint_round"]) * 2 * BLOB
        bound = (missing + lost) * MIB + FLIGHTS + replayed + BESIDE
        print(f"missing {missing:.1f} MiB, of the last second {lost:.1f} MiB, updates {replayed / 1e6:.1f} MB; "
              f"received {run['bytes_received'] / 1e6:.1f} MB, at most {bound / 1e6:.1f} MB", file=sys.stderr)
        self.assertLess(run["bytes_received"], bound)
        self.web.tell("set * rate=0")

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
