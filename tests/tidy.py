#!/usr/bin/env python3
"""Checks of the tree: who includes whom, guards, sizes, a test for each source, and what the pure objects of gossip/ may call.

Usage: tests/tidy.py [BUILD_FOLDER]. Without a build folder, or without libdp_gossip.a in it, the symbols are not
checked. Prints one line per finding, file:line: what, and ends with status 1 if there was one.
`tests/tidy.py --self-test` runs the checks over small wrong examples.
"""

import glob
import os
import re
import subprocess
import sys
import tempfile

# Which folders the sources of a folder may include. Order within a floor does not matter.
FLOORS = {
    "base": {"base"},
    "gossip": {"gossip", "base"},
    "compute": {"compute", "base"},
    "store": {"store", "base"},
    "daemon": {"daemon", "gossip", "store", "base"},
    "cli": {"cli", "base"},
}
# Single headers that a folder, or one file, may include besides. A token is decoded without any daemon.
ALSO = {"cli": {"daemon/control/control_msg.h"}, "cli/verbs/cmd_token.c": {"gossip/identity/invite.h"}}
# The rooms (folders) of a house, from the lowest up, and which other rooms of the same house each may include. "." is the house's
# own folder. No circles: a room names rooms above it in this table only.
ROOMS = {
    "base": {".": "", "run": ".", "settings": ".", "trainer": ". run"},
    "gossip": {
        "core": "",
        "identity": "core",
        "channel": "core identity",
        "record": "core identity",
        "ledger": "core identity record",
        "event": "core identity ledger record",
        "member": "core event identity ledger record",
        "vote": "core ledger record",
        "transfer": "core event member",
        "pairs": "core ledger member transfer record",
        "context": "core event identity ledger member pairs transfer vote record",
        "requests": "context core event identity ledger member record",
        "catchup": "context core event identity ledger member requests transfer vote record",
        "round": "catchup context core event identity ledger member requests vote record",
        "training": "catchup context core event round record",
        "parts": "catchup context core event ledger round training record",
        "admin": "catchup context core event identity ledger requests round record",
        "node": "admin catchup context core event identity ledger member pairs parts requests round training transfer vote record",
    },
    "compute": {
        "machine": "",
        "cpu": "",
        "rules": "",
        "codec": "cpu",
        "data": "",
        "model": "cpu machine",
        "outer": "codec model",
        "backend": "codec cpu data machine model outer",
        "unicode": "",
        "template": "",
        "text": "machine unicode",
        "corpus": "data machine template text unicode",
        "format": "corpus cpu machine model text",
        "trainer": "backend codec data machine model outer rules text unicode",
        "standalone": "backend codec corpus cpu data format machine model outer rules text trainer unicode",
        "worker": "backend codec corpus cpu data format machine model outer text trainer unicode",
        "cuda": "backend codec cpu machine model outer",
        ".": "backend format machine standalone worker",
    },
    "store": {".": ""},
    "daemon": {
        "owner": "",
        "host": "owner",
        "history": "host",
        "net": "host",
        "trainer": "host",
        "peer": "owner host net trainer",
        "control": "owner host history net peer trainer",
        "model": "control owner host history net peer trainer",
        ".": "control model owner history host net peer trainer",
    },
    "cli": {".": "", "start": ".", "doctor": ".", "watch": ".", "figures": ".", "web": ". doctor figures watch", "top": ". watch", "verbs": ". start doctor figures top watch web"},
}
# The exception: sources of these rooms still include the struct of the whole node.
ROOM_FILES_MAX = 35
KERNELS = {"compute/cpu", "compute/cuda"} # A file for each kernel: as many as there are.
HEADER_LINES_MAX = 300
LONG_HEADERS = set() # To be split.
# Tests, benches and the simulator see everything.
OPEN_FOLDERS = ("tests", "bench")

# Headers of libraries, and who may include them: folders, or single files.
LIBRARIES = {
    "uv.h": {"daemon"},
    "sodium.h": {"base/digest.c", "gossip/core/id.c", "gossip/channel/channel.c", "gossip/identity/cert.c", "gossip/identity/invite.c",
                 "gossip/channel/noise.c", "gossip/channel/suite.c", "gossip/channel/record_batch.c", "daemon"},
    "msgpack.h": {"base/pack.c"},
    "sqlite3.h": {"store"},
    "yaml.h": {"cli", "daemon"},
    "openssl/evp.h": {"daemon/net/aead.c"},
    "openssl/crypto.h": {"daemon/net/aead.c"},
    "jansson.h": {"compute", "cli"},
    "libsmartcols.h": {"cli"},
    "qrencode.h": {"cli"},
    "ncurses.h": {"cli/top/terminal.c"},
    "microhttpd.h": {"cli/web/server.c"},
    "pcre2.h": {"compute"},
    "utf8proc.h": {"compute"},
    "pthread.h": {"compute", "store", "daemon"},
}

LINES_MAX = 700
COLUMNS_MAX = 100
# Files of gossip/ that call each other.
CIRCLE_FILES_MAX = 8
CIRCLE_LINES_MAX = 2000
# dp_assert in 100 lines of gossip/, on average.
ASSERTIONS_MIN = 1.5

# Objects of gossip/ that may compute with libsodium. Seeds and ephemeral keys come in from outside there too.
GOSSIP_EDGE = {"id", "channel", "cert", "invite", "noise", "suite", "record_batch"}
EDGE_ALLOWED = re.compile(r"^(crypto_\w+|sodium_\w+)$")
EDGE_FORBIDDEN = re.compile(r"^(crypto_\w+_keygen|crypto_(box|kx|sign|sign_ed25519)_keypair|sodium_malloc)$")

# Undefined symbols that no pure object may have.
FORBIDDEN = re.compile(
    r"^(clock_gettime|gettimeofday|time|localtime|gmtime|nanosleep|sleep|usleep|"
    r"rand|random|srand|srandom|rand_r|drand48|getrandom|getentropy|arc4random\w*|randombytes\w*|"
    r"socket|connect|accept|bind|listen|poll|select|epoll_\w+|send|sendto|sendmsg|recv|recvfrom|recvmsg|"
    r"read|pread|readv|write|pwrite|writev|open|openat|close|fopen|fread|fwrite|fclose|fsync|mmap|"
    r"uv_\w+|sqlite3_\w+|pthread_\w+|mtx_\w+|thrd_\w+|crypto_\w+|sodium_\w+|"
    r"malloc|calloc|realloc|free|posix_memalign|aligned_alloc|strdup|strndup|"
    r"printf|fprintf|puts|putchar|fputs|perror|dp_log\w*|getenv|exit|_exit|abort|"
    r"__printf_chk|__fprintf_chk|system|fork|execve)$")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def sources(root):
    """Paths of our C sources, relative to root."""
    for folder in list(FLOORS) + list(OPEN_FOLDERS):
        for base, folders, files in os.walk(os.path.join(root, folder)):
            folders.sort()
            for name in sorted(files):
                if name.endswith((".c", ".h", ".cu")):
                    yield os.path.relpath(os.path.join(base, name), root)


def check_include(path, mark, name):
    """A sentence if path may not include name, else None."""
    folder = path.split("/")[0]
    if mark == "<":
        allowed = LIBRARIES.get(name)
        if allowed is None or folder in OPEN_FOLDERS or folder in allowed or path in allowed:
            return None
        return f"may not include <{name}>: only {', '.join(sorted(allowed))} may"
    target = name.split("/")[0]
    if folder in OPEN_FOLDERS:
        return None if "/" in name else f'include "{name}" from the root, as "folder/file.h"'
    if target not in FLOORS:
        return f'include "{name}" from the root, as "folder/file.h"'
    if target == folder:
        return check_room(path, name)
    if target in FLOORS[folder] or name in ALSO.get(folder, ()) or name in ALSO.get(path, ()):
        return None
    if path == "compute/worker_main.c" and target == "base":
        return None
    return f'{folder}/ may not include "{name}": only {", ".join(sorted(FLOORS[folder]))}'


def room_of(path):
    parts = path.split("/")
    return parts[1] if len(parts) > 2 else "."


def check_room(path, name):
    """A sentence if the room of path may not include name, which is of the same house; else None."""
    house = path.split("/")[0]
    own, other = room_of(path), room_of(name)
    if house not in ROOMS or house != name.split("/")[0] or own == other:
        return None
    if own not in ROOMS[house]:
        return None # check_names tells of the room.
    if other in ROOMS[house][own].split():
        return None
    return (f'{house}/{own}/ may not include "{name}": its rooms are {ROOMS[house][own] or "none"}; move what is shared into a room '
            "below both, or ask by a function of the other room")


# File names that two houses use, from before this rule. A new file takes a unique name.
TWICE = {"chain", "claim", "dial", "export", "lease", "main", "memory", "optim", "optim_layer", "optim_muon", "order", "part",
         "plan", "plugin", "tool", "trainer"}


def check_names(root):
    """Folders that are no rooms, and names that stand twice."""
    stems = {}
    for house, rooms in ROOMS.items():
        for base, _, files in os.walk(os.path.join(root, house)):
            folder = os.path.relpath(base, root)
            own = [name for name in files if name.endswith((".c", ".h", ".inl", ".cu"))]
            room = os.path.relpath(folder, house)
            if own and room not in rooms:
                yield folder, 1, f"{room}/ is no room of {house}/: put it into the table ROOMS of tests/tidy.py, below what it includes"
            for stem in {os.path.splitext(name)[0] for name in own}:
                stems.setdefault(stem, set()).add(folder)
    for stem, folders in sorted(stems.items()):
        if len(folders) > 1 and stem not in TWICE:
            yield sorted(folders)[1], 1, f"{stem} stands in {' and '.join(sorted(folders))}: a file has a name of its own"


def check_rooms(root):
    """Circles of the table, rooms that are too full."""
    for house, rooms in ROOMS.items():
        below = set()
        for room, named in rooms.items():
            for wrong in set(named.split()) - below:
                yield "tests/tidy.py", 1, f"ROOMS: {house}/{room} names {wrong}, which does not stand before it: a circle, or no room"
            below.add(room)
        for room in rooms:
            folder = os.path.normpath(os.path.join(house, room))
            names = os.listdir(os.path.join(root, folder)) if os.path.isdir(os.path.join(root, folder)) else []
            count = sum(name.endswith((".c", ".h", ".inl", ".cu")) for name in names)
            if count > ROOM_FILES_MAX and folder not in KERNELS:
                yield folder, 1, f"{count} files; a room has at most {ROOM_FILES_MAX}: cut it in two"


# Sources that a test of another name covers: `source  test  reason` on each line, `#` begins a comment.
TESTED_BY = "tests/tested_by.txt"


def own_test(path):
    """The test program of a source's own name."""
    parts = path.split("/")
    stem = os.path.splitext(parts[-1])[0]
    folders = ["cuda"] if parts[:2] == ["compute", "cuda"] else parts[:-1]
    return "/".join(["tests", "unit", *folders, f"test_{stem}.c"])


def check_tested(root):
    """Sources without a test of their name and without a line in TESTED_BY, and lines there that are wrong."""
    named = set()
    table = os.path.join(root, TESTED_BY)
    lines = []
    if os.path.exists(table):
        with open(table, encoding="utf-8") as file:
            lines = file.read().splitlines()
    for number, line in enumerate(lines, 1):
        words = line.split("#")[0].split(None, 2)
        if not words:
            continue
        if len(words) < 3:
            yield TESTED_BY, number, "a line has a source, a test and a reason in a few words: add what is missing"
            continue
        source, test = words[:2]
        if not os.path.exists(os.path.join(root, source)):
            yield TESTED_BY, number, f"{source} is gone: delete this line, or name the file that it became"
        elif os.path.exists(os.path.join(root, own_test(source))):
            yield TESTED_BY, number, f"{source} has a test of its own, {own_test(source)}: delete this line"
        elif source in named:
            yield TESTED_BY, number, f"{source} stands twice: keep the line of the test that says most"
        elif not test.startswith("tests/") or not os.path.isfile(os.path.join(root, test)):
            yield TESTED_BY, number, f"{test} is no test: name a file below tests/ that covers {source}"
        named.add(source)
    for path in sources(root):
        if path.split("/")[0] in FLOORS and path.endswith((".c", ".cu")) and path not in named \
                and not os.path.exists(os.path.join(root, own_test(path))):
            yield path, 1, f"no test: write {own_test(path)}, or say in {TESTED_BY} which test covers it and why"


def guard_of(path):
    return "DP_" + re.sub(r"[^A-Za-z0-9]", "_", path).upper()


def check_guard(path, lines):
    """The first directives of a header are its guard, named after its path."""
    directives = [(n, line) for n, line in enumerate(lines, 1) if line.startswith("#")]
    words = [line.split() for _, line in directives]
    wanted = guard_of(path)
    if path.split("/")[0] in OPEN_FOLDERS and words and words[0][0] == "#ifndef" \
            and re.match(r"DP_(\w+_)?" + guard_of(os.path.basename(path))[3:] + "$", words[0][1]):
        wanted = words[0][1] # Below tests/ and bench/ any folder words will do.
    if len(words) < 3 or words[0] != ["#ifndef", wanted] or words[1][:2] != ["#define", wanted] \
            or words[-1][0] != "#endif":
        yield (directives[0][0] if directives else 1), f"include guard {wanted} is missing"


COMMENT = re.compile(r"/\*.*?\*/|(?<![:\"\w/])//[^\n]*", re.S)
RELATIVE = re.compile(r"(?:^|(?<=[.:;?] ))(?:Who|Whom|Whose|Whoever|What|Whatever)\b[^.:;?]*(?P<end>.?)")


def check_sentences(text):
    """No sentence of a comment begins with a relative word, unless it is a question."""
    for match in COMMENT.finditer(text):
        comment = re.sub(r"\n\s*\* ?|^/[*/]\s*", " ", match.group(0))
        plain = " ".join(comment.removesuffix("*/").split())
        for found in RELATIVE.finditer(plain):
            if found.group("end") != "?":
                yield (text.count("\n", 0, match.start()) + 1,
                       f"\"{found.group(0)[:40]}\": a sentence has a subject and a verb in front; say who does what")


def check_file(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        lines = file.read().splitlines()
    if len(lines) > LINES_MAX:
        yield len(lines), f"{len(lines)} lines; a file is one idea of at most {LINES_MAX}"
    for n, line in enumerate(lines, 1):
        if len(line) > COLUMNS_MAX:
            yield n, f"{len(line)} columns; a line has at most {COLUMNS_MAX}: break it"
    yield from check_sentences("\n".join(lines))
    if path.endswith(".h"):
        if len(lines) > HEADER_LINES_MAX and path.split("/")[0] in FLOORS and path not in LONG_HEADERS:
            yield len(lines), f"{len(lines)} lines; a header has at most {HEADER_LINES_MAX}: cut it by what it declares"
        yield from check_guard(path, lines)
        if not lines or not lines[0].startswith("/*"):
            yield 1, "a header opens with a sentence that says what it is"
        name = os.path.basename(path)
        if name == "util.h" or name == "common.h":
            yield 1, "a file is named after its idea"
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if match:
            sentence = check_include(path, match.group(1), match.group(2))
            if sentence:
                yield number, sentence
        if re.search(r"\bassert\s*\(", line) and path.split("/")[0] in FLOORS \
                and not re.search(r"_assert|dp_assert|static_assert|\*|//", line):
            yield number, "assert() vanishes with NDEBUG: dp_assert"


def undefined_symbols(archive):
    """[(object name without .c.o, symbol)] of a static library."""
    text = subprocess.run(["nm", "--undefined-only", "--portability", archive], check=True, capture_output=True,
                          text=True).stdout
    current = ""
    for line in text.splitlines():
        match = re.match(r".*\[(.+?)(\.c)?\.o\]:$", line)
        if match:
            current = match.group(1)
        elif line.strip():
            yield current, line.split()[0].split("@")[0]


def check_symbols(archive):
    seen = set()
    for name, symbol in undefined_symbols(archive):
        allowed = name in GOSSIP_EDGE and EDGE_ALLOWED.match(symbol) and not EDGE_FORBIDDEN.match(symbol)
        if allowed or (name, symbol) in seen or not FORBIDDEN.match(symbol):
            continue
        seen.add((name, symbol))
        yield name, symbol


def call_graph(archive, files):
    """Which files of the archive call which others; files: path by name of the object."""
    defined, calls = {}, {}
    listed = subprocess.run(["nm", "-A", archive], capture_output=True, text=True, check=True).stdout
    rows = [match.groups() for match in re.finditer(r":(\w+)\.c\.o:\S*\s+([A-Z]) (\w+)$", listed, re.M)]
    for name, kind, symbol in rows:
        if kind in "TD" and name in files:
            defined[symbol] = files[name]
    for name, kind, symbol in rows:
        if kind == "U" and name in files and defined.get(symbol, files[name]) != files[name]:
            calls.setdefault(files[name], set()).add(defined[symbol])
    return calls


def circles(calls):
    """Sets of files each of which reaches all others of its set by calls (Tarjan 1972, without recursion: by reach)."""
    def reach(start):
        seen, ahead = set(), [start]
        while ahead:
            for other in calls.get(ahead.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    ahead.append(other)
        return seen
    reached = {name: reach(name) for name in calls}
    found = {frozenset(other for other in reached[name] if name in reached.get(other, ())) for name in calls}
    return sorted((sorted(one) for one in found if one), key=len)


def check_circles(root, archive):
    files = {os.path.splitext(os.path.basename(path))[0]: path for path in sources(root)
             if path.startswith("gossip/") and path.endswith(".c")}
    for one in circles(call_graph(archive, files)):
        lines = 0
        for path in one:
            with open(os.path.join(root, path), encoding="utf-8") as file:
                lines += len(file.readlines())
        if len(one) > CIRCLE_FILES_MAX or lines > CIRCLE_LINES_MAX:
            yield one[0], 1, (f"{len(one)} files with {lines} lines call each other in a circle, at most {CIRCLE_FILES_MAX} with "
                              f"{CIRCLE_LINES_MAX} may: {', '.join(one)}; return a result in place of a call back")


def check_assertions(root):
    lines, count = 0, 0
    for path in sources(root):
        if path.startswith("gossip/"):
            with open(os.path.join(root, path), encoding="utf-8") as file:
                text = file.read()
            lines += text.count("\n")
            count += text.count("dp_assert(")
    if lines > 0 and 100 * count / lines < ASSERTIONS_MIN:
        yield "gossip", 1, (f"{count} assertions in {lines} lines, {ASSERTIONS_MIN} in 100 are wanted: say at the entry of new functions what "
                            "must hold (never of bytes from outside)")


def line_of(root, path, symbol):
    """Where path first names symbol, for the message; 1 if a macro hides it."""
    try:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if re.search(rf"\b{re.escape(symbol)}\s*\(", line):
                    return number
    except OSError:
        pass
    return 1


# Sources that a document names and that do not exist: to be written by its reader.
EXAMPLES = {"compute/codec/codec_int2.c"}
CITED = re.compile(r"`((?:" + "|".join(FLOORS) + r")/[\w/]+\.(?:c|h|cu))`((?: `\w+`(?:, `\w+`)*)?)")


def check_documents(root):
    """Sources that docs/*.md name exist, and the functions named right after one stand in it. (docs/records and docs/decisions
    tell of the past.)"""
    folder = os.path.join(root, "docs")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if not name.endswith(".md"):
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            text = file.read()
        for match in CITED.finditer(text):
            number = text.count("\n", 0, match.start()) + 1
            path = os.path.join(root, match.group(1))
            if not os.path.exists(path):
                if match.group(1) not in EXAMPLES:
                    yield f"docs/{name}", number, f"{match.group(1)} does not exist: name the file that has it now"
                continue
            with open(path, encoding="utf-8") as file:
                source = file.read()
            for word in re.findall(r"`(\w+)`", match.group(2)):
                if not re.search(rf"\b{word}\b", source):
                    yield f"docs/{name}", number, f"{match.group(1)} has no {word}: name the file that has it now"


# Names of other programs, and examples for the reader.
FOREIGN = {"preempt_send_user_signal", "fault_tolerance", "llama_model_rope_type", "begin_of_text", "dp_codec_int2", "cli_test_dial",
           "round_falls_back_to_gossip_below_the_quorum", "tests/fuzz/corpus/blob/int2_32_65", "gossip/test_dial"}
SPAN = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"(?:" + "|".join([*FLOORS, *OPEN_FOLDERS, "contrib", "debian", "docker", "docs", "python", "script"]) + r")/[\w./*-]*\w")
LONG_NAME = re.compile(r"(?<![\w$])[a-z]\w*_\w*")
LONG_NAME_MIN = 12


def tree_words(root):
    """All words of the sources, tests and settings, and of the names of their files."""
    words = set()
    for base, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith((".", "__")) and (base != root or name not in ("docs", "build", "shared"))]
        for name in names if base != root else ("CMakeLists.txt",):
            words.update(re.findall(r"\w+", name))
            path = os.path.join(base, name)
            if os.path.isfile(path):
                with open(path, encoding="utf-8", errors="ignore") as file:
                    words.update(re.findall(r"\w+", file.read()))
    return words


def is_there(root, path):
    """A file, a folder, a pattern of files; or a test as ctest calls it, house/test_name."""
    house, _, name = path.partition("/")
    tests = os.path.join(root, "tests", "unit", house, "**", name + ".c")
    return bool(glob.glob(os.path.join(root, path)) or name.startswith("test_") and glob.glob(tests, recursive=True))


def check_references(root):
    """Paths and long names in code font in docs/*.md are those of the tree; sources of the houses are check_documents'."""
    folder = os.path.join(root, "docs")
    pages = [name for name in sorted(os.listdir(folder)) if name.endswith(".md")] if os.path.isdir(folder) else []
    words = tree_words(root) if pages else set()
    for name in pages:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            text = file.read()
        for span in SPAN.finditer(text):
            number = text.count("\n", 0, span.start()) + 1
            path = PATH.fullmatch(span.group(1).split()[0]) if span.group(1).strip() else None
            if path and not CITED.fullmatch(f"`{path.group(0)}`") and path.group(0) not in FOREIGN and not is_there(root, path.group(0)):
                yield f"docs/{name}", number, f"{path.group(0)} does not exist: name the file or the test that has it now"
            for word in LONG_NAME.findall(span.group(1)):
                known = word in words or word in FOREIGN or word.endswith("_") and any(other.startswith(word) for other in words)
                if len(word) >= LONG_NAME_MIN and not known and not (path and word in path.group(0)):
                    yield f"docs/{name}", number, f"{word} stands nowhere in the tree: write its present name, or put it into FOREIGN"


def check_decisions(root):
    """Prose of docs/decisions has short lines, as the C sources have; a row of a table is one line."""
    folder = os.path.join(root, "docs", "decisions")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            for number, line in enumerate(file.read().splitlines(), 1):
                if len(line) > COLUMNS_MAX and not line.startswith("|"):
                    yield f"docs/decisions/{name}", number, f"{len(line)} columns; a line has at most {COLUMNS_MAX}: break it"


CONTROL = "daemon/control/control_msg.h"
PAIR = re.compile(r'dp_pair\w*\([^;]*?"(\w+)"')


def check_control_keys(root):
    """Each key of a reply stands in the comment of control_msg.h, and each word there in a source."""
    path = os.path.join(root, CONTROL)
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8") as file:
        text = file.read()
    told = {match.group(1): text.count("\n", 0, match.start()) + 1 for match in re.finditer(r'"(\w+)"', text)}
    used = set()
    for source in sources(root):
        if source == CONTROL or source.startswith("tests/"):
            continue
        with open(os.path.join(root, source), encoding="utf-8") as file:
            code = file.read()
        used.update(re.findall(r'"(\w+)"', code))
        if source.startswith("daemon/"):
            for match in PAIR.finditer(code):
                if match.group(1) not in told:
                    yield source, code.count("\n", 0, match.start()) + 1, f"\"{match.group(1)}\" does not stand in {CONTROL}: say what it is"
    for word, number in told.items():
        if word not in used and word != "method":
            yield CONTROL, number, f"\"{word}\" is in no reply and no question: take it out"


def check_tree(root, build):
    findings = [*check_rooms(root), *check_names(root)]
    for path in sources(root):
        findings += [(path, number, sentence) for number, sentence in check_file(root, path)]
    findings += [*check_documents(root), *check_references(root), *check_decisions(root), *check_control_keys(root)]
    archive = os.path.join(build, "libdp_gossip.a") if build else ""
    if os.path.exists(archive):
        for name, symbol in check_symbols(archive):
            path = next((p for p in sources(root) if p.startswith("gossip/") and p.endswith(f"/{name}.c")), f"gossip/{name}.c")
            findings.append((path, line_of(root, path, symbol),
                             f"gossip/ is pure: {symbol} may not be called here; it comes in with an event"))
        findings += check_circles(root, archive)
    return findings


def self_test():
    """Each kind of finding is found in a wrong example, and a right one is left in peace."""
    wrong = [
        ("gossip/core/a.c", '#include "store/db.h"\n', 1),
        ("gossip/core/a.c", '#include "gossip/node/node.h"\n', 1),
        ("gossip/attic/a.c", '#include "gossip/core/id.h"\n', 1),
        ("gossip/core/order.h", "/* A. */\n#ifndef DP_GOSSIP_CORE_ORDER_H\n#define DP_GOSSIP_CORE_ORDER_H\n#endif\n", 0),
        ("gossip/vote/a.c", '#include "gossip/round/round.h"\n', 1),
        ("gossip/round/a.c", '#include "gossip/vote/commit.h"\n', 0),
        ("gossip/node/a.c", '#include "gossip/core/id.h"\n', 0),
        ("base/a.h", "/* A. */\n#ifndef DP_BASE_A_H\n#define DP_BASE_A_H\n" + "\n" * HEADER_LINES_MAX + "#endif\n", 1),
        ("base/a.c", "/* " + "a" * (COLUMNS_MAX - 6) + " */\n", 0),
        ("base/a.c", "/* " + "a" * (COLUMNS_MAX - 5) + " */\n", 1),
        ("gossip/core/a.c", '#include <uv.h>\n', 1),
        ("gossip/core/a.c", '#include "a.h"\n', 1),
        ("base/a.c", '#include "gossip/a.h"\n', 1),
        ("cli/a.c", '#include "daemon/peer/driver.h"\n', 1),
        ("store/a.c", '#include <sodium.h>\n', 1),
        ("daemon/a.c", '#include "compute/a.h"\n', 1),
        ("tests/a.c", '#include "a.h"\n', 1),
        ("base/a.h", "/* A. */\n#ifndef A_H\n#define A_H\n#endif\n", 1),
        ("base/a.h", "#ifndef DP_BASE_A_H\n#define DP_BASE_A_H\n#endif\n", 1),
        ("base/a.c", "int x;\n" * (LINES_MAX + 1), 1),
        ("base/a.c", "assert(x);\n", 1),
        ("base/a.c", "int a; /* Who sent it. */\n/* It is late. What was\n * lost is told. */\n", 2),
        ("base/a.c", "/* What is it? Whom it is for: nobody. */\n", 1),
        ("base/a.c", "/* Says who sent it, and what. */\nchar *s = \"What is here\";\n", 0),
        ("base/a.h", "/* A. */\n#ifndef DP_BASE_A_H\n#define DP_BASE_A_H\n#endif\n", 0),
        ("cli/a.c", '#include "daemon/control/control_msg.h"\n#include <stdio.h>\n', 0),
        ("daemon/a.c", '#include "gossip/a.h"\n#include <uv.h>\ndp_assert(x);\n', 0),
        ("tests/a.c", '#include "gossip/a.h"\n#include <sodium.h>\n', 0),
        ("docs/A.md", "`base/a.c`\n", 1),
        ("docs/A.md", "`tests/unit/gossip/test_none.c`, `a_name_of_no_source`\n", 2),
        ("docs/A.md", "`docs/A.md`, `fault_tolerance`, `a_short`, a_name_of_no_source\n", 0),
        ("docs/decisions/001-a.md", "a" * COLUMNS_MAX + "\n|" + "a" * COLUMNS_MAX + "\n", 0),
        ("docs/decisions/001-a.md", "a" * (COLUMNS_MAX + 1) + "\n", 1),
    ]
    header = '/* A: {"told", "old"}. */\n#ifndef DP_DAEMON_CONTROL_CONTROL_MSG_H\n#define DP_DAEMON_CONTROL_CONTROL_MSG_H\n#endif\n'
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, "daemon/control"))
        for path, text in ((CONTROL, header), ("daemon/control/a.c", 'dp_pair_u64(&map, "told", 1);\ndp_pair_nil(&map,\n"new");\n')):
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        found = [(path, number) for path, number, _ in check_control_keys(root)]
        assert found == [("daemon/control/a.c", 2), (CONTROL, 1)], found
    for path, text, count in wrong:
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, os.path.dirname(path)))
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
            found = check_tree(root, None)
            assert len(found) == count, (path, text[:80], found)
    for symbol in ("clock_gettime", "malloc", "uv_now", "sqlite3_open", "crypto_sign", "write", "printf", "getrandom"):
        assert FORBIDDEN.match(symbol), symbol
    for symbol in ("memcpy", "memset", "qsort", "dp_alloc", "dp_free", "snprintf", "dp_rng_next", "dp_read_u64"):
        assert not FORBIDDEN.match(symbol), symbol
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}}) == [["a", "b", "c"]]
    self_test_tested()
    for text, count in (("int x;\n" * 60 + "dp_assert(x);\n", 0), ("int x;\n" * 70 + "dp_assert(x);\n", 1)):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "gossip"))
            with open(os.path.join(root, "gossip", "a.c"), "w", encoding="utf-8") as file:
                file.write(text)
            assert len(list(check_assertions(root))) == count, count
    self_test_symbols()


def self_test_tested():
    """Sources with and without tests, and right and wrong lines of the table."""
    source, own, other = "gossip/core/a.c", "tests/unit/gossip/core/test_a.c", "tests/unit/gossip/core/test_b.c"
    kernel = "compute/cuda/a.cu"
    line = f"{source}  {other}  its only caller\n"
    cases = [
        ([source], None, "no test: write " + own),
        ([source, own], None, ""),
        (["main.c", "tests/lib/a.c", "gossip/core/a.h"], None, ""), # No sources of a house.
        ([kernel], None, "no test: write tests/unit/cuda/test_a.c"),
        ([kernel, "tests/unit/cuda/test_a.c"], None, ""),
        ([source, other], "# A heading.\n\n" + line, ""),
        ([source, other], line + "gossip/core/c.c  " + other + "  moved\n", "is gone"),
        ([source, own, other], line, "has a test of its own"),
        ([source], line, "is no test"),
        ([source, "gossip/core/b.c", own.replace("test_a", "test_b")], f"{source}  gossip/core/b.c  beside it\n", "is no test"),
        ([source, "tests/README"], f"{source}  tests  all\n", "is no test"),
        ([source, other], line + line, "stands twice"),
        ([source, own], f"{source} {other}\n", "a line has a source"),
    ]
    for paths, table, sentence in cases:
        with tempfile.TemporaryDirectory() as root:
            for path, text in [(path, "") for path in paths] + ([(TESTED_BY, table)] if table is not None else []):
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            found = list(check_tested(root))
            assert len(found) == (sentence != "") and all(sentence in text for _, _, text in found), (paths, table, found)


def self_test_symbols():
    """The symbols of a small library: a pure object and one of the edge that draws a key itself."""
    compiler = os.environ.get("CC", "cc")
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, "gossip", "core"))
        calls = {"round": ("time", "crypto_verify_32"), "channel": ("crypto_verify_32", "crypto_kx_keypair")}
        for name, (first, second) in calls.items():
            source = os.path.join(root, "gossip", "core", name + ".c")
            with open(source, "w", encoding="utf-8") as file:
                file.write(f"int {first}();\nint {second}();\nint {name}_f();\n"
                           f"int {name}_f()\n{{\nreturn {first}(0) +\n{second}(0);\n}}\n")
            subprocess.run([compiler, "-w", "-c", source, "-o", os.path.join(root, name + ".c.o")], check=True)
        objects = [os.path.join(root, name + ".c.o") for name in calls]
        subprocess.run(["ar", "rc", os.path.join(root, "libdp_gossip.a"), *objects], check=True)
        found = sorted((path, sentence.split()[3]) for path, _, sentence in check_tree(root, root))
        assert found == [("gossip/core/channel.c", "crypto_kx_keypair"), ("gossip/core/round.c", "crypto_verify_32"),
                         ("gossip/core/round.c", "time")], found


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        print("tidy: self-test passed")
        return 0
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    findings = check_tree(root, sys.argv[1] if len(sys.argv) > 1 else None) + list(check_tested(root)) + list(check_assertions(root))
    for path, number, sentence in findings:
        print(f"{path}:{number}: {sentence}")
    print(f"tidy: {len(findings)} findings in {sum(1 for _ in sources(root))} files")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
