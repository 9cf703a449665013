#!/usr/bin/env python3
"""All three nodes are killed at once and started again: no committed round is lost, and the run continues."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from daemons import Folder, place_for_tests, wait_for  # noqa: E402 (the path comes first)
from small_run import create_and_join, state_roots_agree  # noqa: E402


def main():
    with Folder(sys.argv[1], place=place_for_tests()) as folder:
        nodes = create_and_join(folder, 3, round_s=1.0)
        wait_for(lambda: all(n.run()["voters"] == 3 and n.run()["listed"] == 3 for n in nodes), 90, "three voters")
        follow = folder.follow(nodes[0])
        wanted = nodes[1].run()["round"] + 2
        wait_for(lambda: follow.last() >= wanted, 60, "a few more rounds")
        known = {r["round"]: r["bytes"] for r in follow.all()}
        committed = max(n.run()["round"] for n in nodes)
        for node in nodes:
            node.process.kill()
        for node in nodes:
            node.process.wait()
        began = time.monotonic()
        for node in nodes:
            node.start(wait=False)
        wait_for(lambda: all(n.answers() for n in nodes), 30, "all daemons answer again")
        wait_for(lambda: min(n.run().get("applied", 0) for n in nodes) > committed, 60, "a new round after the restart")
        print(f"{time.monotonic() - began:.1f} s from the start of the daemons to a new round everywhere")
        again = {r["round"]: r["bytes"] for line in nodes[1].lines("rounds", "-n", "100000") for r in [line]
                 if r.get("kind") == "sync"}
        lost = [r for r in known if r <= committed and again.get(r) != known[r]]
        assert not lost, f"committed rounds are lost or changed: {lost}"
        state_roots_agree(nodes)


if __name__ == "__main__":
    main()
