#!/usr/bin/env python3
"""The cost of a round that counts all members, as the simulator sees it: one row of a table per number of contributors.

    python3 bench/contributors.py --dpsim build/release/dpsim [--nodes 32,64,128,256,512,1000] [--round 20] [--until 62] [--churn 0] [--json]

All members are in the chain from the start (dpsim --enrolled). Bytes are those that a node sends, by kind of message, for each decided round; "by
the format" is the whole form of a record of so many contributions with seven voters, which every node
gets once. "beyond training" is from one record to the next, less the time that trainers have for their steps. CPU time is the simulator's.
"""
import argparse
import json

import simulated

HEAD = 115 + 2 + 8 + 32 + 32 + 4 + 8 + 16 + 16 + 1 + 7 * 65 + 2 + 1  # gossip/record/record.h, without late members and a config part
ROW, LIST, HASH = 208, 32, 32
KINDS = ("membership", "round", "record", "object")


def by_the_format(listed):
    lists = -(-listed // LIST)
    return HEAD + lists * (HASH + 2) + listed * ROW


def costs(nodes, args):
    result, cpu_s, rss_kib = simulated.run(args, nodes, ["--enrolled", "--contributors", "1024", "--churn", str(args.churn)])
    rounds = result["rounds"]
    share = result["node_seconds"] / nodes / rounds  # of seconds, for each node and round
    listed = result["listed"] / rounds
    return {"nodes": nodes, "rounds": rounds, "listed": listed, "crashes": result["crashes"],
            "bytes": {kind: result[f"{kind}_traffic"]["bytes_per_node_s"] * share for kind in KINDS},
            "messages": {kind: result[f"{kind}_traffic"]["messages_per_node_s"] * share for kind in KINDS},
            "by_the_format": by_the_format(round(listed)),
            "beyond_s": result["round_s"] - args.round if rounds > 1 else None,
            "record_p50_s": result["record_spread"]["p50_s"], "record_p99_s": result["record_spread"]["p99_s"],
            "cpu_ms": cpu_s * 1000 / nodes / rounds, "mib_per_node": rss_kib / 1024 / nodes}


def row(cost):
    sent = cost["bytes"]
    beyond = "" if cost["beyond_s"] is None else f"{cost['beyond_s']:.1f}"
    return (f"| {cost['nodes']} | {cost['rounds']} | {cost['listed']:.0f} | {sent['record'] / 1000:,.1f} "
            f"| {cost['by_the_format'] / 1000:,.1f} | {sent['round'] / 1000:,.1f} | {sent['object'] / 1000:,.1f} "
            f"| {cost['messages']['object'] / cost['listed']:.1f} | {sent['membership'] / 1000:,.0f} | {beyond} "
            f"| {cost['record_p50_s']:.2f} / {cost['record_p99_s']:.2f} | {cost['cpu_ms']:,.1f} | {cost['mib_per_node']:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    simulated.options(parser, "32,64,128,256,512,1000", 62, 20)
    parser.add_argument("--churn", type=float, default=0, help="percent of the nodes per minute that come or go")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if not args.json:
        simulated.head("nodes", "rounds", "contributions each", "records, kB", "by the format, kB", "READY, HAVE, votes, kB",
                       "asking for objects, kB", "messages for each object", "membership, kB", "beyond training, s",
                       "record, s, p50 / p99", "CPU ms", "MiB per node")
    for nodes in simulated.numbers(args.nodes):
        cost = costs(nodes, args)
        print(json.dumps(cost) if args.json else row(cost), flush=True)


if __name__ == "__main__":
    main()
