"""Shared by the system tests: the folder of the binaries from the command line, a tiny run that trains within moments, and unittest with names as
sentences. Exit status 77 if the binaries are not built."""

import os
import random
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from daemons import CliError, Folder, place_for_tests, wait_for  # noqa: E402,F401 (for the tests)

BINARIES = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else os.path.abspath("build/release")

TINY = """name: tiny
model: {layers: 1, width: 32, heads: 2, context: 32, vocab: 300}
train: {batch: 2, lr: 1e-2, warmup_tokens: 100, total_tokens: 10000000}
round: {time: 0.5, steps_max: 40}
gossip: {time: 0.5}
vote: {uptime: 0}
"""

VAST = """name: vast
model: {layers: 128, width: 1152, heads: 9, context: 16384, vocab: 300}
""" # about the largest model that a run may have
VAST_BYTES = 70 << 30 # training it takes more


def tiny_text(path, size=60_000, seed=7):
    """Words of a small language, always the same for a seed."""
    chance = random.Random(seed)
    words = ["".join(chance.choice("abcdefgh") for _ in range(chance.randint(2, 5))) for _ in range(60)]
    with open(path, "w", encoding="utf-8") as file:
        written = 0
        while written < size:
            line = " ".join(chance.choice(words) for _ in range(8)) + ".\n"
            file.write(line)
            written += len(line)
    return path


class SystemTest(unittest.TestCase):
    """A test with a folder of nodes, which are stopped when it ends."""

    def setUp(self):
        self.folder = Folder(BINARIES, "dpnode-test-", place_for_tests())
        self.addCleanup(self.folder.__exit__)

    def file(self, name, content):
        path = os.path.join(self.folder.path, name)
        with open(path, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return path

    def found(self, name="node1", *arguments):
        """A founder of the tiny run, and its invite."""
        node = self.folder.node(name, *arguments).start()
        text = tiny_text(os.path.join(self.folder.path, "text.txt"))
        created = node.create(self.file("tiny.yaml", TINY), "--text", text)
        return node, created["invite"]

    def joined(self, name, token, *arguments):
        node = self.folder.node(name).start()
        node.ask("join", "-", *arguments, stdin=token)
        return node

    def fails(self, code, status, call, *words, **more):
        """call(*words) is refused with that code and exit status; returns the error."""
        with self.assertRaises(CliError) as caught:
            call(*words, **more)
        error = caught.exception.error
        self.assertEqual((error.get("code"), caught.exception.status), (code, status), error)
        self.assertTrue(error["what"])
        return error


def main():
    if not all(os.access(os.path.join(BINARIES, name), os.X_OK) for name in ("dpnoded", "dpnode", "dpnode-worker")):
        print(f"no binaries in {BINARIES}: skipped")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[2:]])
