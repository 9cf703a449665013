#!/usr/bin/env python3
"""The join secret is rotated while real daemons train: all members stay in all rounds, a member that was away for one rotation returns, a token
from before two rotations gets no answer, a new one works; a member that was away for two rotations reports this, and returns under its old identity
with a new token."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import SystemTest, wait_for  # noqa: E402


class Rotation(SystemTest):
    @staticmethod
    def log(node):
        with open(node.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def rotate(self, first, nodes):
        """Rotates once more, and waits until all of these have the secret of the new epoch."""
        epoch = first.ask("token", "rotate")["epoch"] + 1
        for node in nodes:
            wait_for(lambda node=node: f"join secret of epoch {epoch} has arrived" in self.log(node), 30,
                     f"{node.name} has the secret of epoch {epoch}: {node.tail()}")
        return epoch

    def epoch_of(self, node, token):
        return node.ask("token", "inspect", token)["epoch"]

    def test_members_go_on_through_rotations_and_an_old_token_gets_no_answer(self):
        first, old = self.found("first")
        second = self.joined("second", old)
        away = self.joined("away", old)
        wait_for(lambda: first.run()["members"] == 3, 30, "three members")
        self.fails("E0214", 77, second.ask, "token", "rotate")
        identity = [peer["id"] for peer in away.ask("peers")["peers"] if peer["self"]][0]
        self.assertEqual(self.epoch_of(first, old), 0)

        away.kill()
        before = first.run()["round"]
        self.assertEqual(self.rotate(first, (first, second)), 1)
        third = self.joined("third", old)  # One rotation later it is still valid.
        wait_for(lambda: "join secret of epoch 1 has arrived" in self.log(third), 30, "the newcomer is given the new one")
        away.start()
        wait_for(lambda: "join secret of epoch 1 has arrived" in self.log(away), 60, f"it is back after one: {away.tail()}")
        wait_for(lambda: away.run().get("counted", 0) >= 1, 60, "and is counted")
        wait_for(lambda: first.run()["members"] == 4, 30, "four members")

        away.kill()
        self.assertEqual(self.rotate(first, (first, second, third)), 2)
        liar = self.folder.node("liar").start()
        error = self.fails("E0202", 75, liar.ask, "join", "-", stdin=old)
        self.assertIn("closes every connection", error["why"])
        self.assertIn("rotated twice since this token was made", error["why"])
        self.assertEqual(self.rotate(first, (first, second, third)), 3)
        after = first.run()["round"]
        rows = {row["round"]: row for row in first.lines("rounds", "-n", "1000") if before < row["round"] <= after}
        self.assertEqual(sorted(rows), list(range(before + 1, after + 1)))  # None is missing,
        self.assertEqual({row["kind"] for row in rows.values()}, {"sync"})  # and a majority heard each other all the time.
        self.assertGreaterEqual(min(row["listed"] for row in rows.values()), 1)

        token = first.ask("invite")["token"]
        self.assertEqual(self.epoch_of(first, token), 3)
        fourth = self.joined("fourth", token)
        wait_for(lambda: first.run()["members"] == 5, 30, f"a new token joins: {fourth.tail()}")

        away.start()
        wait_for(lambda: "secret.refused" in self.log(away), 240, f"who was away for two is told: {away.tail()}")
        self.assertIn("dpnode invite", self.log(away))
        self.assertTrue(away.run()["refused"])
        self.assertIn("dpnode invite", away.ask("why")["answer"])
        self.assertFalse(any(peer["linked"] for peer in away.ask("peers")["peers"] if not peer["self"]))
        away.ask("join", "-", stdin=first.ask("invite")["token"])
        wait_for(lambda: away.run()["round"] >= first.run()["round"] - 1, 60, f"it is back: {away.tail()}")
        self.assertFalse(away.run()["refused"])
        self.assertEqual([peer["id"] for peer in away.ask("peers")["peers"] if peer["self"]][0], identity)
        self.assertEqual(first.run()["members"], 5)
        away.kill()  # The new secret persists over a restart.
        away.start()
        now = first.run()["round"]
        wait_for(lambda: away.run().get("round", 0) > now, 60, f"it is there after a restart: {away.tail()}")


if __name__ == "__main__":
    systemtest.main()
