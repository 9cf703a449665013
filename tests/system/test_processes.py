#!/usr/bin/env python3
"""A node whose trainer has several processes: it is a member like the others; if one of its processes is killed, the trainer restarts, and no old
process remains."""

import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import TINY, SystemTest, tiny_text, wait_for  # noqa: E402


def children(pid):
    """The trainer's other processes, without threads."""
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
            found += [int(word) for word in file.read().split()]
    return found


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Processes(SystemTest):
    def test_a_trainer_of_three_processes_takes_part_and_is_started_again_when_one_dies(self):
        node = self.folder.node("node1", "--processes", "3", "--backend", "cpu").start()
        text = tiny_text(os.path.join(self.folder.path, "text.txt"))
        token = node.create(self.file("tiny.yaml", TINY), "--text", text)["invite"]
        other = self.joined("node2", token)
        wait_for(lambda: node.run().get("counted", 0) >= 2, 60, "it is counted")
        first = node.run()["trainer_pid"]
        team = children(first)
        self.assertEqual(len(team), 2)
        os.kill(team[1], signal.SIGKILL)
        wait_for(lambda: node.run()["trainer_restarts"] >= 1, 60, "the daemon notices")
        counted = node.run().get("counted", 0)
        wait_for(lambda: node.run().get("counted", 0) >= counted + 2, 90, "it is counted again")
        again = node.run()["trainer_pid"]
        self.assertNotEqual(again, first)
        self.assertEqual(len(children(again)), 2)
        self.assertFalse(any(lives(pid) for pid in [first, *team]))
        left = children(again)
        os.kill(again, signal.SIGKILL)
        wait_for(lambda: not any(lives(pid) for pid in left), 30, "its processes end with it")

        def at_one_round():
            runs = [n.run() for n in (node, other)]
            # 0: a restarted trainer has no state yet
            return runs[0]["state_root"] and runs[0]["applied"] == runs[1]["applied"] > 0 and runs
        runs = wait_for(at_one_round, 60, "both stand at one round")
        self.assertEqual(runs[0]["state_root"], runs[1]["state_root"])


if __name__ == "__main__":
    systemtest.main()
