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
from systemtest import SystemTest, wait_for  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXAMPLE = os.path.join(ROOT, "python", "example_spirals.py")
SPIRALS = """name: spirals
model: {arch: external}
data: {samples: 30000}
train: {total_tokens: 30000000}
members: {trust: members}
round: {time: 0.5, steps_max: 200}
vote: {uptime: 0}
"""


def python_with_torch():
    """This Python or Debian's, whose PyTorch needs it; None if neither has PyTorch."""
    for python in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(python) and subprocess.run([python, "-c", "import torch"], check=False, capture_output=True).returncode == 0:
            return python
    return None


PYTHON = python_with_torch()


class PyTorch(SystemTest):
    def setUp(self):
        super().setUp()
        self.environment = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "python"), "PYTHONDONTWRITEBYTECODE": "1"}
        for name in ("DPNODE_DIR", "DPNODE_TOKEN", "DPNODE_TOKEN_FILE"):
            self.environment.pop(name, None)
        self.model = os.path.join(self.folder.path, "spirals.safetensors")
        subprocess.run([PYTHON, EXAMPLE, "--write", self.model], check=True, env=self.environment)
        self.founder = self.folder.node("founder").start()
        self.token = self.founder.create(self.file("run.yaml", SPIRALS), "--from", self.model)["invite"]
        wait_for(lambda: self.founder.run().get("trainer") == "up", 30, "the founder holds the model")

    def script(self, node, *words):
        started = subprocess.Popen([PYTHON, EXAMPLE, "--dir", node.dir, *words], env=self.environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(started.communicate)
        self.addCleanup(started.kill)
        return started

    def trains(self, node, script):
        """Rounds count the script's work."""
        before = node.run()["counted"]

        def counted():
            self.assertIsNone(script.poll(), script.poll() is not None and script.stderr.read())
            return node.run()["counted"] > before + 2
        wait_for(counted, 40, f"rounds count {node.name}: {node.run()}")

    def test_two_members_learn_and_a_third_holds_the_same(self):
        joiner, third = self.joined("joiner", self.token), self.joined("third", self.token)
        scripts = [self.script(node) for node in (self.founder, joiner)]
        for node, script in zip((self.founder, joiner), scripts):
            self.trains(node, script)
        wait_for(lambda: 0 < self.founder.run().get("loss", 9) < 0.2, 120, "it learns")
        for script in scripts:
            script.send_signal(signal.SIGINT)
            self.assertIn("KeyboardInterrupt", script.communicate(timeout=20)[1])
        for node in (self.founder, joiner):
            wait_for(lambda n=node: n.ask("status")["state"] == "waiting", 20, "it waits for a script again")

        def same():
            runs = [node.run() for node in (self.founder, joiner, third)]
            return len({(run["applied"], run["state_root"]) for run in runs}) == 1
        wait_for(same, 30, "replicas are equal")
        audit = third.ask("audit")
        self.assertEqual((audit["twice"], audit["n_findings"]), (0, 0))

        # The exported model can be loaded, and is the trained one.
        out = os.path.join(self.folder.path, "out")
        third.ask("ckpt", "export", out)
        code = ("import sys, torch, dpnode; sys.path.insert(0, sys.argv[1]); import example_spirals as e; m = e.network(); "
                "d = e.Spirals(); dpnode.load_model(m, sys.argv[2]); "
                "print((m(d.points).argmax(1) == d.arms).float().mean().item())")
        done = subprocess.run([PYTHON, "-c", code, os.path.dirname(EXAMPLE), out], check=True, env=self.environment,
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
        audit = self.founder.ask("audit")
        self.assertEqual((audit["twice"], audit["n_findings"]), (0, 0))

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
        environment = {**self.environment, "DPNODE_TOKEN": self.token, "DPNODE_SOCKET": joiner.socket,
                       "DPNODE_PROGRAM": os.path.join(systemtest.BINARIES, "dpnode")}
        script = subprocess.Popen([PYTHON, EXAMPLE, "--dir", joiner.dir], env=environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        self.addCleanup(script.communicate)
        self.addCleanup(script.kill)
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
