#!/usr/bin/env python3
"""What a round costs that counts everybody, as the simulator sees it: one row of a table per number of contributors.

    python3 bench/contributors.py --dpsim build/release/dpsim [--nodes 32,64,128,256,512,1000] [--round 20] [--until 62] [--json]

All members stand in the chain from the start (dpsim --enrolled). Bytes are what a node puts on its links, by kind of message, for each
round that was decided; "by the format" is the whole form of a record of so many contributions with seven voters, which every node
gets once. "beyond training" is from one record to the next, less the time that trainers have for their steps. CPU time is the simulator's.
"""
import argparse
import json
import os
import subprocess
import sys

HEAD = 115 + 2 + 8 + 32 + 32 + 4 + 8 + 16 + 16 + 1 + 7 * 65 + 2 + 1  # gossip/record.h, without late members and a config part
ROW, LIST, HASH = 208, 32, 32
KINDS = ("membership", "round", "record", "object")


def by_the_format(listed):
    lists = -(-listed // LIST)
    return HEAD + lists * (HASH + 2) + listed * ROW


def run(nodes, args):
    command = [args.dpsim, "--seed", str(args.seed), "--profile", "scale", "--enrolled", "--nodes", str(nodes), "--contributors", "1024",
               "--until", str(args.until), "--round", str(args.round), "--json"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    line = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if not line:
        sys.exit(f"{' '.join(command)}: nothing was said, status {child.returncode}")
    result = json.loads(line)
    if result["failed"] or result["rounds"] == 0:
        sys.exit(f"{' '.join(command)}: {result['invariant'] or 'no round was decided'}")
    return costs(nodes, result, usage, args)


def costs(nodes, result, usage, args):
    rounds = result["rounds"]
    share = result["node_seconds"] / nodes / rounds  # of seconds, for each node and round
    listed = result["listed"] / rounds
    cpu_s = usage.ru_utime + usage.ru_stime
    return {"nodes": nodes, "rounds": rounds, "listed": listed, "crashes": result["crashes"],
            "bytes": {kind: result[f"{kind}_traffic"]["bytes_per_node_s"] * share for kind in KINDS},
            "messages": {kind: result[f"{kind}_traffic"]["messages_per_node_s"] * share for kind in KINDS},
            "by_the_format": by_the_format(round(listed)),
            "beyond_s": result["round_s"] - args.round if rounds > 1 else None,
            "record_p50_s": result["record_spread"]["p50_s"], "record_p99_s": result["record_spread"]["p99_s"],
            "cpu_ms": cpu_s * 1000 / nodes / rounds, "mib_per_node": usage.ru_maxrss / 1024 / nodes}


def row(cost):
    sent = cost["bytes"]
    beyond = "" if cost["beyond_s"] is None else f"{cost['beyond_s']:.1f}"
    return (f"| {cost['nodes']} | {cost['rounds']} | {cost['listed']:.0f} | {sent['record'] / 1000:,.1f} "
            f"| {cost['by_the_format'] / 1000:,.1f} | {sent['round'] / 1000:,.1f} | {sent['object'] / 1000:,.1f} "
            f"| {cost['messages']['object'] / cost['listed']:.1f} | {sent['membership'] / 1000:,.0f} | {beyond} "
            f"| {cost['record_p50_s']:.2f} / {cost['record_p99_s']:.2f} | {cost['cpu_ms']:,.1f} | {cost['mib_per_node']:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dpsim", required=True)
    parser.add_argument("--nodes", default="32,64,128,256,512,1000")
    parser.add_argument("--until", type=float, default=62)
    parser.add_argument("--round", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if not args.json:
        print("| nodes | rounds | contributions each | records, kB | by the format, kB | READY, HAVE, votes, kB | asking for objects, kB "
              "| messages for each object | membership, kB | beyond training, s | record, s, p50 / p99 | CPU ms | MiB |")
        print("|" + " --- |" * 13)
    for nodes in (int(word) for word in args.nodes.split(",")):
        cost = run(nodes, args)
        print(json.dumps(cost) if args.json else row(cost), flush=True)


if __name__ == "__main__":
    main()
