#!/usr/bin/env python3
"""The examples of python/examples that need transformers, with two members of real daemons: adapters for the model of another run, and a Trainer.

Status 77 if no Python here has PyTorch and transformers.
"""

import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from scriptkit import EXAMPLES, ScriptTest, python_with  # noqa: E402
from systemtest import TINY, tiny_text, wait_for  # noqa: E402

PYTHON = python_with("torch", "transformers")
BASE = TINY.replace("lr: 1e-2", "lr: 3e-3").replace("time: 0.5, steps", "time: 0.5, mode: diloco, steps")


class Transformers(ScriptTest):
    def test_a_trainer_of_hugging_face_learns_and_ends_with_the_run(self):
        text = tiny_text(os.path.join(self.folder.path, "text.txt"))
        self.command = [PYTHON, os.path.join(EXAMPLES, "trainer.py"), text, "--out", os.path.join(self.folder.path, "out")]
        samples = os.path.getsize(text) // 64
        outputs, founder = self.trained(samples=samples, unit=64, tokens=400 * 8 * 64)
        for output in outputs:
            losses = [float(loss) for loss in re.findall("'loss': '?([0-9.]+)", output)]
            self.assertGreater(losses[0] - losses[-1], 1)
        self.assertLess(founder.run()["loss"], 2.3)

    def test_adapters_teach_the_model_of_another_run_a_new_text(self):
        base, out, merged, probe = (os.path.join(self.folder.path, name) for name in ("base", "adapters", "merged", "probe"))
        node = self.folder.node("teacher").start()
        node.create(self.file("base.yaml", BASE), "--text", tiny_text(os.path.join(self.folder.path, "text.txt")))
        wait_for(lambda: 0 < node.run().get("loss", 9) < 2, 60, "the base is trained")
        node.ask("ckpt", "export", base)
        node.end()

        text = tiny_text(os.path.join(self.folder.path, "new.txt"), seed=8)
        self.command = [PYTHON, os.path.join(EXAMPLES, "lora.py"), base, text, "--length", "32", "--lr", "1e-2"]
        samples = int(re.search("samples: ([0-9]+)", self.runs(DPNODE_FIRST_WEIGHTS=probe)).group(1))
        outputs, founder = self.trained(samples=samples, unit=32, tokens=800 * 8 * 32)
        for output in outputs:
            before, after = (float(number) for number in re.findall("held-out loss (?:before|after): ([0-9.]+)", output))
            self.assertLess(after, before - 1)

        # Adapters alone have travelled, and merged into the base they are a whole model.
        founder.ask("ckpt", "export", out)
        with open(os.path.join(out, "model.safetensors"), "rb") as file:
            names = set(json.loads(file.read(int.from_bytes(file.read(8), "little")))) - {"__metadata__"}
        self.assertEqual(names, {"transformer.h.0.attn.c_attn.A", "transformer.h.0.attn.c_attn.B"})
        self.runs("--merge", out, "--out", merged)
        self.command[2] = merged
        self.assertLess(float(re.search("before: ([0-9.]+)", self.runs(DPNODE_FIRST_WEIGHTS=probe)).group(1)), before - 1)


if __name__ == "__main__":
    if PYTHON is None:
        print("skipped: PyTorch or transformers is not installed")
        sys.exit(77)
    systemtest.main()
