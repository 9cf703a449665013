"""One run of dpsim for the tables of bench/: its result, and its use of this machine."""
import json
import os
import subprocess
import sys


def options(parser, nodes, until, round_s):
    """The options that all these tables have."""
    parser.add_argument("--dpsim", required=True)
    parser.add_argument("--nodes", default=nodes)
    parser.add_argument("--until", type=float, default=until)
    parser.add_argument("--round", type=float, default=round_s)
    parser.add_argument("--seed", type=int, default=1)


def run(args, nodes, more, seed=None):
    """Its result, CPU seconds and peak KiB. Ends this program if the run broke a rule."""
    command = [args.dpsim, "--seed", str(args.seed if seed is None else seed), "--profile", "scale", "--nodes", str(nodes),
               "--until", str(args.until), "--round", str(args.round), *more, "--json"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    line = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if not line:
        sys.exit(f"{' '.join(command)}: nothing was said, status {child.returncode}")
    result = json.loads(line)
    if result["failed"] or result["rounds"] == 0:
        sys.exit(f"{' '.join(command)}: {result['invariant'] or 'no round was decided'}")
    return result, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def numbers(words):
    return [int(word) for word in words.split(",")]


def head(*columns):
    print(f"| {' | '.join(columns)} |")
    print("|" + " --- |" * len(columns), flush=True)
