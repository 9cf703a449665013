#!/usr/bin/env python3
"""A run of mode gossip: members exchange in pairs all the time, rare rounds make their models equal, and neither stops the other; a joiner takes
the state of a round and exchanges too."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import TINY, SystemTest, tiny_text, wait_for  # noqa: E402

MANIFEST = (TINY.replace("round: {time: 0.5, steps_max: 40}", "round: {mode: gossip, time: 3}")
            .replace("gossip: {time: 0.5}", "gossip: {time: 0.4}") + "members: {trust: members}\n")


class Pairs(SystemTest):
    def test_members_exchange_in_pairs_between_rounds_and_rounds_make_them_one(self):
        first = self.folder.node("node1").start()
        text = tiny_text(os.path.join(self.folder.path, "text.txt"))
        token = first.create(self.file("gossip.yaml", MANIFEST), "--text", text)["invite"]
        nodes = [first, self.joined("node2", token), self.joined("node3", token)]
        wait_for(lambda: all(n.run().get("counted", 0) >= 1 for n in nodes), 60, "all three are counted")
        follows = {n.name: self.folder.follow(n) for n in nodes}
        wait_for(lambda: all(len(follows[n.name].exchanges) >= 2 for n in nodes), 40, "all three exchange")
        # The node hears a majority all the time: this is not the fallback.
        self.assertEqual({n.ask("status")["state"] for n in nodes}, {"training"})
        before = first.run()["round"]
        wait_for(lambda: all(n.run()["round"] >= before + 2 for n in nodes), 40, "rounds go on")

        def all_of_three():
            return [r for r in follows["node1"].all() if r["round"] > before and r["listed"] == 3]
        wait_for(all_of_three, 40, "a round counts all three")
        told = {(n.ask("status")["id"], e["exchange"]["peer"]["id"], e["exchange"]["weight_own"],
                 e["exchange"]["weight_other"]) for n in nodes for e in list(follows[n.name].exchanges)}
        mirrored = [t for t in told if (t[1], t[0], t[3], t[2]) in told]
        self.assertGreaterEqual(len(mirrored), 2, told)

        late = self.joined("node4", token)
        follows[late.name] = self.folder.follow(late)
        wait_for(lambda: late.run().get("counted", 0) >= 1, 60, "who joined later is counted")
        wait_for(lambda: follows[late.name].exchanges, 40, "and exchanges")

        def same_root():
            runs = [n.run() for n in nodes + [late]]
            return len({r["applied"] for r in runs}) == 1 and runs
        runs = wait_for(same_root, 60, "all stand at one round")
        self.assertEqual(len({r["state_root"] for r in runs}), 1)
        self.assertEqual([r["diverged"] for r in runs], [0] * 4)


if __name__ == "__main__":
    systemtest.main()
