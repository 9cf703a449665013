#!/usr/bin/env python3
"""A run of mode ddp: a round is a step with the mean gradient, and its moments are part of the state: a node that joins or restarts must take them
over, or its next state would have another root than that of the others."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import TINY, SystemTest, tiny_text, wait_for  # noqa: E402

ROWS = 512  # a step takes longer than the rest of a round, so a joiner replays rounds faster than the others make them
MANIFEST = TINY.replace("round: {time: 0.5, steps_max: 40}", "round: {mode: ddp}").replace("batch: 2,", f"batch: {ROWS},") + "members: {trust: members}\n"
WHOLE = MANIFEST.replace("mode: ddp", "mode: ddp, contributors_max: 33")  # More contributors than a sum of a part can name.
BATCH = ROWS * 32  # tokens of one node's step
DEEP = (MANIFEST.replace("layers: 1, width: 32", "layers: 6, width: 128")
        .replace(f"batch: {ROWS},", "batch: 64,"))  # of several runs of the codec


class Ddp(SystemTest):
    def test_every_round_is_one_step_that_all_nodes_take_alike(self):
        first = self.folder.node("node1").start()
        text = tiny_text(os.path.join(self.folder.path, "text.txt"))
        token = first.create(self.file("ddp.yaml", WHOLE), "--text", text)["invite"]
        follow = self.folder.follow(first)
        wait_for(lambda: first.run().get("applied", 0) >= 3, 60, "a founder alone steps")
        late = self.joined("node2", token)
        wait_for(lambda: late.run().get("counted", 0) >= 10, 60, "the joiner is counted step after step")

        def of_both():
            return [r for r in follow.all() if r["listed"] == 2]
        wait_for(lambda: len(of_both()) >= 10, 60, "steps of both")
        for record in of_both():
            self.assertEqual({(p["steps"], p["tokens"]) for p in record["peers"]}, {(1, BATCH)})

        late.kill()
        late.start()
        counted = late.run().get("counted", 0)
        wait_for(lambda: late.run().get("counted", 0) >= counted + 5, 60, "it is counted again")
        for node in (first, late):
            node.ask("pause")

        def at_one_round():
            runs = [node.run() for node in (first, late)]
            return runs[0]["applied"] == runs[1]["applied"] > 0 and runs
        runs = wait_for(at_one_round, 60, "both stand at one round")
        self.assertEqual(runs[0]["state_root"], runs[1]["state_root"])
        self.assertEqual([run["diverged"] for run in runs], [0, 0])
        self.assertEqual([run["exchanges"] for run in runs], [0, 0])

    def test_parts_of_gradients_are_added_up_by_their_owners(self):
        first = self.folder.node("node1").start()
        text = tiny_text(os.path.join(self.folder.path, "text.txt"))
        token = first.create(self.file("parts.yaml", DEEP), "--text", text)["invite"]
        follow = self.folder.follow(first)
        nodes = [first] + [self.joined(f"node{i}", token) for i in (2, 3)]

        def of_all():
            return [r for r in follow.all() if r["listed"] == 3 and r["parts"] == 3 and r["parts_empty"] == 0]
        wait_for(lambda: len(of_all()) >= 3, 150, "steps of three, each with all its parts")

        nodes[1].kill()
        nodes[1].start()
        counted = nodes[1].run().get("counted", 0)
        wait_for(lambda: nodes[1].run().get("counted", 0) >= counted + 2, 150, "it is counted again")
        for node in nodes:
            node.ask("pause")

        def at_one_round():
            runs = [node.run() for node in nodes]
            return len({run["applied"] for run in runs}) == 1 and runs
        runs = wait_for(at_one_round, 120, "all stand at one round")
        self.assertEqual({run["state_root"] for run in runs}, {runs[0]["state_root"]})
        self.assertEqual([run["diverged"] for run in runs], [0, 0, 0])


if __name__ == "__main__":
    systemtest.main()
