#!/usr/bin/env python3
"""Runs dpsim_broken of a build folder with one broken rule after another, seeds from 1 upwards, and prints the invariant that caught each, and the
seed.

usage: mutations.py BUILD [--write docs/MUTATIONS.md]

The same seed must be clean without the mutation. Exit status 1 if a mutation went unnoticed, was caught by an invariant that
its test does not name, or the unbroken program failed.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import time

FAIL = re.compile(r"^FAIL (\S+) seed=(\d+)", re.MULTILINE)
LIMIT_S = 1800
BROKEN = "dpsim_broken"


def mutations(build):
    """Number -> (arguments of dpsim, invariants allowed), as ctest runs them."""
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"],
                           check=True, capture_output=True, text=True)
    found = {}
    for test in json.loads(shown.stdout)["tests"]:
        name = re.fullmatch(r"sim/mutation_(\d+)", test["name"])
        if name is None:
            continue
        properties = {p["name"]: p["value"] for p in test["properties"]}
        allowed = properties["PASS_REGULAR_EXPRESSION"][0]
        at = next(i for i, word in enumerate(test["command"]) if pathlib.Path(word).name == BROKEN)
        found[int(name[1])] = (test["command"][at + 1:], re.search(r"\((.*)\)", allowed)[1].split("|"))
    return found


def run(build, program, arguments, number=0):
    return subprocess.run([pathlib.Path(build, program), *arguments], env=dict(os.environ, DP_BREAK=str(number)),
                          capture_output=True, text=True, timeout=LIMIT_S, check=False).stdout


def judge(build, number, arguments, allowed):
    """A row of the table and its mistake, or None."""
    began = time.monotonic()
    caught = FAIL.search(run(build, BROKEN, arguments + ["--jobs", "1"], number))
    took = time.monotonic() - began
    profile = arguments[arguments.index("--profile") + 1]
    if caught is None:
        return (number, "-", profile, "-", took), "went unnoticed"
    row = (number, caught[1], profile, caught[2], took)
    if caught[1] not in allowed:
        return row, f"{caught[1]} is not among {' '.join(allowed)}"
    if "--keep-vote-key" in arguments:
        return row, None  # Half of the mistake is this option.
    at = arguments.index("--seeds")
    plain = run(build, "dpsim", arguments[:at] + ["--seed", caught[2]] + arguments[at + 2:])
    left = FAIL.search(plain)
    if left is None and not plain.startswith("ok "):
        return row, "the unbroken program has not run"
    return row, None if left is None else f"the unbroken program fails at this seed too: {left[1]}"


def write(path, rows):
    """Writes invariant, profile and seed into the existing rows of the table."""
    text = pathlib.Path(path).read_text()
    for number, invariant, profile, seed, _ in rows:
        row = re.search(rf"^(\| M{number} \| [^|]* \| )[^|]*\| ([^|]*) \|[^|]*\|", text, flags=re.MULTILINE)
        if row is not None:
            told = row[2] if row[2].startswith(profile) else profile  # The text may also contain options.
            text = text.replace(row[0], f"{row[1]}{invariant} | {told} | {seed} |")
    pathlib.Path(path).write_text(text)


def main():
    parser = argparse.ArgumentParser(description="broken rules in dpsim: what catches each, at which seed")
    parser.add_argument("build")
    parser.add_argument("--write", metavar="FILE", help="put the figures into the table of this file")
    args = parser.parse_args()
    rows = []
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        tasks = [pool.submit(judge, args.build, number, *row) for number, row in sorted(mutations(args.build).items())]
        print("| | invariant | profile | at seed | seconds |\n| --- | --- | --- | --- | --- |")
        for task in tasks:
            row, wrong = task.result()
            rows.append(row)
            bad += wrong is not None
            print("| M{} | {} | {} | {} | {:.1f} |".format(*row) + (f" <- {wrong}" if wrong else ""), flush=True)
    if not rows:
        print("mutations: no mutation in this build", file=sys.stderr)
        return 1
    if args.write:
        write(args.write, rows)
    print(f"{len(rows)} mutations, {bad} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
