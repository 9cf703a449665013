#!/usr/bin/env python3
"""Scripts train a run of a model that dpnode cannot compute: work counts once, replicas stay equal, whoever dies."""

import contextlib
import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from scriptkit import SPIRALS, ScriptTest  # noqa: E402
from systemtest import wait_for  # noqa: E402

DEATHS = int(os.environ.get("DPNODE_DEATHS", "12"))
STEPS = 150  # of 32 samples; they take less time than a round


class Script(ScriptTest):
    def setUp(self):
        super().setUp()
        self.command = [os.path.join(systemtest.BINARIES, "example_mlp")]
        self.model = os.path.join(self.folder.path, "model.safetensors")
        subprocess.run([*self.command, "--write", self.model], check=True)
        self.founder, self.token = self.founds_any(SPIRALS, self.model)

    def test_scripts_of_two_members_train_and_a_third_holds_the_same(self):
        joiner, third = self.joined("joiner", self.token), self.joined("third", self.token)
        wait_for(lambda: joiner.run().get("trainer") == "up" and third.run().get("trainer") == "up", 30, "all hold the model")
        scripts = [self.script(node) for node in (self.founder, joiner)]
        for node, script in zip((self.founder, joiner), scripts):
            self.trains(node, script)
        self.assertEqual(self.founder.ask("status")["state"], "training")
        self.assertIn(f"process {scripts[0].pid} takes the steps", self.founder.ask("why")["answer"])
        self.assertEqual((third.ask("status")["state"], third.run()["counted"]), ("waiting", 0))
        wait_for(lambda: 0 < self.founder.run().get("loss", 9) < 0.2, 120, "it learns")
        for script in scripts:
            script.terminate()
        self.waits(self.founder, joiner)
        self.equal(self.founder, joiner, third)
        audit = self.counts_nothing_twice(third)
        self.assertGreater(min(member["counted"] for member in audit["members"] if member["name"] != "third"), 2)

        # The export is the trained model, not the first one.
        out = os.path.join(self.folder.path, "out")
        third.ask("ckpt", "export", out)
        with open(os.path.join(out, "model.safetensors"), "rb") as after, open(self.model, "rb") as before:
            self.assertNotEqual(after.read()[-64:], before.read()[-64:])

    def test_killed_scripts_workers_and_daemons_lose_no_round_and_count_nothing_twice(self):
        self.survives_deaths(DEATHS, self.founder, self.joined("joiner", self.token))

    def test_a_pause_makes_the_script_wait_and_resume_lets_it_go_on(self):
        script = self.script(self.founder)
        self.trains(self.founder, script)
        self.founder.ask("pause")
        wait_for(lambda: self.founder.ask("status")["state"] == "paused", 10, "paused")
        round_then = self.founder.run()["round"]
        self.assertIsNone(script.poll())
        self.founder.ask("resume")
        self.trains(self.founder, script)
        self.assertGreater(self.founder.run()["round"], round_then)
        self.assertIsNone(script.poll())

    def test_a_second_script_and_a_node_that_is_down_say_why(self):
        script = self.script(self.founder, "--patience", "1")
        self.trains(self.founder, script)
        second = self.script(self.founder, "--steps", "5")
        self.assertEqual(second.wait(20), 1)
        self.assertRegex(second.stderr.read(), f"process {script.pid} trains with this node already")
        self.trains(self.founder, script)
        self.founder.ask("down")
        self.assertEqual(script.wait(30), 1)
        self.assertRegex(script.stderr.read(), "open again")
        late = self.script(self.founder, "--steps", "5", "--patience", "1")
        self.assertEqual(late.wait(30), 1)
        self.assertRegex(late.stderr.read(), "dpnode up")

    def test_a_script_that_ends_by_itself_has_given_its_steps(self):
        script = self.script(self.founder, "--steps", "3000", "--quiet")
        self.assertEqual(script.wait(60), 0)
        self.waits(self.founder)
        wait_for(lambda: self.founder.ask("audit")["samples"] == 3000 * 32, 20, f"all of it is counted: {self.founder.ask('audit')}")
        self.assertIn("script.down", self.founder.tail(200))

    def test_a_drain_lets_the_round_under_way_count_the_work_of_the_script(self):
        """In rounds of 4 s, with a script that goes on, and then with one that has ended in the middle of its round."""
        node, _ = self.founds_any(SPIRALS.replace("time: 0.5, steps_max: 200", "time: 4, steps_max: 1000000"), self.model, "slow")
        endless = self.script(node)
        wait_for(lambda: node.run().get("loss"), 30, "it takes steps")
        told = node.ask("drain")
        self.assertEqual((told["counted"], told["text"]), (True, "drained: this node's work is counted"))
        self.assertEqual(node.process.wait(10), 0)
        endless.kill()
        node.start()
        before = wait_for(lambda: node.run().get("trainer") == "up" and node.ask("audit")["samples"], 30, "its samples are counted")
        self.assertEqual(self.script(node, "--steps", str(STEPS), "--quiet").wait(30), 0)
        node.process.send_signal(signal.SIGTERM)
        self.assertEqual(node.process.wait(30), 0)
        self.assertIn("drained: this node's work is counted", node.tail(20))
        node.start()
        self.assertEqual(wait_for(lambda: node.run().get("trainer") == "up" and node.ask("audit")["samples"], 30, "it is back"),
                         before + STEPS * 32)
        self.counts_nothing_twice(node)

    def rounds_that(self, node, event):
        return {entry["round"] for entry in node.lines("logs", "-n", "2000") if entry.get("name") == event}

    def stores_publication(self, node):
        """Is the row there that brings the node's last publication back after a kill? The daemon has its store for itself: a copy is read."""
        published = struct.pack("<Q", max(self.rounds_that(node, "round.published")))
        with tempfile.TemporaryDirectory(dir=self.folder.path) as copy:
            for name in ("meta.db-wal", "meta.db"):
                shutil.copy(os.path.join(node.dir, name), copy)
            try:
                with contextlib.closing(sqlite3.connect(os.path.join(copy, "meta.db"))) as meta:
                    row = meta.execute("SELECT bytes FROM row WHERE name='pending'").fetchone()
            except sqlite3.DatabaseError: # It was copied during a write.
                return False
        return row is not None and published in row[0]

    def test_work_that_its_round_left_out_counts_later_although_its_script_has_ended(self):
        """The joiner's daemon stands still from the end of its script until a round was decided without it. So it publishes the last steps
        for a round that is over. Then it publishes them again, or is killed first."""
        founder, token = self.founds_any(SPIRALS.replace("steps_max: 200", "steps_max: 1000000"), self.model, "slow")
        joiner = self.joined("joiner", token)
        wait_for(lambda: joiner.run().get("trainer") == "up", 30, "the joiner holds the model")
        self.trains(founder, self.script(founder))
        member = lambda: next(m for m in founder.ask("audit")["members"] if m["name"] == "joiner")
        for run in range(4):
            script = self.script(joiner, "--steps", str(STEPS), "--quiet")
            self.assertEqual(script.wait(60), 0)
            os.kill(joiner.process.pid, signal.SIGSTOP)
            at = founder.run()["round"]
            wait_for(lambda r=at: founder.run()["round"] > r, 60, "a round is decided without it")
            os.kill(joiner.process.pid, signal.SIGCONT)
            wait_for(lambda r=at: self.rounds_that(joiner, "round.published") & {r, r + 1}, 20, "it publishes for that round")
            self.assertNotIn(at + 1, self.rounds_that(joiner, "round.counted"))
            if run % 2 == 1: # What is not stored yet would be lost.
                wait_for(lambda: self.stores_publication(joiner), 20, "its publication is stored")
                joiner.kill()
                joiner.start()
            want = (run + 1) * STEPS * 32
            wait_for(lambda w=want: member()["samples"] >= w, 30, f"all is counted: {member()}, {want} samples")
            self.assertEqual(member()["samples"], want)
            self.assertGreater(member()["counted"], run) # Of a slow script an earlier round counts some.
            self.waits(joiner)
        self.counts_nothing_twice(founder)


if __name__ == "__main__":
    systemtest.main()
