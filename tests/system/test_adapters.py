#!/usr/bin/env python3
"""Runs with adapters: the base comes from the founder by hash, and all that members agree on is the adapters'."""

import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import BINARIES, SystemTest, wait_for  # noqa: E402

ADAPTED = systemtest.TINY.replace("vocab: 300}", "vocab: 300, adapt: {rank: 2, alpha: 4, base: %s}}")
# c_attn 32 + 96, c_proj 32 + 32, c_fc 32 + 128, c_proj 128 + 32, with rank 2
PARAMETERS = 2 * (128 + 64 + 160 + 160)


def header(path):
    with open(path, "rb") as file:
        return json.loads(file.read(int.from_bytes(file.read(8), "little")))


class Adapters(SystemTest):
    def weights(self):
        """A folder of weights and a text."""
        text = systemtest.tiny_text(os.path.join(self.folder.path, "text.txt"))
        folder = os.path.join(self.folder.path, "whole")
        manifest = self.file("tiny.yaml", systemtest.TINY)
        subprocess.run([os.path.join(BINARIES, "dpnode"), "train", manifest, "--text", text, "--out", folder, "--steps", "30"],
                       check=True, capture_output=True, timeout=120)
        return os.path.join(folder, "model"), text

    def base_of(self, node):
        found = [item for item in node.ask("data")["data"] if item["kind"] == "base"]
        self.assertEqual(len(found), 1)
        return found[0]

    def exported(self, node, name, *options):
        folder = os.path.join(self.folder.path, name)
        return node.ask("ckpt", "export", folder, "--force", *options), folder

    def test_three_members_train_adapters_on_a_base_from_the_founder(self):
        weights, text = self.weights()
        founder = self.folder.node("founder").start()
        token = founder.create(self.file("adapted.yaml", ADAPTED % "nf4"), "--text", text, "--from", weights)["invite"]
        shutil.rmtree(weights)  # From here on only the store of the founder has the base.
        nodes = [founder, self.joined("second", token), self.joined("third", token)]
        for node in nodes[1:]:
            wait_for(lambda node=node: node.run().get("counted", 0) >= 2, 90, "a joiner is counted")
        self.assertEqual(len({self.base_of(node)["root"] for node in nodes}), 1)
        self.assertTrue(all(self.base_of(node)["local"] for node in nodes))
        for node in nodes:
            run = node.run()
            self.assertLess(run["elements"], PARAMETERS + 64 * 8)
            self.assertEqual(run["data_objects"], run["data_here"])
            self.assertEqual(run["diverged"], 0)
            self.assertFalse([item for item in node.ask("data")["data"] if item["kind"] == "weights"])

        # A member that is killed has the base on its disk, and goes on.
        nodes[2].kill()
        nodes[2].start()
        before = nodes[2].run().get("counted", 0)
        wait_for(lambda: nodes[2].run().get("counted", 0) > before, 90, "the killed member is counted again")
        self.assertTrue(self.base_of(nodes[2])["local"])

        # Of one round, two nodes export the same adapters; the merged model is whole.
        def both():
            one, first = self.exported(nodes[0], "one")
            two, second = self.exported(nodes[1], "two")
            return (first, second) if one["round"] == two["round"] else None
        first, second = wait_for(both, 90, "two exports of one round")
        names = ("adapter_model.safetensors", "adapter_config.json", "tokenizer.json")
        self.assertEqual(sorted(os.listdir(first)), sorted(names))
        for name in names:
            with open(os.path.join(first, name), "rb") as one, open(os.path.join(second, name), "rb") as two:
                self.assertEqual(one.read(), two.read())
        told = header(os.path.join(first, names[0]))
        self.assertEqual(told.pop("__metadata__")["dpnode.base"], self.base_of(founder)["root"])
        self.assertEqual(len(told), 8)
        self.assertEqual(told["base_model.model.transformer.h.0.attn.c_attn.lora_A.weight"]["shape"], [2, 32])
        done, merged = self.exported(nodes[1], "merged", "--merged")
        self.assertIn("model.safetensors", done["files"])
        self.assertIn("transformer.h.0.attn.c_attn.weight", header(os.path.join(merged, "model.safetensors")))

    def test_adapters_that_cannot_be_are_told_before_training(self):
        weights, text = self.weights()
        founder = self.folder.node("founder").start()
        error = self.fails("E0318", 64, founder.create, self.file("none.yaml", ADAPTED % "bf16"), "--text", text)
        self.assertIn("--from FOLDER", error["fix"])
        wide = (ADAPTED % "bf16").replace("rank: 2", "rank: 33")
        error = self.fails("E0301", 65, founder.create, self.file("wide.yaml", wide), "--text", text, "--from", weights)
        self.assertIn("at most 32", error["why"])
        self.assertEqual(founder.ask("status")["state"], "idle")
        token = founder.create(self.file("tiny.yaml", systemtest.TINY), "--text", text)["invite"]
        self.assertTrue(token)
        wait_for(lambda: founder.ask("ckpt", "ls")["checkpoints"], 60, "a checkpoint")
        self.fails("E0403", 64, founder.ask, "ckpt", "export", os.path.join(self.folder.path, "x"), "--merged")

    def test_a_base_that_has_changed_on_disk_stops_training(self):
        weights, text = self.weights()
        manifest = self.file("adapted.yaml", ADAPTED % "int8")
        folder = os.path.join(self.folder.path, "alone")
        words = [os.path.join(BINARIES, "dpnode"), "train", "--out", folder, "--json"]
        subprocess.run(words + [manifest, "--text", text, "--from", weights, "--steps", "3"], check=True,
                       capture_output=True, timeout=120)
        with open(os.path.join(folder, "data", "base.weights"), "r+b") as file:
            file.seek(-100, os.SEEK_END)
            file.write(b"x")
        done = subprocess.run(words + ["--resume", "--steps", "5"], capture_output=True, text=True, timeout=120, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("has changed since training began", done.stdout + done.stderr)
        done = subprocess.run(words[:2] + [manifest, "--text", text, "--from", weights, "--out", folder + "2", "--processes", "2"],
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertIn("leave out --processes", done.stdout + done.stderr)


if __name__ == "__main__":
    systemtest.main()
