#!/usr/bin/env python3
"""Batches of leased indices, and the length of the data."""

import kit
import dpnode
from dpnode.batches import Batches, check_length
from dpnode.place import Place
from dpnode.session import Session


class BatchesTest(kit.Test):
    def opened(self):
        session = Session(kit.Floats(a=[0]), Place(self.dir), 5)
        self.addCleanup(session.close)
        session.open()
        return session

    def test_batches_are_the_nodes_samples_in_its_order(self):
        self.worker(samples=100)
        batches = iter(Batches(self.opened(), 4))
        self.assertEqual([next(batches), next(batches)], [[0, 7, 14, 21], [28, 35, 42, 49]])

    def test_batches_drawn_before_a_reconnect_are_stale(self):
        worker = self.worker()
        session = self.opened()
        batches = Batches(session, 4)
        going = iter(batches)
        next(going), next(going)
        self.assertEqual(batches.take(), 4)
        worker.vanish()
        worker.listen()
        session.look()
        next(going)
        self.assertEqual([batches.take(), batches.take()], [0, 4])

    def test_batches_that_a_loader_has_fetched_ahead_and_dropped_are_drawn_next(self):
        worker = self.worker(samples=100000)
        session = self.opened()
        trained = []
        for epoch in range(3):
            batches = Batches(session, 4)
            for _ in range(2): # The second iteration begins the same loader anew.
                going = iter(batches)
                ahead = [next(going) for _ in range(8)]
                for _ in range(5):
                    trained += ahead.pop(0)
                    ahead.append(next(going))
                    session.step(batches.take(), 0.0)
        self.assertEqual(trained, [(7 * i) % 100000 for i in range(session.samples)])
        self.assertEqual(len(trained), 3 * 2 * 5 * 4)

    def test_batches_of_before_a_reconnect_do_not_come_back(self):
        worker = self.worker()
        session = self.opened()
        going = iter(Batches(session, 4))
        next(going)
        worker.vanish()
        worker.listen()
        session.look()
        del going
        self.assertEqual(session.draw(2), [(7 * i) % 100 for i in range(256, 258)])

    def test_they_end_with_the_run(self):
        worker = self.worker()
        session = self.opened()
        going = iter(Batches(session, 4))
        next(going)
        worker.over()
        session.look()
        self.assertEqual(list(going), [])

    def test_sizes_that_are_none_are_refused(self):
        for size in (0, -1, 1.5, None, "8"):
            self.fails(dpnode.Mismatch, Batches, None, size)

    def test_data_of_another_length_than_the_runs_are_refused(self):
        self.worker(samples=100)
        session = self.opened()
        check_length(session, range(100))
        error = self.fails(dpnode.Mismatch, check_length, session, range(99))
        self.assertIn("99 items: the run has 100 samples", str(error))
        self.assertIn("no length", str(self.fails(dpnode.Mismatch, check_length, session, iter([]))))
        self.assertIn("empty", str(self.fails(dpnode.Mismatch, check_length, session, [])))


if __name__ == "__main__":
    kit.main()
