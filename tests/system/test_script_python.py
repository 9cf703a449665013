#!/usr/bin/env python3
"""python/dpnode through real daemons without PyTorch, so wherever the daemons are built: joining, leased samples, rounds, pauses, deaths, Ctrl-C.
The script has lists of numbers in the place of tensors (tests/lib/plain_script.py); what PyTorch adds to the session is in test_pytorch.py."""

import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from scriptkit import SPIRALS, ScriptTest  # noqa: E402
from systemtest import wait_for  # noqa: E402

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib", "plain_script.py")
DEATHS = int(os.environ.get("DPNODE_DEATHS", "6"))
BATCH = 16


class Plain(ScriptTest):
    command = [sys.executable, SCRIPT]

    def setUp(self):
        super().setUp()
        manifest = SPIRALS.replace("steps_max: 200", "steps_max: 1000, mode: average")
        self.founder, self.token = self.founds_any(manifest, self.first_weights("line.safetensors"))

    def test_two_members_learn_and_hear_at_ctrl_c_what_the_node_has(self):
        joiner, third = self.joined("joiner", self.token), self.joined("third", self.token)
        roots = self.compares(self.founder, joiner, third)
        scripts = [self.script(node) for node in (self.founder, joiner)]
        for node, script in zip((self.founder, joiner), scripts):
            self.trains(node, script)
        wait_for(lambda: 0 < self.founder.run().get("loss", 9) < 0.01, 60, f"it learns: {self.founder.run().get('loss')}")
        for script in scripts:
            script.send_signal(signal.SIGINT)
            errors = script.communicate(timeout=20)[1]
            self.assertRegex(errors, r"^dpnode: interrupted: [1-9]\d* of [1-9]\d* steps since the node was connected are the node's[^\n]*\n$")
            self.assertEqual(script.returncode, 130)
        self.waits(self.founder, joiner)
        self.equal(self.founder, joiner, third)
        self.assertGreater(min(m["counted"] for m in self.counts_nothing_twice(third)["members"] if m["name"] != "third"), 1)
        print(roots.finish(), file=sys.stderr, flush=True)

    def test_a_script_that_ends_has_given_every_sample_once(self):
        joiner = self.joined("joiner", self.token)
        scripts = [self.script(node, "--steps", "700") for node in (self.founder, joiner)]
        for script in scripts:
            self.assertEqual(script.wait(60), 0, script.stderr.read())
        self.waits(self.founder, joiner)
        wait_for(lambda: self.founder.ask("audit")["samples"] == 2 * 700 * BATCH, 30, f"all is counted: {self.founder.ask('audit')}")
        self.counts_nothing_twice(joiner)

    def test_a_script_that_waits_for_its_rounds_takes_so_many_steps_in_each(self):
        script = self.script(self.founder, "--sync", "20", "--steps", "100")
        before = self.founder.run()["round"]
        self.assertEqual(script.wait(60), 0, script.stderr.read())
        self.waits(self.founder)
        wait_for(lambda: self.founder.ask("audit")["samples"] == 100 * BATCH, 30, "all is counted")
        self.assertGreaterEqual(self.founder.run()["round"], before + 5)

    def test_a_script_joins_by_a_token_and_a_pause_makes_it_wait(self):
        joiner = self.folder.node("joiner").start()
        script = self.script(joiner, DPNODE_TOKEN=self.token, DPNODE_SOCKET=joiner.socket,
                             DPNODE_PROGRAM=os.path.join(systemtest.BINARIES, "dpnode"))
        wait_for(lambda: joiner.ask("status")["state"] != "idle", 30, "it joins")
        self.trains(joiner, script)
        joiner.ask("pause")
        wait_for(lambda: joiner.ask("status")["state"] == "paused", 10, "paused")
        joiner.ask("resume")
        self.trains(joiner, script)

    def test_killed_scripts_workers_and_daemons_leave_equal_states_in_every_round(self):
        self.survives_deaths(DEATHS, self.founder, self.joined("joiner", self.token))

    def test_a_second_script_and_a_node_that_is_down_say_why(self):
        self.trains(self.founder, self.script(self.founder))
        second = self.script(self.founder, "--steps", "5")
        self.assertIn("Refused", second.communicate(timeout=30)[1])
        self.founder.ask("down")
        late = self.script(self.founder, "--steps", "5")
        self.assertRegex(late.communicate(timeout=30)[1], "no node is running|dpnode up")


if __name__ == "__main__":
    systemtest.main()
