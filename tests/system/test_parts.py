#!/usr/bin/env python3
"""A run with momentum and rounds of parts: four nodes, one killed during a round. All end
with the same state, and each has fetched about two updates a round, where rounds of whole updates fetch three."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import CliError, TINY, SystemTest, tiny_text, wait_for  # noqa: E402

NODES = 4
MANIFEST = TINY.replace("layers: 1, width: 32", "layers: 2, width: 128").replace(
    "round: {time: 0.5, steps_max: 40}", "round: {mode: diloco, time: 1}") + "members: {trust: members}\n"


def published(node):
    """Waits until the node has published its update of the present round."""
    run = node.run()
    events = [e for e in node.lines("logs", "--last", "20") if e["name"] == "round.published"]
    return bool(events) and events[-1]["round"] == run["round"] + 1


class Parts(SystemTest):
    def whole_rounds(self, follow):
        return [r for r in follow.all() if r["listed"] == NODES and r["parts"] == NODES and r["parts_empty"] == 0]

    def test_owners_add_up_and_a_kill_in_a_round_changes_no_state(self):
        first = self.folder.node("node1").start()
        text = tiny_text(os.path.join(self.folder.path, "text.txt"))
        token = first.create(self.file("parts.yaml", MANIFEST), "--text", text)["invite"]
        follow = self.folder.follow(first)
        nodes = [first] + [self.joined(f"node{i}", token) for i in range(2, NODES + 1)]
        wait_for(lambda: len(self.whole_rounds(follow)) >= 2, 120, "rounds in which all four own a part")

        before = [node.run() for node in nodes]
        wait_for(lambda: nodes[0].run()["applied"] >= before[0]["applied"] + 6, 120, "six rounds more")
        after = [node.run() for node in nodes]
        for node in nodes:  # All own a part; each reports the error of encoding its sum, which is small for int8.
            wait_for(lambda n=node: 0 < n.run().get("part_error", 0) < 0.05, 60, f"a sum of {node.name}")
        of_rounds = {r["round"]: r for r in follow.all()}
        for old, new in zip(before, after):
            rounds = [of_rounds[r] for r in range(old["applied"] + 1, new["applied"] + 1) if r in of_rounds]
            blob = sum(r["bytes"] / r["listed"] for r in rounds) / len(rounds)
            fetched = (new["bytes_received"] - old["bytes_received"]) / len(rounds) / blob
            print(f"fetched {fetched:.2f} updates of {blob / 1e3:.0f} kB in each of {len(rounds)} rounds", file=sys.stderr)
            self.assertLess(fetched, 2.4)

        last = nodes[-1]
        wait_for(lambda: published(last), 60, "its update of a round that is not decided")
        last.kill()
        at = first.run()["applied"]
        wait_for(lambda: first.run()["applied"] >= at + 3, 120, "the others go on")
        last.start()
        counted = last.run().get("counted", 0)
        wait_for(lambda: last.run().get("counted", 0) >= counted + 2, 120, "it is counted again")

        for node in nodes:
            node.ask("pause")

        def at_one_round():
            runs = [node.run() for node in nodes]
            return len({run["applied"] for run in runs}) == 1 and runs
        runs = wait_for(at_one_round, 120, "all stand at one round")
        self.assertEqual({run["state_root"] for run in runs}, {runs[0]["state_root"]})
        self.assertEqual([run["diverged"] for run in runs], [0] * NODES)

    def test_parts_are_no_setting(self):
        node = self.folder.node("node1").start()
        wrong = self.file("wrong.yaml", MANIFEST.replace("time: 1", "time: 1, reduce: parts"))
        with self.assertRaises(CliError) as refused:
            node.ask("run", "validate", wrong)
        self.assertIn("round.reduce is gone", str(refused.exception))


if __name__ == "__main__":
    systemtest.main()
