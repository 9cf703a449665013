#!/usr/bin/env python3
"""Several processes of a script are one member: the same looks, weights, samples and errors in each. Without any framework."""

import os
import socket
import time

import kit
from dpnode import follower, packets
from dpnode.memory import Memory
from dpnode.ranks import Hub, Spoke
from rank_kit import Error, Group, Pieces, raised, session


class RanksTest(kit.Test):
    def group(self, body, n=3, **options):
        """body(rank, session, tensors), with a session that is open."""
        def whole(rank):
            tensors = self.tensors(rank, n)
            run = session(rank, n, self.dir, tensors, **options)
            run.open()
            yield from body(rank, run, tensors)

        return Group(self, n, whole)

    def tensors(self, rank, n):
        return Pieces(a=[0, 0, 0], b=[0])

    def stepping(self, **options):
        """Ranks that take a step of 2 samples and of the loss 1 + rank at each turn, and tell what they see."""
        def body(rank, run, tensors):
            run.draw(2)
            while True:
                yield tensors.tensors, run.round, run.tokens, run.paused, run.over, run.rate
                run.step(2, 1.0 + rank)
                run.draw(2)

        return self.group(body, **options)

    def same(self, values):
        """What all ranks see, which is one thing."""
        self.assertTrue(all(value == values[0] for value in values), values)
        return values[0]


class Looks(RanksTest):
    def test_all_ranks_begin_with_the_weights_of_the_run(self):
        worker = self.worker(weights=[1, 2, 3, 4])
        worker.now(5, 90, rate=0.125)
        seen = self.same(self.stepping().turn())
        self.assertEqual(seen, ({"a": [1, 2, 3], "b": [4]}, 5, 90, False, False, 0.125))
        self.assertEqual(worker.connections, 1)

    def test_an_addition_reaches_all_ranks_after_the_same_step(self):
        worker = self.worker()
        group = self.stepping()
        group.turn()
        worker.due("add", [1, 2, 3, 4])
        worker.now(6, 30, rate=0.5)
        self.assertEqual(self.same(group.turn())[0]["b"], [0]) # Rank 0 has seen it in this step, and all look after the next.
        seen = self.same(group.turn())
        self.assertEqual((seen[:3], seen[5]), (({"a": [1, 2, 3], "b": [4]}, 6, 30), 0.5)) # The rate, too, is of the last look.

    def test_round_and_tokens_change_at_the_same_step_although_nothing_else_is_due(self):
        worker = self.worker()
        group = self.stepping()
        group.turn()
        worker.now(7, 70)
        self.assertEqual(self.same(group.turn())[1:3], (0, 0))
        self.assertEqual(self.same(group.turn())[1:3], (7, 70))

    def test_a_node_that_gives_no_more_gets_a_copy_from_all_ranks(self):
        worker = self.worker()
        worker.draw_most = 2000

        def body(rank, run, tensors):
            for _ in range(30):
                run.draw(100)
                run.step(100, 1.0)
            yield None

        self.assertEqual(self.same(self.group(body).turn()), None)
        self.assertGreaterEqual(worker.used, 30 * 300 - 2000)

    def test_a_copy_is_of_rank_0_and_counts_the_samples_of_all_and_the_mean_of_their_losses(self):
        worker = self.worker()
        group = self.stepping()
        group.turn()
        group.turn()
        worker.due("copy")
        group.turn()
        group.turn()
        self.assertEqual(worker.seen[-1], ("copy", 3, 18, 6.0)) # 3 steps, of 3 ranks, of 2; each step's mean is 2
        self.assertEqual(worker.header()[:2], (3, 18))

    def test_looks_with_nothing_to_do_have_no_messages(self):
        self.worker()

        def body(rank, run, tensors):
            run.draw(8)
            before = run._points
            for _ in range(500):
                run.step(0, 0.0)
            yield run._points - before

        self.assertEqual(self.group(body).turn(), [0, 0, 0])

    def test_a_rank_waits_for_rank_0_and_goes_on_when_it_comes(self):
        self.worker()

        def body(rank, run, tensors):
            yield "here"
            for _ in range(20):
                run.step(0, 0.0)
            yield time.monotonic()

        group = self.group(body, n=2)
        group.turn()
        group.go(1)
        time.sleep(0.2) # Not for a result: rank 1 has time to go wrong.
        self.assertFalse(group._pipes[1].poll())
        zero = group.turn(0)[0]
        self.assertGreaterEqual(group.value(1) + 0.2, zero)

    def test_handlers_are_called_in_every_rank(self):
        worker = self.worker()

        def body(rank, run, tensors):
            told = []
            run.on_round(lambda number: told.append(("round", number)))
            run.on_assign(lambda number: told.append(("assign", number)))
            run.on_weights(lambda number: told.append(("weights", number)))
            yield None
            run.step(0, 0.0)
            run.step(0, 0.0)
            yield told

        group = self.group(body)
        group.turn()
        worker.now(4, 0)
        worker.due("assign", [1, 1, 1, 1])
        worker.due("add", [1, 1, 1, 1])
        self.assertEqual(self.same(group.turn()), [("assign", 4), ("weights", 4), ("weights", 4), ("round", 4)])

    def test_a_look_without_a_step_is_of_all_ranks(self):
        worker = self.worker()

        def body(rank, run, tensors):
            yield None
            run.look()
            yield tensors.tensors["b"]

        group = self.group(body)
        group.turn()
        worker.due("add", [0, 0, 0, 9])
        self.assertEqual(group.turn(), [[9]] * 3)

    def test_a_pause_is_waited_for_by_all(self):
        worker = self.worker()
        group = self.stepping()
        group.turn()
        worker.pause()
        group.turn()
        group.go()
        time.sleep(0.2)
        self.assertFalse(any(pipe.poll() for pipe in group._pipes))
        worker.pause(False)
        self.assertEqual(self.same([group.value(rank) for rank in range(3)])[3:5], (False, False))

    def test_without_waiting_a_pause_is_told_to_all(self):
        worker = self.worker()
        worker.now(7, 70)
        group = self.stepping(wait_while_paused=False)
        group.turn()
        worker.pause()
        worker.now(0, 70) # Its header has no round then.
        group.turn()
        self.assertEqual(self.same(group.turn())[1:4], (7, 70, True))

    def test_all_ranks_wait_for_the_round_after_its_last_step(self):
        worker = self.worker()
        worker.now(4, 0)
        group = self.stepping(sync_every=2)
        group.turn()
        group.turn()
        group.go()
        time.sleep(0.2)
        self.assertFalse(any(pipe.poll() for pipe in group._pipes))
        worker.due("add", [0, 0, 0, 6])
        worker.now(5, 12)
        values = self.same([group.value(rank) for rank in range(3)])
        self.assertEqual((values[0]["b"], values[1:3]), ([6], (5, 12)))
        group.turn() # The first step of round 5 waits for nobody.

    def test_the_end_of_the_run_is_the_end_for_all(self):
        worker = self.worker()

        def body(rank, run, tensors):
            yield None
            for _ in range(3):
                run.step(0, 0.0)
            yield run.over, run.draw(1)
            run.close(give=True)
            yield "closed"

        group = self.group(body, timeout=2)
        group.turn()
        worker.over()
        self.assertEqual(self.same(group.turn()), (True, []))
        self.assertEqual(self.same(group.turn()), "closed")

    def test_a_node_that_comes_back_gives_its_weights_to_all_and_counts_anew(self):
        worker = self.worker(weights=[1, 1, 1, 1])

        def body(rank, run, tensors):
            while True:
                yield tensors.tensors["b"], run.generation
                run.draw(2)
                run.step(2, 1.0)
                if rank == 0:
                    run._next_check = 0.0 # Looks at the socket after each step, not once a second.

        group = self.group(body)
        group.turn()
        group.turn()
        worker.vanish()
        worker.weights = [8, 8, 8, 8]
        worker.listen()
        for _ in range(3):
            seen = self.same(group.turn())
        self.assertEqual(seen, ([8], 2))
        worker.due("copy")
        group.turn()
        group.turn()
        kind, steps, samples, loss = worker.seen[-1]
        self.assertEqual((kind, samples, loss), ("copy", 6 * steps, 1.0 * steps))

    def test_the_last_steps_are_handed_in_at_the_end(self):
        worker = self.worker()

        def body(rank, run, tensors):
            run.draw(2)
            run.step(2, 1.0)
            tensors.tensors["b"] = [5]
            run.close(give=True)
            yield "closed"

        self.assertEqual(self.group(body).turn(), ["closed"] * 3)
        self.assertEqual((worker.seen[-1][:3], worker.weights[3]), (("copy", 1, 6), 5))


class Samples(RanksTest):
    def test_each_sample_comes_to_one_rank_and_what_all_have_used_is_a_beginning_of_the_runs(self):
        self.worker(samples=5000)

        def body(rank, run, tensors):
            drawn = []
            for n in (4, 4, 7, 1, 300, 50):
                drawn += run.draw(n)
                yield list(drawn)

        group = self.group(body)
        for total in (4, 8, 15, 16, 316, 366):
            drawn = sum(group.turn(), [])
            self.assertEqual(sorted(drawn), sorted((7 * i) % 5000 for i in range(3 * total)))

    def test_samples_without_indices_are_drawn_for_all(self):
        worker = self.worker()

        def body(rank, run, tensors):
            for _ in range(50):
                self.assertTrue(run.cover(10))
                run.step(10, 0.0)
            yield None
            run.step(10, 0.0)
            run.step(10, 0.0)
            yield None

        group = self.group(body)
        group.turn()
        worker.due("copy")
        group.turn()
        self.assertEqual(worker.used, 52 * 10 * 3)

    def test_samples_go_on_when_the_node_comes_back_in_a_draw(self):
        worker = self.worker(samples=10_000)

        def body(rank, run, tensors):
            run.draw(250)
            yield None
            drawn = run.draw(200)
            yield drawn, run.generation

        group = self.group(body)
        group.turn()
        worker.vanish()
        worker.next_index = 1000
        worker.listen()
        values = group.turn()
        self.assertEqual(sorted(sum((drawn for drawn, _ in values), [])), sorted((7 * i) % 10_000 for i in range(1000, 1600)))
        self.assertEqual({generation for _, generation in values}, {2})

    def test_batches_of_different_sizes_are_refused_in_every_rank(self):
        self.worker()

        def body(rank, run, tensors):
            yield raised(run.draw, 4 + (rank == 2))

        for error in self.group(body).turn():
            self.assertIn("rank 2 draws 5 samples, and rank 0 4", error.text)
            self.assertEqual(error.kind, "Mismatch")

    def test_without_a_node_samples_are_dealt_all_the_same(self):
        def body(rank, run, tensors):
            run.samples_of_pass = 12
            yield run.draw(4)
            run.step(4, 1.0)
            yield run.tokens
            run.close()
            yield "closed"

        group = self.group(body, offline=True)
        self.assertEqual(sorted(sum(group.turn(), [])), list(range(12)))
        self.same(group.turn())
        self.assertEqual(group.turn(), ["closed"] * 3)


class Parts(RanksTest):
    """Tensors of which each rank has a part."""

    def tensors(self, rank, n):
        return Pieces(part=(rank, n), a=[0, 0, 0, 0], b=[0, 0])

    def test_a_copy_is_of_the_parts_of_all(self):
        worker = self.worker()

        def body(rank, run, tensors):
            tensors.tensors = {"a": [10 * rank + i for i in range(4)], "b": [rank, rank]}
            run.draw(1)
            yield None
            run.step(1, 0.0)
            run.step(1, 0.0)
            yield None

        group = self.group(body, n=2)
        group.turn()
        worker.due("copy")
        group.turn()
        self.assertEqual(worker.weights, [0, 11, 2, 13, 0, 1])

    def test_parts_that_are_not_the_whole_are_refused_by_name(self):
        self.worker()

        def body(rank):
            tensors = Pieces(part=(rank, 3), a=[0, 0, 0, 0], b=[0]) # of 3, but there are 2
            yield raised(session(rank, 2, self.dir, tensors).open)

        for error in Group(self, 2, body).turn():
            self.assertIn("the pieces of a are not the whole: all ranks together hold 3 of 4", error.text)


class Errors(RanksTest):
    def test_replicas_that_differ_are_told_in_every_rank_with_the_first_tensor(self):
        worker = self.worker()

        def body(rank, run, tensors):
            run.draw(1)
            run.step(1, 0.0)
            yield None
            if rank == 2:
                tensors.tensors["b"] = [0.5]
            run.step(1, 0.0)
            yield raised(run.step, 1, 0.0)

        group = self.group(body)
        group.turn()
        copies = len(worker.seen)
        worker.due("copy")
        for error in group.turn():
            self.assertEqual((error.kind, error.text.split("\n")[0]),
                             ("Mismatch", "the replicas of b differ: ranks 0 and 2 have other bits there"))
        self.assertNotIn("copy", [one[0] for one in worker.seen[copies:]]) # Nothing of it was published.

    def test_replicas_are_compared_again_in_every_round(self):
        worker = self.worker()
        worker.now(1, 0)

        def body(rank, run, tensors):
            run.draw(1)
            for turn in range(4):
                yield turn
                if rank == 1 and turn == 1:
                    tensors.tensors["b"] = [0.5]
                for _ in range(3):
                    error = raised(run.step, 1, 0.0)
                    if error:
                        yield error

        group = self.group(body, n=2)
        group.turn()
        worker.due("copy")
        self.assertEqual(group.turn(), [1, 1])
        worker.due("copy") # In the same round they are not compared.
        self.assertEqual(group.turn(), [2, 2])
        worker.now(2, 0)
        worker.due("copy")
        self.assertIn("replicas of b", self.same([error.text for error in group.turn()]))

    def test_other_tensors_than_those_of_rank_0_are_refused_in_every_rank(self):
        self.worker()

        def body(rank):
            tensors = Pieces(a=[0, 0], **({"c": [0]} if rank == 1 else {"b": [0]}))
            yield raised(session(rank, 2, self.dir, tensors).open)

        for error in Group(self, 2, body).turn():
            self.assertIn("rank 1 has other tensors", error.text)

    def test_an_error_of_the_node_is_raised_in_every_rank_and_the_run_can_go_on(self):
        worker = self.worker()

        def body(rank, run, tensors):
            run.draw(1)
            run.step(1, 0.0)
            yield None
            yield raised(run.look)
            yield raised(run.look), run.generation

        group = self.group(body)
        group.turn()
        worker.refusal = (10, "this machine lacks memory")
        for error in group.turn():
            self.assertEqual((error.kind, "lacks memory" in error.text), ("Refused", True))
        worker.refusal = None
        self.assertEqual(self.same(group.turn()), (None, 2))

    def test_a_long_error_of_the_node_arrives_whole_enough(self):
        worker = self.worker()

        def body(rank, run, tensors):
            yield None
            yield raised(run.look)

        group = self.group(body, n=2)
        group.turn()
        worker.refusal = (10, "\u00e9\u4e2d" * 10_000)
        self.assertTrue(group.turn()[1].text.startswith("\u00e9\u4e2d" * 1000))

    def test_weights_that_are_not_finite_are_named_although_another_rank_has_them(self):
        worker = self.worker()

        def body(rank, run, tensors):
            tensors.bad = ["b"] if rank == 2 else []
            yield None
            yield raised(run.look)

        group = self.group(body)
        group.turn()
        worker.refusal = (7, "a weight is NaN")
        for error in group.turn():
            self.assertIn("not finite in b", error.text)

    def test_the_connection_ends_with_an_error_of_another_rank(self):
        worker = self.worker()

        def body(rank):
            if rank == 1:
                follower.Memory = lambda fd=-1, *more: Memory() if fd < 0 else {}["no memory"]
            run = session(rank, 2, self.dir, Pieces(a=[0]))
            try:
                run.open()
            except Exception as error: # pylint: disable=broad-except
                yield Error(error)

        group = Group(self, 2, body)
        self.assertEqual([error.kind for error in group.turn()], ["Error", "KeyError"])
        deadline = time.monotonic() + 10
        while worker._connection is not None: # Although rank 0 is still there.
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_no_node_is_told_in_every_rank(self):
        def body(rank):
            yield raised(session(rank, 2, self.dir, Pieces(a=[0])).open)

        for error in Group(self, 2, body).turn():
            self.assertEqual((error.kind, "dpnode join TOKEN" in error.fix), ("Offline", True))

    def test_an_error_of_one_ranks_tensors_is_raised_in_every_rank(self):
        worker = self.worker()

        def body(rank, run, tensors):
            if rank == 1:
                tensors.add = lambda floats: {}["gone"]
            yield None
            try:
                run.look()
                yield None
            except Exception as error: # pylint: disable=broad-except
                yield Error(error)
            tensors.__dict__.pop("add", None)
            yield None
            run.look()
            yield tensors.tensors["b"]

        group = self.group(body)
        group.turn()
        worker.due("add", [1, 1, 1, 1])
        errors = group.turn()
        self.assertEqual([error.kind for error in errors], ["Error", "KeyError", "Error"])
        self.assertIn("rank 1: 'gone'", errors[2].text)
        worker.weights = [3, 3, 3, 3]
        group.turn()
        self.assertEqual(self.same(group.turn()), [3]) # Of a new connection, as the node does not know what rank 1 has.

    def test_a_rank_that_was_killed_is_told_within_moments(self):
        worker = self.worker()

        def body(rank, run, tensors):
            run.draw(1)
            yield None
            yield raised(lambda: [run.step(0, 0.0) for _ in range(3)])

        for victim in (0, 2):
            group = self.group(body)
            group.turn()
            worker.due("copy")
            group.kill(victim)
            started = time.monotonic()
            left = [rank for rank in range(3) if rank != victim]
            for error in group.turn(*left):
                self.assertEqual(error.kind, "RankLost")
                self.assertIn(f"rank {victim} of the script has left the run", error.text)
            self.assertLess(time.monotonic() - started, 15)
            group.close()

    def test_the_node_takes_the_script_that_is_started_again(self):
        worker = self.worker()
        for victim in (0, 1):
            group = self.stepping(n=2)
            group.turn()
            group.turn()
            group.kill(victim)
            group.close()
        group = self.stepping(n=2)
        self.same(group.turn())
        worker.due("copy")
        group.turn()
        group.turn()
        self.assertEqual((worker.connections, worker.seen[-1][:3]), (3, ("copy", 2, 8)))

    def test_ranks_that_do_different_things_are_told_so(self):
        self.worker()

        def body(rank, run, tensors):
            if rank == 1:
                yield raised(run.look)
            yield raised(run.draw, 1)

        for error in self.group(body, n=2).turn():
            self.assertEqual(error.kind, "RankLost")
            self.assertIn("rank 1 is at a look without a step after 0 steps, rank 0 at a draw of samples", error.text)

    def test_another_user_who_connects_in_the_place_of_a_rank_is_let_go(self):
        """What a stranger gains: the name of the socket is seen in /proc/net/unix; he is let go, and the ranks meet all the same."""
        if os.geteuid() != 0:
            self.skipTest("needs root to be another user")
        hub = Hub(2, wait_s=30)
        self.addCleanup(hub.close)
        out, into = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setuid(65534)
            strange = socket.socket(socket.AF_UNIX, packets.KIND)
            strange.connect("\0" + hub.address)
            os.write(into, b"here")
            os._exit(0 if strange.recv(1) == b"" else 1)
        self.assertEqual(os.read(out, 4), b"here") # before the rank
        spoke = Spoke(hub.address, 1, b"digest", wait_s=30)
        self.addCleanup(spoke.close)
        board = os.memfd_create("board")
        self.addCleanup(os.close, board)
        hub.admit(b"digest", board, 2)
        fd, ranks, tensors = spoke.board()
        os.close(fd)
        self.assertEqual((ranks, tensors), (2, 2))
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def test_a_rank_that_does_not_come_ends_in_an_error(self):
        worker = self.worker()

        def body(rank, run, tensors):
            (run._hub if rank == 0 else run._spoke).wait_s = 0.3
            yield None
            yield raised(lambda: [run.step(0, 0.0) for _ in range(2)])

        group = self.group(body, n=2)
        group.turn()
        worker.due("copy")
        self.assertIn("rank 1 has not come to the look after a step", group.turn(0)[0].text)
        self.assertIn("RankLost", group.turn(1)[0].kind)
        group.close()
        group = self.group(body, n=2)
        group.turn()
        self.assertIn("rank 0 has not taken step 1", group.turn(1)[0].text)

    def test_a_child_of_a_rank_cannot_use_the_run_and_does_not_keep_it_open(self):
        self.worker()

        def body(rank, run, tensors):
            out, into = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.write(into, raised(run.step, 0, 0.0).kind.encode())
                time.sleep(600)
                os._exit(0)
            told = os.read(out, 100).decode()
            yield told, pid
            yield raised(lambda: [run.step(0, 0.0) for _ in range(3)])

        group = self.group(body, n=2)
        values = group.turn()
        self.assertEqual([told for told, _ in values], ["WrongProcess"] * 2)
        group.kill(0)
        self.assertEqual(group.turn(1)[0].kind, "RankLost")
        for _, pid in values:
            os.kill(pid, 9)


if __name__ == "__main__":
    kit.main()
