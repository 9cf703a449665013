#!/usr/bin/env python3
"""A run whose rounds may count more than 32 contributors: their records name lists, and updates are added up in slices. Here some daemons pass each
update to the trainer separately, others all at once, and all get the same bytes; one node is killed and catches up by the records that it missed,
one joins late."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from small_run import state_roots_agree  # noqa: E402
from systemtest import TINY, SystemTest, tiny_text, wait_for  # noqa: E402

MANIFEST = TINY.replace("round: {", "round: {contributors_max: 40, ")
SLICES = ["--apply-memory", "1"]
PATIENCE_S = 60


class Lists(SystemTest):
    def counted(self, nodes, more=2):
        begin = {n.name: n.run().get("counted", 0) for n in nodes}
        wait_for(lambda: all(n.run().get("counted", 0) >= begin[n.name] + more for n in nodes), PATIENCE_S,
                 f"{', '.join(n.name for n in nodes)} are counted in rounds")

    def joins(self, name, token, arguments=()):
        node = self.folder.node(name, *arguments).start()
        node.ask("join", "-", "--name", name, stdin=token)
        return node

    def quiet(self, nodes):
        """No trainer died, and every state was the certified one."""
        for node in nodes:
            self.assertEqual(node.run()["diverged"], 0)
            names = [e["name"] for e in node.lines("logs", "-n", "1000")]
            self.assertNotIn("trainer.failed", names)
            self.assertNotIn("trainer.odd", names)
            self.assertEqual("apply.slices" in names, node.arguments == SLICES)

    def test_rounds_in_lists_make_the_same_bytes_in_slices_and_at_once(self):
        first = self.folder.node("node1", *SLICES).start()
        text = tiny_text(os.path.join(self.folder.path, "text.txt"))
        token = first.create(self.file("lists.yaml", MANIFEST), "--text", text)["invite"]
        second = self.joins("node2", token)
        third = self.joins("node3", token, SLICES)
        fourth = self.joins("node4", token)
        nodes = [first, second, third, fourth]
        self.counted(nodes)
        wait_for(lambda: first.run()["voters"] >= 3, PATIENCE_S, "three vote")
        follow = self.folder.follow(first)
        wait_for(lambda: any(r["listed"] == 4 for r in follow.all()), PATIENCE_S, "a round lists all four")
        state_roots_agree(nodes, PATIENCE_S)

        third.kill()
        before = first.run()["round"]
        wait_for(lambda: first.run()["round"] >= before + 3, PATIENCE_S, "rounds go on without it")
        third.start()
        late = self.joins("node5", token, SLICES)
        nodes.append(late)
        self.counted([third, late])
        wait_for(lambda: any(r["listed"] == 5 for r in follow.all()), PATIENCE_S, "a round lists all five")
        self.counted(nodes, 1)
        state_roots_agree(nodes, PATIENCE_S)
        self.quiet(nodes)


if __name__ == "__main__":
    systemtest.main()
