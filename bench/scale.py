#!/usr/bin/env python3
"""How a run of dpnode grows with its nodes, as the simulator sees it: one row of a table per number of nodes.

    python3 bench/scale.py --dpsim build/release/dpsim [--nodes 10,32,64,100,320,1000] [--until 140] [--round 30] [--changes 10]

All members are in the chain from the start, and --changes of them die or come back per minute, independent of their number. Bytes are those that a
node sends per second of its life, without the first seconds in which all start. "dead" is from a kill until each other node knows of it, "record"
from the first node that has a record on disk to each other one that had the record
before it.
"""
import argparse

import simulated


def run(nodes, args):
    more = ["--enrolled", "--churn", f"{min(100 * args.changes / nodes, 1000):.1f}"]
    return simulated.run(args, nodes, more + (["--loss", str(args.loss)] if args.loss else []))


def row(nodes, result, cpu_s, rss_kib):
    parts = [result[name]["bytes_per_node_s"] for name in ("membership_traffic", "round_traffic", "record_traffic", "object_traffic")]
    dead = result["killed_dead"]
    record = result["record_spread"]
    times = f"{dead['p50_s']:.2f} / {dead['p99_s']:.2f}" if dead["samples"] else "none"
    return (f"| {nodes} | {result['rounds']} | {result['links_mean']:.0f} / {result['links_most']} | "
            + " | ".join(f"{part:,.0f}" for part in parts)
            + f" | {sum(parts):,.0f} | {result['busiest_bytes_per_s'] / 1000:,.0f} | {times} | {record['p50_s']:.2f} / {record['p99_s']:.2f} | "
            f"{result['node_seconds'] / cpu_s:,.0f} | {rss_kib / 1024:,.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    simulated.options(parser, "10,32,64,100,320,1000", 140, 30)
    parser.add_argument("--changes", type=float, default=10)
    parser.add_argument("--loss", type=float, default=0)
    args = parser.parse_args()
    simulated.head("nodes", "rounds", "links, mean / most", "membership, B/s", "rounds, B/s", "records, B/s", "objects, B/s",
                   "all, B/s", "busiest node, kB/s", "dead, s, p50 / p99", "record, s, p50 / p99", "node-seconds per CPU second", "MiB")
    for nodes in simulated.numbers(args.nodes):
        print(row(nodes, *run(nodes, args)), flush=True)


if __name__ == "__main__":
    main()
