#!/usr/bin/env python3
"""Real daemons, one of which has a harmful trainer (evil_trainer): its effect on the model.

usage: tests/attack/trainers.py [--binaries FOLDER] [--nodes N] [--rounds N] [--from ROUND] [--trust open|members] [KIND...]

For each kind a run of N daemons; the trainer of the last one is hostile from that round on. A row gives the held-out loss of the first node when
the attack begins and so many rounds later, the number of these rounds that counted hostile updates, and whether their author is still a member; the
others must hold the same state. Its token allows it to train but not to vote. Without a kind: all of them, honest first. Checks no bounds: exit
status 1 only if a run fails."""

import argparse
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

from daemons import Folder, place_for_tests, wait_for  # noqa: E402 (the path comes first)
from small_run import state_roots_agree, write_inputs  # noqa: E402

KINDS = ["honest", "flip1", "flip10", "flip10-step", "noise", "zero", "replay", "drift"]
ROUND_S = 0.5
PATIENCE_S = 300
EVAL_TOKENS = 4000


def evil_worker(folder, kind, first_round):
    """Path of a `worker` for a daemon."""
    path = os.path.join(folder.path, "evil")
    with open(path, "w", encoding="ascii") as file:
        file.write(f"#!/bin/sh\nexec {folder.binaries}/evil_trainer {kind}@{first_round} {folder.binaries}/dpnode-worker \"$@\"\n")
    os.chmod(path, 0o755)
    return path


def start(folder, args, kind):
    manifest, text = write_inputs(folder, round_s=ROUND_S, gossip_s=0.5, voters_max=7, steps_max=40)
    with open(manifest, "a", encoding="ascii") as file:
        file.write(f"members: {{trust: {args.trust}}}\n")
    worker = evil_worker(folder, kind, args.first)
    nodes = [folder.node(f"n{i + 1}", *(["--worker", worker] if i + 1 == args.nodes else [])).start()
             for i in range(args.nodes)]
    created = nodes[0].create(manifest, "--text", text, "--name", "n1")
    for node in nodes[1:-1]:
        node.ask("join", "-", "--name", node.name, stdin=created["invite"])
    token = nodes[0].ask("invite")["token"] # Its holder may train and not vote.
    nodes[-1].ask("join", "-", "--name", nodes[-1].name, stdin=token)
    return nodes


def loss_at(nodes, number):
    """The loss of the first node once that round is decided, and the number of counted updates of the last node until then."""
    wait_for(lambda: nodes[0].run()["round"] >= number, PATIENCE_S, f"round {number} comes")
    return nodes[0].ask("eval", "-n", str(EVAL_TOKENS))["loss"], nodes[-1].run()["counted"]


def attack(binaries, args, kind):
    with Folder(binaries, place=place_for_tests()) as folder:
        nodes = start(folder, args, kind)
        wait_for(lambda: nodes[-1].run().get("counted", 0) > 0, PATIENCE_S, "the evil one is counted while it is honest")
        before, counted = loss_at(nodes, args.first)
        after, counted_after = loss_at(nodes, args.first + args.rounds)
        state_roots_agree(nodes[:-1])
        place = "member" if nodes[0].run()["members"] == args.nodes else "put out"
        print(f"{kind:12} {before:8.3f} -> {after:8.3f}   {counted_after - counted:4} of {args.rounds}   {place}", flush=True)
        for node in nodes:
            node.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(HERE, "..", "..", "build", "release"))
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--from", type=int, default=20, dest="first")
    parser.add_argument("--trust", choices=["open", "members"], default="open")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    args = parser.parse_args()
    unknown = [kind for kind in args.kinds if kind not in KINDS]
    if unknown:
        parser.error(f"{unknown[0]}: no such kind; one of {', '.join(KINDS)}")
    print(f"{'trainer':12} {'loss':>20}   rounds in which it was counted")
    for kind in args.kinds or KINDS:
        attack(os.path.abspath(args.binaries), args, kind)
    return 0


if __name__ == "__main__":
    sys.exit(main())
