#!/usr/bin/env python3
"""Updates have fewer elements while lines are slow: two nodes whose link is too slow for their updates. Both take the same density from the chain,
also after a kill, and both show it."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from small_run import state_roots_agree  # noqa: E402
from systemtest import TINY, CliError, SystemTest, tiny_text, wait_for  # noqa: E402
from web import Web  # noqa: E402

RATE = 20_000  # bytes per second of each connection: an update of 1 element in 32 takes half a round
SPAN = "round: {time: 1, steps_max: 1000000}"
MANIFEST = TINY.replace("layers: 1, width: 32", "layers: 2, width: 128").replace("round: {time: 0.5, steps_max: 40}", SPAN)


class Density(SystemTest):
    def test_a_thin_line_makes_updates_thinner_everywhere(self):
        web = Web(self.folder, 2)
        self.addCleanup(web.end)
        first, second = web.nodes
        text = tiny_text(os.path.join(self.folder.path, "text.txt"))
        token = first.start().create(self.file("span.yaml", MANIFEST), "--text", text)["invite"]
        second.start().ask("join", "-", stdin=token)
        follow = self.folder.follow(first)

        def of_both(least):
            return [r for r in follow.all() if r["listed"] == 2 and r["keep"] >= least]
        wait_for(lambda: len(of_both(32)) >= 2, 90, "rounds that count both")
        wide = of_both(32)[-1]
        web.tell(f"set * rate={RATE}")
        wait_for(lambda: len(of_both(2 * wide["keep"])) >= 2, 120, "rounds of thinner updates that count both")
        thin = of_both(2 * wide["keep"])[-1]
        self.assertLess(thin["bytes"], 0.7 * wide["bytes"])
        turn = min(r["round"] for r in follow.all() if r["keep"] > wide["keep"])
        before = [r["lines"] for r in follow.all() if turn - 3 <= r["round"] < turn]
        self.assertEqual(before, ["slow"] * 3)
        told = [e["text"] for e in first.lines("logs", "--last", "200") if e["name"] == "round.density"]
        self.assertTrue(told and "lines were slow" in told[0], told)
        for r in of_both(32):  # Reported for each round: the part of this node's update that the codec dropped.
            if "update_error" in r:
                self.assertTrue(0 < r["update_error"] < 1, r)
        self.assertTrue([r for r in of_both(32) if "update_error" in r])

        second.kill()
        second.start()
        counted = second.run().get("counted", 0)
        wait_for(lambda: second.run().get("counted", 0) > counted, 90, "it is counted again")
        mine = {r["round"]: (r["keep"], r["lines"]) for r in second.lines("rounds", "--last", "50")}
        theirs = {r["round"]: (r["keep"], r["lines"]) for r in first.lines("rounds", "--last", "50")}
        common = mine.keys() & theirs.keys()
        self.assertGreater(len(common), 4)
        self.assertEqual({r: mine[r] for r in common}, {r: theirs[r] for r in common})
        self.assertIn(first.run()["keep"], (64, 128))
        state_roots_agree([first, second])
        for node in (first, second):
            self.assertEqual((node.run()["diverged"], node.run()["rejected"]), (0, 0))

    def test_a_span_is_no_setting(self):
        node = self.folder.node("node1").start()
        wrong = MANIFEST.replace("steps_max: 1000000", "codec_keep: 32, codec_keep_most: 128")
        with self.assertRaises(CliError) as refused:
            node.ask("run", "validate", self.file("wrong.yaml", wrong))
        self.assertIn("round.codec_keep_most is gone", str(refused.exception))


if __name__ == "__main__":
    systemtest.main()
