"""Shared by the system tests of scripts that train a run of any model: a run with a founder, its scripts, their rounds, and equal replicas."""

import os
import signal
import subprocess
import sys
import time

from roots import Roots
from systemtest import SystemTest, wait_for

PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "python")
EXAMPLES = os.path.join(PACKAGE, "examples")

# Of contrib/script/mlp.c and of python/examples/spirals.py.
SPIRALS = """name: spirals
model: {arch: external}
data: {samples: 30000}
train: {total_tokens: 30000000}
members: {trust: members}
round: {time: 0.5, steps_max: 200}
vote: {uptime: 0}
"""

# A round has one step on a busy machine and a hundred on an idle one; mode average learns in both, without an outer momentum.
AVERAGED = """name: example
model: {{arch: external}}
data: {{samples: {samples}, unit: {unit}}}
train: {{total_tokens: {tokens}}}
members: {{trust: members}}
round: {{time: 0.5, mode: average}}
vote: {{uptime: 0}}
"""
ENDS_S = 180  # within which the scripts of such a run end


def python_with(*modules):
    """This Python or Debian's, whose PyTorch needs it; None if neither has the modules."""
    for python in (sys.executable, "/usr/bin/python3"):
        probe = [python, "-c", "import " + ", ".join(modules)]
        if os.path.exists(python) and subprocess.run(probe, check=False, capture_output=True).returncode == 0:
            return python
    return None


class ScriptTest(SystemTest):
    """command: of the script; environment: that it gets, beside the directory of its node. trains_s: within which a script connects and
    rounds count it."""

    command = []
    trains_s = 50

    def setUp(self):
        super().setUp()
        self.environment = {**os.environ, "PYTHONPATH": PACKAGE, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1",
                            "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"}
        for name in ("DPNODE_DIR", "DPNODE_TOKEN", "DPNODE_TOKEN_FILE", "DPNODE_FIRST_WEIGHTS"):
            self.environment.pop(name, None)

    def runs(self, *words, **environment):
        """Runs the script to its end; what it has printed."""
        return subprocess.run([*self.command, *words], check=True, env={**self.environment, **environment}, capture_output=True,
                              text=True).stdout

    def first_weights(self, name):
        """A file with them, written by the script of python/dpnode."""
        path = os.path.join(self.folder.path, name)
        self.runs(DPNODE_FIRST_WEIGHTS=path)
        return path

    def founds_any(self, manifest, first, name="founder"):
        """A node that has founded a run with these first weights, and a token."""
        node = self.folder.node(name).start()
        token = node.create(self.file(f"{name}.yaml", manifest), "--from", first)["invite"]
        wait_for(lambda: node.run().get("trainer") == "up", 30, f"{name} holds the model")
        return node, token

    def script(self, node, *words, **environment):
        started = subprocess.Popen([*self.command, *words], env={**self.environment, "DPNODE_DIR": node.dir, **environment},
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(started.communicate)
        self.addCleanup(started.kill)
        return started

    def trains(self, node, script, rounds=2):
        """The script is connected, and more rounds than these count its work."""
        def runs():
            self.assertIsNone(script.poll(), script.poll() is not None and script.stderr.read())
            return node.run()

        until = time.monotonic() + self.trains_s
        wait_for(lambda: runs().get("script_pid") == script.pid, self.trains_s, f"{node.name} has its script")
        before = node.run()["counted"]
        wait_for(lambda: runs()["counted"] > before + rounds, until - time.monotonic(), f"rounds count {node.name}: {node.run()}")

    def waits(self, *nodes):
        """None of the nodes has a script any more."""
        for node in nodes:
            wait_for(lambda n=node: n.ask("status")["state"] == "waiting", 20, f"{node.name} waits for a script")

    def equal(self, *nodes):
        """All have the same state at one round."""
        def same():
            runs = [node.run() for node in nodes]
            return len({(run["applied"], run["state_root"]) for run in runs}) == 1
        wait_for(same, 30, "replicas are equal")

    def compares(self, *nodes):
        """Compares the states of these nodes in every round from now on; to be checked, and finished."""
        roots = Roots(*nodes)
        self.addCleanup(roots.end)
        return roots

    def survives_deaths(self, deaths, *nodes):
        """So many scripts, workers and daemons of these nodes, in turn, are killed: every node trains again, states are equal in every
        round, and no sample counts twice."""
        roots = self.compares(*nodes)
        scripts = [self.script(node) for node in nodes]
        for death in range(deaths):
            roots.check()
            at, victim = death % len(nodes), death // len(nodes) % 3
            node = nodes[at]
            self.trains(node, scripts[at])
            if victim == 0:
                scripts[at].kill()
                scripts[at].wait(20)
                scripts[at] = self.script(node)  # Others connect again by themselves.
            elif victim == 1:
                os.kill(node.run()["trainer_pid"], signal.SIGKILL)
            else:
                roots.ask(node)
                node.kill()
                node.start()
        for node, script in zip(nodes, scripts):
            self.trains(node, script)
        for script in scripts:
            script.kill()
        self.waits(*nodes)
        self.equal(*nodes)
        self.counts_nothing_twice(nodes[-1])
        print(roots.finish(), file=sys.stderr, flush=True)

    def counts_nothing_twice(self, node):
        audit = node.ask("audit")
        self.assertEqual((audit["twice"], audit["n_findings"]), (0, 0))
        return audit

    def trained(self, **manifest):
        """Two members train until the run has its tokens and their scripts end. Returns their outputs and a node."""
        founder, token = self.founds_any(AVERAGED.format(**manifest), self.first_weights("first.safetensors"))
        joiner = self.joined("joiner", token)
        wait_for(lambda: joiner.run().get("trainer") == "up", 30, "the joiner holds the model")
        # Paused until both are there: else one alone may have trained for all tokens while the other still imports PyTorch.
        for node in (founder, joiner):
            node.ask("pause")
        scripts = [self.script(node) for node in (founder, joiner)]
        for node, script in zip((founder, joiner), scripts):
            wait_for(lambda n=node, s=script: n.run().get("script_pid") == s.pid, ENDS_S, f"{node.name} has its script")
        for node in (founder, joiner):
            node.ask("resume")
        outputs = []
        for script in scripts:
            out, errors = script.communicate(timeout=ENDS_S)
            self.assertEqual(script.returncode, 0, errors)
            outputs.append(out)
        self.waits(founder, joiner)
        self.equal(founder, joiner)
        audit = self.counts_nothing_twice(founder)
        self.assertGreater(min(member["counted"] for member in audit["members"]), 0)
        self.assertGreaterEqual(founder.run()["tokens"], manifest["tokens"])
        return outputs, founder
