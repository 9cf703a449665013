#!/usr/bin/env python3
"""The effect of a share that closes rounds at once (round.close_at) on a run of unlike trainers, as the simulator sees it: one row of a
table per number of nodes, trainers and share; means over seeds.

    python3 bench/close_at.py --dpsim build/release/dpsim [--nodes 10,20] [--close-at 0,0.9,0.8] [--unlike 0,1,16,64] [--seeds 5] [--json]

unlike 0: steps of 0.2 to 1.1 s, drawn, and nothing else takes long. Else the fastest make 30 steps in the time of a round, others a half
or a quarter of that, encoding and applying take 0.2 to 1 of a step, and the last node is so many times slower than the fastest.
close_at 0 is the rule without a share. Tokens are those that decided rounds commit; an update that a round left out counts with the next publication that is listed.
"""
import argparse
import json

import simulated

FIGURES = ("rounds_per_hour", "listed", "tokens_per_hour", "round_s", "object_bytes")


def figures(args, nodes, unlike, share, seed):
    more = (["--unlike", str(unlike)] if unlike else []) + (["--close-at", str(share)] if share else [])
    result, _, _ = simulated.run(args, nodes, more, seed)
    if result["rounds"] < 2:
        raise SystemExit(f"{result['rounds']} rounds in {args.until} s are too few: give more by --until")
    return {"rounds_per_hour": 3600 / result["round_s"], "listed": result["listed"] / result["rounds"],
            "tokens_per_hour": 3600 / result["round_s"] * result["tokens"] / result["rounds"], "round_s": result["round_s"],
            "object_bytes": result["object_traffic"]["bytes_per_node_s"] * result["round_s"]}


def means(args, nodes, unlike, share):
    seeds = [figures(args, nodes, unlike, share, seed) for seed in range(args.seed, args.seed + args.seeds)]
    cost = {name: sum(one[name] for one in seeds) / len(seeds) for name in FIGURES}
    span = min(one["rounds_per_hour"] for one in seeds), max(one["rounds_per_hour"] for one in seeds)
    return {"nodes": nodes, "unlike": unlike, "close_at": share, "seeds": len(seeds), "rounds_per_hour_least": span[0],
            "rounds_per_hour_most": span[1], **cost}


def row(cost, without):
    more = {name: f"{100 * (cost[name] / without[name] - 1):+.1f} %" for name in ("rounds_per_hour", "tokens_per_hour")}
    return (f"| {cost['nodes']} | {cost['unlike'] or 'drawn'} | {cost['close_at'] or 'none'} | {cost['rounds_per_hour']:.0f} "
            f"({cost['rounds_per_hour_least']:.0f} to {cost['rounds_per_hour_most']:.0f}) | {more['rounds_per_hour']} | {cost['listed']:.2f} "
            f"| {cost['tokens_per_hour'] / 1e6:.2f} | {more['tokens_per_hour']} | {cost['object_bytes'] / 1e3:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    simulated.options(parser, "10,20", 1800, 10)
    parser.add_argument("--close-at", default="0,0.9,0.8", help="0 first: what the others are compared with")
    parser.add_argument("--unlike", default="0,1,16,64")
    parser.add_argument("--seeds", type=int, default=5, help="so many from --seed on")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if not args.json:
        simulated.head("nodes", "the last slower by", "close_at", "rounds an hour", "beside none", "contributions each", "million tokens an hour",
                       "beside none", "objects, kB a node and round")
    for nodes in simulated.numbers(args.nodes):
        for unlike in simulated.numbers(args.unlike):
            without = None
            for share in (float(word) for word in args.close_at.split(",")):
                cost = means(args, nodes, unlike, share)
                without = without or cost
                print(json.dumps(cost) if args.json else row(cost, without), flush=True)


if __name__ == "__main__":
    main()
