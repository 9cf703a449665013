#!/usr/bin/env python3
"""Breaks gossip/ in one line after the other and shows what notices it: a unit test of gossip/, or the simulator.

    tests/mutants.py --draw SEED [--count N] >LIST
    tests/mutants.py LIST [--only N,N] [--by units|dpsim|both] [--seconds S] [--markdown FILE]
    tests/mutants.py LIST --reach [--only N,N] [--markdown FILE]

LIST has a mutation per line: file, old text, new text, with a tab between and \\n for the end of a line; the old text stands once in
the file. A line that begins with # is a comment. --draw makes such a list by chance, from the sources alone. Sources are not touched: one copy is compiled, and gossip/ linked anew as the shared library of build/mutants.
--reach is by units, much sooner: of each mutation it runs only the unit tests that reach its statement in a build that counts lines
(build/mutants-reach), the quickest first, and judges two mutations at a time.
Exit status 1 if a mutation went unnoticed, or the unbroken program did not pass."""
import argparse
import concurrent.futures
import functools
import json
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/mutants"
BROKEN = BUILD / "broken"
REACH = ROOT / "build/mutants-reach"
NICE = [] if os.nice(0) > 0 else ["nice"]  # Not twice.
QUICK = 5  # So many tests cost less than to compile the unbroken source as well.
# The profiles that dpsim plays against each, two at a time and each on one processor: half a minute in all, beside a quarter of
# one for the unit tests. The common things come first, what takes long comes last.
PLAYS = [
    ("duel", "--seeds 1..8000 --profile duel"),
    ("liar", "--seeds 1..6000 --profile liar"),
    ("swarm", "--seeds 1..25"),
    ("rivals", "--seeds 1..40 --profile rivals"),
    ("gossip", "--seeds 1..16 --profile gossip"),
    ("pairs", "--seeds 1..12 --profile pairs"),
    ("byz member", "--seeds 1..16 --profile byz --evil member"),
    ("byz", "--seeds 1..30 --profile byz"),
    ("merge", "--seeds 1..80 --profile merge"),
    ("stale", "--seeds 1..12 --profile stale"),
    ("steps", "--seeds 1..8 --profile steps"),
    ("parts", "--seeds 1..8 --parts --sites 2 --sums"),
    ("strict", "--seeds 1..40 --profile strict"),
    ("revoke", "--seeds 1..40 --profile revoke"),
    ("kill", "--seeds 1..40 --profile kill"),
    ("stall", "--seeds 1..30 --profile stall"),
    ("rot", "--seeds 1..24 --profile rot"),
    ("spots", "--seeds 1..12 --profile spots"),
    ("detect", "--seeds 1..24 --profile detect"),
    ("calm", "--seeds 1..12 --profile calm"),
    ("span", "--seeds 1..24 --span"),
    ("rotate", "--seeds 1..12 --rotate"),
    ("joins", "--seeds 1..20 --profile joins"),
    ("lists", "--seeds 1..5 --profile lists"),
    ("more gossip", "--seeds 17..60 --profile gossip"),
    ("more pairs", "--seeds 13..40 --profile pairs"),
    ("more steps", "--seeds 9..24 --profile steps"),
    ("more stale", "--seeds 13..40 --profile stale"),
    ("more parts", "--seeds 9..20 --parts --sites 2 --sums"),
    ("more swarm", "--seeds 26..60"),
]


def read_list(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = [cell.replace("\\n", "\n") for cell in line.split("\t")]
        if len(cells) != 3:
            sys.exit(f"{path}:{number}: {len(cells)} fields with tabs between, not 3")
        yield number, cells[0], cells[1], cells[2]


# The changes that --draw may make to a line: the first that fits of those drawn. A statement may also be left out.
CHANGES = [(" && ", " || "), (" || ", " && "), (" == ", " != "), (" != ", " == "), (" < ", " <= "), (" <= ", " < "), (" > ", " >= "),
           (" >= ", " > "), (" + 1", ""), (" - 1", ""), (" + ", " - "), ("true", "false"), ("false", "true"), ("(!", "(")]
STATEMENT = re.compile(r"^ +(?!return|break|continue|const|dp_assert|DP_TRY|DP_IGNORE|goto|static|uint|dp_[a-z_]+ \**[a-z])[a-z].*;$")
# Words for people, tests' own switches, checks of what cannot be, declarations: no rules.
NO_RULE = re.compile(r"dp_assert|dp_broken|DP_BUGGIFY|_note\(|dp_why|^ *(/?\*|//|#)|^static|^[a-z].*\)$|\bfor \(|memset|_Static_assert|/\*")


def draw(seed, count):
    """Mutations of lines drawn from all of gossip/, each once."""
    chance = random.Random(seed)
    lines = []
    for source in sorted((ROOT / "gossip").rglob("*.c")):
        text = source.read_text()
        checks = 0  # Inside of a dp_..._check, which tests alone call.
        switched = None  # Inside of an if (dp_broken(...)): the line that ends it.
        whole = True
        for line in text.splitlines():
            before, whole = whole, line.endswith((";", "{", "}", "*/", ":"))
            checks = 0 if line == "}" else checks or re.match(r"^dp_status dp_\w+_check\(", line) is not None
            opened = re.match(r"( +)if \(dp_broken\(.*\{", line)
            if opened and switched is None:
                switched = opened[1] + "}"
            elif switched is not None and line.startswith(switched):
                switched = None
            if not checks and switched is None and not NO_RULE.search(line) and text.count(f"\n{line}\n") == 1 and text.count(line) == 1:
                lines.append((str(source.relative_to(ROOT)), line, before))
    chance.shuffle(lines)
    for name, line, begins in lines:
        changes = [(old, new) for old, new in CHANGES if old in line]
        if begins and STATEMENT.match(line):
            changes.append((line.strip(), ";"))
        if changes and count > 0:
            old, new = chance.choice(changes)
            count -= 1
            print(f"{name}\t{line}\t{line.replace(old, new, 1)}")


def build(folder, targets, *settings):
    if not (folder / "build.ninja").exists():
        subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DDP_SHARED_GOSSIP=ON",
                        "-DCMAKE_POSITION_INDEPENDENT_CODE=ON", "-DCMAKE_LINK_DEPENDS_NO_SHARED=ON",
                        "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *settings], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", folder, "--target", *targets, "--", "--quiet"], check=True)


@functools.lru_cache
def unit_tests():
    return sorted(path.stem for path in (ROOT / "tests/unit/gossip").rglob("test_*.c"))


def compile_command(source):
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        if entry["file"] == str(source) and "dp_gossip.dir" in entry["command"]:
            return shlex.split(entry["command"]), entry["directory"]
    sys.exit(f"{source} is no source of gossip/")


def counted_lines(test, folder):
    """{source: lines of gossip/ that this unit test runs}, {source: lines with code}, counted in a folder of its own."""
    objects = REACH / "CMakeFiles/dp_gossip.dir"
    counted = pathlib.Path(f"{folder}{objects}")
    for note in objects.rglob("*.gcno"):
        place = counted / note.relative_to(objects)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(note)
    subprocess.run([*NICE, REACH / test], cwd=ROOT, env=dict(os.environ, GCOV_PREFIX=folder), stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=True)
    done = subprocess.run([*NICE, "gcov", "--json-format", "--stdout", *counted.rglob("*.gcda")], capture_output=True,
                          cwd=folder, check=True)
    ran, code = {}, {}
    for text in done.stdout.decode().splitlines():
        for entry in json.loads(text)["files"] if text else []:
            name = os.path.relpath(entry["file"], ROOT)
            if name.startswith("gossip/"):
                ran.setdefault(name, set()).update(line["line_number"] for line in entry["lines"] if line["count"])
                code.setdefault(name, set()).update(line["line_number"] for line in entry["lines"])
    return ran, code


class Reach:
    """Which unit tests run a line, and how long each takes."""

    def __init__(self):
        tests = unit_tests()
        build(REACH, tests, "-DCMAKE_BUILD_TYPE=Debug", "-DDP_COVERAGE=ON")
        library = (REACH / "libdp_gossip.so").stat().st_mtime
        kept = REACH / "reach.json"
        known = json.loads(kept.read_text()) if kept.exists() else {}

        def one(test):
            stamp = [library, (REACH / test).stat().st_mtime]
            if test in known and known[test]["stamp"] == stamp:
                return test, known[test]
            start = time.monotonic()
            with tempfile.TemporaryDirectory() as folder:
                ran, code = counted_lines(test, folder)
            return test, {"stamp": stamp, "took": time.monotonic() - start, "ran": {name: sorted(ran[name]) for name in ran},
                          "code": {name: sorted(code[name]) for name in code}}

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            self.tests = dict(pool.map(one, tests))
        kept.write_text(json.dumps(self.tests))

    def of(self, name, text, old):
        """{test: seconds} of those that run a line of the statement with this text, the quickest first; of all that run the file if it
        has no code."""
        lines = text.splitlines()
        at = text.find(old)
        first = text[:at].count("\n")
        last = first + old.strip("\n").count("\n")
        while first > 0 and lines[first - 1].strip() and not lines[first - 1].rstrip().endswith((";", "{", "}", ":", "*/")):
            first -= 1
        span = set(range(first + 1, last + 2))
        with_code = any(span.intersection(test["code"].get(name, ())) for test in self.tests.values())
        found = [test for test in self.tests
                 if (span.intersection(self.tests[test]["ran"].get(name, ())) if with_code else name in self.tests[test]["ran"])]
        return {test: self.tests[test]["took"] for test in sorted(found, key=lambda test: self.tests[test]["took"])}


def compiled(source, text, broken):
    """The path of the object made of this text in place of the source, and what the compiler says if there is none."""
    broken.mkdir(exist_ok=True)
    copy = broken / source.name
    copy.write_text(text)
    command, folder = compile_command(source)
    at = command.index("-o") + 1
    object_file = broken / "broken.o"
    command[at] = str(object_file)
    command = [word if word != str(source) else str(copy) for word in command if word not in ("ccache", "-Werror")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return object_file, None if done.returncode == 0 else done.stderr


def link(source, text, broken=BROKEN):
    """A library with this text in place of the source; what the compiler says if there is none."""
    object_file, errors = compiled(source, text, broken)
    if errors is not None:
        return errors
    original = str(source.relative_to(ROOT)) + ".o"
    objects = [str(path) for path in (BUILD / "CMakeFiles/dp_gossip.dir/gossip").rglob("*.c.o")
               if not str(path).endswith("/" + original)]
    done = subprocess.run(["cc", "-shared", "-o", broken / "libdp_gossip.so", str(object_file), *objects, BUILD / "libdp_base.a",
                           "-lsodium", "-lmsgpackc"], capture_output=True, text=True)
    return done.stderr if done.returncode != 0 else None


def failed_tests(output):
    return [line.split("] ", 1)[1].strip() for line in output.splitlines() if "[  FAILED  ]" in line and "test(s)" not in line]


def leak_checker():
    """The compiler's library that makes a program with a leak fail at its end. "": there is none, or it does not work here."""
    path = subprocess.run(["cc", "-print-file-name=liblsan.so"], capture_output=True, text=True).stdout.strip()
    if not os.path.isabs(path):
        return ""
    return path if subprocess.run(["nice", "true"], env=dict(os.environ, LD_PRELOAD=path), capture_output=True).returncode == 0 else ""


LEAK_CHECKER = leak_checker()


def run(command, seconds, broken, preload=""):
    environment = dict(os.environ)
    if broken:
        environment["LD_LIBRARY_PATH"] = str(broken)
    if preload:
        environment["LD_PRELOAD"] = preload
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=max(seconds, 1))
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


def by_unit(name, seconds, broken):
    status, output = run([*NICE, BUILD / name], seconds, broken, LEAK_CHECKER)
    if status is None:
        return f"{name}: does not end"
    if status != 0:
        names = failed_tests(output)
        return f"{name}: {names[0] if names else 'leaks' if 'LeakSanitizer' in output else 'dies'}"
    return None


def by_play(name, arguments, seconds, broken):
    status, output = run([*NICE, BUILD / "dpsim", *arguments.split(), "--quiet", "--jobs", "1", "--max-failures", "1"], seconds, broken)
    if status is None or status == 0:
        return None  # Out of time is not caught.
    found = [line for line in output.splitlines() if line.startswith("FAIL ")]
    return f"dpsim {name}: {' '.join(found[0].split()[1:2]) if found else 'dies'}"


def in_parallel(jobs, deadline):
    """The first of these that notices something."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        caught = []

        def one(job):
            if not caught and time.monotonic() < deadline:
                found = job(deadline - time.monotonic())
                if found:
                    caught.append(found)

        for done in [pool.submit(one, job) for job in jobs]:
            done.result()
    return caught[0] if caught else None


def nearest_first(stem, tests):
    near = [name for name in tests if name == "test_" + stem]
    near += [name for name in tests if name not in near and (name.startswith("test_" + stem) or stem.startswith(name[5:]))]
    return near + [name for name in tests if name not in near]


def judge(stem, seconds, by, broken=BROKEN):
    tests = nearest_first(stem, unit_tests())
    start = time.monotonic()
    found = None
    if by != "dpsim":
        # All take seconds; a minute is no end.
        found = in_parallel([lambda left, t=t: by_unit(t, max(left, 60), broken) for t in tests], start + seconds)
    if found is None and by != "units":
        found = in_parallel([lambda left, p=p: by_play(*p, left, broken) for p in PLAYS], start + seconds)
    return found, time.monotonic() - start


def by_reach(source, text, old, new, took):
    """(what the compiler says, the first test that notices it), of those that reach it; took: {test: seconds, unbroken}."""
    with tempfile.TemporaryDirectory() as folder:
        broken = pathlib.Path(folder)
        errors = link(source, text.replace(old, new), broken)
        if errors is not None:
            return errors, None
        made = (broken / "broken.o").read_bytes()
        for number, test in enumerate(nearest_first(source.stem, list(took))):
            if number == QUICK and compiled(source, text, broken)[0].read_bytes() == made:
                return "the same code: it cannot matter", None
            found = by_unit(test, max(20, 5 * took[test]), broken)
            if found:
                return None, found
        return None, None


def judge_list(mutations, options):
    """(mutation, what the compiler says, what noticed it, seconds) of each, in order."""
    if not options.reach:
        for number, name, old, new in mutations:
            source = ROOT / name
            errors = link(source, source.read_text().replace(old, new))
            found, took = (None, 0) if errors else judge(source.stem, options.seconds, options.by)
            yield (number, name, old, new), errors, found, took
        return
    reach = Reach()

    def one(mutation):
        _, name, old, new = mutation
        start = time.monotonic()
        text = (ROOT / name).read_text()
        errors, found = by_reach(ROOT / name, text, old, new, reach.of(name, text, old))
        return mutation, errors, found, time.monotonic() - start

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        yield from pool.map(one, mutations)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("list", type=pathlib.Path, nargs="?")
    parser.add_argument("--draw", type=int, metavar="SEED")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--only", help="lines of the list")
    parser.add_argument("--by", choices=("units", "dpsim", "both"), default="both")
    parser.add_argument("--reach", action="store_true", help="by units: only those that reach the mutation")
    parser.add_argument("--seconds", type=float, default=60, help="for each, of tests and simulator together")
    parser.add_argument("--markdown", type=pathlib.Path, help="append a table to this file")
    options = parser.parse_args()
    if options.draw is not None:
        draw(options.draw, options.count)
        return
    if options.list is None:
        parser.error("a list is missing")
    only = {int(number) for number in options.only.split(",")} if options.only else None
    mutations = [mutation for mutation in read_list(options.list) if only is None or mutation[0] in only]
    for number, name, old, _ in mutations:
        times = (ROOT / name).read_text().count(old)
        if times != 1:
            sys.exit(f"{options.list}:{number}: the old text stands {times} times in {name}")
    build(BUILD, unit_tests() + ([] if options.reach else ["dpsim"]), "-DCMAKE_BUILD_TYPE=Release")
    if not options.reach:  # The tests that count lines are of the unbroken program, and must pass.
        found, took = judge("none", 3600 if only is None else options.seconds, options.by, None)
        if found:
            sys.exit(f"unbroken: {found}")
        print(f"unbroken: passes, {took:.0f} s", flush=True)
    rows = []
    for (number, name, old, new), errors, found, took in judge_list(mutations, options):
        if errors:
            print(f"{number:4} is no mutation: {errors.splitlines()[0]}", flush=True)
            continue
        rows.append((number, name, old, new, found))
        shown = " -> ".join(" ".join(text.split()) for text in (old, new))
        print(f"{number:4} {'caught' if found else 'MISSED'} {took:5.1f} s  {name}: {shown}  {found or ''}", flush=True)
    caught = sum(1 for row in rows if row[4])
    print(f"{caught} of {len(rows)} caught")
    if options.markdown:
        with options.markdown.open("a") as table:
            for number, name, old, new, found in rows:
                cells = [f"`{' '.join(cell.split())}`".replace("|", "\\|") for cell in (old, new)]
                table.write(f"| {number} | {name} | {cells[0]} | {cells[1]} | {found or 'nothing'} |\n")
    sys.exit(caught < len(rows))


if __name__ == "__main__":
    main()
