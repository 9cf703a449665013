#!/usr/bin/env python3
"""The next start drops updates and states that an earlier life of the daemon fetched and no record names."""

import contextlib
import os
import sqlite3
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from daemons import Folder, place_for_tests, wait_for  # noqa: E402 (the path comes first)
from small_run import create_and_join  # noqa: E402

BLOB, STATE = 1, 2 # pin kinds of the store


def open_meta(node):
    return contextlib.closing(sqlite3.connect(os.path.join(node.dir, "meta.db")))


def pins(node, kind):
    with open_meta(node) as meta:
        return {row[0] for row in meta.execute("SELECT root FROM pin WHERE kind=?", (kind,))}


def leave_behind(node, kind, root):
    with open_meta(node) as meta, meta:
        meta.execute("INSERT INTO pin(root,run,kind,round) SELECT ?,run,?,0 FROM record LIMIT 1", (root, kind))


def main():
    with Folder(sys.argv[1], place=place_for_tests()) as folder:
        node = create_and_join(folder, 1, round_s=0.3)[0]
        wait_for(lambda: node.run()["round"] >= 3, 60, "three rounds")
        node.end()
        known = pins(node, BLOB)
        assert known, "the updates of the last rounds are kept"
        leave_behind(node, BLOB, b"b" * 32)
        leave_behind(node, STATE, b"s" * 32)
        node.start()
        before = wait_for(lambda: node.run().get("round"), 60, "the run goes on")
        wait_for(lambda: node.run()["round"] > before, 60, "another round")
        node.end()
        assert b"b" * 32 not in pins(node, BLOB), "an update of nobody is still kept"
        assert b"s" * 32 not in pins(node, STATE), "a state of nobody is still kept"
        assert pins(node, BLOB) & known, "updates that others may need to replay are gone"


if __name__ == "__main__":
    main()
