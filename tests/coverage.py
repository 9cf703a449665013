#!/usr/bin/env python3
"""Line coverage per source file from the .gcda files of a coverage build. Usage: tests/coverage.py BUILD_FOLDER

Prints a table, the least covered files first. Headers count with the sources that include them; tests are left out.
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


def lines_of(gcda_files):
    """{source: {line: times run}}"""
    lines = collections.defaultdict(lambda: collections.defaultdict(int))
    with tempfile.TemporaryDirectory() as out:
        for start in range(0, len(gcda_files), 50):
            subprocess.run(["gcov", "--json-format", "--hash-filenames", *gcda_files[start:start + 50]], cwd=out,
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for name in os.listdir(out):
            with gzip.open(os.path.join(out, name), "rt", encoding="utf-8") as file:
                for entry in json.load(file)["files"]:
                    for line in entry["lines"]:
                        lines[entry["file"]][line["line_number"]] += line["count"]
    return lines


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    rows = []
    for path, counts in lines_of(sorted(counters(sys.argv[1]))).items():
        relative = os.path.relpath(path, root) if os.path.isabs(path) else path
        if relative.split("/")[0] in FOLDERS:
            rows.append((sum(1 for count in counts.values() if count), len(counts), relative))
    for run, total, path in sorted(rows, key=lambda row: row[0] / row[1]):
        print(f"{100 * run / total:6.1f} %  {run:5d} of {total:5d}  {path}")
    run, total = sum(row[0] for row in rows), sum(row[1] for row in rows)
    print(f"{100 * run / max(total, 1):6.1f} %  {run:5d} of {total:5d}  all")
    return 0 if total else 1


if __name__ == "__main__":
    sys.exit(main())
