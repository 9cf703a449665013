#!/usr/bin/env python3
"""The cost of a round of parts for the lines between two sites: real daemons in hosts of tests/lib/netlab.sh (root), with sums of
sites and results that cross to a site once, as rounds of parts have them, and with every node fetching each from its owner (dpnoded --one-level), in
turn. Takes the options of bench_wan.py.

    python3 bench/bench_sites.py --binaries build/release [--nodes 6] [--sites 2] [--wan 100mbit] [--delay 10ms] [--turns 1] [--rounds 5] [--json]

  sums, each   kB that a node's line to other sites carried downwards per round, IP headers and all, the mean of all nodes
  ratio        sums / each
  formula      the same from what must cross: of N nodes at S sites each gets (N - N/S)/N of an update to add up, and besides the results of
               the others, as much again; with sums and results once, both divided by N/S
  taken        sums of other sites that a node had in the part that it added up, per round (of S - 1)
  shared       results that a node had of somebody near to it, per round (of N - N/S from afar all but S - 1), with sums
  between      seconds from one record to the next, the median of the turns, of each"""
import json
import os
import statistics
import sys

from bench_wan import arguments, in_lab, run

WAYS = ("sums", "each")


def main():
    parser = arguments()
    parser.set_defaults(nodes=6, sites=2, delay="10ms", steps=4, rounds=5, mode="diloco", trust="members",
                        model="layers=4,width=192,heads=4,context=64,vocab=512", batch=2)
    parser.add_argument("--turns", type=int, default=1)
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench_sites: hosts of netlab.sh take root")
    if options.sites < 2 or options.nodes % options.sites != 0:
        parser.error("--sites wants at least 2, and as many nodes at each")
    given = options.arguments
    seen = {way: [] for way in WAYS}
    for _ in range(options.turns):
        for way in WAYS:
            options.arguments = f"{given} --one-level" if way == "each" else given
            seen[way].append(in_lab(options, lambda folder: run(options, folder, False)))
    median = lambda way, key: statistics.median(one[key] for one in seen[way])  # noqa: E731
    near = options.nodes // options.sites
    down = {way: median(way, "down_kb") for way in WAYS}
    all_of = {"nodes": options.nodes, "sites": options.sites, "parameters": seen["sums"][0]["parameters"],
              **{f"{way}_kb": down[way] for way in WAYS}, **{f"{way}_s": median(way, "between_s") for way in WAYS},
              "ratio": down["sums"] / down["each"], "formula": 1 / near,
              "taken": median("sums", "sums_taken"), "shared": median("sums", "results_near"),
              "counted": min(one["counted"] for runs in seen.values() for one in runs)}
    if options.json:
        print(json.dumps(all_of))
        return
    print("| nodes | sites | parameters | sums, each, kB | ratio | formula | taken | shared | sums, each, s |\n|" + " --- |" * 9)
    print(f"| {all_of['nodes']} | {all_of['sites']} | {all_of['parameters']} | {', '.join(f'{down[way]:.0f}' for way in WAYS)} | "
          f"{all_of['ratio']:.2f} | {all_of['formula']:.2f} | "
          f"{all_of['taken']:.2f} | {all_of['shared']:.1f} | {', '.join('%.2f' % all_of[way + '_s'] for way in WAYS)} |")


if __name__ == "__main__":
    main()
