#!/usr/bin/env python3
"""Line and branch coverage per source file from the .gcda files of a coverage build.

Prints a table, the least covered files first, and the sum of each folder; headers count with the sources that include them, tests
are left out. Branches of a dp_assert are not counted: the side that aborts is never taken.

With --errors it prints the ways out with an error that were never taken, and fails if there are any: a line that returns a
status other than DP_OK, one that returns what a call gave, one that leaves for the end of the function, a DP_TRY that never
failed, a choice between DP_OK and an error of which one side was never taken.
"""

import argparse
import collections
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ("base", "gossip", "compute", "store", "daemon", "cli")

ERRORS = r"DP_(?:BADARG|BADMSG|TOOBIG|NOMEM|IO|NOSPACE|NOTFOUND|EXISTS|DENIED|EXPIRED|BADSIG|BADHASH|VERSION|AGAIN|TIMEOUT|" \
         r"CLOSED|CORRUPT|DIVERGED|UNSUPPORTED|BUSY)\b"
LEAVES = re.compile(rf"\breturn ({ERRORS}|status);|\bgoto \w+;|\breturn (no|\w+_fail|dp_why_set)\(")
CHOOSES = re.compile(rf"[?:] *{ERRORS}")
TRIES = re.compile(r"\bDP_TRY\(")
ASSERTS = re.compile(r"\bdp_assert\(")
NOT_CODE = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|^[ \t]*#(?:\\\n|[^\n])*", re.DOTALL | re.MULTILINE)


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
            done = subprocess.run(["gcov", "-b", "--json-format", "--hash-filenames", *gcda_files[start:start + 50]],
                                  cwd=out, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if done.returncode != 0:
                sys.exit("coverage: gcov cannot read these counters; are they of an earlier build? --reset removes them")
        for name in os.listdir(out):
            with gzip.open(os.path.join(out, name), "rt", encoding="utf-8") as file:
                for entry in json.load(file)["files"]:
                    for line in entry["lines"]:
                        number = line["line_number"]
                        lines[entry["file"]][number] += line["count"]
                        for i, branch in enumerate(line["branches"]):
                            branches[entry["file"]][number, i] += branch["count"]
    return lines, branches


def statements(path):
    """{first line: (last line, its code)}: what ends in a semicolon or opens a block; without comments, texts and directives."""
    with open(path, encoding="utf-8") as file:
        code = NOT_CODE.sub(lambda match: "\n" * match.group().count("\n"), file.read())
    found = {}
    first = None
    for number, line in enumerate(code.splitlines(), 1):
        line = line.strip()
        if first is None and line:
            first, text = number, ""
        if first is not None:
            text += line + " "
            if line.endswith((";", "{", "}", ":")):
                found[first] = (number, text)
                first = None
    return found


class Source:
    """One file with what was counted in it."""

    def __init__(self, path, lines, branches):
        self.path = path
        self.lines = lines
        self.statements = statements(os.path.join(ROOT, path))
        self.branches = collections.defaultdict(list)
        for (number, _), count in sorted(branches.items()):
            self.branches[number].append(count)

    def ways(self):
        """Times that each branch was taken, those of asserts left out."""
        asserts = {number for first, (last, text) in self.statements.items() if ASSERTS.search(text)
                   for number in range(first, last + 1)}
        return [count for number, counts in self.branches.items() if number not in asserts for count in counts]

    def row(self):
        ways = self.ways()
        return (sum(1 for count in self.lines.values() if count), len(self.lines), sum(1 for count in ways if count), len(ways))

    def errors_not_taken(self):
        """(line, text) of each."""
        for first, (last, text) in sorted(self.statements.items()):
            span = range(first, last + 1)
            runs = [self.lines[number] for number in span if number in self.lines]
            counts = [count for number in span for count in self.branches.get(number, ())]
            leaves = LEAVES.search(text)
            both = TRIES.search(text) or CHOOSES.search(text)
            if runs and ((leaves or both) and max(runs) == 0 or both and 0 in counts):
                yield first, text.strip()


def share(count, total):
    return 100 * count / max(total, 1)


def table_line(row, name):
    run, total, taken, ways = row
    return (f"{share(run, total):6.1f} %  {run:5d} of {total:5d} lines  {share(taken, ways):6.1f} %  "
            f"{taken:5d} of {ways:5d} branches  {name}")


def sum_of(rows):
    return tuple(sum(row[i] for row in rows) for i in range(4))


def print_table(sources):
    """Returns {folder: row}."""
    folders = collections.defaultdict(list)
    for source in sorted(sources, key=lambda source: share(*source.row()[:2])):
        print(table_line(source.row(), source.path))
        folders[source.path.split("/")[0]].append(source.row())
    sums = {folder: sum_of(rows) for folder, rows in folders.items()}
    for folder, row in sums.items():
        print(table_line(row, folder + "/"))
    return sums


def print_errors(sources):
    """Returns how many."""
    missed = [(source.path, line, text) for source in sources for line, text in source.errors_not_taken()]
    for path, line, text in sorted(missed):
        print(f"{path}:{line}: {text}")
    print(f"{len(missed)} ways out with an error were never taken")
    return len(missed)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="folder of the coverage build")
    parser.add_argument("folders", nargs="*", default=FOLDERS, help="only these, such as store")
    parser.add_argument("--errors", action="store_true", help="the ways out with an error that were never taken")
    parser.add_argument("--lines", type=float, default=0, metavar="PERCENT", help="fail if a folder has less")
    parser.add_argument("--branches", type=float, default=0, metavar="PERCENT", help="fail if a folder has less")
    parser.add_argument("--reset", action="store_true", help="remove what was counted, and do nothing else")
    options = parser.parse_args()
    if options.reset:
        for path in counters(options.build):
            os.remove(path)
        return 0
    lines, branches = counts_of(sorted(counters(options.build)))
    sources = []
    for path, counts in lines.items():
        relative = os.path.relpath(path, ROOT) if os.path.isabs(path) else path
        if relative.split("/")[0] in options.folders:
            sources.append(Source(relative, counts, branches[path]))
    if not sources:
        print("coverage: nothing was counted: build with the preset coverage and run tests", file=sys.stderr)
        return 1
    if options.errors:
        return 1 if print_errors(sources) else 0
    low = [folder for folder, (run, total, taken, ways) in print_table(sources).items()
           if share(run, total) < options.lines or share(taken, ways) < options.branches]
    for folder in low:
        print(f"coverage: {folder}/ has less than {options.lines:g} % of lines or {options.branches:g} % of branches",
              file=sys.stderr)
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
