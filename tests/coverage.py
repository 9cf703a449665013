#!/usr/bin/env python3
"""Line and branch coverage per source file from the .gcda files of a coverage build. Usage: tests/coverage.py BUILD_FOLDER [FOLDER]

Prints a table, the least covered files first; only those of FOLDER ("store") if it is given. Headers count with the sources
that include them; tests are left out. Branches in a line with dp_assert are not counted: the side that aborts is never taken.
"""

import collections
import gzip
import json
import os
import subprocess
import sys
import tempfile

FOLDERS = ("base", "gossip", "compute", "store", "daemon", "cli")


def counters(build):
    """The .gcda files of a build, absolute."""
    for base, _, files in os.walk(build):
        for name in files:
            if name.endswith(".gcda"):
                yield os.path.abspath(os.path.join(base, name))


def counts_of(gcda_files):
    """{source: {line: times run}}, {source: {(line, number of the branch): times taken}}"""
    lines = collections.defaultdict(lambda: collections.defaultdict(int))
    branches = collections.defaultdict(lambda: collections.defaultdict(int))
    with tempfile.TemporaryDirectory() as out:
        for start in range(0, len(gcda_files), 50):
            subprocess.run(["gcov", "-b", "--json-format", "--hash-filenames", *gcda_files[start:start + 50]], cwd=out,
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for name in os.listdir(out):
            with gzip.open(os.path.join(out, name), "rt", encoding="utf-8") as file:
                for entry in json.load(file)["files"]:
                    for line in entry["lines"]:
                        number = line["line_number"]
                        lines[entry["file"]][number] += line["count"]
                        for i, branch in enumerate(line["branches"]):
                            branches[entry["file"]][number, i] += branch["count"]
    return lines, branches


def without_asserts(path, branches):
    """The branches of lines that do not assert."""
    with open(path, encoding="utf-8") as file:
        asserts = {number for number, text in enumerate(file, 1) if "dp_assert(" in text}
    return [count for (number, _), count in branches.items() if number not in asserts]


def share(count, total):
    return 100 * count / max(total, 1)


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = sys.argv[2:] or FOLDERS
    rows = []
    lines, branches = counts_of(sorted(counters(sys.argv[1])))
    for path, counts in lines.items():
        relative = os.path.relpath(path, root) if os.path.isabs(path) else path
        if relative.split("/")[0] in folders:
            taken = without_asserts(os.path.join(root, relative), branches[path])
            rows.append((sum(1 for count in counts.values() if count), len(counts),
                         sum(1 for count in taken if count), len(taken), relative))
    for run, total, taken, ways, path in sorted(rows, key=lambda row: row[0] / row[1]):
        print(f"{share(run, total):6.1f} %  {run:5d} of {total:5d} lines  {share(taken, ways):6.1f} %  "
              f"{taken:5d} of {ways:5d} branches  {path}")
    run, total, taken, ways = (sum(row[i] for row in rows) for i in range(4))
    print(f"{share(run, total):6.1f} %  {run:5d} of {total:5d} lines  {share(taken, ways):6.1f} %  "
          f"{taken:5d} of {ways:5d} branches  all")
    return 0 if total else 1


if __name__ == "__main__":
    sys.exit(main())
