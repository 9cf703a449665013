#!/usr/bin/env python3
"""A run whose outer step has momentum: a node that joins later or restarts takes it over with the state; otherwise its next state would have
another root than that of the others."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import TINY, SystemTest, tiny_text, wait_for  # noqa: E402


class Momentum(SystemTest):
    def test_a_joiner_and_a_restarted_node_step_like_the_others(self):
        first = self.folder.node("node1").start()
        text = tiny_text(os.path.join(self.folder.path, "text.txt"))
        manifest = self.file("diloco.yaml", TINY.replace("time: 0.5, steps_max", "mode: diloco, time: 0.5, steps_max"))
        token = first.create(manifest, "--text", text)["invite"]
        wait_for(lambda: first.run().get("applied", 0) >= 4, 60, "some rounds have passed")
        late = self.joined("node2", token)
        wait_for(lambda: late.run().get("counted", 0) >= 2, 60, "the joiner is counted")
        late.kill()
        late.start()
        counted = late.run().get("counted", 0)
        wait_for(lambda: late.run().get("counted", 0) >= counted + 2, 60, "it is counted again")

        def at_one_round():
            runs = [node.run() for node in (first, late)]
            return runs[0]["applied"] == runs[1]["applied"] > 0 and runs
        runs = wait_for(at_one_round, 60, "both stand at one round")
        self.assertEqual(runs[0]["state_root"], runs[1]["state_root"])
        self.assertEqual([run["diverged"] for run in runs], [0, 0])
        self.assertTrue(0 < runs[0]["compute_utilisation"] <= 1)
        spent = runs[0]["trainer_ms"]
        self.assertGreater(spent["computed"], 0)
        self.assertLessEqual(sum(spent.values()) - spent["trained"], spent["trained"])
        self.assertGreater(runs[0]["outer_reach"], 0)
        # The export of models reads the state on disk, and of it only theta.
        wait_for(lambda: first.ask("ckpt", "ls")["checkpoints"], 60, "a checkpoint")
        first.ask("ckpt", "export", os.path.join(self.folder.path, "model"))
        self.assertTrue(os.path.exists(os.path.join(self.folder.path, "model", "model.safetensors")))


if __name__ == "__main__":
    systemtest.main()
