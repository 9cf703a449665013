#!/usr/bin/env python3
"""A run with several data objects: a joiner fetches all of them, and an object that a disk damages is reported and fetched again."""

import os
import shutil
import re
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import BINARIES, SystemTest, wait_for  # noqa: E402

SHARDS = 3


class Shards(SystemTest):
    def tokenize(self, size, shard_tokens):
        """A folder of data; one byte is one token."""
        text = systemtest.tiny_text(os.path.join(self.folder.path, "text.txt"), size)
        out = os.path.join(self.folder.path, "data")
        shutil.rmtree(out, ignore_errors=True) # The tool does not overwrite an existing folder.
        subprocess.run([os.path.join(BINARIES, "dpnode"), "data", "tokenize", text, "--vocab", "256", "--shard-tokens",
                        str(shard_tokens), "--out", out], check=True, capture_output=True, timeout=60)
        return out

    def founded(self):
        node = self.folder.node("founder").start()
        data = self.tokenize(60_000, 25_000)
        created = node.create(self.file("tiny.yaml", systemtest.TINY), "--text", data)
        return node, created["invite"]

    def shards(self, node):
        return [item for item in node.ask("data")["data"] if item["kind"] == "tokens"]

    def trains(self, node):
        return node.run().get("counted", 0) >= 2

    def damage(self, node, root):
        """Changes a byte in the first chunk of an object; the database itself is valid."""
        with sqlite3.connect(os.path.join(node.dir, "chunks.db")) as store:
            leaves, = store.execute("SELECT leaves FROM recipe WHERE root=?", (bytes.fromhex(root),)).fetchone()
            data, = store.execute("SELECT data FROM chunk WHERE hash=?", (leaves[:32],)).fetchone()
            store.execute("UPDATE chunk SET data=? WHERE hash=?", (data[:-1] + bytes([data[-1] ^ 1]), leaves[:32]))
        store.close()

    def test_joiners_fetch_every_shard_and_train(self):
        founder, token = self.founded()
        joiners = [self.joined(name, token) for name in ("joiner1", "joiner2")]
        for node in (founder, *joiners):
            wait_for(lambda n=node: self.trains(n), 60, f"{node.name} is counted")
        listed = self.shards(founder)
        self.assertEqual([item["tokens"] for item in listed[:-1]], [25_000] * (SHARDS - 1))
        self.assertEqual(len({item["root"] for item in listed}), SHARDS)
        told = founder.ask("data")
        self.assertEqual(told["tokens"], sum(item["tokens"] for item in listed))
        # The last 5 % are held out: all of it in the last shard. Windows of 32 lie inside of shards.
        training = told["tokens"] - told["tokens"] * 50 // 1000 - 50_000
        self.assertEqual(told["samples"], 2 * (24_999 // 32) + (training - 1) // 32)
        for node in (founder, *joiners):
            self.assertEqual(self.shards(node), listed)
            self.assertTrue(all(item["local"] for item in listed))

    def test_a_damaged_shard_is_named_and_fetched_anew(self):
        founder, token = self.founded()
        joiner = self.joined("joiner", token)
        wait_for(lambda: self.trains(joiner), 60, "the joiner is counted")
        root = self.shards(joiner)[1]["root"]
        joiner.end()
        founder.end()
        self.damage(joiner, root)
        joiner.start()  # Without a peer to fetch from.
        wait_for(lambda: any("shard 2 of 3 of the run's data is damaged" in e["text"]
                             for e in joiner.lines("logs", "-n", "200")), 30, "the damage is told")
        self.assertEqual([item["local"] for item in self.shards(joiner)], [True, False, True])
        run = joiner.run()
        self.assertNotEqual(run.get("trainer"), "up")
        self.assertEqual((run["data_here"], run["data_objects"]), (SHARDS, SHARDS + 1))  # With the tokenizer.
        founder.start()
        wait_for(lambda: all(item["local"] for item in self.shards(joiner)), 60, "the shard is here again")
        wait_for(lambda: joiner.run().get("trainer") == "up", 90, "the trainer is up again")
        counted = joiner.run().get("counted", 0)
        wait_for(lambda: joiner.run().get("counted", 0) > counted, 60, "the joiner is counted again")

    def test_more_shards_than_a_run_may_have_are_refused_with_the_way_out(self):
        node = self.folder.node("founder").start()
        data = self.tokenize(20_000, 500)
        error = self.fails("E0304", 65, node.ask, "run", "create", self.file("tiny.yaml", systemtest.TINY), "--text", data)
        self.assertIn("at most 32 shards", error["why"])
        shard_tokens = int(re.search(r"--shard-tokens (\d+)", error["why"])[1])
        data = self.tokenize(20_000, shard_tokens)
        node.ask("run", "create", self.file("tiny.yaml", systemtest.TINY), "--text", data)
        self.assertEqual(len(self.shards(node)), 32)
        wait_for(lambda: self.trains(node), 60, "a run of as many as there may be trains")


if __name__ == "__main__":
    systemtest.main()
