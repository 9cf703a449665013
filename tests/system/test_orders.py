#!/usr/bin/env python3
"""Commands that need the root key: a member is removed; the chain begins anew after the loss of a majority."""

import contextlib
import os
import pwd
import signal
import sqlite3
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import CliError, SystemTest, wait_for  # noqa: E402

MANIFEST = """name: tiny
model: {layers: 1, width: 32, heads: 2, context: 32, vocab: 300}
train: {batch: 2, lr: 1e-2, warmup_tokens: 100, total_tokens: 10000000}
round: {time: 0.5, steps_max: 20}
gossip: {time: 0.5}
vote: {uptime: 0, voters_max: 3}
"""


class Orders(SystemTest):
    @staticmethod
    def told(node):
        """Its run, {} while it restarts."""
        try:
            return node.run()
        except CliError:
            return {}

    def run_of_three(self, third="node3"):
        first = self.folder.node("node1").start()
        text = systemtest.tiny_text(os.path.join(self.folder.path, "text.txt"))
        token = first.create(self.file("run.yaml", MANIFEST), "--text", text)["invite"]
        nodes = [first] + [self.joined("node2", token), self.joined("node3", token, "--name", third)]
        wait_for(lambda: all(n.run().get("voters") == 3 and n.run().get("members") == 3 for n in nodes), 60,
                 "three members who vote")
        return nodes

    def test_a_member_is_put_out_and_stays_out(self):
        first, second, third = self.run_of_three("node2")
        self.fails("E0121", 77, second.ask, "revoke", first.ask("status")["name"], "--yes")
        self.fails("E0120", 1, first.ask, "revoke", "nobody", "--yes")
        self.fails("E0120", 1, first.ask, "revoke", "nobody")
        self.fails("E0120", 1, first.ask, "revoke", "node2", "--yes")  # Two have that name.
        name = third.ask("status")["id"]
        self.fails("E0122", 64, first.ask, "revoke", name)
        first.ask("revoke", name, "--yes")
        wait_for(lambda: third.ask("status")["state"] == "left", 10, "it knows")
        self.assertFalse(third.run()["is_voter"])
        wait_for(lambda: all(n.run()["members"] == 2 for n in (first, second)), 20, "the chain says so")
        before = first.run()["round"]
        wait_for(lambda: first.run()["round"] >= before + 3, 30, "rounds without it")
        third.kill()
        third.start()
        wait_for(lambda: third.run().get("round", 0) > 0 or third.ask("status")["state"] == "joining", 20, "it is back")
        before = first.run()["round"]
        wait_for(lambda: first.run()["round"] >= before + 3, 30, "rounds without it")
        self.assertEqual(first.run()["members"], 2)

    def test_after_the_loss_of_a_majority_the_root_key_continues_and_returning_nodes_follow(self):
        first, second, third = self.run_of_three()
        self.fails("E0123", 77, first.ask, "run", "fork", "--yes")  # There is no reason for a fork.
        wait_for(lambda: first.run()["round"] >= 4, 30, "some rounds")
        for lost in (second, third):
            lost.signal_all(signal.SIGKILL)
            lost.process.wait()
        wait_for(lambda: first.ask("status")["state"] == "gossip", 20, "it misses the others")
        self.fails("E0122", 64, first.ask, "run", "fork")
        before = first.run()
        pid = first.ask("status")["pid"]
        told = first.ask("run", "fork", "--yes")
        self.assertEqual(told["round"], before["round"])
        wait_for(lambda: self.told(first).get("round", 0) >= before["round"] + 3, 40, "rounds alone")
        self.assertEqual(first.run()["voters"], 1)
        self.assertEqual(first.ask("status")["pid"], pid)  # A new life in the same process.
        second.start()
        third.start()
        nodes = (first, second, third)
        wait_for(lambda: all(self.told(n).get("voters") == 3 for n in nodes), 60, "three voters again")

        def same_root():
            return len({(r.get("applied"), r.get("state_root")) for r in map(self.told, nodes)}) == 1
        wait_for(same_root, 30, "all hold one state")

    def test_the_root_key_takes_the_run_back_to_a_checkpoint(self):
        first, second, third = self.run_of_three()
        wait_for(lambda: first.run()["round"] >= 12, 60, "some rounds")
        self.fails("E0123", 77, first.ask, "run", "fork", "--to", "100000", "--yes")  # No such checkpoint.
        wait_for(lambda: any(c["round"] + 1 < first.run()["round"] for c in self.checkpoints(first)), 30, "an older state")
        earlier = min(c["round"] for c in self.checkpoints(first))
        mine = min(c["round"] for c in self.checkpoints(second))
        self.fails("E0123", 77, second.ask, "run", "fork", "--to", str(mine), "--yes")  # It lacks the root key.
        before = first.run()["round"]
        told = first.ask("run", "fork", "--to", str(earlier), "--yes")
        self.assertEqual(told["round"], earlier)
        self.assertLess(earlier, before)
        nodes = (first, second, third)
        wait_for(lambda: all(self.told(n).get("voters") == 3 for n in nodes), 90, "three voters again")
        wait_for(lambda: all(self.told(n).get("round", 0) > earlier + 3 for n in nodes), 60, "rounds again")

        def same_root():
            return len({(r.get("applied"), r.get("state_root")) for r in map(self.told, nodes)}) == 1
        wait_for(same_root, 30, "all hold one state")

    @staticmethod
    def checkpoints(node):
        return [c for c in node.ask("ckpt", "ls")["checkpoints"] if c["state"] in ("complete", "kept")]

    def test_a_pause_lasts_until_resume(self):
        node, _ = self.found()
        wait_for(lambda: node.run()["round"] >= 2, 30, "it trains")
        first = node.ask("pause")
        wait_for(lambda: node.ask("status")["state"] == "paused", 10, "it is paused")
        told = node.ask("status")["paused"]
        self.assertEqual(told["by"], pwd.getpwuid(os.getuid()).pw_name)
        self.assertLess(abs(told["since_ms"] / 1000 - time.time()), 60)
        for stop in (node.kill, node.end):
            before = node.run()["round"]
            stop()
            node.start()
            wait_for(lambda: node.ask("status")["state"] not in ("starting", "joining"), 20, "it has read its chain")
            wait_for(lambda: node.run()["trainer"] == "up", 20, "its trainer is there")
            self.assertEqual(node.ask("status")["state"], "paused")
            self.assertEqual(node.ask("status")["paused"], told)
            self.assertIn("by " + told["by"], node.ask("why")["answer"])
            self.assertEqual(node.run()["round"], before)
        self.assertEqual(node.ask("pause")["state"], first["state"]) # once more: since when does not change
        self.assertEqual(node.ask("status")["paused"], told)
        node.ask("resume")
        self.assertNotIn("paused", node.ask("status"))
        node.kill()
        node.start()
        wait_for(lambda: node.run()["round"] > before, 30, "it trains, as it was told last")

    def test_a_pause_has_an_end_through_restarts_and_begins_after_a_round_if_asked(self):
        first, token = self.found()
        node = self.joined("node2", token)
        follow = self.folder.follow(first)
        wait_for(lambda: follow.all() and follow.all()[-1]["listed"] == 2, 60, "a round counts both")
        for words in (["--for", "0s"], ["--until", "25:00"], ["--for", "1h", "--until", "07:30"], ["--for", "soon"]):
            self.fails("E0001", 64, node.ask, "pause", *words)
        self.fails("E0132", 64, node.ask, "pause", "--for", "400d")
        counted = node.run()["counted"]
        order = node.ask("pause", "--after-round", "--for", "1h")["paused"]
        self.assertTrue(order.get("waits") or order.get("until_ms"))
        wait_for(lambda: node.ask("status")["state"] == "paused", 30, "it is paused")
        self.assertGreater(node.run()["counted"], counted)  # the work of the round under way is not lost
        wait_for(lambda: follow.all()[-1]["listed"] == 1, 20, "the other does not wait for it")
        told = node.ask("status")["paused"]
        self.assertEqual(told["until_ms"], told["since_ms"] + 3600 * 1000)
        node.kill()
        node.start()
        wait_for(lambda: node.ask("status")["state"] == "paused", 30, "it is paused again")
        self.assertEqual(node.ask("status")["paused"], told)
        self.assertIn(", until ", node.ask("why")["answer"])
        node.ask("pause", "--until", "23:59")
        told = node.ask("status")["paused"]
        self.assertLess(told["until_ms"] / 1000 - time.time(), 86400 + 60)
        node.ask("pause", "--for", "2s")
        wait_for(lambda: node.ask("status")["state"] == "training", 30, "its time is over")
        self.assertNotIn("paused", node.ask("status"))
        wait_for(lambda: follow.all()[-1]["listed"] == 2, 30, "it is counted again")

    def test_leave_deletes_no_only_copy_unless_the_run_is_named(self):
        node, _ = self.found()
        wait_for(lambda: node.run()["round"] >= 2, 30, "it trains")
        wait_for(lambda: node.ask("ckpt", "ls")["checkpoints"], 30, "a checkpoint")
        for words in (["leave"], ["leave", "--keep-data"]):
            error = self.fails("E0124", 75, node.ask, *words)
            for lost in ("tiny has ", " rounds, 1 member,", "not exported", "--delete-run tiny"):
                self.assertIn(lost, error["why"])
            self.assertIn("dpnode ckpt export DIR", error["fix"])
        self.fails("E0128", 64, node.ask, "leave", "--delete-run", "tinny")
        before = node.run()["round"]
        wait_for(lambda: node.run()["round"] >= before + 2, 30, "it trains on as if nothing had been asked")
        node.ask("ckpt", "export", os.path.join(self.folder.path, "model"))
        self.assertIn("exported round ", self.fails("E0124", 75, node.ask, "leave")["why"])
        node.kill()
        node.start() # Nor while the chain is read.
        with self.assertRaises(CliError) as caught:
            node.ask("leave")
        self.assertIn(caught.exception.error["code"], ("E0124", "E0402"))
        wait_for(lambda: node.run()["round"] >= before, 20, "it is there still")
        self.assertEqual(node.ask("leave", "--delete-run", "tiny")["run"], "tiny")
        self.assertEqual(node.ask("status")["state"], "idle")
        node.end()
        self.assertEqual(self.rows(node), {table: 0 for table in self.TABLES})

    def test_a_second_run_of_a_founder_does_not_cost_the_root_key_of_the_first(self):
        node, _ = self.found()
        with open(os.path.join(node.dir, "root.key"), "rb") as file:
            first = file.read()
        node.ask("leave", "--delete-run", "tiny")
        text = systemtest.tiny_text(os.path.join(self.folder.path, "text.txt"))
        told = node.ask("run", "create", self.file("run.yaml", MANIFEST), "--text", text)
        moved = told["earlier_root_key"]
        self.assertRegex(moved, "^root.key.[0-9a-f]{8}$")
        with open(os.path.join(node.dir, moved), "rb") as file:
            self.assertEqual(file.read(), first)
        with open(os.path.join(node.dir, "root.key"), "rb") as file:
            self.assertNotEqual(file.read(), first)
        wait_for(lambda: node.run().get("round", 0) >= 1, 30, "the second run trains")
        node.ask("invite")

    TABLES = ("ckpt", "record", "head", "row", "object", "pin", "vote")

    def rows(self, node):
        """How many rows of the run its store has, by table; the node has ended."""
        with contextlib.closing(sqlite3.connect(os.path.join(node.dir, "meta.db"))) as db:
            return {table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in self.TABLES}

    def test_leave_deletes_the_model_unless_it_is_to_be_kept(self):
        _, token = self.found()
        nodes = [self.joined("gone", token), self.joined("kept", token)]
        for node in nodes:
            wait_for(lambda node=node: self.checkpoints(node), 60, "a checkpoint")
        gone, kept = nodes
        gone.ask("leave")
        size = os.path.getsize(os.path.join(gone.dir, "chunks.db"))
        gone.end()
        kept.ask("drain", "--leave", "--keep-data")
        kept.end()
        self.assertEqual(self.rows(gone), {table: 0 for table in self.TABLES})
        for table in ("ckpt", "record", "head", "object", "pin"):
            self.assertGreater(self.rows(kept)[table], 0)
        self.assertLess(size, os.path.getsize(os.path.join(kept.dir, "chunks.db")))
        self.assertFalse(os.path.exists(os.path.join(gone.dir, "run.member")))

    def up(self, node):
        """Starts it by dpnode up and not as a child of this process; returns the reply."""
        return node.ask("up", "--dir", node.dir, "--listen", f"{node.host}:{node.port}")

    def test_up_after_a_kill_finds_no_dying_daemon_and_waits_for_the_store(self):
        node, _ = self.found()
        wait_for(lambda: node.run()["round"] >= 2, 30, "it trains")
        node.kill()
        pids = [self.up(node)["pid"]]
        self.addCleanup(lambda: node.ask("down"))
        for _ in range(8):
            os.kill(pids[-1], signal.SIGKILL)
            told = self.up(node) # right after it, without a wait
            self.assertTrue(told["started"])
            self.assertNotEqual(told["state"], "starting")
            pids.append(told["pid"])
            self.assertEqual(node.ask("status")["pid"], told["pid"])
        self.assertEqual(len(set(pids)), len(pids))

    def test_a_failed_up_names_the_reason(self):
        node, _ = self.found()
        wait_for(lambda: node.run()["round"] >= 1, 30, "it trains")
        node.end()
        os.rename(os.path.join(node.dir, "identity.key"), os.path.join(node.dir, "gone"))
        for log_bytes in (0, 10 << 20): # With the latter the daemon begins a new log at its first line, about the folder's mode.
            os.chmod(node.dir, 0o755)
            with open(os.path.join(node.dir, "dpnoded.log"), "wb") as log:
                log.truncate(log_bytes)
            with self.assertRaises(CliError) as caught:
                self.up(node)
            self.assertEqual(caught.exception.error["code"], "E0106")
            self.assertIn("belongs to another node", caught.exception.error["why"])
        self.fails("E0101", 69, node.ask, "status")

    def test_a_daemon_beside_another_in_one_directory_is_refused_and_leaves_its_log_alone(self):
        node = self.folder.node("node1").start()
        log = os.path.join(node.dir, "dpnoded.log")
        other = self.folder.node("other") # it has a socket of its own
        error = self.fails("E0112", 73, other.ask, "up", "--dir", node.dir)
        self.assertIn(f"process {node.process.pid} uses", error["why"])
        self.assertFalse(os.path.exists(log)) # the harness gave it another one

    def test_a_token_is_taken_from_a_file_and_with_line_breaks(self):
        node, token = self.found()
        half = len(token) // 2
        broken = token[:half] + "\n  " + token[half:] + "\r\n"
        for given in (broken, self.file("token", broken)):
            self.assertEqual(node.ask("join", given)["run"], "tiny")
            self.assertEqual(node.ask("token", "inspect", given)["run"], "tiny")
        self.fails("E0203", 65, node.ask, "token", "inspect", self.file("text", "no token"))

    def test_the_only_voter_hands_over_before_it_leaves(self):
        first = self.folder.node("node1").start()
        text = systemtest.tiny_text(os.path.join(self.folder.path, "text.txt"))
        token = first.create(self.file("run.yaml", MANIFEST), "--text", text)["invite"]
        second = self.joined("node2", token)
        wait_for(lambda: first.run().get("members") == 2 and second.run().get("round", 0) >= 2, 60, "two members")
        self.assertEqual(first.run()["voters"], 1)
        first.ask("leave")
        wait_for(lambda: second.run()["is_voter"], 20, "the other votes")
        before = second.run()["round"]
        wait_for(lambda: second.run()["round"] >= before + 3, 30, "rounds go on")


if __name__ == "__main__":
    systemtest.main()
