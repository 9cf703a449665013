#!/usr/bin/env python3
"""The examples of python/examples train through real daemons: two members each, until the run has its tokens; the loss falls, replicas are equal.

Status 77 if no Python here has PyTorch.
"""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from scriptkit import EXAMPLES, ScriptTest, python_with  # noqa: E402
from systemtest import tiny_text  # noqa: E402

PYTHON = python_with("torch")
GPT = {"block_size": 32, "n_layer": 2, "n_embd": 64, "batch_size": 8, "max_iters": 400, "warmup_iters": 20, "eval_interval": 200}
GPT_TOKENS_OF_STEP = 2 * GPT["batch_size"] * GPT["block_size"]


class Examples(ScriptTest):
    def test_nanogpt_learns_the_bytes_of_a_text(self):
        text = tiny_text(os.path.join(self.folder.path, "text.txt"))
        words = [f"{name}={value}" for name, value in GPT.items()]
        self.command = [PYTHON, os.path.join(EXAMPLES, "nanogpt_dpnode.py"), f"text={text}", *words,
                        f"checkpoint={os.path.join(self.folder.path, 'gpt.pt')}"]
        samples = int(os.path.getsize(text) * 0.9) - GPT["block_size"]
        outputs, founder = self.trained(samples=samples, unit=GPT["block_size"], tokens=GPT["max_iters"] * GPT_TOKENS_OF_STEP)
        # It begins at ln(256) = 5.5 nats per byte.
        self.assertGreater(float(re.search("step 0: train loss ([0-9.]+)", outputs[0]).group(1)), 5)
        self.assertLess(founder.run()["loss"], 2.3)

    def test_digits_are_read(self):
        self.command = [PYTHON, os.path.join(EXAMPLES, "digits.py"), "--batches", "50"]
        outputs, founder = self.trained(samples=20_000, unit=1, tokens=400 * 64)
        self.assertLess(founder.run()["loss"], 0.5)  # It begins at ln(10) = 2.3.
        for output in outputs:
            self.assertGreater(float(re.findall("([0-9.]+)% right", output)[-1]), 85)


if __name__ == "__main__":
    if PYTHON is None:
        print("skipped: PyTorch is not installed")
        sys.exit(77)
    systemtest.main()
