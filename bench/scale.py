#!/usr/bin/env python3
"""How a run of dpnode grows with its nodes, as the simulator sees it: one row of a table per number of nodes.

    python3 bench/scale.py --dpsim build/release/dpsim [--nodes 10,32,64,100,320,1000] [--until 300] [--round 10] [--churn 5]

Bytes are what a node puts on its links, per second that it runs. "dead" is from a kill to the first word of it at each other
node, "record" from the first node that has a record on disk to each other one that had the record before it.
"""
import argparse
import json
import os
import subprocess
import sys


def run(dpsim, nodes, args):
    command = [dpsim, "--seed", str(args.seed), "--profile", "scale", "--nodes", str(nodes), "--until", str(args.until),
               "--round", str(args.round), "--churn", str(args.churn), "--json"]
    if args.loss:
        command += ["--loss", str(args.loss)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    line = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if not line:
        sys.exit(f"{' '.join(command)}: nothing was said, status {child.returncode}")
    result = json.loads(line)
    if result["failed"]:
        sys.exit(f"{' '.join(command)}: {result['invariant']}")
    return result, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def row(nodes, result, cpu_s, rss_kib):
    parts = [result[name]["bytes_per_node_s"] for name in ("membership_traffic", "round_traffic", "record_traffic", "object_traffic")]
    dead = result["killed_dead"]
    record = result["record_spread"]
    times = f"{dead['p50_s']:.2f} / {dead['p99_s']:.2f}" if dead["samples"] else "none"
    return (f"| {nodes} | {result['rounds']} | {result['links_mean']:.0f} / {result['links_most']} | "
            + " | ".join(f"{part:,.0f}" for part in parts)
            + f" | {result['busiest_bytes_per_s'] / 1000:,.0f} | {times} | {record['p50_s']:.2f} / {record['p99_s']:.2f} | "
            f"{result['node_seconds'] / cpu_s:,.0f} | {rss_kib / 1024:,.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dpsim", required=True)
    parser.add_argument("--nodes", default="10,32,64,100,320,1000")
    parser.add_argument("--until", type=float, default=300)
    parser.add_argument("--round", type=float, default=10)
    parser.add_argument("--churn", type=float, default=5)
    parser.add_argument("--loss", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    print("| nodes | rounds | links, mean / most | membership, B/s | rounds, B/s | records, B/s | objects, B/s | busiest node, kB/s "
          "| dead, s, p50 / p99 | record, s, p50 / p99 | node-seconds per CPU second | MiB |")
    print("|" + " --- |" * 12)
    for nodes in (int(word) for word in args.nodes.split(",")):
        print(row(nodes, *run(args.dpsim, nodes, args)), flush=True)


if __name__ == "__main__":
    main()
