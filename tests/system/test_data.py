#!/usr/bin/env python3
"""dpnode data tokenize, info and verify on real files; and, if Hugging Face's `tokenizers` is installed, its tokens against ours on random texts."""

import json
import os
import shutil
import random
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import BINARIES, SystemTest  # noqa: E402

try:
    import tokenizers
except ImportError:
    tokenizers = None

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
GOLDEN = os.path.join(ROOT, "tests", "golden")
TEXT = "The tide went out, and the boats lay on the sand; nobody minded the tide.\n" * 40


def dpnode(*words):
    return subprocess.run([os.path.join(BINARIES, "dpnode"), *words], capture_output=True, timeout=60, check=False,
                          env={**os.environ, "DPNODE_SOCKET": "/nonexistent/s", "LC_ALL": "C"})


class Data(SystemTest):
    def setUp(self):
        super().setUp()
        self.out = os.path.join(self.folder.path, "data")
        self.text = self.file("book.txt", TEXT)

    def tokenize(self, *words):
        shutil.rmtree(self.out, ignore_errors=True) # The tool does not overwrite an existing folder.
        done = dpnode("data", "tokenize", *words, "--out", self.out, "--json")
        self.assertEqual(done.returncode, 0, done)
        return json.loads(done.stdout)

    def check_error(self, done, code, status, words):
        error = json.loads(done.stdout)["error"]
        self.assertEqual((done.returncode, error["code"]), (status, code), error)
        self.assertIn(words, error["why"])

    def test_text_becomes_shards_that_verify(self):
        made = self.tokenize(self.text, "--vocab", "300", "--shard-tokens", "500")
        self.assertEqual(made["text_bytes"], len(TEXT))
        self.assertGreater(made["shards"], 1)
        checked = json.loads(dpnode("data", "verify", self.out, "--json").stdout)
        self.assertEqual(checked["root"], made["root"])
        told = json.loads(dpnode("data", "info", os.path.join(self.out, "tokens-00000.bin"), "--json").stdout)
        self.assertEqual((told["format"], told["tokens"], told["vocab"]), ("dpnode", 500, made["vocab"]))

    def test_damage_is_named(self):
        self.tokenize(self.text, "--vocab", "300")
        shard = os.path.join(self.out, "tokens-00000.bin")
        with open(shard, "r+b") as file:
            file.seek(50)
            file.write(b"\0")
        self.check_error(dpnode("data", "verify", self.out, "--json"), "E0501", 65, "tokens-00000.bin")

    def test_tokens_of_llm_c_come_in(self):
        tokens = list(range(256)) * 3
        path = self.file("train.bin", struct.pack("<3i", 20240520, 1, len(tokens)) + bytes(1012)
                          + struct.pack("<%dH" % len(tokens), *tokens))
        made = self.tokenize(path, "--tokenizer", os.path.join(GOLDEN, "tokenizer_gpt2.json"))
        self.assertEqual((made["tokens"], made["vocab"]), (len(tokens), 705))
        wide = self.file("wide.bin", struct.pack("<3i", 20240801, 7, 1) + bytes(1012) + struct.pack("<I", 70000))
        shutil.rmtree(self.out)
        self.check_error(dpnode("data", "tokenize", wide, "--tokenizer", os.path.join(GOLDEN, "tokenizer_gpt2.json"),
                                "--out", self.out, "--json"), "E0501", 65, "is 70000")

    def test_unusable_input_is_an_error_with_a_reason(self):
        bad = self.file("bad.jsonl", b'{"text": "fine"}\n{"text": 7}\n')
        out = ("--out", self.out, "--json")
        self.check_error(dpnode("data", "tokenize", bad, *out), "E0501", 65, "bad.jsonl, line 2")
        self.check_error(dpnode("data", "tokenize", "/nonexistent", *out), "E0502", 66, "/nonexistent")
        self.check_error(dpnode("data", "tokenize", self.text, "--vocab", "5", *out), "E0001", 64, "256 to 262144")
        self.check_error(dpnode("data", "tokenize", self.text, "--json"), "E0001", 64, "--out")
        self.check_error(dpnode("data", "info", self.text, "--json"), "E0501", 65, "not a token shard")
        self.check_error(dpnode("data", "info", self.folder.path, "--json"), "E0501", 65, "is a folder")
        self.check_error(dpnode("data", "verify", self.folder.path, "--json"), "E0502", 66, "shards.bin")

    def test_a_chat_template_that_cannot_be_used_is_no_missing_file(self):
        chats = self.file("chats.jsonl", b'{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}\n')
        tokenizer = self.file("tokenizer.json", "")
        shutil.copy(os.path.join(GOLDEN, "tokenizer_gpt2.json"), tokenizer)
        self.file("chat_template.jinja", "{% raw %}x{% endraw %}")
        self.check_error(dpnode("data", "tokenize", chats, "--tokenizer", tokenizer, "--out", self.out, "--json"), "E0501", 65,
                         "chat_template.jinja beside")

    def test_a_run_can_be_founded_on_a_folder_of_data(self):
        text = systemtest.tiny_text(os.path.join(self.folder.path, "tiny.txt"))
        self.tokenize(text, "--vocab", "400")
        node = self.folder.node("node1").start()
        manifest = self.file("tiny.yaml", systemtest.TINY)
        self.fails("E0304", 65, node.ask, "run", "create", manifest, "--text", self.out)
        self.tokenize(text, "--vocab", "256")
        self.assertTrue(node.create(manifest, "--text", self.out)["invite"])

    def test_a_run_can_be_founded_on_a_folder_of_texts(self):
        texts = os.path.join(self.folder.path, "texts")
        os.mkdir(texts)
        for name in ("one.txt", "two.txt"):
            systemtest.tiny_text(os.path.join(texts, name), 20_000)
        self.file("texts/three.jsonl", json.dumps({"text": "abc"}) + "\n")
        node = self.folder.node("node1").start()
        self.assertTrue(node.create(self.file("tiny.yaml", systemtest.TINY), "--text", texts)["invite"])
        os.mkdir(os.path.join(self.folder.path, "none"))
        other = self.folder.node("node2").start()
        error = self.fails("E0304", 65, other.ask, "run", "create", self.file("tiny.yaml", systemtest.TINY), "--text",
                           os.path.join(self.folder.path, "none"))
        self.assertIn("no files", error["why"])


PARTS = ["tide", "Went", " OUT", "it's", "WE'LL", "  ", "\n", "\r\n", "\t", "7", "2026", "3.14", "!", "?!", "é", "e\u0301", "ß",
         "\u017f", "猫", "ひらがな", "한국어", "ко", "й", "и\u0306", "نا", "नाव", "\U0001F642", "\u200D", "\u00A0", "\u3000", "\u0085",
         "\u180E", "\u2028", "<|end|>", "<|tool|>", "<|tool|>s", "café!", "cafe\u0301!", "'", "’", "½", "Ⅷ", "\u0301\u0327", "\0", "_", "--"]


@unittest.skipIf(tokenizers is None, "tokenizers is not installed")
class BesideTokenizers(SystemTest):
    def check_kind(self, kind):
        chance = random.Random(5)
        path = os.path.join(GOLDEN, "tokenizer_%s.json" % kind)
        theirs = tokenizers.Tokenizer.from_file(path)
        for size in [1, 2, 3] * 20 + [40] * 40 + [20000]:
            text = "".join(chance.choice(PARTS) if chance.random() < 0.8 else chr(chance.randrange(0xD800))
                           for _ in range(size))
            file_path = self.file("text", text)
            done = subprocess.run([os.path.join(BINARIES, "dpnode-worker"), "data", "encode", path, file_path],
                                  capture_output=True, check=True, timeout=60)
            ours = [int(line) for line in done.stdout.split()]
            self.assertEqual(ours, theirs.encode(text, add_special_tokens=False).ids, ascii(text)[:200])

    def test_gpt2(self):
        self.check_kind("gpt2")

    def test_llama3(self):
        self.check_kind("llama3")

    def test_qwen(self):
        self.check_kind("qwen")


if __name__ == "__main__":
    systemtest.main()
