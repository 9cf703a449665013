#!/usr/bin/env python3
"""Five nodes, three voters, two of which are frozen: the others continue by pair exchange, and no work is lost."""

import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import SystemTest, wait_for  # noqa: E402

ROUND_S = 1.5
MANIFEST = f"""name: tiny
model: {{layers: 1, width: 32, heads: 2, context: 32, vocab: 300}}
train: {{batch: 2, lr: 1e-2, warmup_tokens: 100, total_tokens: 10000000}}
round: {{time: {ROUND_S}, steps_max: 40}}
gossip: {{time: 0.5}}
vote: {{uptime: 0, voters_max: 3}}
"""


class Gossip(SystemTest):
    def test_without_a_majority_of_voters_the_rest_exchanges_and_the_work_counts_later(self):
        first = self.folder.node("node1").start()
        text = systemtest.tiny_text(os.path.join(self.folder.path, "text.txt"))
        token = first.create(self.file("run.yaml", MANIFEST), "--text", text)["invite"]
        nodes = [first] + [self.joined(f"node{i}", token) for i in range(2, 6)]
        wait_for(lambda: all(n.run().get("voters") == 3 and n.run().get("members") == 5 for n in nodes), 60,
                 "five members, three voters")
        follows = {n.name: self.folder.follow(n) for n in nodes}
        voters = [n for n in nodes if n.run()["is_voter"]]
        self.assertEqual(len(voters), 3)
        frozen, free = voters[:2], [n for n in nodes if n not in voters[:2]]
        wait_for(lambda: follows[free[0].name].all()[-1:] and follows[free[0].name].all()[-1]["listed"] == 5, 40,
                 "a round of five")

        for node in frozen:
            node.signal_all(signal.SIGSTOP)
        wait_for(lambda: all(follows[n.name].exchanges for n in free), 30, "all three exchange")
        self.assertEqual({n.ask("status")["state"] for n in free}, {"gossip"})
        self.assertIn("majority", free[0].ask("why")["answer"])
        before = max(n.run()["round"] for n in free)
        wait_for(lambda: sum(len(follows[n.name].exchanges) for n in free) >= 8, 30, "more exchanges")

        # Both sides of an exchange report the same weights, each from its own side: none was created or lost.
        told = {(n.ask("status")["id"], e["exchange"]["peer"]["id"], e["exchange"]["weight_own"],
                 e["exchange"]["weight_other"]) for n in free for e in list(follows[n.name].exchanges)}
        mirrored = [t for t in told if (t[1], t[0], t[3], t[2]) in told]
        self.assertGreaterEqual(len(mirrored), 2, told)

        for node in frozen:
            node.signal_all(signal.SIGCONT)
        wait_for(lambda: all(n.ask("status")["state"] == "training" for n in nodes), 40, "synchronous rounds again")
        counted = wait_for(lambda: [r for r in follows[free[-1].name].all() if r["round"] > before and r["listed"] >= 4],
                           40, "records count the work of the nodes that exchanged")[0]
        ids = {n.ask("status")["id"] for n in free}
        self.assertTrue(ids & {p["id"] for p in counted["peers"]})

        def same_root():
            runs = [n.run() for n in nodes]
            return len({r["applied"] for r in runs}) == 1 and runs
        runs = wait_for(same_root, 60, "all stand at one round")
        self.assertEqual(len({r["state_root"] for r in runs}), 1)


if __name__ == "__main__":
    systemtest.main()
