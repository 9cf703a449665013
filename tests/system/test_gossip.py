#!/usr/bin/env python3
"""Five nodes, three voters; two voters are stopped: the others average by gossip, and the work counts when they are back."""

import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from daemons import Folder, wait_for  # noqa: E402 (the path comes first)
from small_run import create_and_join, state_roots_agree  # noqa: E402

ROUND_S = 2.0


def pairs_that_cancel(follows):
    """Exchanges that both sides have told of: [(moved here, moved there)]."""
    found = []
    told = [(name, e["exchange"]) for name, f in follows.items() for e in f.exchanges if e["exchange"]["cause"] == "done"]
    for i, (name, one) in enumerate(told):
        for other_name, other in told[i + 1:]:
            same = (one["peer"]["name"] == other_name and other["peer"]["name"] == name
                    and one["weight_own"] == other["weight_other"] and one["weight_other"] == other["weight_own"])
            if same and one["moved"] != 0:
                found.append((one["moved"], other["moved"]))
                break
    return found


def main():
    with Folder(sys.argv[1]) as folder:
        nodes = create_and_join(folder, 5, round_s=ROUND_S, gossip_s=0.5, voters_max=3)
        follows = {node.name: folder.follow(node) for node in nodes}
        wait_for(lambda: all(n.run()["voters"] == 3 and n.run()["listed"] == 5 for n in nodes), 90,
                 "three voters and a round that counts all five")
        voters = [n for n in nodes if n.run()["is_voter"]]
        frozen, rest = voters[:2], [n for n in nodes if n not in voters[:2]]
        before = max(n.run()["round"] for n in rest)
        for node in frozen:
            node.signal_all(signal.SIGSTOP)
        stopped = time.monotonic()
        wait_for(lambda: all(n.ask("status")["state"] == "gossip" for n in rest), 60, "the rest falls back to gossip")
        wait_for(lambda: sum(len(follows[n.name].exchanges) > 0 for n in rest) >= 2, 60, "an exchange is done")
        print(f"first exchange {time.monotonic() - stopped:.1f} s after the stop; the promise is two rounds + 3 s "
              f"= {2 * ROUND_S + 3:.1f} s on an idle machine")
        pairs = wait_for(lambda: pairs_that_cancel({n.name: follows[n.name] for n in rest}), 60,
                         "an exchange that both sides have told of")
        for here, there in pairs:
            assert abs(here + there) <= 1e-5 * abs(here), f"work was made or lost: {here} and {there}"
        assert all(n.run()["round"] <= before + 1 for n in rest), "a round was decided without a majority"
        for node in frozen:
            node.signal_all(signal.SIGCONT)
        wait_for(lambda: all(n.ask("status")["state"] == "training" for n in nodes), 60, "all are synchronous again")
        after = max(n.run()["round"] for n in nodes)
        wait_for(lambda: any(r["round"] > before and r["listed"] >= 4 for r in follows[rest[0].name].all()), 60,
                 "a record counts the work of those who gossiped")
        wait_for(lambda: min(n.run()["applied"] for n in nodes) >= after + 2, 60, "rounds go on")
        state_roots_agree(nodes)


if __name__ == "__main__":
    main()
