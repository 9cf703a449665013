#!/usr/bin/env python3
"""A node whose chunks were deleted, truncated or damaged while it was away trains again, without help of its owner."""

import contextlib
import os
import random
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from small_run import state_roots_agree  # noqa: E402
from systemtest import TINY, SystemTest, tiny_text, wait_for  # noqa: E402


def delete(path):
    os.unlink(path)


def cut(path):
    os.truncate(path, os.path.getsize(path) // 2)


def flip(path):
    draw = random.Random(5)
    with open(path, "r+b") as file:
        for _ in range(20):
            at = draw.randrange(os.path.getsize(path))
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 1 << draw.randrange(8)]))


def misspell(path):
    """Flips one bit of the schema: a column of a table gets another name, which only the queries notice."""
    with contextlib.closing(sqlite3.connect(path)) as meta: # So that the file has it, and not its log alone.
        meta.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with open(path, "r+b") as file:
        at = file.read().index(b"chk BLOB")
        file.seek(at + 1)
        file.write(b"i")


class Rot(SystemTest):
    @staticmethod
    def last_counted(witness, node):
        """Asks another node, since this one may restart and have no socket for a moment."""
        return max((p["included"] for p in witness.ask("peers")["peers"] if p["name"] == node.name), default=0)

    @staticmethod
    def says(node, *words):
        done = subprocess.run([w for w in node.command(*words) if w != "--json"], capture_output=True, text=True,
                              check=False, timeout=60)
        return done.returncode, done.stdout

    def test_a_node_that_lost_its_chunks_is_counted_again(self):
        first = self.folder.node("one").start()
        text = tiny_text(os.path.join(self.folder.path, "text.txt"))
        token = first.create(self.file("rot.yaml", TINY), "--text", text)["invite"]
        others = [self.folder.node(name).start() for name in ("two", "three")]
        for node in others:
            node.ask("join", "-", stdin=token)
        node = others[1]
        wait_for(lambda: node.run()["counted"] >= 2, 120, "the node is counted")
        for damage in (delete, cut, flip):
            node.kill()
            damage(os.path.join(node.dir, "chunks.db"))
            node.start()
            counted = node.run()["counted"]
            wait_for(lambda: node.run()["counted"] >= counted + 3, 120, f"it is counted again after {damage.__name__}")
        state_roots_agree([first, *others])

    def test_a_node_with_damaged_rows_continues_with_the_rest(self):
        """Damages bits of rows, which a check of the structure of the file does not find: records, the vote, a publication."""
        first = self.folder.node("one").start()
        text = tiny_text(os.path.join(self.folder.path, "text.txt"))
        token = first.create(self.file("rot.yaml", TINY), "--text", text)["invite"]
        others = [self.folder.node(name).start() for name in ("two", "three")]
        for node in others:
            node.ask("join", "-", stdin=token)
        node = others[1]
        wait_for(lambda: node.run()["voters"] == 3 and node.run()["counted"] >= 3, 120, "the node votes and is counted")
        for row, event in (("kv SET val=zeroblob(9) WHERE key='run'", "store.lost"),
                           ("kv SET key='rvn' WHERE key='run'", "store.lost"),
                           ("record SET record=zeroblob(9) WHERE slot=3", "chain.damaged"), ("head SET slot=slot+7", "chain.damaged"),
                           ("vote SET promised=promised+1", None), ("row SET bytes=zeroblob(9)", None),
                           ("kv SET val=zeroblob(9) WHERE key<>'run'", None)):
            node.kill()
            with contextlib.closing(sqlite3.connect(os.path.join(node.dir, "meta.db"))) as meta:
                meta.execute(f"UPDATE {row}")
                meta.commit()
            begin = os.path.getsize(node.log)
            node.start()
            def told():
                with open(node.log, encoding="utf-8") as log:
                    log.seek(begin)
                    return event is None or event in log.read()
            wait_for(told, 60, f"{event} is told after {row}")
            first_round = first.run()["round"]
            wait_for(lambda: self.last_counted(first, node) > first_round + 1, 120, f"it is counted again after {row}")
        state_roots_agree([first, *others])

    def test_a_node_that_lost_its_run_identity_enters_the_run_again(self):
        """Deleted, truncated or damaged meta.db: with run.member and its key the node is still a member, but without its vote key."""
        first = self.folder.node("one").start()
        text = tiny_text(os.path.join(self.folder.path, "text.txt"))
        token = first.create(self.file("rot.yaml", TINY), "--text", text)["invite"]
        others = [self.folder.node(name).start() for name in ("two", "three")]
        for node in others:
            node.ask("join", "-", stdin=token)
        node = others[1]
        wait_for(lambda: node.run()["counted"] >= 2, 120, "the node is counted")
        self.assertEqual(os.stat(os.path.join(node.dir, "run.member")).st_mode & 0o77, 0)
        for damage in (delete, cut, misspell):
            node.kill()
            damage(os.path.join(node.dir, "meta.db"))
            node.start()
            wait_for(lambda: node.ask("status").get("run"), 60, "it knows its run")
            counted = node.run()["counted"]
            wait_for(lambda: node.run()["counted"] >= counted + 3, 120, f"it is counted again after {damage.__name__}")
            told = {event["name"] for event in node.lines("logs", "-n", "1000")}
            self.assertLessEqual({"store.rebuilt", "store.lost"}, told, damage.__name__)
        state_roots_agree([first, *others])
        # No file names the run any more: the node reports this, also after another start, until a token names the run.
        node.kill()
        os.truncate(os.path.join(node.dir, "run.member"), 7)
        delete(os.path.join(node.dir, "meta.db"))
        for _ in range(2):
            node.start()
            self.assertIn("its store was damaged", node.ask("status")["lost"])
            self.assertEqual(self.says(node, "status", "--check", "live")[0], 1)
            self.assertIn("no longer a member of its run", self.says(node, "doctor")[1])
            node.kill()
        node.start().ask("join", "-", stdin=token)
        wait_for(lambda: node.run().get("counted", 0) >= 2, 120, "it is counted again after it joined again")
        self.assertNotIn("lost", node.ask("status"))
        node.ask("leave") # A node that has left does not come back when its store is lost.
        node.kill()
        self.assertFalse(os.path.exists(os.path.join(node.dir, "run.member")))

    def test_a_model_that_is_nowhere_else_outlives_meta_db(self):
        """Alone, without its chain and its vote key, a node still exports its newest checkpoint, also after another start."""
        node = self.folder.node("one").start()
        text = tiny_text(os.path.join(self.folder.path, "text.txt"))
        node.create(self.file("rot.yaml", TINY), "--text", text)
        wait_for(lambda: len(node.ask("ckpt", "ls")["checkpoints"]) >= 2, 120, "two checkpoints")
        node.end()
        path = os.path.join(node.dir, "meta.db")
        with contextlib.closing(sqlite3.connect(path)) as meta:
            newest = meta.execute("SELECT max(round) FROM ckpt WHERE state IN(1,2)").fetchone()[0]
        cut(path)
        for _ in range(2):
            node.start()
            wait_for(lambda: "has lost its vote key" in node.ask("why")["answer"], 60, "it knows what it has lost")
            self.assertEqual([(c["round"], c["state"]) for c in node.ask("ckpt", "ls")["checkpoints"]], [(newest, "recovered")])
            node.end()
        node.start()
        model = os.path.join(self.folder.path, "model")
        wait_for(lambda: "has lost its vote key" in node.ask("why")["answer"], 60, "it has started")
        self.assertEqual(node.ask("ckpt", "export", model)["round"], newest)
        self.assertTrue(os.path.exists(os.path.join(model, "model.safetensors")))


if __name__ == "__main__":
    systemtest.main()
