#!/usr/bin/env python3
"""Runs that start from existing weights: another run begins with the weights that one has exported, on every node."""

import json
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import BINARIES, SystemTest, wait_for  # noqa: E402


def tensors(folder):
    """name -> floats of model.safetensors."""
    with open(os.path.join(folder, "model.safetensors"), "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    header.pop("__metadata__")
    return {name: struct.unpack("<%df" % ((about["data_offsets"][1] - about["data_offsets"][0]) // 4),
                                data[slice(*about["data_offsets"])]) for name, about in header.items()}


class Import(SystemTest):
    def exported(self, node, name):
        wait_for(lambda: node.ask("ckpt", "ls")["checkpoints"], 30, "a checkpoint")
        folder = os.path.join(self.folder.path, name)
        node.ask("ckpt", "export", folder)
        return folder

    def create(self, node, manifest, folder):
        text = os.path.join(self.folder.path, "text.txt")
        return node.create(self.file("from.yaml", manifest), "--text", text, "--from", folder)

    def test_a_run_continues_from_the_export_of_another(self):
        first, _ = self.found()
        wait_for(lambda: first.run().get("round", 0) >= 3, 30, "three rounds")
        before = self.exported(first, "before")
        first.ask("down")
        # At a learning rate of almost zero the weights are the imported ones; random ones would be far away.
        still = systemtest.TINY.replace("lr: 1e-2", "lr: 1e-9")
        self.assertNotEqual(still, systemtest.TINY)
        founder = self.folder.node("founder").start()
        token = self.create(founder, still, before)["invite"]
        joiner = self.joined("joiner", token)
        wait_for(lambda: joiner.run().get("counted", 0) >= 2, 30, "the joiner is counted")
        for node in (founder, joiner):
            weights = [d for d in node.ask("data")["data"] if d["kind"] == "weights"]
            self.assertEqual(len(weights), 1)
        old = tensors(before)
        for node in (founder, joiner):
            new = tensors(self.exported(node, node.name))
            self.assertEqual(set(old), set(new))
            far = max(abs(a - b) for name in old for a, b in zip(old[name], new[name]))
            self.assertLess(far, 1e-4)
        with open(os.path.join(before, "tokenizer.json"), "rb") as one, \
                open(os.path.join(self.folder.path, "joiner", "tokenizer.json"), "rb") as other:
            self.assertEqual(one.read(), other.read())

    def test_weights_go_to_llm_c_and_come_back(self):
        text = systemtest.tiny_text(os.path.join(self.folder.path, "text.txt"))
        data = os.path.join(self.folder.path, "data")
        subprocess.run([os.path.join(BINARIES, "dpnode"), "data", "tokenize", text, "--vocab", "256", "--out", data],
                       check=True, capture_output=True, timeout=60)
        still = self.file("still.yaml", systemtest.TINY.replace("lr: 1e-2", "lr: 1e-9"))
        first = self.folder.node("first").start()
        first.ask("run", "create", self.file("tiny.yaml", systemtest.TINY), "--text", data)
        wait_for(lambda: first.run().get("round", 0) >= 2, 30, "two rounds")
        first.ask("pause")
        before = os.path.join(self.folder.path, "before")
        out = os.path.join(self.folder.path, "llmc")

        def both(): # of one round: one that was open at the pause may still close, and its checkpoint be saved later
            exports = [first.ask("ckpt", "export", before, "--force"),
                       first.ask("ckpt", "export", out, "--llmc", "f32", "--force")]
            return exports if exports[0]["round"] == exports[1]["round"] else None
        wait_for(lambda: first.ask("ckpt", "ls")["checkpoints"], 30, "a checkpoint")
        self.assertEqual(wait_for(both, 30, "two exports of one round")[1]["files"], ["model.bin"])
        self.assertEqual(self.fails("E0403", 64, first.ask, "ckpt", "export", out, "--llmc", "f16")["why"], "f16")
        first.ask("down")
        weights = os.path.join(out, "model.bin")
        founder = self.folder.node("founder").start()
        error = self.fails("E0310", 65, founder.ask, "run", "create", still, "--text", text, "--from", weights)
        self.assertIn("no tokenizer", error["why"])
        founder.ask("run", "create", still, "--text", data, "--from", weights)
        wait_for(lambda: founder.run().get("round", 0) >= 1, 30, "a round")
        old, new = tensors(before), tensors(self.exported(founder, "after"))
        self.assertEqual(set(old), set(new))
        self.assertLess(max(abs(a - b) for name in old for a, b in zip(old[name], new[name])), 1e-4)

    def test_weights_that_do_not_fit_are_an_error_with_the_model_to_write(self):
        first, _ = self.found()
        before = self.exported(first, "before")
        first.ask("down")
        founder = self.folder.node("founder").start()
        other = systemtest.TINY.replace("width: 32", "width: 32, hidden: 40")
        self.assertNotEqual(other, systemtest.TINY)
        error = self.fails("E0310", 65, self.create, founder, other, before)
        self.assertIn("write model: {arch: gpt2, layers: ", error["why"])
        self.assertIn("config.json", self.fails("E0310", 65, self.create, founder, systemtest.TINY,
                                                os.path.join(self.folder.path, "none"))["fix"])
        with open(os.path.join(before, "model.safetensors"), "r+b") as file:
            file.truncate(1000)
        self.assertIn("model.safetensors", self.fails("E0310", 65, self.create, founder, systemtest.TINY, before)["why"])
        self.assertEqual(founder.ask("status")["state"], "idle")


if __name__ == "__main__":
    systemtest.main()
