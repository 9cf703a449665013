#!/usr/bin/env python3
"""Numbers that a script gives: what is taken, and what is refused with a sentence."""

import kit
import dpnode
from dpnode.arguments import seconds, whole
from dpnode.batches import Batches
from dpnode.place import Place
from dpnode.session import Session


class Index:
    """As an integer of NumPy."""

    def __index__(self):
        return 8


class Numbers(kit.Test):
    def test_whole_numbers_of_all_kinds_are_taken_and_no_others(self):
        self.assertEqual([whole("n", value, 0) for value in (0, 7, Index())], [0, 7, 8])
        for value in (8.0, "8", None, -1, [8], float("nan")):
            error = self.fails(dpnode.Mismatch, whole, "samples", value, 0)
            self.assertIn(f"samples={value!r} cannot be used", error.what)
        self.fails(dpnode.Mismatch, whole, "batches", 0, 1)

    def test_seconds_are_above_0_and_fit_into_what_a_socket_waits(self):
        self.assertEqual([seconds("timeout", value) for value in (1, 0.5, 345600)], [1.0, 0.5, 345600.0])
        for value in (None, "60", 0, -1, float("inf"), float("nan"), 1e10):
            error = self.fails(dpnode.Mismatch, seconds, "timeout", value)
            self.assertIn(f"timeout={value!r} cannot be used", error.what)

    def test_a_session_refuses_them_before_it_looks_for_a_node(self):
        floats = kit.Floats(a=[0])
        for value in (None, "60", float("inf"), 1e10):
            self.fails(dpnode.Mismatch, Session, floats, Place(self.dir), timeout=value)
        for value in (0, 1.5, "2"):
            self.fails(dpnode.Mismatch, Session, floats, None, sync_every=value)
        session = Session(floats, None)
        for value in (0, 1.5, "2", None):
            self.fails(dpnode.Mismatch, Batches, session, value)
        self.fails(dpnode.Mismatch, dpnode.about, self.dir, timeout=None)


if __name__ == "__main__":
    kit.main()
