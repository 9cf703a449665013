#!/usr/bin/env python3
"""PyTorch scripts train a run through real daemons: the example of docs/PYTORCH.md, killed, restarted, joined late, paused.

Status 77 if no Python here has PyTorch.
"""

import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from scriptkit import EXAMPLES, SPIRALS, ScriptTest, python_with  # noqa: E402
from systemtest import wait_for  # noqa: E402

PYTHON = python_with("torch")
DEATHS = int(os.environ.get("DPNODE_DEATHS", "6"))


class PyTorch(ScriptTest):
    command = [PYTHON, os.path.join(EXAMPLES, "spirals.py")]
    trains_s = 40

    def setUp(self):
        super().setUp()
        self.founder, self.token = self.founds_any(SPIRALS, self.first_weights("spirals.safetensors"))

    def test_two_members_learn_and_a_third_holds_the_same(self):
        joiner, third = self.joined("joiner", self.token), self.joined("third", self.token)
        roots = self.compares(self.founder, joiner, third)
        scripts = [self.script(node) for node in (self.founder, joiner)]
        for node, script in zip((self.founder, joiner), scripts):
            self.trains(node, script)
        wait_for(lambda: 0 < self.founder.run().get("loss", 9) < 0.2, 120, "it learns")
        for script in scripts:
            script.send_signal(signal.SIGINT)
            errors = script.communicate(timeout=20)[1]
            self.assertRegex(errors, r"dpnode: interrupted: [1-9]\d* of [1-9]\d* steps")
            self.assertIn("KeyboardInterrupt", errors)
        self.waits(self.founder, joiner)
        self.equal(self.founder, joiner, third)
        self.counts_nothing_twice(third)
        print(roots.finish(), file=sys.stderr, flush=True)

        # The exported model can be loaded, and is the trained one.
        out = os.path.join(self.folder.path, "out")
        third.ask("ckpt", "export", out)
        code = ("import sys, torch, dpnode; sys.path.insert(0, sys.argv[1]); import spirals as e; m = e.network(); "
                "d = e.Spirals(); dpnode.load_model(m, sys.argv[2]); "
                "print((m(d.points).argmax(1) == d.arms).float().mean().item())")
        done = subprocess.run([PYTHON, "-c", code, EXAMPLES, out], check=True, env=self.environment,
                              capture_output=True, text=True)
        self.assertGreater(float(done.stdout), 0.9)

    def test_a_script_outlives_its_trainer_and_its_daemon(self):
        script = self.script(self.founder)
        self.trains(self.founder, script)
        for death in ("trainer", "daemon", "daemon in order"):
            if death == "trainer":
                os.kill(self.founder.run()["trainer_pid"], signal.SIGKILL)
            elif death == "daemon":
                self.founder.kill()
                self.founder.start()
            else:
                self.founder.ask("down")
                self.founder.start()
            wait_for(lambda: self.founder.run().get("trainer") == "up", 30, "the trainer is back")
            self.trains(self.founder, script)
        script.kill()
        script.wait()
        self.counts_nothing_twice(self.founder)

    def test_killed_scripts_workers_and_daemons_leave_equal_states_in_every_round(self):
        self.survives_deaths(DEATHS, self.founder, self.joined("joiner", self.token))

    def test_a_paused_node_pauses_its_script(self):
        script = self.script(self.founder)
        self.trains(self.founder, script)
        self.founder.ask("pause")
        wait_for(lambda: self.founder.ask("status")["state"] == "paused", 10, "paused")
        self.founder.ask("resume")
        self.trains(self.founder, script)

    def test_a_script_joins_by_a_token(self):
        self.trains(self.founder, self.script(self.founder))
        joiner = self.folder.node("joiner").start()
        script = self.script(joiner, DPNODE_TOKEN=self.token, DPNODE_SOCKET=joiner.socket,
                             DPNODE_PROGRAM=os.path.join(systemtest.BINARIES, "dpnode"))
        wait_for(lambda: joiner.ask("status")["state"] != "idle", 30, "it joins")
        self.trains(joiner, script)

    def test_a_second_script_and_a_node_that_is_down_say_why(self):
        self.trains(self.founder, self.script(self.founder))
        second = self.script(self.founder, "--steps", "5")
        self.assertIn("Refused", second.communicate(timeout=30)[1])
        self.founder.ask("down")
        late = self.script(self.founder, "--steps", "5")
        self.assertRegex(late.communicate(timeout=30)[1], "no node is running|dpnode up")


if __name__ == "__main__":
    if PYTHON is None:
        print("skipped: PyTorch is not installed")
        sys.exit(77)
    systemtest.main()
