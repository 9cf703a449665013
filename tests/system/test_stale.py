#!/usr/bin/env python3
"""A run of mode stale: an update that is too late for its round counts in the next one, and a node that is killed while it waits for that record
settles the update after its restart."""

import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from small_run import state_roots_agree  # noqa: E402
from systemtest import TINY, SystemTest, tiny_text, wait_for  # noqa: E402

TRIES = 30 # each is a matter of chance: how the freeze falls into a round
MANIFEST = TINY.replace("round: {time: 0.5, steps_max: 40}", "round: {mode: stale, time: 2, steps_max: 1000000}")


class Stale(SystemTest):
    def late(self, node, follow):
        """Stops the trainer of this node until a round has been decided without it; its next publication then belongs to that round."""
        identity = node.ask("status")["id"]
        # A trainer that stops before it has applied the newest record publishes in time for the round after.
        wait_for(lambda: node.run()["applied"] >= follow.last(), 30, "a trainer that trains on the newest state")
        trainer = node.run()["trainer_pid"]
        since = follow.last()
        os.kill(trainer, signal.SIGSTOP)
        try:
            wait_for(lambda: [r for r in follow.all() if r["round"] > since and not self.counts(r, identity)], 30,
                     "a round that goes on without it")
        finally:
            os.kill(trainer, signal.SIGCONT)

    @staticmethod
    def counts(record, identity):
        return [p for p in record["peers"] if p["id"] == identity]

    def test_late_updates_count_in_the_next_round(self):
        first = self.folder.node("node1").start()
        text = tiny_text(os.path.join(self.folder.path, "text.txt"))
        token = first.create(self.file("stale.yaml", MANIFEST), "--text", text)["invite"]
        second, third = self.joined("node2", token), self.joined("node3", token)
        follow = self.folder.follow(first)
        wait_for(lambda: any(r["listed"] == 3 for r in follow.all()), 90, "a round that counts all three")
        identity = third.ask("status")["id"]

        def aged():
            return [(r, p) for r in follow.all() for p in self.counts(r, identity) if p["age"] == 1]
        for _ in range(TRIES):
            self.late(third, follow)
            after = follow.last() + 1
            wait_for(lambda: follow.last() > after, 30, "the next round")
            if aged():
                break
        self.assertTrue(aged(), f"in {TRIES} tries no late update counted")
        record, own = aged()[0]
        others = [p for p in record["peers"] if p["id"] != identity]
        self.assertTrue(others, "nobody else in that round")
        self.assertEqual([p["age"] for p in others], [0] * len(others))
        before = [r for r in follow.all() if r["round"] == record["round"] - 1][0]
        self.assertFalse(self.counts(before, identity))
        self.assertGreater(own["steps"], 0)

        self.late(third, follow)  # The publication may now wait for the next record; in any case a new process settles it.
        third.kill()
        third.start()
        counted = third.run().get("counted", 0)
        wait_for(lambda: third.run().get("counted", 0) > counted, 60, "it is counted again")
        state_roots_agree([first, second, third])
        self.assertEqual([node.run()["diverged"] for node in (first, second, third)], [0, 0, 0])


if __name__ == "__main__":
    systemtest.main()
