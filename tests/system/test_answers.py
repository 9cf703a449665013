#!/usr/bin/env python3
"""Prompts with answers: the loss falls on the answers alone, in `dpnode train` and in a run of two; bad lines are named."""

import json
import os
import random
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import BINARIES, SystemTest, wait_for  # noqa: E402

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
# A letter of a prompt is noise of 4.7 bits, which no model learns; an answer follows from the mark before it.
NOISE_BITS = 4.7
# The seed learns it in fp32; another precision, which a machine would choose, needs another seed.
MANIFEST = systemtest.TINY.replace("context: 32", "context: 64").replace("train: {", "train: {precision: fp32, ")


def lines(count, bad=()):
    draw = random.Random(5)
    made = []
    for i in range(count):
        mark = draw.choice("XY")
        noise = "".join(draw.choices(LETTERS, k=20))
        made.append(json.dumps({"prompt": f"{noise} {mark}:", "completion": " water" if mark == "X" else " light"}))
        if i in bad:
            made.append('{"prompt": "cut off')
    return "\n".join(made) + "\n"


class Answers(SystemTest):
    def setUp(self):
        super().setUp()
        self.env = {**os.environ, "DPNODE_SOCKET": "/nonexistent/s", "LC_ALL": "C"}
        self.manifest = self.file("run.yaml", MANIFEST)
        self.data = self.file("answers.jsonl", lines(2000))
        self.spoilt = self.file("spoilt.jsonl", lines(400, bad=(10, 300)))

    def dpnode(self, *words):
        return subprocess.run([os.path.join(BINARIES, "dpnode"), *words], capture_output=True, text=True, timeout=120, check=False,
                              env=self.env)

    def train(self, text, name, *words):
        """Its lines as objects."""
        done = self.dpnode("train", self.manifest, "--text", text, "--out", os.path.join(self.folder.path, name), "--json", *words)
        self.assertEqual(done.returncode, 0, done)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_training_alone_learns_the_answers(self):
        events = self.train(self.data, "out", "--steps", "300", "--threads", "1")
        data = next(e for e in events if e["event"] == "data")
        self.assertGreater(data["losses"], 2000)
        self.assertLess(data["losses"], data["tokens"] / 3)
        self.assertEqual((data["cut"], data["left_out"]), (0, 0))
        steps = [e for e in events if e["event"] == "step"]
        self.assertGreater(steps[0]["loss"], 4)
        self.assertLess(steps[-1]["loss"], 1)
        score = json.loads(self.dpnode("eval", os.path.join(self.folder.path, "out"), "--json").stdout)
        self.assertLess(score["bits_per_byte"], 1)  # Noise would keep it above three.
        # Other lines are measured as those of training were: on the answers alone.
        other = self.file("other.jsonl", lines(2100)[-8000:].split("\n", 1)[1])
        score = json.loads(self.dpnode("eval", os.path.join(self.folder.path, "out"), "--data", other, "--json").stdout)
        self.assertLess(score["bits_per_byte"], 1)
        # The model has not learned the prompts: the same lines as plain text have their noise.
        plain = self.file("plain.txt", "".join(json.loads(line)["prompt"] for line in lines(50).splitlines()))
        score = json.loads(self.dpnode("eval", os.path.join(self.folder.path, "out"), "--data", plain, "--json").stdout)
        self.assertGreater(score["bits_per_byte"], NOISE_BITS / 2)

    def test_two_processes_learn_as_one(self):
        losses = []
        for processes in ("1", "2"):
            events = self.train(self.data, f"of{processes}", "--steps", "20", "--threads", "2", "--processes", processes)
            losses.append([e["loss"] for e in events if e["event"] == "step"])
        self.assertEqual(len(losses[1]), 20)
        for one, two in zip(*losses):
            self.assertAlmostEqual(one, two, places=3)

    def test_a_killed_training_ends_with_the_same_bytes(self):
        whole = self.train(self.data, "whole", "--steps", "40", "--threads", "1")
        self.train(self.data, "parts", "--steps", "25", "--threads", "1")
        done = self.dpnode("train", "--resume", "--out", os.path.join(self.folder.path, "parts"), "--steps", "40", "--json")
        self.assertEqual(done.returncode, 0, done)
        end = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual((end["step"], end["hash"]), (40, whole[-1]["hash"]))

    def test_bad_lines_are_named_or_counted(self):
        out = os.path.join(self.folder.path, "out")
        done = self.dpnode("train", self.manifest, "--text", self.spoilt, "--out", out, "--steps", "1", "--json")
        self.assertEqual(done.returncode, 65, done)
        self.assertIn("spoilt.jsonl, line 12: not JSON", json.loads(done.stdout.splitlines()[-1])["error"]["why"])
        self.assertIn("; --skip-bad-lines counts", json.loads(done.stdout.splitlines()[-1])["error"]["why"])
        data = next(e for e in self.train(self.spoilt, "out", "--steps", "1", "--skip-bad-lines") if e["event"] == "data")
        self.assertEqual(data["bad_lines"], 2)
        self.assertIn("spoilt.jsonl, line 12: not JSON", data["first_bad"])
        done = self.dpnode("eval", out, "--data", self.spoilt, "--json")
        self.assertEqual(done.returncode, 65, done)
        self.assertIn("spoilt.jsonl, line 12: not JSON", json.loads(done.stdout)["error"]["why"])
        self.assertNotIn("--skip-bad-lines", done.stdout)  # eval has no such option.
        nothing = self.file("nothing.jsonl", "nothing\n")
        done = self.dpnode("train", self.manifest, "--text", nothing, "--out", os.path.join(self.folder.path, "none"),
                           "--skip-bad-lines", "--json")
        self.assertIn("lines skipped: 1, the first: ", json.loads(done.stdout.splitlines()[-1])["error"]["why"])
        done = self.dpnode("data", "tokenize", self.spoilt, "--out", os.path.join(self.folder.path, "data"), "--skip-bad-lines")
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("2 lines were skipped; the first: ", done.stdout)
        self.assertIn("tokens have a loss", done.stdout)

    def test_a_folder_of_data_is_packed_for_the_run(self):
        data = os.path.join(self.folder.path, "data")
        self.assertEqual(self.dpnode("data", "tokenize", self.data, "--vocab", "300", "--out", data).returncode, 0)
        checked = json.loads(self.dpnode("data", "verify", data, "--json").stdout)
        told = next(e for e in self.train(data, "out", "--steps", "2") if e["event"] == "data")
        self.assertEqual(told["losses"], checked["losses"])
        self.assertEqual(told["tokens"], checked["tokens"] + told["padding"] + 1)

    def test_of_chats_the_assistant_is_learned(self):
        model = os.path.join(self.folder.path, "model")
        os.mkdir(model)
        shutil.copy(os.path.join(GOLDEN, "tokenizer_gpt2.json"), os.path.join(model, "tokenizer.json"))
        chat = {"messages": [{"role": "user", "content": "Name it."}, {"role": "assistant", "content": "Light"}]}
        loud = {"messages": [{"role": "assistant", "content": "I begin"}, {"role": "assistant", "content": "I go on"}]}
        path = self.file("chats.jsonl", "".join(json.dumps(c) + "\n" for c in (chat, loud, chat)))
        command = ("data", "tokenize", path, "--tokenizer", os.path.join(model, "tokenizer.json"), "--json", "--out")
        done = self.dpnode(*command, os.path.join(self.folder.path, "none"))
        self.assertEqual(done.returncode, 66, done)
        self.assertIn("a chat needs the template", json.loads(done.stdout)["error"]["why"])
        shutil.copy(os.path.join(GOLDEN, "templates", "mistral.jinja"), os.path.join(model, "chat_template.jinja"))
        self.file("model/tokenizer_config.json", json.dumps({"bos_token": "<s>", "eos_token": "</s>"}))
        done = self.dpnode(*command, os.path.join(self.folder.path, "one"))
        self.assertEqual(done.returncode, 65, done)
        self.assertRegex(json.loads(done.stdout)["error"]["why"], "chats.jsonl, line 2: line [0-9]+ of the template: it refuses")
        done = self.dpnode(*command, os.path.join(self.folder.path, "two"), "--skip-bad-lines")
        self.assertEqual(done.returncode, 0, done)
        made = json.loads(done.stdout)
        self.assertEqual((made["documents"], made["bad_lines"], made["left_out"]), (2, 1, 0))
        self.assertLess(made["losses"], made["tokens"] / 2)
        self.trained_chats_keep_their_template(os.path.join(self.folder.path, "two"), model, chat)

    def trained_chats_keep_their_template(self, data, model, chat):
        with open(os.path.join(model, "tokenizer.json"), encoding="utf-8") as file:
            parts = json.load(file)
        vocab = len(parts["model"]["vocab"]) + len(parts["added_tokens"])
        self.manifest = self.file("chats.yaml", MANIFEST.replace("vocab: 300", f"vocab: {vocab}"))
        self.train(data, "chatty", "--steps", "2", "--threads", "1")
        out = os.path.join(self.folder.path, "chatty")
        known = self.dpnode("eval", out, "--data", self.file("other.jsonl", json.dumps(chat) + "\n"), "--json")
        self.assertEqual(known.returncode, 0, known)
        self.assertGreater(json.loads(known.stdout)["tokens"], 0)
        exported = os.path.join(self.folder.path, "exported")
        done = self.dpnode("ckpt", "export", exported, "--from", out, "--json")
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(json.loads(done.stdout)["files"][-2:], ["tokenizer_config.json", "chat_template.jinja"])
        for name in ("tokenizer_config.json", "chat_template.jinja"):
            for folder in (exported, os.path.join(out, "model")):
                with open(os.path.join(model, name), "rb") as one, open(os.path.join(folder, name), "rb") as other:
                    self.assertEqual(one.read(), other.read(), name)
        os.mkdir(os.path.join(self.folder.path, "of_others"))
        self.file("of_others/chat_template.jinja", "{{ 1 }}")
        done = self.dpnode("ckpt", "export", os.path.join(self.folder.path, "of_others"), "--from", out, "--json")
        self.assertEqual((done.returncode, json.loads(done.stdout)["error"]["code"]), (73, "E0407"))
        gguf = self.dpnode("ckpt", "export", os.path.join(self.folder.path, "gguf"), "--from", out, "--gguf", "f32", "--json")
        self.assertEqual(json.loads(gguf.stdout)["files"], ["model.gguf"])
        with open(os.path.join(model, "chat_template.jinja"), "rb") as one, \
                open(os.path.join(self.folder.path, "gguf", "model.gguf"), "rb") as other:
            self.assertIn(one.read(), other.read())

    def test_a_short_file_with_a_bad_line_is_looked_at_before_a_daemon_starts(self):
        small = self.file("small.jsonl", lines(60, bad=(3,)))
        command = ("run", "create", self.manifest, "--text", small, "--dir", os.path.join(self.folder.path, "dir"),
                   "--listen", "127.0.0.1:0", "--json")
        self.env = {**os.environ, "DPNODE_SOCKET": os.path.join(self.folder.path, "s"), "LC_ALL": "C"}
        done = self.dpnode(*command)
        self.assertEqual(done.returncode, 65, done)
        self.assertIn("small.jsonl, line 5: not JSON", json.loads(done.stdout)["error"]["why"])
        done = self.dpnode(*command, "--skip-bad-lines")
        self.addCleanup(self.dpnode, "down")
        self.assertEqual(done.returncode, 0, done)

    def learned_by_two(self, manifest):
        first = self.folder.node("node1").start()
        self.fails("E0304", 65, first.ask, "run", "create", manifest, "--text", self.spoilt)
        created = first.create(manifest, "--text", self.data, "--skip-bad-lines")
        second = self.joined("node2", created["invite"])

        def learned():
            score = second.ask("eval", "-n", "500")
            return score["bits_per_byte"] < 1 and score
        wait_for(lambda: second.run().get("counted", 0) >= 2, 30, "node2 is counted")
        score = wait_for(learned, 60, "the answers are learned")
        self.assertGreater(score["tokens"], 0)
        rounds = [r for r in first.lines("rounds", "-n", "100") if r["listed"] == 2]
        self.assertTrue(rounds, "a record of both")
        self.assertTrue(all(m["tokens"] > 0 for r in rounds for m in r["peers"]))
        audit = first.ask("audit")
        self.assertEqual((audit["n_findings"], audit["twice"]), (0, 0))

    def test_two_members_learn_the_answers(self):
        self.learned_by_two(self.manifest)

    def test_two_members_that_average_gradients_learn_them_too(self):
        manifest = MANIFEST.replace("round: {time: 0.5, steps_max: 40}", "round: {mode: ddp}") + "members: {trust: members}\n"
        self.learned_by_two(self.file("ddp.yaml", manifest))


if __name__ == "__main__":
    systemtest.main()
