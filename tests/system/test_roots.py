#!/usr/bin/env python3
"""The comparison of states in every round (tests/lib/roots.py) finds each difference; nodes here only answer."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from roots import Differs, Roots  # noqa: E402


class Answers:
    """A node that tells these states by round."""

    def __init__(self, name, states, diverged=0, logs=()):
        self.name, self.states, self.diverged, self.logs = name, states, diverged, logs

    def lines(self, verb, *_):
        return self.logs if verb == "logs" else [{"round": r, "kind": "sync", "state_root": root} for r, root in self.states.items()]

    def run(self):
        return {"diverged": self.diverged}


class Comparison(unittest.TestCase):
    def compared(self, *nodes):
        roots = Roots(*nodes)
        self.addCleanup(roots.end)
        return roots

    def test_equal_states_pass_and_are_counted(self):
        said = self.compared(Answers("a", {1: "x", 2: "y", 3: "z"}), Answers("b", {1: "x", 2: "y", 3: "z"}), Answers("c", {3: "z"})).finish(5)
        self.assertIn("7 states of 3 rounds compared, in 1 rounds of all 3 nodes", said)

    def test_two_states_of_one_round_are_found_also_when_later_rounds_agree(self):
        roots = self.compared(Answers("a", {1: "x", 2: "y", 3: "z"}), Answers("b", {1: "x", 2: "w", 3: "z"}))
        self.assertRaisesRegex(Differs, "round 2: b has the state w, others have", roots.finish, 5)

    def test_a_replay_that_leads_elsewhere_is_found(self):
        node = Answers("a", {1: "x"})
        roots = self.compared(node)
        roots.ask(node)
        node.states = {1: "w"}
        roots.ask(node)
        self.assertRaises(Differs, roots.check)

    def test_a_round_of_which_only_one_node_told_its_state_is_no_proof(self):
        roots = self.compared(Answers("a", {1: "x", 2: "y", 3: "z"}), Answers("b", {1: "x", 3: "z"}))
        self.assertRaisesRegex(AssertionError, r"not in \[2\]", roots.finish, 1)

    def test_a_state_that_was_not_the_certified_one_is_found_in_status_and_journal(self):
        pair = {1: "x"}
        roots = self.compared(Answers("a", pair, diverged=1), Answers("b", pair))
        self.assertRaisesRegex(Differs, "a had 1 states", roots.finish, 5)
        roots = self.compared(Answers("a", pair), Answers("b", pair, logs=[{"name": "diverged", "text": "after round 7"}]))
        self.assertRaisesRegex(Differs, "b: after round 7", roots.finish, 5)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[2:]])
