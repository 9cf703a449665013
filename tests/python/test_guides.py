#!/usr/bin/env python3
"""docs/PYTORCH.md: the code after "# after" of each guide trains, and the shown difference of nanogpt.py is the true one."""

import ast
import difflib
import math
import os
import re
import types

import kit
import dpnode

if kit.has("torch"):
    import torch
    from torch import nn

GUIDE = os.path.join(os.path.dirname(kit.PACKAGE), "docs", "PYTORCH.md")
EXAMPLES = os.path.join(kit.PACKAGE, "examples")
LINES_CHANGED_MAX = 10
STEPS = 3


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def blocks(kind):
    """{heading of the section: [blocks of code of that kind]}."""
    found, heading, fence = {}, "", None
    for line in read(GUIDE).splitlines():
        if fence is not None and line == "```":
            fence = None
        elif fence is not None:
            fence.append(line)
        elif line == "```" + kind:
            fence = []
            found.setdefault(heading, []).append(fence)
        elif line.startswith("#"):
            heading = line.strip("# ")
    return found


class Enough(Exception):
    """The loop has taken its steps; it would go on for ever."""


class Samples:
    """100 items, each its own index."""

    def __len__(self):
        return 100

    def __getitem__(self, index):
        return torch.tensor([float(index)])


if kit.has("torch"):
    class Container(torch.optim.Optimizer):
        """Several optimizers in the shape of torchtitan's container: an Optimizer whose step calls theirs."""

        def __init__(self, parameters):
            parameters = list(parameters)
            self.optimizers = [torch.optim.AdamW([parameter]) for parameter in parameters]
            super().__init__(parameters, {})

        def step(self, closure=None):
            for optimizer in self.optimizers:
                optimizer.step()

    class Model(nn.Linear):
        """Its answer has a loss, as models of Hugging Face."""

        def forward(self, x):
            return types.SimpleNamespace(loss=super().forward(x).square().mean())


class Guides(kit.Test):
    def setUp(self):
        super().setUp()
        self.played = self.worker(weights=[0.5, 0.25])
        before = os.environ.get("DPNODE_DIR")
        os.environ["DPNODE_DIR"] = self.dir
        self.addCleanup(lambda: os.environ.pop("DPNODE_DIR") if before is None else os.environ.update(DPNODE_DIR=before))
        self.model = Model(1, 1)
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.steps = 0

    def step(self, batch, optimizer=None):
        """The body that the guides leave out."""
        if self.steps == STEPS:
            raise Enough
        self.model(batch).loss.backward()
        (optimizer or self.optimizer).step()
        (optimizer or self.optimizer).zero_grad()
        self.steps += 1

    def trains(self, heading, samples, /, **names):
        """Runs what the section has after `# after`, its `...` as a step, and finds those steps in the run."""
        code = "\n".join(blocks("python")[heading][0])
        after = re.search(r"^# after.*\n((?s:.*))", code, re.MULTILINE).group(1)
        body = re.sub(r"^( *)\.\.\.( *#.*)?$", r"\1step(batch)", after, flags=re.MULTILINE)
        scope = {"dpnode": dpnode, "torch": torch, "model": self.model, "optimizer": self.optimizer, "dataset": Samples(),
                 "step": lambda batch: self.step(batch, scope.get("inner")), **names}
        try:
            exec(compile(body, heading, "exec"), scope)
        except Enough:
            pass
        self.assertEqual(self.played.header()[:2], (STEPS, STEPS * samples), body)
        self.assertNotEqual(self.model.weight.item(), 0.25)
        return scope

    def test_hivemind(self):
        batches = [torch.ones(32, 1)] * STEPS
        self.trains("hivemind's Optimizer", 32, loader=batches)["opt"].shutdown()

    def test_torchft(self):
        self.trains("torchft's DiLoCo", 64)

    def test_torchtitan(self):
        training = types.SimpleNamespace(local_batch_size=8, steps=STEPS)
        trainer = types.SimpleNamespace(model_parts=[self.model], optimizers=Container(self.model.parameters()), step=0,
                                        config=types.SimpleNamespace(training=training), dataloader=[torch.ones(8, 1)] * STEPS,
                                        batch_generator=iter)
        trainer.train_step = lambda data: self.step(next(data), trainer.optimizers)
        self.trains("torchtitan's semi-sync training", 8, self=trainer)

    def test_pccl(self):
        self.trains("PCCL", 8)

    def test_distributed_data_parallel(self):
        self.trains("DistributedDataParallel", 8)

    def test_each_guide_is_run(self):
        guided = {heading for heading, code in blocks("python").items() if any("# after" in "\n".join(one) for one in code)}
        self.assertEqual(guided, {"hivemind's Optimizer", "torchft's DiLoCo", "torchtitan's semi-sync training", "PCCL",
                                  "DistributedDataParallel"})


class NanoGpt(kit.Test):
    def test_the_shown_difference_is_the_true_one_and_short(self):
        plain, ported = (read(os.path.join(EXAMPLES, name)).splitlines() for name in ("nanogpt.py", "nanogpt_dpnode.py"))
        true = [line.rstrip() for line in difflib.unified_diff(plain, ported, n=1, lineterm="")][2:]
        self.assertEqual(blocks("diff")["nanoGPT"], [true])
        self.assertNotIn("dpnode", "\n".join(plain))
        added = [line for line in true if line.startswith("+")]
        removed = [line for line in true if line.startswith("-")]
        self.assertLessEqual(len(removed), len(added))
        self.assertLessEqual(len(added), LINES_CHANGED_MAX)

    def test_one_who_comes_late_warms_up_by_its_own_steps(self):
        tree = ast.parse(read(os.path.join(EXAMPLES, "nanogpt_dpnode.py")))
        needed = [node for node in tree.body if getattr(node, "name", "") == "get_lr"
                  or isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)]
        scope = {"math": math}
        exec(compile(ast.Module(needed, []), "nanogpt", "exec"), scope)
        rate = next(ast.Expression(node.value) for node in ast.walk(tree)
                    if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "lr")

        def rate_at(own, of_run):
            run = types.SimpleNamespace(tokens=of_run)
            return eval(compile(rate, "nanogpt", "eval"), {**scope, "iter_num": own, "tokens_per_iter": 1, "run": run})

        highest, warm_up = scope["learning_rate"], scope["warmup_iters"]
        self.assertAlmostEqual(rate_at(0, 1000), highest / (warm_up + 1))
        self.assertAlmostEqual(rate_at(0, 0), highest / (warm_up + 1))
        self.assertEqual(rate_at(warm_up, 1000), scope["get_lr"](1000))
        self.assertEqual(rate_at(1000, warm_up), scope["get_lr"](1000))


if __name__ == "__main__":
    kit.main(needs=["torch"])
