#!/usr/bin/env python3
"""A leaked token is taken back: within a round it admits no node, and the members that joined by it are listed, and removed on request. The
attacker holds the token, or was a member that may invite; it gets only a connection that is closed, or a refusal, and no place in the roster."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import SystemTest, wait_for  # noqa: E402

MANIFEST = """name: tiny
model: {layers: 1, width: 32, heads: 2, context: 32, vocab: 300}
train: {batch: 2, lr: 1e-2, warmup_tokens: 100, total_tokens: 10000000}
round: {time: 0.5, steps_max: 20}
gossip: {time: 0.5}
vote: {uptime: 0, voters_max: 3}
"""


class Tokens(SystemTest):
    @staticmethod
    def listed(node):
        """The tokens of token ls, by id."""
        return {token["token"]: token for token in node.ask("token", "ls")["tokens"]}

    def founder(self):
        """The node that holds the root key."""
        first = self.folder.node("node1").start()
        text = systemtest.tiny_text(os.path.join(self.folder.path, "text.txt"))
        first.create(self.file("run.yaml", MANIFEST), "--text", text)
        wait_for(lambda: first.run().get("round", 0) >= 1, 30, "it trains")
        return first

    def id_of(self, token):
        return self.folder.nodes[0].ask("token", "inspect", token)["token"]

    def test_a_revoked_token_admits_nobody_and_its_members_go_when_that_is_said(self):
        first = self.founder()
        made = first.ask("invite", "--uses", "0")
        leaked, token = made["token"], made["id"]
        self.assertEqual(self.id_of(leaked), token)
        listed = self.listed(first)[token]
        self.assertEqual((listed["state"], listed["issued"], listed["uses"], listed["roles"], listed["admitted"]),
                         ("valid", True, 0, ["train"], []))
        second = self.joined("node2", leaked)
        third = self.joined("node3", first.ask("invite")["token"])
        wait_for(lambda: first.run()["members"] == 3, 30, "three members")
        self.assertEqual([who["name"] for who in self.listed(first)[token]["admitted"]], ["node2"])
        others = self.listed(third)[token] # A node that did not make the token knows it by its members.
        self.assertEqual((others["state"], others["issued"], others["members_count"]), ("made elsewhere", False, 1))

        self.fails("E0213", 77, second.ask, "token", "revoke", token)
        self.fails("E0212", 1, first.ask, "token", "revoke", "ffffffff")
        self.fails("E0212", 1, first.ask, "token", "revoke", token[:3])
        self.fails("E0001", 64, first.ask, "token", "revoke")
        told = first.ask("token", "revoke", token[:8])
        self.assertEqual((told["token"]["token"], told["members"], told["token"]["members_count"]), (token, False, 1))
        wait_for(lambda: all(self.listed(node)[token]["state"] == "revoked" for node in (first, second, third)), 20,
                 "the chain says so")
        liar = self.folder.node("liar").start()
        began = time.monotonic()
        self.fails("E0209", 77, liar.ask, "join", "-", stdin=leaked)
        self.assertLess(time.monotonic() - began, 30)
        self.assertEqual(first.run()["members"], 3)
        self.assertEqual([peer["name"] for peer in first.ask("peers")["peers"] if peer["name"] == "liar"], [])

        told = first.ask("token", "revoke", token, "--members")
        self.assertEqual([who["name"] for who in told["token"]["admitted"]], ["node2"])
        wait_for(lambda: second.ask("status")["state"] == "left", 20, "it is put out")
        wait_for(lambda: first.run()["members"] == 2 and third.run()["members"] == 2, 20, "the chain says so")
        self.assertEqual([who.get("gone") for who in self.listed(first)[token]["admitted"]], ["revoked"])
        before = first.run()["round"]
        wait_for(lambda: first.run()["round"] >= before + 2, 30, "rounds without it")
        first.kill() # Its tokens, and the revocations of the chain, are there after a restart.
        first.start()
        wait_for(lambda: first.run().get("round", 0) > before, 30, "it is back")
        self.assertEqual(self.listed(first)[token]["state"], "revoked")
        self.assertEqual(self.listed(first)[token]["issued"], True)

    def test_tokens_of_a_member_that_is_put_out_admit_nobody(self):
        first = self.founder()
        # Its tokens name the founder's port, so that a joiner meets the founder.
        hostile = self.folder.node("hostile", "--advertise", f"127.0.0.1:{first.port}").start()
        hostile.ask("join", "-", stdin=first.ask("invite", "--role", "invite")["token"])
        wait_for(lambda: first.run()["members"] == 2, 30, "two members")
        made = hostile.ask("invite", "--uses", "0")
        friend = self.joined("friend", made["token"])
        wait_for(lambda: first.run()["members"] == 3, 30, "three members")
        self.assertEqual([who["name"] for who in self.listed(first)[made["id"]]["admitted"]], ["friend"])
        above = self.id_of_member(first, "hostile")
        self.assertEqual([(who["name"], who.get("through", False)) for who in self.listed(first)[above]["admitted"]],
                         [("hostile", False), ("friend", True)])
        first.ask("revoke", "hostile", "--yes")
        wait_for(lambda: first.run()["members"] == 2, 20, "it is out")
        wait_for(lambda: friend.run()["members"] == 2, 20, "it is out for all")
        liar = self.folder.node("liar").start()
        error = self.fails("E0209", 77, liar.ask, "join", "-", stdin=made["token"])
        self.assertIn("is no longer a member", error["why"])
        self.assertEqual(first.run()["members"], 2)

    def id_of_member(self, node, name):
        return next(token for token, entry in self.listed(node).items()
                    if any(who["name"] == name and "through" not in who for who in entry["admitted"]))


if __name__ == "__main__":
    systemtest.main()
