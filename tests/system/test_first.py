#!/usr/bin/env python3
"""A run whose rounds a share of its members closes (round.close_at): of four nodes the one whose trainer computes a fifth of the time
is left out at once, by name and cause; it stays a member, and what it computed counts in a later round."""

import os
import signal
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from small_run import state_roots_agree  # noqa: E402
from systemtest import TINY, CliError, SystemTest, tiny_text, wait_for  # noqa: E402

CAUSE = "later than round.close_at"
MANIFEST = TINY.replace("round: {time: 0.5, steps_max: 40}", "round: {time: 1, steps_max: 1000000, close_at: 0.75}")


class Slow:
    """A process that runs for a part of each period, so that it is as slow as a machine of that share of the speed."""

    def __init__(self, pid, runs_s, period_s):
        self.pid, self.runs_s, self.rests_s = pid, runs_s, period_s - runs_s
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.beat)
        self.thread.start()

    def send(self, number):
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            self.over.set()

    def beat(self):
        while not self.over.is_set():
            self.send(signal.SIGSTOP)
            self.over.wait(self.rests_s)
            self.send(signal.SIGCONT)
            self.over.wait(self.runs_s)

    def end(self):
        self.over.set()
        self.thread.join()
        self.send(signal.SIGCONT)


class First(SystemTest):
    def test_the_slowest_is_left_out_by_name_and_counts_later(self):
        first = self.folder.node("node1").start()
        text = tiny_text(os.path.join(self.folder.path, "text.txt"))
        token = first.create(self.file("first.yaml", MANIFEST), "--text", text)["invite"]
        nodes = [first] + [self.joined(f"node{i}", token) for i in range(2, 5)]
        wait_for(lambda: all(n.run().get("members") == 4 and n.run().get("voters") == 3 for n in nodes), 60,
                 "four members, three voters")
        follow = self.folder.follow(first)
        wait_for(lambda: len({p["id"] for r in follow.all() for p in r["peers"]}) == 4, 60, "rounds that count each of the four")
        last = [n for n in nodes if not n.run()["is_voter"]][0]
        identity = last.ask("status")["id"]
        since = follow.last()
        slow = Slow(last.run()["trainer_pid"], 0.5, 2.5)
        self.addCleanup(slow.end)

        def rounds(seen):
            return [r for r in follow.all() if r["round"] > since and any(p["id"] == identity for p in r["peers"]) == seen]

        def named():
            return [r for r in rounds(False) if any(l["id"] == identity and l["cause"] == CAUSE for l in r["left_out"])]
        late = wait_for(named, 90, "a round that does not wait for the slow one, and says so")[0]
        self.assertEqual(late["listed"], 3)
        self.assertLess(late["duration_ms"], 2500)  # Neither a grace nor the hard deadline, 3.5 s.
        told = wait_for(lambda: [e for e in first.lines("logs", "--last", "400")
                                 if e["name"] == "round.closed" and "round.close_at" in e["text"]], 30, "the cause in the log")
        self.assertIn("3 of 4", told[0]["text"])
        self.assertIn(CAUSE, first.ask("why", "round", str(late["round"]))["answer"])

        counted = wait_for(lambda: [r for r in rounds(True) if r["round"] > late["round"]], 90, "a later round that counts it")[0]
        own = [p for p in counted["peers"] if p["id"] == identity][0]
        self.assertGreater(own["tokens"], 0)
        slow.end()
        self.assertEqual(last.run()["members"], 4)
        state_roots_agree(nodes)
        self.assertEqual([n.run()["diverged"] for n in nodes], [0] * 4)

    def test_a_share_that_cannot_be_is_refused_with_a_reason(self):
        node = self.folder.node("node1").start()
        for wrong in ("0.5", "1", "-1", "many"):
            with self.assertRaises(CliError) as refused:
                node.ask("run", "validate", self.file("wrong.yaml", MANIFEST.replace("0.75", wrong)))
            self.assertIn("round.close_at", str(refused.exception))


if __name__ == "__main__":
    systemtest.main()
