#!/usr/bin/env python3
"""Two versions in one run (S16): dpnoded-next sends the messages of dpnoded, and messages that dpnoded does not know."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from small_run import state_roots_agree  # noqa: E402
from systemtest import BINARIES, SystemTest, wait_for  # noqa: E402

PATIENCE_S = 40


class Versions(SystemTest):
    def upgrade(self, node):
        """The node runs the next version from its next start on."""
        node.program = "dpnoded-next"
        return node

    def counted(self, node):
        begin = node.run().get("counted", 0)
        wait_for(lambda: node.run().get("counted", 0) > begin + 2, PATIENCE_S, f"{node.name} is counted in rounds")

    def dropped(self, node):
        return node.run()["rejected"]

    def test_55_this_version_and_the_next_train_together(self):
        old, token = self.found()
        new = self.upgrade(self.folder.node("node2")).start()
        new.ask("join", "-", stdin=token)
        third = self.joined("node3", token)
        for node in (old, new, third):
            self.counted(node)
        wait_for(lambda: self.dropped(old) > 3 and self.dropped(third) > 3, PATIENCE_S, "unknown words are counted")
        names = {p["name"] for p in old.ask("peers")["peers"]}
        self.assertIn("node2", names) # the beginning of a longer hello is read
        state_roots_agree([old, new, third], PATIENCE_S)
        logged = old.lines("logs", "-n", "500")
        self.assertFalse([e for e in logged if "cut" in e.get("text", "")])
        told = [e["text"] for e in logged if "(rules 7, here 6)" in e.get("text", "")]
        self.assertEqual(told, ["node2 runs a newer version (rules 7, here 6): this node may refuse updates that count for the "
                                "others; upgrade this node"])

    def test_55_a_run_is_upgraded_one_node_at_a_time(self):
        first, token = self.found()
        second = self.joined("node2", token)
        for node in (first, second):
            self.counted(node)
        for node in (second, first):
            before = node.run()["round"]
            self.assertEqual(node.end(), 0)
            self.upgrade(node).start()
            self.counted(node)
            self.assertGreater(node.run()["round"], before)
        state_roots_agree([first, second], PATIENCE_S)


if __name__ == "__main__":
    if not os.access(os.path.join(BINARIES, "dpnoded-next"), os.X_OK):
        print(f"no dpnoded-next in {BINARIES}: skipped")
        sys.exit(77)
    systemtest.main()
