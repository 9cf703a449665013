#!/usr/bin/env python3
"""The only voter is killed, three trainers continue in pairs, the voter returns: the loss of the model is lower at once."""

import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from daemons import place_for_tests  # noqa: E402
from returning import Run  # noqa: E402

WARM_TOKENS = 400000
AWAY_S = 6


class Return(unittest.TestCase):
    def test_the_first_loss_behind_a_return_is_below_the_last_one_before_the_fault(self):
        folder = tempfile.TemporaryDirectory(prefix="dpnode-test-")
        self.addCleanup(folder.cleanup)
        text = os.path.join(folder.name, "genesis.txt")
        with open(text, "w", encoding="utf-8") as file:
            subprocess.run(["bible", "gen1:1-deu34:12"], stdout=file, check=True)
        run = Run(systemtest.BINARIES, "sparse", 3, text, place_for_tests())
        self.addCleanup(run.end)
        run.settle(WARM_TOKENS)
        run.part()
        before = run.rounds.all()[-1]
        run.sleep(AWAY_S)
        self.assertGreater(len(run.rounds.exchanges), 0)
        run.heal()
        back = run.returned(before["round"])
        behind = next(r for r in run.rounds.all() if r["round"] == back["round"] + 1)
        self.assertLess(behind["loss"], before["loss"], run.rounds.all()[-6:])


if __name__ == "__main__":
    systemtest.main()
