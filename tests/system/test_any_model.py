#!/usr/bin/env python3
"""Runs of a model that dpnode cannot compute: its tensors come from a file, every member holds them, and an export has them back."""

import json
import os
import random
import signal
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import SystemTest, wait_for  # noqa: E402

ANY = """name: any
model: {arch: external}
data: {samples: 5000}
train: {warmup_tokens: 100, total_tokens: 100000}
members: {trust: members}
round: {time: 0.5}
vote: {uptime: 0}
"""
SIZES = {"F32": 4, "F16": 2, "BF16": 2, "I64": 8}


def any_file(tensors, seed=1):
    """A safetensors file: (name, dtype, shape) in the order of its data, with random numbers."""
    chance = random.Random(seed)
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, dtype, shape in tensors:
        count = 1
        for extent in shape:
            count *= extent
        numbers = [chance.uniform(-1, 1) for _ in range(count)]
        if dtype == "F32":
            value = struct.pack(f"<{count}f", *numbers)
        elif dtype == "F16":
            value = struct.pack(f"<{count}e", *numbers)
        elif dtype == "BF16":
            value = b"".join(struct.pack("<f", number)[2:] for number in numbers)
        else:
            value = bytes(count * SIZES[dtype])
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(value)]}
        data += value
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensors_of(path):
    """name -> (dtype, shape, bytes)."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: (about["dtype"], about["shape"], data[slice(*about["data_offsets"])]) for name, about in header.items()}


MODEL = [("head.bias", "F32", [3]), ("body.weight", "F32", [400, 300]), ("body.scale", "F16", []), ("conv", "BF16", [2, 3, 4, 5])]


class AnyModel(SystemTest):
    def setUp(self):
        super().setUp()
        self.model = self.file("model.safetensors", any_file(MODEL))
        self.yaml = self.file("any.yaml", ANY)

    def holds(self, node):
        wait_for(lambda: node.run().get("trainer") == "up" and node.ask("status")["state"] == "waiting", 30, f"{node.name} waits")

    def exported(self, node, name):
        folder = os.path.join(self.folder.path, name)
        self.assertEqual(node.ask("ckpt", "export", folder)["files"], ["model.safetensors"])
        return tensors_of(os.path.join(folder, "model.safetensors"))

    def test_every_member_holds_the_model_and_gives_it_back(self):
        founder = self.folder.node("founder").start()
        token = founder.create(self.yaml, "--from", self.model)["invite"]
        joiner, third = self.joined("joiner", token), self.joined("third", token)
        watcher = self.folder.node("watcher", "--observer").start()
        watcher.ask("join", "-", stdin=token)
        for node in (founder, joiner, third):
            self.holds(node)
        wait_for(lambda: watcher.run().get("data_here") == 1, 30, "the observer has the table")
        wait_for(lambda: founder.run()["members"] == 4, 30, "all are members, by records of a run in which nobody trains")
        wait_for(lambda: joiner.run().get("is_voter") and third.run().get("is_voter"), 30, "members without a script vote")
        want = tensors_of(self.model)
        self.assertEqual(len(want), 4)
        for node in (founder, joiner):
            self.assertEqual(self.exported(node, node.name + ".out"), want)
        self.assertEqual([item["kind"] for item in joiner.ask("data")["data"]], ["table", "weights"])
        self.assertTrue(all(item["local"] for item in joiner.ask("data")["data"]))
        self.assertEqual(joiner.ask("data")["samples"], 5000)
        self.assertEqual(founder.run()["state_root"], joiner.run()["state_root"])

        # Nothing is trained, counted or published, and both say why.
        self.assertEqual((founder.run()["round"], founder.run()["tokens"], founder.run()["trains"]), (0, 0, False))
        self.assertIn("waiting for a script", joiner.ask("why")["answer"])
        self.assertIn("following", watcher.ask("why")["answer"])
        self.assertEqual(founder.ask("audit")["pass_samples"], 5000)
        self.fails("E0412", 69, founder.ask, "sample")
        self.fails("E0412", 69, joiner.ask, "eval")
        self.fails("E0403", 64, founder.ask, "ckpt", "export", os.path.join(self.folder.path, "g"), "--gguf", "f32")

        # After a restart, and after the death of a trainer, they hold it again.
        joiner.kill()
        joiner.start()
        os.kill(founder.run()["trainer_pid"], signal.SIGKILL)
        wait_for(lambda: founder.run().get("trainer_restarts", 0) == 1, 30, "the trainer died")
        for node in (founder, joiner):
            self.holds(node)
        self.assertEqual(self.exported(joiner, "again"), want)
        self.assertEqual(founder.run()["trainer_restarts"], 1)

        # One that comes later has all from them, and without the founder the others go on.
        late = self.joined("late", token)
        self.holds(late)
        founder.ask("down")
        wait_for(lambda: joiner.run()["members"] == 5, 60, "a record has admitted it")
        wait_for(lambda: joiner.run()["alive"] == 4, 60, "the founder is missed")
        self.assertEqual(joiner.ask("status")["state"], "waiting")
        self.assertEqual(self.exported(late, "late.out"), want)

    def test_a_model_that_begins_elsewhere_goes_on_in_the_same_form(self):
        """An export is a file that a run can begin from, with the same table."""
        first = self.folder.node("first").start()
        first.ask("run", "create", self.yaml, "--from", self.model)
        self.holds(first)
        want = self.exported(first, "out")
        second = self.folder.node("second").start()
        second.ask("run", "create", self.yaml, "--from", os.path.join(self.folder.path, "out", "model.safetensors"))
        self.holds(second)
        roots = [[item["root"] for item in node.ask("data")["data"]] for node in (first, second)]
        self.assertEqual(roots[0], roots[1])
        self.assertEqual(self.exported(second, "again"), want)

    def test_files_that_are_no_model_are_refused_by_name(self):
        node = self.folder.node("node").start()
        good = any_file(MODEL)
        cases = [("empty", b"", "no safetensors file"),
                 ("cut", good[:-1], "data_offsets"),
                 ("behind", good + b"x", "belong to no tensor"),
                 ("text", b"In the beginning God created the heaven and the earth.", "no safetensors file"),
                 ("none", any_file([]), "no tensors"),
                 ("integers", any_file([("steps", "I64", [2])]), "tensor steps"),
                 ("nothing", any_file([("w", "F32", [0, 4])]), "tensor w has no elements"),
                 ("blank", any_file([("a b", "F32", [1])]), "name"),
                 ("escape", any_file([("\x1b[2J", "F32", [1])]), "name"),
                 ("nine", any_file([("w", "F32", [1] * 9)]), "tensor w"),
                 ("nan", good[:-4] + b"\xc0\x7f\xc0\x7f", "not finite")]
        for name, content, words in cases:
            error = self.fails("E0313", 65, node.ask, "run", "create", self.yaml, "--from", self.file(name, content))
            self.assertIn(words, error["why"], name)
            self.assertNotIn("\x1b", error["why"])
            self.assertEqual(node.ask("status")["state"], "idle", name)
        self.fails("E0314", 64, node.ask, "run", "create", self.yaml)
        self.fails("E0314", 64, node.ask, "run", "create", self.yaml, "--from", self.model, "--text", self.yaml)
        self.fails("E0313", 65, node.ask, "run", "create", self.yaml, "--from", self.folder.path)
        opened = self.file("open.yaml", ANY.replace("members: {trust: members}\n", ""))
        self.assertIn("write members: {trust: members}",
                      self.fails("E0301", 65, node.ask, "run", "create", opened, "--from", self.model)["why"])
        shaped = self.file("shaped.yaml", ANY.replace("{arch: external}", "{arch: external, layers: 4}"))
        self.assertIn("delete model.layers", self.fails("E0301", 65, node.ask, "run", "validate", shaped)["why"])
        self.fails("E0515", 64, node.ask, "train", self.yaml, "--from", self.model)
        plan = node.ask("run", "validate", self.yaml, "--from", self.model)
        self.assertEqual((plan["valid"], plan["plan"]["parameters"]), (True, 120_124))
        node.ask("run", "create", self.yaml, "--from", self.model) # After all that it can.
        self.holds(node)


if __name__ == "__main__":
    systemtest.main()
