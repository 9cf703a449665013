#!/usr/bin/env python3
"""The dense exchange of bench_allreduce beside Gloo's all-reduce (Debian's python3-torch), both in the same run, by turns.

  bench/allreduce.py [--build build/release] [--members 2,4] [--mib 4,64,256] [--rounds 8] [--turns 2] [--ours int8:aes,...] [--json]
  bench/allreduce.py --wan 100mbit --delay 50ms [--loss 0.5%] [--members 4] [--mb 25] ...

Without --wan everything is on loopback in a network namespace of its own (root; else on the machine's), with cubic for both. With it, each member
is a host of tests/lib/netlab.sh (root). A round is as slow as its slowest member; medians over rounds without the first of each turn
(--warm N leaves out more); ratio is Gloo's median by ours. CPU seconds are of all members, per GB of the vector. --gloo no leaves Gloo out."""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
NETLAB = os.path.join(HERE, "..", "tests", "lib", "netlab.sh")
LAB = os.environ.get("NETLAB", "allreduce")
GLOO = "gloo"
PORT = 7900


def gloo_member(arguments):
    """One member of Gloo's, in a process of its own."""
    import time

    import torch
    import torch.distributed

    rank, members, where, elements, rounds = int(arguments[0]), int(arguments[1]), arguments[2], int(arguments[3]), int(arguments[4])
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"tcp://{where}", rank=rank, world_size=members)
    x = torch.full((elements,), float(rank))
    wall, cpu = [], []
    for _ in range(rounds):
        start, start_cpu = time.monotonic(), time.process_time()
        torch.distributed.all_reduce(x)
        wall.append(time.monotonic() - start)
        cpu.append(time.process_time() - start_cpu)
        x /= members
    print(json.dumps({"rank": rank, "wall": wall, "cpu": cpu, "error": abs(float(x[-1]) - (members - 1) / 2)}))
    sys.stdout.flush()
    time.sleep(1)


class Bench:
    def __init__(self, options):
        self.options = options
        self.turn = 0

    def host(self, i):
        return f"10.77.0.{i + 1}" if self.options.wan else "127.0.0.1"

    def within(self, i, command):
        return [NETLAB, "exec", str(i + 1)] + command if self.options.wan else command

    def run(self, what, members, elements):
        """The lists of wall and CPU seconds of all members, and the worst error."""
        options = self.options
        self.turn += 1
        port = PORT + self.turn * 40 % 20000
        environment = dict(os.environ, NETLAB=LAB, GLOO_SOCKET_IFNAME="lab0" if options.wan else "lo", OMP_NUM_THREADS="1")
        processes = []
        for i in range(members):
            if what == GLOO:
                command = [options.python, os.path.abspath(__file__), "--gloo-member", str(i), str(members),
                           f"{self.host(0)}:{port}", str(elements), str(options.rounds)]
            else:
                codec, suite = what.split(":")
                everybody = ",".join(f"{self.host(k)}:{port + k}" for k in range(members))
                command = [os.path.join(options.build, "bench_allreduce"), "--rank", str(i), "--members", everybody,
                           "--elements", str(elements), "--rounds", str(options.rounds), "--codec", codec, "--suite", suite, "--far", "yes" if self.options.wan else "no"]
            processes.append(subprocess.Popen(self.within(i, command), stdout=subprocess.PIPE, text=True, env=environment))
        answers = [process.communicate(timeout=options.patience)[0] for process in processes]
        return [json.loads(answer.strip().splitlines()[-1]) for answer in answers]

    def measure(self, members, elements):
        kinds = ([GLOO] if self.options.gloo == "yes" else []) + self.options.ours.split(",")
        wall = {kind: [] for kind in kinds}
        cpu = {kind: [] for kind in kinds}
        error = {kind: 0.0 for kind in kinds}
        for _ in range(self.options.turns):
            for kind in kinds:
                answers = self.run(kind, members, elements)
                for k in range(self.options.warm, self.options.rounds):
                    wall[kind].append(max(answer["wall"][k] for answer in answers))
                    cpu[kind].append(sum(answer["cpu"][k] for answer in answers))
                error[kind] = max([error[kind]] + [answer["error"] for answer in answers])
        rows = []
        for kind in kinds:
            row = {"members": members, "bytes": 4 * elements, "what": kind, "ms": 1000 * statistics.median(wall[kind]),
                   "cpu_s_per_GB": statistics.median(cpu[kind]) / (4e-9 * elements), "error": error[kind]}
            if GLOO in kinds:
                row["ratio"] = statistics.median(wall[GLOO]) / statistics.median(wall[kind])
                row["cpu_ratio"] = statistics.median(cpu[GLOO]) / statistics.median(cpu[kind])
            rows.append(row)
            if not self.options.json:
                print("  ".join(f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()), flush=True)
        return rows


def geometric_means(rows):
    means = {}
    for kind in sorted({row["what"] for row in rows if row["what"] != GLOO and "ratio" in row}):
        means[kind] = statistics.geometric_mean([row["ratio"] for row in rows if row["what"] == kind])
    return means


def in_namespace():
    """This program again, in a network of its own where both sides have cubic."""
    allowed = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
    with open(allowed, encoding="ascii") as file:
        names = file.read().split()
    if "cubic" not in names: # As netlab.sh does: this one setting is the machine's, and stays.
        with open(allowed, "w", encoding="ascii") as file:
            file.write(" ".join(names + ["cubic"]))
    script = "ip link set lo up; echo cubic >/proc/sys/net/ipv4/tcp_congestion_control || exit 69; exec \"$@\""
    done = subprocess.run(["unshare", "-n", "bash", "-c", script, "bash", sys.executable] + sys.argv, env=dict(os.environ, DP_ALONE="1"), check=False)
    sys.exit(done.returncode)


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--gloo-member":
        gloo_member(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--members", default="2,4")
    parser.add_argument("--mib", default="4,64,256")
    parser.add_argument("--mb", help="MB of 10^6 bytes instead")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--warm", type=int, default=1)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--ours", default="fp32:plain,fp32:aes,int8:plain,int8:sodium,int8:aes")
    parser.add_argument("--gloo", choices=["yes", "no"], default="yes")
    parser.add_argument("--wan", help="rate of each host's line, for example 100mbit")
    parser.add_argument("--delay", default="50ms")
    parser.add_argument("--loss", default="0%")
    parser.add_argument("--patience", type=float, default=600)
    parser.add_argument("--python", default="/usr/bin/python3", help="that has torch: Debian's")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.wan and os.geteuid() == 0 and "DP_ALONE" not in os.environ:
        in_namespace()
    sizes = [int(float(mb) * 1e6) for mb in options.mb.split(",")] if options.mb else [int(float(m) * 1048576) for m in options.mib.split(",")]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143)) # The lab is taken down all the same.
    bench = Bench(options)
    rows = []
    for members in map(int, options.members.split(",")):
        environment = dict(os.environ, NETLAB=LAB)
        if options.wan:
            subprocess.run([NETLAB, "up", str(members), "--rate", options.wan, "--delay", options.delay, "--loss", options.loss,
                            "--cc", "cubic"], check=True, env=environment, stdout=subprocess.DEVNULL)
        try:
            for size in sizes:
                rows += bench.measure(members, size // 4)
        finally:
            if options.wan:
                subprocess.run([NETLAB, "down"], check=False, env=environment)
    means = geometric_means(rows)
    if options.json:
        print(json.dumps({"rows": rows, "geometric_mean_of_ratios": means}))
    else:
        for kind, mean in means.items():
            print(f"geometric mean of ratios, {kind}: {mean:.2f}")


if __name__ == "__main__":
    main()
