#!/usr/bin/env python3
"""Rounds and events that a daemon has on its disk: asked for by time and peer, over restarts, and followed without a gap."""

import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import SystemTest, wait_for  # noqa: E402


def lines(node, *words):
    """What a verb lists, one JSON value a line."""
    done = subprocess.run(node.command(*words), capture_output=True, text=True, timeout=60, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


class Follower:
    """A verb that follows, in a process of its own; it is never started again."""

    def __init__(self, test, node, *words):
        self.path = os.path.join(test.folder.path, f"follow-{words[0]}")
        with open(self.path, "w", encoding="utf-8") as out:
            self.process = subprocess.Popen(node.command(*words), stdout=out, stderr=subprocess.DEVNULL)
        test.addCleanup(self.end)

    def end(self):
        self.process.kill()
        self.process.wait()

    def all(self):
        with open(self.path, encoding="utf-8") as file:
            return [json.loads(line) for line in file.read().splitlines(keepends=True) if line.endswith("\n")]


class History(SystemTest):
    def test_rounds_and_events_of_before_a_restart_are_listed_and_explained(self):
        node, _ = self.found()
        wait_for(lambda: node.run().get("round", 0) >= 3, 90, "three rounds")
        before = lines(node, "rounds", "--since", "1h")
        told = lines(node, "logs", "--since", "1h", "--peer", "node1")
        self.assertEqual([r["round"] for r in before], list(range(1, len(before) + 1)))
        node.end()
        middle = time.time()
        time.sleep(1.1) # --until has seconds
        node.start()
        wait_for(lambda: (node.run().get("round") or 0) > len(before), 90, "another round")
        after = lines(node, "rounds", "--since", "1h")
        self.assertEqual([r["round"] for r in after], list(range(1, len(after) + 1)))
        self.assertEqual([r["tokens"] for r in after[:len(before)]], [r["tokens"] for r in before])
        end = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(middle + 1))
        old = lines(node, "logs", "--since", "1h", "--until", end)
        ids = [event["id"] for event in lines(node, "logs", "-n", "100000")]
        self.assertEqual(ids, sorted(set(ids)))
        started = [event for event in lines(node, "logs", "-n", "100000") if event["name"] == "daemon.started"]
        self.assertEqual(len(started), 2)
        self.assertGreater(started[1]["id"] - started[0]["id"], 2 ** 19) # A start begins a new block of numbers.
        self.assertIn(started[0]["id"], [event["id"] for event in old])
        self.assertNotIn(started[1]["id"], [event["id"] for event in old])
        self.assertLessEqual({event["id"] for event in told if event["name"] != "link.up"}, set(ids))
        why = node.ask("why", "1")
        self.assertTrue(why["known"])
        self.assertTrue([cause for cause in why["causes"] if "round 1 decided" in cause["text"]], why)
        self.fails("E0001", 64, node.ask, "rounds", "--since", "yesterday")
        self.fails("E0120", 1, node.ask, "logs", "--peer", "nobody")

    def test_lists_that_follow_miss_nothing_when_the_daemon_is_killed(self):
        node, _ = self.found()
        wait_for(lambda: node.run().get("round", 0) >= 1, 90, "a round")
        rounds = Follower(self, node, "rounds", "-f", "-n", "1")
        logs = Follower(self, node, "logs", "-f")
        wait_for(lambda: rounds.all() and logs.all(), 60, "both have begun")
        for _ in range(2):
            node.signal_all(signal.SIGKILL)
            node.process.wait()
            seen = len(rounds.all())
            node.start()
            wait_for(lambda: len(rounds.all()) > seen + 1, 90, "rounds go on")
        told = [r["round"] for r in rounds.all()]
        self.assertEqual(told, list(range(told[0], told[-1] + 1)))
        ids = [event["id"] for event in logs.all()]
        self.assertEqual(ids, sorted(set(ids)))
        names = [event["name"] for event in logs.all()]
        self.assertGreaterEqual(names.count("daemon.started"), 2)
        kept = {e["id"] for e in lines(node, "logs", "--since", "1h") if ids[0] <= e["id"] <= ids[-1]}
        self.assertLessEqual(kept, set(ids))

    def test_a_list_that_follows_goes_on_with_the_rounds_after_a_fork(self):
        node, _ = self.found()
        wait_for(lambda: node.run().get("round", 0) >= 7, 90, "seven rounds")
        rounds = Follower(self, node, "rounds", "-f", "-n", "1")
        wait_for(lambda: len(rounds.all()) > 1, 60, "it follows")
        target = min(c["round"] for c in node.ask("ckpt", "ls")["checkpoints"] if c["state"] in ("complete", "kept"))
        node.ask("run", "fork", "--to", str(target), "--yes")

        def of_new_chain():
            told = [r["round"] for r in rounds.all()]
            return next((told[i:] for i in range(1, len(told)) if told[i] <= told[i - 1]), [])

        wait_for(lambda: len(of_new_chain()) > 1, 90, "rounds of the new chain")
        told = of_new_chain()
        self.assertEqual(told, list(range(target + 1, target + 1 + len(told))))


if __name__ == "__main__":
    systemtest.main()
