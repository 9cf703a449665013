#!/usr/bin/env python3
"""The trainer process of a node is killed: it restarts without help, and the node misses at most two rounds."""

import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from daemons import Folder, place_for_tests, wait_for  # noqa: E402 (the path comes first)
from small_run import create_and_join, state_roots_agree  # noqa: E402

ROUNDS_LOST_MAX = 2


def main():
    with Folder(sys.argv[1], place=place_for_tests()) as folder:
        nodes = create_and_join(folder, 3, round_s=2.0, steps_max=1000000) # rounds that last, however fast the machine
        wait_for(lambda: all(n.run()["listed"] == 3 for n in nodes), 90, "a round that counts all three")
        victim, witness = nodes[1], folder.follow(nodes[2])
        identity = victim.ask("status")["id"]
        last = wait_for(witness.last, 30, "a round")
        os.kill(victim.run()["trainer_pid"], signal.SIGKILL)
        wait_for(lambda: victim.run()["trainer_restarts"] == 1, 30, "the daemon notices")
        back = wait_for(lambda: [r["round"] for r in witness.all() if r["round"] > last + 1
                                 and any(p["id"] == identity for p in r["peers"])], 60, "the node is counted again")
        missed = [r["round"] for r in witness.all() if last < r["round"] < back[0]
                  and not any(p["id"] == identity for p in r["peers"])]
        assert len(missed) <= ROUNDS_LOST_MAX, f"the death of a trainer cost the rounds {missed}"
        state_roots_agree(nodes)


if __name__ == "__main__":
    main()
