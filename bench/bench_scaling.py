#!/usr/bin/env python3
"""The cost of a run for its nodes as it grows: bytes, waiting and efficiency of 1 to 16 real daemons on this machine.

    python3 bench/bench_scaling.py --binaries build/release [--nodes 1,2,4,8,16] [--rounds 8] [--round 3] [--idle 60] [--json]

The nodes have a network namespace of their own, in which no other program sends: bytes are counted at its interface, with IP headers.
One row per number of nodes, over so many rounds after the first three:
  sent       bytes per parameter and round that a node sends, all headers included, the mean of all nodes
  copies     the bytes of an update to each peer once, the same unit: (nodes - 1) updates
  other      the rest, kB/s per node: heartbeats, membership, votes, records, TCP's own; does not grow with the model
  paused     kB/s per node while the owners of all nodes have paused them, from 30 s after the command on, for --idle seconds
  waiting    share of its training time over those rounds in which a trainer did not compute: publishing, applying, hashing, waiting; the mean
             of the nodes whose trainer was up at the end
  counted    share of the publications of nodes that were alive that their round counted
  efficiency computing * counted: the share of the nodes' time that contributes to the model
All nodes share this machine's processors, so a step takes longer with more nodes; waiting is a share, and longer steps make it smaller. --round, in
seconds, keeps rounds long beside the work that each needs once.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

from trainer_time import mean_of, share

WARM = 3  # rounds until all nodes have joined
SETTLE = 30  # seconds until paused nodes have announced everything
INSIDE = "DP_BENCH_NAMESPACE"
MANIFEST = """name: scaling
text: {text}
model: {{layers: 2, width: 128, heads: 4, context: 128, vocab: 512}}
train: {{batch: 16, warmup_tokens: 4000, total_tokens: 100000000}}
round: {{time: {round}, mode: {mode}}}
members: {{trust: {trust}}}
vote: {{uptime: 0}}
"""
WORDS = ("light", "and", "darkness", "were", "over", "the", "deep", "waters", "said", "let", "there", "be", "evening", "morning")


def write_text(path, n):
    """Generated, and the same every time: the content does not matter here."""
    state = 1
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(n):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            file.write(WORDS[(state >> 40) % len(WORDS)] + " ")


def enter_namespace():
    """Restarts this program in a network namespace of its own."""
    if os.environ.get(INSIDE) is None:
        os.environ[INSIDE] = "yes"
        os.execvp("unshare", ["unshare", "--net", "--map-root-user", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, *sys.argv])


def on_the_line():
    """Bytes that this namespace has sent."""
    with open("/proc/net/dev", encoding="ascii") as file:
        return next(int(line.split()[9]) for line in file if line.split(":")[0].strip() == "lo")


def status(binaries, socket):
    done = subprocess.run([os.path.join(binaries, "dpnode"), "status", "--json", "--socket", socket], capture_output=True, text=True,
                          check=False, timeout=60)
    return json.loads(done.stdout)["run"] if done.returncode == 0 else None


def all_of(binaries, sockets):
    """The run as reported by every node; None while one does not answer or has not joined."""
    told = [status(binaries, socket) for socket in sockets]
    if not all(one is not None and one.get("elements", 0) > 0 for one in told):
        return None
    return {"nodes": told, "line": on_the_line(), "time": time.monotonic()}


def pause_all(args, sockets):
    """Pauses all nodes; bytes per second and node afterwards."""
    for socket in sockets:
        subprocess.run([os.path.join(args.binaries, "dpnode"), "pause", "--socket", socket], check=True, timeout=60, stdout=subprocess.DEVNULL)
    time.sleep(SETTLE)
    begin, line = time.monotonic(), on_the_line()
    time.sleep(args.idle)
    return (on_the_line() - line) / (time.monotonic() - begin) / len(sockets)


def row(nodes, first, last, rounds, paused):
    before, after = first["nodes"], last["nodes"]
    n = after[0]["elements"]
    passed = [b["round"] - a["round"] for a, b in zip(before, after)]
    sent = (last["line"] - first["line"]) / (sum(passed) / nodes) / nodes / n
    blob = sum(one["bytes"] for one in rounds) / sum(one["listed"] for one in rounds) / n
    computing = mean_of(share(a, b) for a, b in zip(before, after)) or 0
    counted = sum((b["counted"] - a["counted"]) / max(k, 1) for a, b, k in zip(before, after, passed)) / nodes
    round_s = sum(one.get("duration_ms", 0) for one in rounds) / len(rounds) / 1000
    copies = (nodes - 1) * blob
    return {"nodes": nodes, "rounds": len(rounds), "round_s": round_s, "parameters": n, "sent": sent, "copies": copies,
            "other_kb_s": (sent - copies) * n / round_s / 1000,
            "paused_kb_s": paused / 1000, "waiting": 1 - computing, "counted": counted,
            "efficiency": computing * min(counted, 1.0)}


def measure(args, nodes, folder):
    text = os.path.join(folder, "text")
    file = os.path.join(folder, "run.yaml")
    write_text(text, 60000)
    with open(file, "w", encoding="utf-8") as out:
        out.write(MANIFEST.format(text=text, round=args.round, mode=args.mode, trust="members" if args.mode in ("ddp", "gossip") else "open"))
    child = subprocess.Popen([os.path.join(args.binaries, "dpnode"), "swarm", "-n", str(nodes), "--json", "--dir",
                              os.path.join(folder, "s"), file], stdout=subprocess.PIPE, text=True)
    sockets, rounds, before, joined, paused = [], [], None, None, 0.0
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
        paused = pause_all(args, sockets) if after is not None and args.idle > 0 else 0.0
    finally:
        child.send_signal(signal.SIGINT)
        child.wait(timeout=120)
    if before is None or after is None:
        sys.exit(f"bench_scaling: {nodes} nodes did not get through their rounds")
    return row(nodes, before, after, rounds, paused)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default="build/release")
    parser.add_argument("--nodes", default="1,2,4,8,16")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--round", type=float, default=3)
    parser.add_argument("--mode", default="sparse")
    parser.add_argument("--idle", type=float, default=60)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    enter_namespace()
    if not args.json:
        print("| nodes | round, s | sent, B/param | copies | other, kB/s | paused, kB/s | waiting | counted | efficiency |\n|" + " --- |" * 9)
    for nodes in (int(word) for word in args.nodes.split(",")):
        with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
            one = measure(args, nodes, folder)
        if args.json:
            print(json.dumps(one), flush=True)
            continue
        print(f"| {nodes} | {one['round_s']:.2f} | {one['sent']:.5f} | {one['copies']:.5f} | {one['other_kb_s']:.1f} | {one['paused_kb_s']:.2f} | "
              f"{one['waiting']:.3f} | {one['counted']:.3f} | {one['efficiency']:.3f} |", flush=True)


if __name__ == "__main__":
    main()
