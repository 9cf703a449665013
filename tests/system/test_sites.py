#!/usr/bin/env python3
"""Rounds of parts with two nodes at each of two sites: near nodes detect each other, and fetch the results of far owners from each other. One node
is killed, and the one near to it continues alone; the remaining nodes end with one state."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from small_run import state_roots_agree  # noqa: E402
from systemtest import TINY, SystemTest, tiny_text, wait_for  # noqa: E402
from web import Web  # noqa: E402

NODES = 4
MANIFEST = TINY.replace("layers: 1, width: 32", "layers: 2, width: 128").replace(
    "round: {time: 0.5, steps_max: 40}", "round: {mode: diloco, time: 1}") + "members: {trust: members}\n"


class Sites(SystemTest):
    def test_results_from_afar_come_to_a_place_once(self):
        web = Web(self.folder, NODES)
        self.addCleanup(web.end)
        for a in range(1, NODES + 1):  # 1 and 3 are at one site, 2 and 4 at the other.
            for b in range(1, NODES + 1):
                if a % 2 != b % 2:
                    web.tell(f"set n{b} from n{a} delay=20ms")
        text = tiny_text(os.path.join(self.folder.path, "text.txt"))
        first = web.nodes[0].start()
        token = first.create(self.file("sites.yaml", MANIFEST), "--text", text)["invite"]
        for node in web.nodes[1:]:
            node.start().ask("join", "-", stdin=token)
        follow = self.folder.follow(first)
        seen = [0] * NODES

        def shared():
            for i, node in enumerate(web.nodes):
                run = node.run()
                seen[i] = max(seen[i], run.get("results_near", 0))
                self.assertLessEqual(run.get("near", 0), 1)  # A node 40 ms away is never near.
            return min(seen[0] + seen[2], seen[1] + seen[3]) >= 2
        # Near means a lowest round trip of 2.1 ms: on a busy machine it takes a while until one is so short.
        wait_for(shared, 180, "at each place somebody has had results of the one near to it")
        last = web.nodes[3]
        counted = first.run()["counted"]
        last.kill()
        wait_for(lambda: first.run()["counted"] >= counted + 4, 120, "the others go on")
        whole = [r for r in follow.all() if r["listed"] == NODES - 1 and r["parts_empty"] == 0]
        self.assertTrue(whole)
        state_roots_agree(web.nodes[:3])
        self.assertEqual([node.run()["diverged"] for node in web.nodes[:3]], [0] * 3)


    def test_sums_of_a_place_travel_and_its_death_stops_nothing(self):
        """As above, and the publications of one site reach the other as a sum; a collector is killed, and returns."""
        web = Web(self.folder, NODES)
        self.addCleanup(web.end)
        for a in range(1, NODES + 1):
            for b in range(1, NODES + 1):
                if a % 2 != b % 2:
                    web.tell(f"set n{b} from n{a} delay=20ms")
        text = tiny_text(os.path.join(self.folder.path, "text.txt"))
        first = web.nodes[0].start()
        token = first.create(self.file("sums.yaml", MANIFEST),
                          "--text", text)["invite"]
        for node in web.nodes[1:]:
            node.start().ask("join", "-", stdin=token)
        follow = self.folder.follow(first)

        def summed(key, nodes):
            return sum(node.run().get(key, 0) for node in nodes)
        places = (web.nodes[0::2], web.nodes[1::2])
        wait_for(lambda: all(summed(key, place) >= 3 for key in ("sums_made", "sums_taken") for place in places), 180,
                 "each place adds up for the other, and takes what that has added up")
        last = max(places[1], key=lambda node: node.run().get("sums_made", 0))
        counted = first.run()["counted"]
        last.kill()
        left = [node for node in web.nodes if node is not last]
        wait_for(lambda: first.run()["counted"] >= counted + 4, 120, "the others go on")
        whole = [r for r in follow.all() if r["listed"] == NODES - 1 and r["parts_empty"] == 0]
        self.assertTrue(whole)
        last.start()
        taken = summed("sums_taken", places[0])
        wait_for(lambda: summed("sums_taken", places[0]) >= taken + 2, 120, "its place adds up again")
        state_roots_agree(web.nodes)
        self.assertEqual([node.run()["diverged"] for node in left], [0] * (NODES - 1))


if __name__ == "__main__":
    systemtest.main()
