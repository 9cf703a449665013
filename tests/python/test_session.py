#!/usr/bin/env python3
"""The conversation with the node, without any framework: looks, counts, samples, reconnecting."""

import os
import signal
import struct
import threading
import time
import unittest.mock
import warnings

import kit
import dpnode
from dpnode import connection as connection_module
from dpnode import session as session_module
from dpnode.place import Place
from dpnode.session import Session


def wait_for(condition, what):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


class SessionTest(kit.Test):
    def session(self, floats=None, **options):
        self.floats = floats or kit.Floats(a=[0, 0, 0], b=[0])
        session = Session(self.floats, Place(self.dir), **{"timeout": 5, **options})
        self.addCleanup(session.close)
        return session

    def opened(self, **options):
        session = self.session(**options)
        session.open()
        return session


class Owners(SessionTest):
    """Who may use a session."""

    def in_thread(self, call):
        caught = []

        def body():
            try:
                call()
            except dpnode.Error as error:
                caught.append(error)

        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        return caught[0] if caught else None

    def test_a_thread_that_has_not_opened_the_run_may_not_draw_or_look(self):
        worker = self.worker()
        session = self.opened()
        for call in (lambda: session.draw(1), session.look):
            error = self.in_thread(call)
            self.assertIsInstance(error, dpnode.WrongProcess)
            self.assertIn("thread", error.what)
            self.assertIn("num_workers", error.fix)
        session.draw(8)
        self.assertIsNone(self.in_thread(lambda: session.step(8, 0.0))) # As a hook of backward does.
        self.assertEqual(worker.header()[:2], (1, 8))

    def test_a_run_that_a_thread_opens_is_that_threads(self):
        self.worker()
        session = self.session()
        self.assertIsNone(self.in_thread(lambda: (session.open(), session.draw(1), session.look())))
        self.fails(dpnode.WrongProcess, session.draw, 1)

    def test_a_second_session_of_the_process_is_refused_until_the_first_is_closed(self):
        self.worker()
        first = self.opened()
        started = time.monotonic()
        error = self.fails(dpnode.Error, self.session().open)
        self.assertLess(time.monotonic() - started, 2)
        self.assertIn("run.close()", error.fix)
        first.draw(1) # It goes on.
        first.close()
        self.opened()

    def test_a_session_that_nobody_has_any_more_is_in_no_ones_way(self):
        self.worker()
        lost = Session(kit.Floats(a=[0, 0, 0], b=[0]), Place(self.dir), timeout=5)
        lost.open()
        lost.itself = lost
        del lost
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning) # The socket was not closed by hand.
            self.opened()


class Looks(SessionTest):
    def test_opening_sets_the_weights_of_the_run(self):
        worker = self.worker(weights=[1, 2, 3, 4], samples=77, unit=5, tokens_total=900)
        worker.now(6, 1000)
        session = self.opened()
        self.assertEqual(self.floats.tensors, {"a": [1, 2, 3], "b": [4]})
        self.assertEqual((session.samples_of_pass, session.unit, session.tokens_total), (77, 5, 900))
        self.assertEqual((session.round, session.tokens, session.over, session.paused), (6, 1000, False, False))
        self.assertEqual(worker.seen, ["hello", "look", ("assign", 0, 0, 0.0)])

    def test_a_look_with_nothing_due_says_nothing(self):
        worker = self.worker()
        session = self.opened()
        session.draw(8)
        del worker.seen[:]
        session.step(3, 0.5)
        session.step(5, 0.25)
        self.assertEqual(worker.seen, [])
        self.assertEqual(worker.header(), (2, 8, 0.75))

    def test_an_addition_comes_before_a_copy_which_has_everything(self):
        worker = self.worker(weights=[1, 2, 3, 4])
        session = self.opened()
        session.draw(8)
        self.floats.tensors["a"][0] += 10 # the optimizer's step
        worker.due("add", [100, 0, 0, 0.5])
        worker.due("copy")
        session.step(8, 2.0)
        self.assertEqual(worker.weights, [111, 2, 3, 4.5])
        self.assertEqual(worker.seen[-3:], ["look", ("add", 1, 8, 2.0), ("copy", 1, 8, 2.0)])
        self.assertEqual(self.floats.calls, ["assign", "add", "copy"])

    def test_new_weights_replace_the_scripts_in_the_middle(self):
        worker = self.worker()
        session = self.opened()
        told = []
        session.on_assign(told.append)
        worker.now(9, 0)
        worker.due("assign", [5, 6, 7, 8])
        session.step(0, 0.0)
        self.assertEqual((self.floats.tensors["b"], told), ([8], [9]))

    def test_a_handler_of_new_weights_may_look_itself(self):
        worker = self.worker()
        session = self.opened()
        rounds = []
        session.on_assign(lambda number: (rounds.append(number), session.look()))
        worker.now(9, 0)
        worker.due("assign", [5, 6, 7, 8])
        worker.due("add", [1, 1, 1, 1]) # The look under way has this to do, too.
        session.step(0, 0.0)
        self.assertEqual((self.floats.tensors["b"], rounds), ([9], [9]))

    def test_handlers_hear_of_each_round_once(self):
        worker = self.worker()
        worker.now(3, 30)
        session = self.opened()
        rounds = []
        session.on_round(rounds.append)
        for number in (3, 4, 4, 7):
            worker.now(number, 10 * number)
            session.step(0, 0.0)
        self.assertEqual((rounds, session.tokens), ([4, 7], 70))

    def test_steps_since_the_last_copy_are_handed_in_at_the_end(self):
        worker = self.worker()
        session = self.opened()
        session.draw(3)
        session.step(1, 2.0)
        worker.due("copy")
        session.step(1, 2.0)
        session.step(1, 2.0)
        session.close(give=True)
        self.assertEqual([one[1:3] for one in worker.seen if one[0] == "copy"], [(2, 2), (3, 3)])
        session = self.opened()
        session.close(give=True) # nothing to give
        self.assertEqual(len([one for one in worker.seen if one[0] == "copy"]), 2)

    def test_what_the_run_has_told_can_be_read_after_the_end(self):
        worker = self.worker(tokens_total=900)
        worker.now(4, 800)
        session = self.opened()
        worker.now(5, 900, 0.25)
        session.close(give=True)
        self.assertEqual((session.round, session.tokens, session.rate, session.tokens_total), (5, 900, 0.25, 900))
        worker.now(6, 1000, 0.125)
        session.open()
        self.assertEqual((session.round, session.tokens, session.rate), (6, 1000, 0.125))

    def lost_at_the_end(self, session):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            session.close(give=True)
        return " ".join(str(one.message) for one in caught)

    def test_last_steps_that_the_node_does_not_take_are_told(self):
        worker = self.worker()
        session = self.opened()
        session.draw(3)
        session.step(3, 2.0)
        worker.refusal = (7, "a weight is NaN or infinite")
        self.assertRegex(self.lost_at_the_end(session), "the last 1 of 1 steps.* NaN or infinite")
        worker.refusal = None
        session = self.opened()
        session.draw(3)
        session.step(3, 2.0)
        worker.due("copy")
        session.look()
        worker.refusal = (7, "a weight is NaN or infinite") # The answer of that look came before.
        self.assertRegex(self.lost_at_the_end(session), "the last steps.* NaN or infinite")
        worker.refusal = None
        session = self.opened()
        session.draw(3)
        session.step(3, 2.0)
        worker.vanish()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with self.assertRaisesRegex(RuntimeWarning, "the last 1 of 1 steps"):
                session.close(give=True)
        self.assertEqual((session._is_open, self.lost_at_the_end(session)), (False, ""))

    def test_a_node_that_ends_and_stays_away_ends_the_run_of_the_script(self):
        worker = self.worker()
        session = self.opened(timeout=0.3)
        worker.refusal = (5, "the node leaves the run")
        session.look()
        self.assertEqual((session.over, session.draw(1)), (True, []))

    def test_a_node_that_ends_and_comes_back_is_connected_again(self):
        worker = self.worker()
        session = self.opened()
        worker.refusal = (5, "the trainer restarts")
        threading.Timer(0.2, setattr, [worker, "refusal", None]).start()
        session.look()
        self.assertEqual((session.over, worker.connections), (False, 2))

    def test_steps_without_samples_are_told_at_the_first_copy(self):
        worker = self.worker()
        session = self.opened()
        worker.due("copy")
        self.assertIn("used no samples", str(self.fails(dpnode.Mismatch, session.step, 0, 1.0)))


class Rounds(SessionTest):
    def test_all_steps_of_a_round_wait_for_the_next_one(self):
        worker = self.worker(weights=[1, 2, 3, 4])
        worker.now(6, 0)
        session = self.opened(sync_every=2)
        rounds = []
        session.on_round(rounds.append)
        session.step(0, 0.0)
        self.assertEqual(rounds, [])
        def decide():
            worker.due("add", [1, 1, 1, 1])
            worker.now(7, 100)
        threading.Timer(0.2, decide).start()
        session.step(0, 0.0)
        self.assertEqual((rounds, self.floats.tensors), ([7], {"a": [2, 3, 4], "b": [5]}))
        session.step(0, 0.0) # The first step of round 7 waits for nobody.
        self.assertEqual(session.round, 7)

    def test_what_comes_while_a_round_is_waited_for_is_done(self):
        worker = self.worker()
        session = self.opened(sync_every=1)
        session.draw(1)
        worker.due("copy")
        threading.Timer(0.2, worker.now, [9, 0]).start()
        session.step(1, 0.0)
        self.assertIn(("copy", 1, 1, 0.0), worker.seen)
        self.assertEqual(session.round, 9)

    def test_a_round_that_is_not_decided_in_time_lets_the_loop_turn_over(self):
        self.worker()
        session = self.opened(sync_every=1, timeout=0.2)
        started = time.monotonic()
        session.step(0, 0.0)
        self.assertGreaterEqual(time.monotonic() - started, 0.19)

    def test_a_round_without_steps_is_refused(self):
        self.fails(dpnode.Mismatch, self.opened, sync_every=0)


class Pauses(SessionTest):
    def test_a_look_waits_while_the_node_is_paused(self):
        worker = self.worker()
        session = self.opened()
        worker.pause()
        threading.Timer(0.2, worker.pause, [False]).start()
        started = time.monotonic()
        session.step(0, 0.0)
        self.assertGreaterEqual(time.monotonic() - started, 0.15)
        self.assertFalse(session.paused)

    def test_a_pause_longer_than_the_timeout_lets_the_loop_turn_over(self):
        worker = self.worker()
        session = self.opened(timeout=0.2)
        worker.pause()
        session.step(0, 0.0)
        self.assertTrue(session.paused)

    def test_rounds_come_in_while_the_node_is_paused(self):
        worker = self.worker()
        session = self.opened()
        worker.pause()
        threading.Timer(0.1, worker.due, ["add", [1, 1, 1, 1]]).start()
        threading.Timer(0.3, worker.pause, [False]).start()
        session.step(0, 0.0)
        self.assertEqual(self.floats.tensors["b"], [1])

    def test_a_paused_node_whose_header_has_no_round_keeps_the_last_one(self):
        worker = self.worker()
        worker.now(7, 70)
        session = self.opened(wait_while_paused=False)
        rounds = []
        session.on_round(rounds.append)
        worker.pause()
        worker.now(0, 70)
        session.step(0, 0.0)
        self.assertEqual((session.round, rounds), (7, []))
        worker.pause(False)
        worker.now(8, 80)
        session.step(0, 0.0)
        self.assertEqual((session.round, rounds), (8, [8]))

    def test_without_waiting_a_pause_is_only_told(self):
        worker = self.worker()
        session = self.opened(wait_while_paused=False)
        worker.pause()
        started = time.monotonic()
        session.step(0, 0.0)
        self.assertTrue(session.paused and time.monotonic() - started < 1)
        worker.pause(False)
        session.look()
        self.assertFalse(session.paused)


class Samples(SessionTest):
    def test_samples_come_in_the_order_of_the_node(self):
        worker = self.worker(samples=1000)
        session = self.opened()
        drawn = session.draw(3) + session.draw(300) + session.draw(9000)
        self.assertEqual(drawn, [(7 * i) % 1000 for i in range(9303)])
        self.assertLess(sum(1 for one in worker.seen if one[0] == "draw"), 8)

    def test_steps_without_indices_draw_what_they_use(self):
        worker = self.worker()
        session = self.opened()
        for _ in range(100):
            session.cover(7)
            session.step(7, 1.0)
        worker.due("copy")
        session.cover(20000)
        session.step(20000, 1.0)
        self.assertEqual(worker.used, 20700)

    def test_a_node_that_gives_no_more_gets_a_copy_of_the_steps_that_have_used_them(self):
        worker = self.worker()
        worker.draw_most = 300
        session = self.opened()
        for _ in range(10):
            self.assertEqual(len(session.draw(100)), 100)
            session.step(100, 1.0)
        for _ in range(10):
            session.cover(100)
            session.step(100, 1.0)
        self.assertEqual(session.samples, 2000)
        self.assertGreaterEqual(worker.used, 1700)

    def test_more_than_the_node_gives_in_advance_is_an_error_with_its_cause(self):
        worker = self.worker()
        worker.draw_most = 300
        session = self.opened()
        self.assertIn("drawn and not used", str(self.fails(dpnode.Error, session.draw, 301)))

    def test_indices_beyond_the_data_are_refused(self):
        worker = self.worker(samples=10)
        session = self.opened()
        worker.answer_with = struct.pack("<IIQ", 8, 1, 10)
        self.fails(dpnode.ProtocolError, session.draw, 1)


class Reconnecting(SessionTest):
    def test_a_script_goes_on_when_its_node_comes_back(self):
        worker = self.worker(weights=[1, 2, 3, 4])
        session = self.opened()
        session.draw(300)
        session.step(300, 1.0)
        worker.vanish()
        worker.weights = [9, 9, 9, 9]
        threading.Timer(0.2, worker.listen).start()
        session.look()
        self.assertEqual(self.floats.tensors["b"], [9])
        self.assertEqual((session.steps, session.samples, session.loss, session.drawn), (0, 0, 0.0, 0))
        self.assertEqual((worker.connections, session.generation), (2, 2))
        session.cover(4)
        worker.due("copy")
        session.step(4, 1.5)
        self.assertEqual(worker.seen[-1], ("copy", 1, 4, 1.5))

    def test_the_death_of_the_node_is_seen_although_it_writes_no_word(self):
        worker = self.worker()
        session = self.opened()
        with unittest.mock.patch.object(session_module, "CHECK_S", 0.05):
            session.step(0, 0.0)
            worker.vanish()
            worker.listen()
            time.sleep(0.1)
            session.step(0, 0.0)
            session.step(0, 0.0)
        self.assertEqual(worker.connections, 2)

    def test_samples_go_on_when_the_node_comes_back_while_they_are_drawn(self):
        worker = self.worker()
        session = self.opened()
        session.draw(250) # Some are left of those that were fetched.
        worker.vanish()
        worker.next_index = 1
        worker.listen()
        self.assertEqual(session.draw(100), [(7 * i) % 100 for i in range(1, 101)])
        self.assertEqual((session.generation, session.drawn), (2, 256))

    def test_a_node_that_stays_away_ends_in_a_timeout_with_the_next_step(self):
        worker = self.worker()
        session = self.opened(timeout=0.3)
        worker.vanish()
        error = self.fails(dpnode.Timeout, session.look)
        self.assertIn("dpnode up", error.fix)
        worker.listen()
        session.look() # A script that catches it can go on.
        self.assertEqual(worker.connections, 2)

    def test_a_node_that_does_not_answer_ends_in_a_timeout(self):
        worker = self.worker()
        session = self.opened(timeout=0.2)
        worker.hang.set()
        started = time.monotonic()
        self.assertIn("dpnode why", self.fails(dpnode.Timeout, session.look).fix)
        self.assertLess(time.monotonic() - started, 2)

    def test_a_script_that_was_too_slow_connects_again_and_gives_up_in_the_end(self):
        worker = self.worker()
        session = self.opened()
        with unittest.mock.patch.object(connection_module, "BUSY_S", 0.1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            worker.refusal = (9, "the copy took 6 s")
            error = self.fails(dpnode.Refused, session.look)
        self.assertEqual((error.code, worker.connections), (9, 1))
        worker.refusal = None
        session.look()
        self.assertEqual(worker.connections, 2)

    def test_a_node_in_another_run_is_told_apart(self):
        worker = self.worker(samples=100)
        session = self.opened()
        worker.vanish()
        worker.samples = 101
        worker.listen()
        self.assertIn("another run", str(self.fails(dpnode.Mismatch, session.look)))

    def test_ctrl_c_in_a_question_ends_the_connection_and_a_later_look_makes_another(self):
        worker = self.worker()
        session = self.opened()
        worker.hang.set()
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with self.assertRaises(KeyboardInterrupt):
            session.look()
        worker.hang.clear()
        session.look()
        self.assertEqual(worker.connections, 2)

    def test_a_script_that_is_interrupted_hears_what_the_node_has(self):
        worker = self.worker()
        session = self.session()
        self.assertEqual(session.parting(), "")
        session.open()
        session.draw(40)
        for step in range(5):
            if step == 2:
                worker.due("copy")
            session.step(8, 1.0)
        self.assertRegex(session.parting(), "3 of 5 steps .* are the node's.*; the last 2, .* are dropped and their samples drawn again")
        worker.due("copy")
        session.look()
        self.assertRegex(session.parting(), "5 of 5 steps .* counted yet$")
        worker.vanish()
        with unittest.mock.patch.object(session_module.time, "sleep", side_effect=KeyboardInterrupt):
            self.assertRaises(KeyboardInterrupt, session.look)
        self.assertIn("while the node was away: 5 of 5 steps", session.parting())
        session.close()
        self.assertEqual(session.parting(), "")

    def test_an_error_of_the_tensors_gives_the_buffer_back(self):
        worker = self.worker()
        session = self.opened()
        with unittest.mock.patch.object(self.floats, "add", side_effect=ValueError("replaced")):
            worker.due("add", [0, 0, 0, 0])
            self.assertRaises(ValueError, session.look)
        wait_for(lambda: worker._connection is None, "the worker sees the end")


class Refusals(SessionTest):
    def refused(self, code, text):
        worker = self.worker()
        worker.refusal = (code, text)
        session = self.session()
        session._timeout = 0.2
        return self.fails(dpnode.Refused, session.open)

    def test_each_refusal_has_its_code_its_text_and_a_fix(self):
        for code in (1, 2, 3, 4, 5, 6, 8, 9, 10):
            error = self.refused(code, f"text {code}")
            self.assertEqual(error.code, code)
            self.assertIn(f"text {code}", str(error))
            self.assertTrue(error.fix)
            os.unlink(os.path.join(self.dir, "script.sock"))

    def test_weights_that_are_not_finite_are_named(self):
        worker = self.worker()
        session = self.opened()
        self.floats.bad = ["a", "b", "c", "d", "e"]
        worker.refusal = (7, "the weights are not finite")
        error = self.fails(dpnode.Refused, session.look)
        self.assertIn("a, b, c and 2 others", error.why)

    def test_a_script_that_has_just_ended_is_waited_for(self):
        worker = self.worker()
        worker.refusal = (1, "another script is connected")
        threading.Timer(0.2, setattr, [worker, "refusal", None]).start()
        self.opened()
        self.assertEqual(worker.connections, 1)

    def test_a_unit_that_is_not_the_runs_is_refused(self):
        self.worker(unit=7)
        self.assertIn("7", str(self.fails(dpnode.Mismatch, self.session(unit=8).open)))


class BadNodes(SessionTest):
    """Bytes of the socket that the protocol does not have are errors, not crashes."""

    def test_any_wrong_welcome_is_refused(self):
        worker = self.worker()
        good = struct.pack("<IIQQQQQQ", 2, 1, 4, 100, 1, 0, 4096, 4112)
        for answer in (b"x", good[:-1], good + b"x", struct.pack("<II", 4, 0), struct.pack("<II", 2, 2) + good[8:], good):
            worker.answer_with = answer # Even the good one comes without a descriptor.
            self.fails(dpnode.ProtocolError, self.session().open)

    def test_memory_that_could_shrink_is_refused(self):
        self.worker(sealed=False)
        self.assertIn("sealed", str(self.fails(dpnode.ProtocolError, self.session().open)))

    def test_any_wrong_answer_to_a_look_is_refused(self):
        worker = self.worker()
        session = self.opened()
        for answer in (b"x", struct.pack("<IIQQ", 5, 6, 0, 0), struct.pack("<IIQ", 5, 0, 0), struct.pack("<II", 8, 0)):
            worker.answer_with = answer
            self.fails(dpnode.ProtocolError, session.look)

    def test_any_wrong_answer_to_a_draw_is_refused(self):
        worker = self.worker()
        session = self.opened()
        for answer in (b"", struct.pack("<II", 8, 1), struct.pack("<II", 8, 2) + bytes(8), struct.pack("<IIQQ", 5, 0, 0, 0),
                       struct.pack("<II", 8, 257) + bytes(8 * 257)):
            if answer:
                worker.answer_with = answer
                self.fails(dpnode.ProtocolError, session.draw, 1)


class Forks(SessionTest):
    def child(self, run):
        """What run says in a child of this process, as its exit status."""
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                run()
            except dpnode.WrongProcess:
                status = 42
            finally:
                os._exit(status)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def test_a_child_that_steps_or_draws_gets_an_error(self):
        worker = self.worker()
        session = self.opened()
        session.draw(1)
        session.step(1, 0.0) # The socket is not due to be looked at now.
        self.assertEqual(self.child(lambda: session.step(1, 0.0)), 42)
        self.assertEqual(self.child(lambda: session.draw(1)), 42)
        self.assertEqual(self.child(session.look), 42)
        self.assertEqual(worker.header()[:2], (1, 1)) # The child has not written there.
        session.look() # The connection of the parent is as it was.

    def test_a_child_does_not_hold_the_connection_open(self):
        worker = self.worker()
        session = self.opened()
        out, into = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.read(out, 1)
            os._exit(0)
        session.close()
        wait_for(lambda: worker._connection is None, "the worker sees the end of the script")
        os.write(into, b"x")
        os.waitpid(pid, 0)
        os.close(out)
        os.close(into)


class Offline(SessionTest):
    def test_without_a_node_samples_come_in_whole_passes(self):
        session = Session(kit.Floats(a=[1]), None)
        session.samples_of_pass = 10
        session.open()
        drawn = session.draw(25)
        self.assertEqual((sorted(drawn[:10]), sorted(drawn[10:20])), (list(range(10)), list(range(10))))
        session.step(25, 1.0)
        self.assertEqual((session.tokens, session.over, session.round), (25, False, 0))
        session.close()
        self.assertEqual(session.tokens, 25)

    def test_a_closed_session_counts_and_says_nothing(self):
        worker = self.worker()
        session = self.opened()
        worker.now(5, 0)
        session.step(0, 0.0)
        session.close()
        session.step(0, 1.0)
        self.assertEqual(session.round, 5)
        self.fails(dpnode.Error, session.draw, 1)


if __name__ == "__main__":
    kit.main()
