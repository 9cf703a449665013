#!/usr/bin/env python3
"""Unlike trainers of one run: a built-in model, trained by dpnode's own trainer and by PyTorch scripts, through real daemons.

Status 77 if no Python here has PyTorch and transformers.
"""

import os
import random
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from scriptkit import EXAMPLES, ScriptTest, python_with  # noqa: E402
from systemtest import wait_for  # noqa: E402

PYTHON = python_with("torch", "transformers")
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# So many processes are killed in the test of many deaths; `DPNODE_DEATHS=50 test_builtin.py build/release Builtin.test_...` is the long one.
DEATHS = int(os.environ.get("DPNODE_DEATHS", "9"))

MANIFEST = """name: unlike
model: {{arch: {arch}, layers: 2, width: 48, heads: 4, context: 32, vocab: 400}}
train: {{batch: 4, lr: 5e-3, warmup_tokens: 1000, total_tokens: 100000000}}
round: {{time: 0.5, steps_max: 60, mode: average}}
vote: {{uptime: 0}}
members: {{trust: {trust}}}
"""


def real_text(path, size=150_000):
    """Sentences of this project's documents."""
    folder = os.path.join(ROOT, "docs")
    with open(path, "w", encoding="utf-8") as out:
        for name in sorted(os.listdir(folder)):
            if name.endswith(".md") and out.tell() < size:
                with open(os.path.join(folder, name), encoding="utf-8") as text:
                    out.write(text.read())
    return path


class Builtin(ScriptTest):
    command = [PYTHON, os.path.join(EXAMPLES, "builtin.py")]
    trains_s = 900  # with the import of transformers, on a machine that has much else to do

    def founds(self, arch="gpt2", trust="members", name="founder"):
        node = self.folder.node(name).start()
        text = real_text(os.path.join(self.folder.path, "text.txt"))
        token = node.create(self.file("unlike.yaml", MANIFEST.format(arch=arch, trust=trust)), "--text", text)["invite"]
        wait_for(lambda: node.run().get("trainer") == "up", 60, "the founder holds the model")
        return node, token

    def members(self, count, **manifest):
        founder, token = self.founds(**manifest)
        nodes = [founder] + [self.joined(f"member{i}", token) for i in range(1, count)]
        for node in nodes:
            wait_for(lambda n=node: n.run().get("trainer") == "up", 60, f"{node.name} holds the model")
        return nodes

    def counted_more(self, *nodes):
        before = [node.run()["counted"] for node in nodes]
        for node, was in zip(nodes, before):
            wait_for(lambda n=node, w=was: n.run()["counted"] > w + 1, self.trains_s, f"rounds count {node.name}: {node.run()}")

    def rests(self, *nodes):
        """All are paused and at one round, so that states can be compared."""
        for node in nodes:
            node.ask("pause")
        self.equal(*nodes)

    def test_two_scripts_and_a_built_in_trainer_train_one_model(self):
        nodes = self.members(3)
        scripts = [self.script(node) for node in nodes[1:]]
        for node, script in zip(nodes[1:], scripts):
            self.trains(node, script)
        self.counted_more(*nodes)
        self.assertIn(f"process {scripts[0].pid} takes the steps", nodes[1].ask("why")["answer"])
        self.assertEqual({node.ask("status")["state"] for node in nodes}, {"training"})
        first = 6.0  # ln 400, about which every model begins
        wait_for(lambda: all(0 < node.run().get("loss", 9) < first - 1.5 for node in nodes), 300,
                 f"all learn: {[node.run().get('loss') for node in nodes]}")
        self.rests(*nodes)
        audit = self.counts_nothing_twice(nodes[0])
        self.assertGreater(min(member["counted"] for member in audit["members"]), 2)

    def check_losses(self, arch):
        """The script's loss of the held-out text is the built-in engine's, of the same weights: so every tensor is in its place."""
        founder, _ = self.founds(arch=arch)
        wait_for(lambda: founder.run()["counted"] > 2, 120, "it has trained")
        founder.ask("pause")
        os.kill(founder.run()["trainer_pid"], signal.SIGKILL)  # The next one has no steps of its own beside the decided weights.
        wait_for(lambda: founder.run().get("trainer") == "up" and founder.run()["state_root"], 60, "the trainer is back")
        script = self.script(founder, "--evaluate", "1000000")
        said = ""
        while "held-out" not in said:
            said = script.stdout.readline()
            self.assertTrue(said, script.poll() is not None and script.stderr.read())
        loss = float(re.search("held-out loss ([0-9.]+)", said).group(1))
        own = founder.ask("eval")["loss"]
        self.assertLess(own, 5.8)
        self.assertLess(abs(loss - own), 1e-3, (arch, loss, own))

    def test_a_script_finds_the_loss_of_the_built_in_gpt2(self):
        self.check_losses("gpt2")

    def test_a_script_finds_the_loss_of_the_built_in_llama(self):
        self.check_losses("llama")

    def test_voters_judge_what_scripts_have_trained(self):
        nodes = self.members(2, trust="open")
        script = self.script(nodes[1])
        self.trains(nodes[1], script)
        self.counted_more(*nodes)
        self.rests(*nodes)
        self.counts_nothing_twice(nodes[0])

    def test_killed_scripts_trainers_and_daemons_lose_no_round_and_count_nothing_twice(self):
        nodes = self.members(3)
        roots = self.compares(*nodes)
        scripts = {node.name: self.script(node) for node in nodes[1:]}
        chance = random.Random(20)
        for node in nodes[1:]:
            self.trains(node, scripts[node.name], rounds=0)
        for death in range(DEATHS):
            roots.check()
            node = chance.choice(nodes)
            what = chance.choice(["script", "trainer", "daemon"]) if node.name in scripts else chance.choice(["trainer", "daemon"])
            print(f"{time.strftime('%H:%M:%S')} death {death + 1}: the {what} of {node.name}", file=sys.stderr, flush=True)
            if what == "script":
                wait_for(lambda n=node: n.run().get("script_pid") == scripts[n.name].pid, self.trains_s, "it has connected")
                scripts[node.name].kill()
                scripts[node.name].wait(20)
                scripts[node.name] = self.script(node)
            elif what == "trainer" and node.run().get("trainer") == "up":
                pid = node.run().get("trainer_pid", 0)
                if pid > 0:  # It may have ended since; 0 would be this test and all its children.
                    os.kill(pid, signal.SIGKILL)
            else:
                roots.ask(node)
                node.kill()
                node.start()
            if death % 3 == 2:
                applied = node.run().get("applied", 0)
                wait_for(lambda: min(n.run().get("applied", 0) for n in nodes) > applied, 300, "rounds go on")
                self.assertEqual(nodes[0].ask("audit")["twice"], 0)
        for name, script in scripts.items():
            self.assertIsNone(script.poll(), script.poll() is not None and (name, script.stderr.read()))
        for node in nodes[1:]:
            self.trains(node, scripts[node.name], rounds=0)
        self.counted_more(*nodes)
        self.rests(*nodes)
        self.counts_nothing_twice(nodes[1])
        print(roots.finish(), file=sys.stderr, flush=True)


if __name__ == "__main__":
    if PYTHON is None:
        print("skipped: PyTorch with transformers is not installed")
        sys.exit(77)
    systemtest.main()
