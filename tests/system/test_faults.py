#!/usr/bin/env python3
"""Faults of one node while others continue: trainers that exit, hang or give wrong states, notices that a machine will end, a new address, a
watchdog that fires."""

import contextlib
import os
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from daemons import free_port  # noqa: E402
from roots import Differs, Roots  # noqa: E402
from small_run import state_roots_agree  # noqa: E402
from systemtest import BINARIES, SystemTest, wait_for  # noqa: E402

PATIENCE_S = 40
LIB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib")


def texts(node, last=200):
    return [e["text"] for e in node.lines("logs", "-n", str(last)) if "text" in e]


class Faults(SystemTest):
    def pair(self, *arguments, environment=None):
        """A founder and a second node with these arguments, both counted."""
        self.first, token = self.found()
        second = self.folder.node("node2", *arguments)
        second.environment = environment
        second.start().ask("join", "-", stdin=token)
        self.id = second.ask("status")["id"]
        self.counted(second)
        return second

    def counted(self, node):
        begin = node.run().get("counted", 0)
        wait_for(lambda: node.run().get("counted", 0) > begin + 1, PATIENCE_S, f"{node.name} is counted in rounds")

    def rounds_go_on(self, node, count=2):
        begin = node.run()["round"]
        wait_for(lambda: node.run()["round"] >= begin + count, PATIENCE_S, f"{count} more rounds")

    def state_of_second(self):
        return {p["id"]: p["state"] for p in self.first.ask("peers")["peers"]}.get(self.id)

    def bad_worker(self):
        """Path of a trainer that fails on command, and of the file with the command."""
        order = self.file("order", "")
        script = self.file("worker", f"#!/bin/sh\nexec {sys.executable} {LIB}/bad_worker.py {BINARIES}/dpnode-worker {order} \"$@\"\n")
        os.chmod(script, 0o755)
        return script, order

    def tell(self, order, word):
        with open(order + ".new", "w", encoding="utf-8") as file:
            file.write(word)
        os.rename(order + ".new", order)

    def test_28_a_node_without_a_free_descriptor_stays_and_costs_nobody_else(self):
        node = self.pair()
        pid = node.process.pid
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        used = [int(name) for name in os.listdir(f"/proc/{pid}/fd")]
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (max(used) + 1, hard))
        callers = []
        for _ in range(40): # more than there are holes below; who finds none is turned away, and does not wait
            callers.append(socket.socket(socket.AF_UNIX))
            callers[-1].settimeout(10)
            wait_for(lambda: callers[-1].connect_ex(node.socket) == 0, 10, "a place in the queue")
        self.assertEqual(callers[-1].recv(1), b"")
        self.rounds_go_on(self.first, 4)
        self.assertEqual(self.state_of_second(), "alive") # its links are open as before
        self.assertIsNone(node.process.poll())
        for caller in callers:
            caller.close()
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
        wait_for(lambda: node.run()["round"] >= self.first.run()["round"] - 2, PATIENCE_S, "it follows the chain")
        self.counted(node)
        self.assertEqual(node.run()["trainer_restarts"], 0) # what is lacking is no fault of its trainer's
        self.assertFalse([t for t in texts(node) if "cannot be decoded" in t])

    def test_a_failed_write_of_the_store_ends_the_daemon_and_the_next_start_goes_on(self):
        node = self.folder.node("node1").start()
        pid = node.process.pid
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, hard)) # the log of meta.db is longer
        os.kill(pid, signal.SIGHUP) # an event, which goes to the journal
        self.assertEqual(node.process.wait(PATIENCE_S), 75)
        node.start()
        self.assertFalse(node.ask("status").get("run"))

    def test_36_a_trainer_without_memory_says_so_and_is_replaced(self):
        node = self.pair()
        pid = node.run()["trainer_pid"]
        # Less than its present memory: it can map no update any more, independent of its present mappings.
        resource.prlimit(pid, resource.RLIMIT_AS, (resource.getpagesize(), resource.RLIM_INFINITY))
        wait_for(lambda: node.run()["trainer_restarts"] >= 1, PATIENCE_S, "it is replaced")
        self.assertTrue([t for t in texts(node) if "there is no memory left" in t])
        self.counted(node)
        self.assertEqual(node.run()["trainer_restarts"], 1)
        self.assertEqual(self.state_of_second(), "alive")
        self.assertFalse([t for t in texts(self.first) + texts(node) if "cannot be decoded" in t])

    def test_36_slices_that_do_not_follow_on_and_a_death_between_two_cost_no_state(self):
        script, order = self.bad_worker()
        node = self.pair("--worker", script, "--apply-memory", "1")
        third = self.folder.node("node3").start() # so that one slice is on its way when another is refused
        third.ask("join", "-", stdin=self.first.ask("invite", "--role", "vote")["token"])
        self.counted(third)
        self.tell(order, "torn")
        wait_for(lambda: [t for t in texts(node) if "before these is not here" in t], PATIENCE_S, "a slice is refused")
        self.counted(node)
        self.assertEqual(node.run()["trainer_restarts"], 0)
        self.tell(order, "cut")
        wait_for(lambda: node.run()["trainer_restarts"] == 1, PATIENCE_S, "the trainer is replaced")
        self.counted(node)
        self.assertEqual((node.run()["trainer_restarts"], node.run()["diverged"]), (1, 0))
        state_roots_agree([self.first, node, third], PATIENCE_S)

    def test_38_39_a_trainer_that_dies_at_every_start_costs_rounds_and_not_membership(self):
        script, order = self.bad_worker()
        node = self.pair("--worker", script)
        self.tell(order, "vanish")
        wait_for(lambda: node.run()["trainer"] == "failing", PATIENCE_S, "the quick restarts are used up")
        self.rounds_go_on(self.first)
        self.assertEqual(self.state_of_second(), "alive")
        wait_for(lambda: "times in a row and restarts in" in node.ask("why")["answer"], PATIENCE_S, "why tells")
        self.assertIn("trainer failing", node.ask("why")["answer"])
        wait_for(lambda: [t for t in texts(node) if "5 times in a row; it restarts in" in t], PATIENCE_S, "logs tell")
        self.assertGreaterEqual(node.run()["round"], self.first.run()["round"] - 2) # it follows the chain
        self.tell(order, "")
        node.kill()
        node.start() # the budget is that of one life
        self.counted(node)

    def test_40_a_trainer_that_hangs_is_replaced(self):
        script, order = self.bad_worker()
        node = self.pair("--worker", script, "--answer-time", "2")
        pid = node.run()["trainer_pid"]
        self.tell(order, "hang")
        wait_for(lambda: node.run()["trainer_restarts"] >= 1, PATIENCE_S, "it is noticed")
        self.tell(order, "")
        self.counted(node)
        self.assertNotEqual(node.run()["trainer_pid"], pid)
        self.assertFalse(os.path.exists(f"/proc/{pid}"))

    def errs(self, node, order, noticed, what):
        """Makes the trainer report wrong states one by one until the node notices: a certificate may arrive too late for the comparison."""
        def done():
            if noticed():
                return True
            if not os.path.getsize(order) and node.run()["trainer"] == "up":
                self.tell(order, "wrong 1")
            return False
        wait_for(done, PATIENCE_S, what)
        self.tell(order, "")

    def test_42_a_trainer_that_errs_is_brought_back_and_at_the_third_time_rests(self):
        script, order = self.bad_worker()
        node = self.pair("--worker", script)
        third = self.folder.node("node3").start() # so that two of three certify
        third.ask("join", "-", stdin=self.first.ask("invite", "--role", "vote")["token"])
        self.counted(third)
        wait_for(lambda: self.first.run()["voters"] == 3, PATIENCE_S, "three voters")
        roots = Roots(self.first, node, third)
        self.addCleanup(roots.end)
        roots.check()
        self.errs(node, order, lambda: roots.ask(node) or roots.difference, "a test that compares the states of all rounds finds a wrong one")
        self.assertIn("node2", roots.difference)
        self.assertRaises(Differs, roots.check)
        wait_for(lambda: node.run()["diverged"] > 0, PATIENCE_S, "the node finds it out")
        self.counted(node)
        self.errs(node, order, lambda: [t for t in texts(node) if "the trainer pauses" in t], "it errs again and again")
        self.assertGreaterEqual(node.run()["diverged"], 3)
        self.rounds_go_on(self.first)
        self.assertEqual(self.state_of_second(), "alive")

    def test_43_a_node_told_to_end_in_mid_round_says_goodbye_and_returns(self):
        node = self.pair()
        wait_for(lambda: any("published an update" in t for t in texts(node, 3)), PATIENCE_S, "an update is out")
        node.process.send_signal(signal.SIGINT)
        self.assertEqual(node.process.wait(10), 0)
        wait_for(lambda: self.state_of_second() == "dead", 2, "the others know at once, and do not suspect it first")
        self.rounds_go_on(self.first)
        self.assertFalse([t for t in texts(self.first) if "node2" in t and "suspect" in t])
        node.start()
        self.counted(node)
        state_roots_agree([self.first, node], PATIENCE_S)

    def test_43_why_round_names_a_frozen_node_in_each_round_without_it(self):
        node = self.pair()
        begin = self.first.run()["round"]
        node.signal_all(signal.SIGSTOP)
        wait_for(lambda: self.state_of_second() == "dead", PATIENCE_S, "it is held dead")
        self.rounds_go_on(self.first)
        without = [r for r in self.first.lines("rounds", "-n", "100") if r.get("round", 0) > begin
                   and not any(p["id"] == self.id for p in r["peers"])]
        self.assertGreater(len(without), 1)
        for record in without:
            self.assertIn("node2", self.first.ask("why", "round", str(record["round"]))["answer"])
        node.signal_all(signal.SIGCONT)
        self.counted(node)
        last = [r for r in self.first.lines("rounds", "-n", "5") if any(p["id"] == self.id for p in r.get("peers", []))][-1]
        self.assertNotIn("node2", self.first.ask("why", "round", str(last["round"]))["answer"])

    def test_43_sigterm_drains_and_a_second_one_ends(self):
        node = self.pair()
        node.process.send_signal(signal.SIGTERM)
        self.assertEqual(node.process.wait(20), 0)
        self.assertIn("SIGTERM received: this node stops when a round counts its work, after 25 s", node.tail(40))
        self.assertIn("drained: this node's work is counted", node.tail(20))
        node.start()
        wait_for(lambda: node.ask("status").get("state") == "training" and node.run().get("trainer") == "up", PATIENCE_S,
                 "it trains again")
        self.first.process.send_signal(signal.SIGSTOP) # no round is decided now
        node.process.send_signal(signal.SIGTERM)
        wait_for(lambda: node.tail(100000).count("SIGTERM received: ") == 2, 10, "it drains")
        self.assertIsNone(node.process.poll())
        node.process.send_signal(signal.SIGTERM)
        self.assertEqual(node.process.wait(5), 0)
        self.assertIn("SIGTERM received twice", node.tail(5))
        self.first.process.send_signal(signal.SIGCONT)

    def test_43_the_first_sigterm_cuts_no_drain_short_that_a_file_began(self):
        notice = os.path.join(self.folder.path, "notice")
        node = self.pair("--drain-on-file", notice, "--drain-time", "20")
        self.first.process.send_signal(signal.SIGSTOP) # no round is decided now
        self.file("notice", "")
        wait_for(lambda: "notice exists: this node stops when" in node.tail(40), 10, "it drains")
        node.process.send_signal(signal.SIGTERM) # the machine stops its services before it goes away
        node.ask("status") # so it has the signal
        self.assertIsNone(node.process.poll())
        self.first.process.send_signal(signal.SIGCONT)
        self.assertEqual(node.process.wait(25), 0)
        self.assertIn("drained: this node's work is counted", node.tail(20))

    def mended(self, supervisor):
        """A node that finds a damaged record at its start, drops it, and begins a new life in the same process."""
        node, _ = self.found()
        wait_for(lambda: node.run().get("round", 0) > 3, PATIENCE_S, "some records")
        node.kill()
        with contextlib.closing(sqlite3.connect(os.path.join(node.dir, "meta.db"))) as meta:
            meta.execute("UPDATE record SET record=zeroblob(9) WHERE slot=3")
            meta.commit()
        node.environment = {"NOTIFY_SOCKET": supervisor.getsockname()}
        return node.start(wait=False)

    def test_43_a_new_life_in_the_same_process_is_a_reload_and_no_hangup_ends_it(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
            supervisor.bind(os.path.join(self.folder.path, "notify"))
            supervisor.setblocking(False)
            node = self.mended(supervisor)
            heard = []
            deadly = 0
            end = time.monotonic() + PATIENCE_S
            while len(heard) < 3:
                self.assertIsNone(node.process.poll(), (heard, node.tail()))
                self.assertLess(time.monotonic(), end, heard)
                deadly += self.dies_of_a_hangup(node.process.pid)
                with contextlib.suppress(BlockingIOError):
                    heard.append(supervisor.recv(200))
            self.assertEqual([h.split(b"\n")[0] for h in heard], [b"READY=1", b"RELOADING=1", b"READY=1"])
            self.assertEqual(deadly, 0)
            node.process.send_signal(signal.SIGHUP)
            wait_for(node.answers, 10, "it answers in its second life")

    @staticmethod
    def dies_of_a_hangup(pid):
        """True if SIGHUP would end this process now, which is past the first lines of its main."""
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            masks = {key: int(value, 16) for key, value in (line.split(":") for line in file) if key in ("SigIgn", "SigCgt")}
        return masks["SigIgn"] >> (signal.SIGPIPE - 1) & 1 and not (masks["SigIgn"] | masks["SigCgt"]) >> (signal.SIGHUP - 1) & 1

    def test_43_sigterm_between_two_lives_ends_both(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
            supervisor.bind(os.path.join(self.folder.path, "notify"))
            supervisor.settimeout(10)
            node = self.mended(supervisor)
            while not supervisor.recv(200).startswith(b"RELOADING=1"):
                self.assertIsNone(node.process.poll())
            node.process.send_signal(signal.SIGTERM) # the first life closes its store
            self.assertIn(node.process.wait(20), (0, -signal.SIGTERM))

    def test_43_a_signal_to_all_processes_of_a_node_drains_it(self):
        """A batch system signals the trainer, too. Without it there would be no work to count."""
        node = self.pair()
        trainer = wait_for(lambda: node.run().get("trainer") == "up" and node.run()["trainer_pid"], PATIENCE_S, "it trains")
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            os.kill(trainer, number)
        node.process.send_signal(signal.SIGTERM)
        self.assertEqual(node.process.wait(30), 0)
        self.assertIn("drained: this node's work is counted", node.tail(20))
        self.assertNotIn("evt=trainer.down", node.tail(40))
        wait_for(lambda: not os.path.exists(f"/proc/{trainer}"), 10, "the trainer ends with its daemon")

    def test_43_signals_while_it_ends_do_not_cut_its_end_short(self):
        """An orchestrator signals a node that drains already, and a batch system all of its processes, some of them twice."""
        node = self.pair()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            sent = 0
            while sent == 0: # its last moments may pass while this test waits for a processor
                since = len(self.first.tail(100000))
                down = subprocess.Popen(node.command("down"), stdout=subprocess.DEVNULL)
                while node.process.poll() is None:
                    if not os.path.exists(node.socket): # its loop has ended
                        node.process.send_signal(number)
                        sent += 1
                down.wait()
                self.assertEqual(node.process.returncode, 0, number)
                # It has told its peers; they may get to read it later.
                wait_for(lambda at=since: "it stopped" in self.first.tail(100000)[at:], PATIENCE_S, "the other has its goodbye")
                node.start()
                wait_for(lambda: node.run().get("alive") == 2, PATIENCE_S, "it is back")

    def test_43_sigterm_ends_a_node_without_uncounted_work_at_once(self):
        idle = self.folder.node("idle").start()
        paused = self.pair()
        paused.ask("pause")
        wait_for(lambda: paused.ask("status").get("state") == "paused", 10, "it is paused")
        for node in (idle, paused):
            node.process.send_signal(signal.SIGTERM)
            self.assertEqual(node.process.wait(5), 0)
            self.assertIn("drained: no round is open", node.tail(5))

    def test_43_a_token_in_a_file_is_joined_by_when_it_is_there(self):
        first, token = self.found()
        path = os.path.join(self.folder.path, "token")
        node = self.folder.node("late", "--token-file", path).start()
        wait_for(lambda: "the file does not exist yet" in node.tail(), 10, "it waits for the file")
        self.file("token", "DPN1-junk\n")
        wait_for(lambda: "join.failed" in node.tail(), 10, "it tells that this is no token")
        self.file("token", token + "\n")
        wait_for(lambda: node.run().get("counted", 0) > 0, PATIENCE_S, "it has joined")
        self.assertEqual(first.run()["members"], 2)
        node.ask("leave")
        wait_for(lambda: not node.run(), PATIENCE_S, "it has left, and does not join again")

    def test_44_a_notice_of_a_machine_that_goes_away_is_heeded_after_the_round(self):
        notice = os.path.join(self.folder.path, "notice")
        node = self.pair("--drain-on-file", notice, "--drain-time", "20")
        counted = self.folder.follow(self.first)
        self.file("notice", "")
        self.assertEqual(node.process.wait(25), 0)
        self.assertIn("drained: this node's work is counted", node.tail(20))
        self.assertTrue([r for r in counted.all() if any(p["id"] == self.id for p in r["peers"])])
        self.rounds_go_on(self.first)

    def test_44_a_node_told_to_drain_ends_when_its_work_is_counted(self):
        node = self.pair()
        counted = self.folder.follow(self.first)
        told = node.ask("drain", "--time", "30s")
        self.assertEqual((told["counted"], told["text"]), (True, "drained: this node's work is counted"))
        self.assertEqual(node.process.wait(10), 0)
        self.assertTrue([r for r in counted.all() if any(p["id"] == self.id for p in r["peers"])])
        self.rounds_go_on(self.first)
        node.start() # it only ended: it is a member
        self.counted(node)
        node.ask("pause")
        drained, left = node.lines("drain", "--leave") # nothing is under way: at once
        self.assertEqual(drained["text"], "drained: no round is open")
        self.assertEqual(left["run"], "tiny")
        self.assertNotIn("run", node.ask("status")) # the daemon stays, idle

    def test_45_a_stuck_loop_sends_no_sign_of_life(self):
        path = os.path.join(self.folder.path, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
            supervisor.bind(path)
            supervisor.settimeout(10)
            node = self.pair(environment={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "600000"})
            heard = [supervisor.recv(64) for _ in range(4)]
            self.assertEqual((heard[0], set(heard[1:])), (b"READY=1", {b"WATCHDOG=1"}))
            node.process.send_signal(signal.SIGSTOP)
            supervisor.settimeout(0.1)
            try:
                while True:
                    supervisor.recv(64) # what was said before
            except TimeoutError:
                pass
            supervisor.settimeout(1.2) # two barks
            with self.assertRaises(TimeoutError):
                supervisor.recv(64)
            node.kill() # as systemd does
            supervisor.settimeout(10)
            node.start()
            self.assertEqual(supervisor.recv(64), b"READY=1")
            self.counted(node)
            supervisor.settimeout(0.1)
            try:
                while True:
                    supervisor.recv(64) # The kernel keeps ten, and a daemon does not wait for room.
            except TimeoutError:
                pass
            supervisor.settimeout(10)
            node.process.terminate()
            self.assertEqual(node.process.wait(10), 0)
            said = b""
            while said != b"STOPPING=1":
                said = supervisor.recv(64)

    def test_54_a_node_with_a_new_address_is_found_again(self):
        node = self.pair()
        node.kill()
        old, node.port = node.port, free_port()
        node.start()
        self.counted(node)
        known = {p["id"]: p["addresses"] for p in self.first.ask("peers")["peers"]}[self.id]
        self.assertTrue([a for a in known if a.endswith(f":{node.port}")], (known, old))
        self.first.kill() # who comes back dials the new one
        self.first.start()
        self.counted(node)

    def test_55_a_peer_with_another_version_of_the_wire_is_cut_and_counted(self):
        first, _ = self.found()
        before = first.run()["handshakes_failed"]
        with socket.create_connection(("127.0.0.1", first.port)) as other:
            other.settimeout(10)
            other.sendall(b"DPN2" + bytes(200)) # as a later program would begin
            try:
                self.assertEqual(other.recv(1), b"") # the end, and not a word: it might be a stranger
            except ConnectionResetError:
                pass
        wait_for(lambda: first.run()["handshakes_failed"] == before + 1, 5, "it is counted")
        self.rounds_go_on(first)

    def test_a_token_with_a_name_is_followed(self):
        port = free_port()
        first = self.folder.node("node1", "--advertise", f"localhost:{port}")
        first.port = port
        first.start()
        text = systemtest.tiny_text(os.path.join(self.folder.path, "text.txt"))
        token = first.create(self.file("tiny.yaml", systemtest.TINY), "--text", text)["invite"]
        node = self.joined("node2", token)
        self.counted(node)


if __name__ == "__main__":
    systemtest.main()
