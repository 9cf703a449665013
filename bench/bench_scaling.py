#!/usr/bin/env python3
"""The cost of a run for its nodes as it grows: bytes, waiting and efficiency of 1 to 16 real daemons on this machine.

    python3 bench/bench_scaling.py --binaries build/release [--nodes 1,2,4,8,16] [--rounds 8] [--round 3] [--json]

One row per number of nodes, over so many rounds after the first three:
  sent       bytes per parameter and round that a node puts on its links, everything counted, the mean of all nodes
  copies     what sending an update to each peer once takes, the same unit: (nodes - 1) updates
  other      the rest, kB/s per node: heartbeats, membership, votes, records; does not grow with the model
  waiting    share of its training time over those rounds in which a trainer did not compute: publishing, applying, hashing, waiting; the mean
             of the nodes whose trainer was up at the end
  counted    share of the publications of nodes that were alive that their round counted
  efficiency computing * counted: what of the nodes' time ends in the model
All nodes share this machine's processors, so a step takes longer the more there are; waiting is a share, and the longer
steps make it smaller. --round in seconds keeps rounds long beside what is done once in each.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile

from trainer_time import mean_of, share

WARM = 3  # rounds until everybody has joined
MANIFEST = """name: scaling
text: {text}
model: {{layers: 2, width: 128, heads: 4, context: 128, vocab: 512}}
train: {{batch: 16, warmup_tokens: 4000, total_tokens: 100000000}}
round: {{time: {round}, mode: {mode}}}
vote: {{uptime: 0}}
"""
WORDS = ("light", "and", "darkness", "were", "over", "the", "deep", "waters", "said", "let", "there", "be", "evening", "morning")


def write_text(path, n):
    """Made up, and the same every time: what is learnt does not matter here."""
    state = 1
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(n):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            file.write(WORDS[(state >> 40) % len(WORDS)] + " ")


def status(binaries, socket):
    done = subprocess.run([os.path.join(binaries, "dpnode"), "status", "--json", "--socket", socket], capture_output=True, text=True,
                          check=False, timeout=60)
    return json.loads(done.stdout)["run"] if done.returncode == 0 else None


def all_of(binaries, sockets):
    """The run as every node tells it; None while one does not answer or has not joined."""
    told = [status(binaries, socket) for socket in sockets]
    return told if all(one is not None and one.get("elements", 0) > 0 for one in told) else None


def row(nodes, before, after, rounds):
    n = after[0]["elements"]
    passed = [b["round"] - a["round"] for a, b in zip(before, after)]
    sent = sum((b["bytes_sent"] - a["bytes_sent"]) / max(k, 1) for a, b, k in zip(before, after, passed)) / nodes / n
    blob = sum(one["bytes"] for one in rounds) / sum(one["listed"] for one in rounds) / n
    computing = mean_of(share(a, b) for a, b in zip(before, after)) or 0
    counted = sum((b["counted"] - a["counted"]) / max(k, 1) for a, b, k in zip(before, after, passed)) / nodes
    round_s = sum(one.get("duration_ms", 0) for one in rounds) / len(rounds) / 1000
    copies = (nodes - 1) * blob
    return {"nodes": nodes, "rounds": len(rounds), "round_s": round_s, "parameters": n, "sent": sent, "copies": copies,
            "other_kb_s": (sent - copies) * n / round_s / 1000, "waiting": 1 - computing, "counted": counted,
            "efficiency": computing * min(counted, 1.0)}


def measure(args, nodes, folder):
    text = os.path.join(folder, "text")
    file = os.path.join(folder, "run.yaml")
    write_text(text, 60000)
    with open(file, "w", encoding="utf-8") as out:
        out.write(MANIFEST.format(text=text, round=args.round, mode=args.mode))
    child = subprocess.Popen([os.path.join(args.binaries, "dpnode"), "swarm", "-n", str(nodes), "--json", "--dir",
                              os.path.join(folder, "s"), file], stdout=subprocess.PIPE, text=True)
    sockets, rounds, before, joined = [], [], None, None
    try:
        for line in child.stdout:
            told = json.loads(line)
            if "socket" in told:
                sockets.append(told["socket"])
            if "listed" not in told or told.get("kind") != "sync":
                continue
            if before is None:
                joined = told["round"] if joined is None and told["listed"] == nodes else joined
                if joined is not None and told["round"] >= joined + WARM:
                    before = all_of(args.binaries, sockets)
                continue
            rounds.append(told)
            if len(rounds) == args.rounds:
                break
        after = all_of(args.binaries, sockets) if len(rounds) == args.rounds else None
    finally:
        child.send_signal(signal.SIGINT)
        child.wait(timeout=120)
    if before is None or after is None:
        sys.exit(f"bench_scaling: {nodes} nodes did not get through their rounds")
    return row(nodes, before, after, rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default="build/release")
    parser.add_argument("--nodes", default="1,2,4,8,16")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--round", type=float, default=3)
    parser.add_argument("--mode", default="sparse")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if not args.json:
        print("| nodes | round, s | sent, B/param | copies | other, kB/s | waiting | counted | efficiency |\n|" + " --- |" * 8)
    for nodes in (int(word) for word in args.nodes.split(",")):
        with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
            one = measure(args, nodes, folder)
        if args.json:
            print(json.dumps(one), flush=True)
            continue
        print(f"| {nodes} | {one['round_s']:.2f} | {one['sent']:.5f} | {one['copies']:.5f} | {one['other_kb_s']:.1f} | "
              f"{one['waiting']:.3f} | {one['counted']:.3f} | {one['efficiency']:.3f} |", flush=True)


if __name__ == "__main__":
    main()
