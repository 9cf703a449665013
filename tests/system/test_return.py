#!/usr/bin/env python3
"""The only voter is away, three trainers continue in pairs, they meet again: the loss of the model is lower at once."""

import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from daemons import place_for_tests, wait_for  # noqa: E402
from returning import PATIENCE_S, Run  # noqa: E402

WARM_TOKENS = 400000
AWAY_S = 6


class Return(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dpnode-test-")
        self.addCleanup(folder.cleanup)
        text = os.path.join(folder.name, "genesis.txt")
        with open(text, "w", encoding="utf-8") as file:
            subprocess.run(["bible", "gen1:1-deu34:12"], stdout=file, check=True)
        self.run_ = Run(systemtest.BINARIES, "sparse", 3, text, place_for_tests())
        self.addCleanup(self.run_.end)
        self.run_.settle(WARM_TOKENS)

    def test_the_first_loss_behind_a_return_is_below_the_last_one_before_the_fault(self):
        run = self.run_
        run.part()
        before = run.rounds.all()[-1]
        run.sleep(AWAY_S)
        self.assertGreater(len(run.rounds.exchanges), 0)
        run.heal()
        back = run.returned(before["round"])
        behind = next(r for r in run.rounds.all() if r["round"] == back["round"] + 1)
        self.assertLess(behind["loss"], before["loss"], run.rounds.all()[-6:])

    def test_members_that_come_back_one_after_the_other_bring_their_common_work_once(self):
        run = self.run_
        run.web.cut([1], [2, 3, 4])
        run.sleep(AWAY_S)
        before = run.rounds.all()[-1]
        run.web.cut([2], [3, 4])
        run.web.tell("heal n1 from n2", "heal n2 from n1")
        first = run.web.nodes[1].ask("status")["id"]
        usual = sum(p["tokens"] for p in before["peers"]) / len(before["peers"])

        def alone():
            later = [r for r in run.voter_rounds() if r["round"] > before["round"]]
            return next((r for r in later if [p["id"] for p in r["peers"]] == [first] and r["tokens"] > 2 * usual), None)
        record = wait_for(alone, PATIENCE_S, "a record lists the first one alone, with the work of the fault")
        run.web.heal()

        def together():
            later = [r for r in run.voter_rounds() if r["round"] > record["round"] and r["listed"] == 3]
            return later if len(later) > 2 else None
        losses = [r["loss"] for r in wait_for(together, PATIENCE_S, "rounds of all three")]
        self.assertLess(max(losses), before["loss"], run.voter_rounds()[-10:])
        for node in run.web.nodes[2:]:
            with open(node.log, encoding="utf-8") as log:
                self.assertIn("partners of pair exchanges brought it", log.read())


if __name__ == "__main__":
    systemtest.main()
