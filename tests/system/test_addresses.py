#!/usr/bin/env python3
"""Where peers are is on disk a moment after they were linked: a node that dies soon after it joined finds its run again."""

import glob
import os
import shutil
import sqlite3
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from daemons import Folder, place_for_tests, wait_for  # noqa: E402 (the path comes first)
from small_run import create_and_join  # noqa: E402

SOON_S = 10  # the regular saving comes only every 30 s


def stored_addresses(node):
    """Of the peers in a copy of the node's database; None while the copy is torn."""
    with tempfile.TemporaryDirectory() as folder:
        for path in glob.glob(os.path.join(node.dir, "**", "meta.db*"), recursive=True):
            if not path.endswith("-shm"):
                shutil.copy(path, folder)
        try:
            with sqlite3.connect(os.path.join(folder, "meta.db")) as db:
                return " ".join(row[0] for row in db.execute("SELECT addresses FROM peer"))
        except sqlite3.DatabaseError:
            return None


def main():
    with Folder(sys.argv[1], place=place_for_tests()) as folder:
        nodes = create_and_join(folder, 2)
        began = time.monotonic()
        for node, other in (nodes, reversed(nodes)):
            port = f":{other.port}"
            wait_for(lambda n=node, p=port: p in (stored_addresses(n) or ""), SOON_S, f"{node.name} has stored {port}")
        print(f"{time.monotonic() - began:.1f} s until both addresses are on disk")
        for node in nodes:
            node.process.kill()
            node.process.wait()
        for node in nodes:
            node.start()
        wait_for(lambda: all(n.run().get("alive") == 2 for n in nodes), 30, "both are together again")


if __name__ == "__main__":
    main()
