#!/usr/bin/env python3
"""dpnode without a daemon: unknown words, checked files, decoded tokens."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import BINARIES, SystemTest  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def dpnode(*words, stdin=None, **environment):
    return subprocess.run([os.path.join(BINARIES, "dpnode"), *words], input=stdin, capture_output=True, timeout=30,
                          env={**os.environ, "DPNODE_SOCKET": "/nonexistent/s", "LC_ALL": "C", **environment},
                          check=False)


def sources(*folders):
    """The C sources and headers in these folders of the tree, and in the folders below."""
    return sorted(os.path.join(base, name) for folder in folders for base, _, names in os.walk(os.path.join(ROOT, folder))
                  for name in names if name.endswith((".c", ".h")))


class WithoutDaemon(SystemTest):
    def test_an_error_says_what_why_and_fix_on_stderr(self):
        done = dpnode("status")
        self.assertEqual((done.returncode, done.stdout), (69, b""))
        lines = done.stderr.decode().splitlines()
        self.assertTrue(lines[0].startswith("error E0101: ") and "why:" in lines[1] and "fix:" in lines[2], lines)

    def test_at_a_terminal_a_token_is_asked_for(self):
        """sudo logs a command's arguments, but not what is typed: dpnode join -."""
        terminal, slave = pty.openpty()
        os.write(terminal, b"DPN1-AE\nAA\n\x04")
        done = subprocess.run([os.path.join(BINARIES, "dpnode"), "token", "inspect", "-"], stdin=slave, capture_output=True, text=True,
                              timeout=30, check=False)
        os.close(slave)
        os.close(terminal)
        self.assertEqual(done.stderr.splitlines()[0], "Paste the token, then press Enter and Ctrl-D:")
        self.assertIn("error E0203: ", done.stderr)
        self.assertNotIn("Paste", dpnode("token", "inspect", "-", stdin=b"DPN1-AEAA").stderr.decode())

    def test_with_json_the_error_is_an_object_on_stdout(self):
        done = dpnode("peers", "--json")
        self.assertEqual((done.returncode, done.stderr), (69, b""))
        self.assertEqual(json.loads(done.stdout)["error"]["code"], "E0101")
        for words in (["no", "verb", "--json"], ["--json"], ["status", "--json", "--wrong"]):
            done = dpnode(*words)
            self.assertEqual((done.returncode, json.loads(done.stdout)["error"]["exit"]), (64, 64), words)

    def test_every_verb_that_needs_the_daemon_says_so(self):
        for words in (["status"], ["peers"], ["rounds"], ["why"], ["logs"], ["pause"], ["resume"], ["leave"], ["invite"],
                      ["ckpt", "ls"], ["ckpt", "verify"], ["ckpt", "export", "x"], ["sample"], ["eval"], ["data"],
                      ["down"], ["drain"], ["audit"], ["revoke", "bob", "--yes"], ["run", "fork", "--yes"],
                      ["run", "merge", "--yes"], ["token", "ls"], ["token", "revoke", "9f31"]):
            self.assertEqual(dpnode(*words).returncode, 69, words)

    def test_a_wrong_word_or_option_is_a_usage_error(self):
        for words in (["statsu"], ["run"], ["ckpt"], ["status", "--chek"], ["status", "now"], ["join"], ["invite", "--uses"],
                      ["invite", "--uses", "many"], ["run", "create"], ["run", "create", "a", "--demo", "kjv"],
                      ["why", "not"], ["why", "round", "x"], ["completion", "tcsh"], ["ckpt", "foo"], ["drain", "--delete-run", "tiny"],
                      ["drain", "--keep-data"], ["ckpt", "export", "x", "--gguf", "q5"], ["ckpt", "export", "x", "--llmc", "f16"],
                      ["ckpt", "export", "x", "--llmc", "f32", "--gguf", "f32"], ["swarm", "-n", "0"],
                      ["peers", "--sort", "speed"], ["peers", "--sort"], []):
            self.assertEqual(dpnode(*words).returncode, 64, words)

    def test_a_second_word_that_is_missing_is_told_from_one_that_is_wrong(self):
        words = "ckpt ls, ckpt verify, ckpt export"
        for second, what, why in ((["--json"], "the verb is incomplete", words),
                                  (["foo", "--json"], "unknown verb", f"ckpt foo; known are {words}"),
                                  (["", "--json"], "unknown verb", f'ckpt ""; known are {words}')):
            error = json.loads(dpnode("ckpt", *second).stdout)["error"]
            self.assertEqual((error["what"], error["why"]), (what, why))

    def test_an_argument_that_is_empty_is_told(self):
        for verb in (["join"], ["train"], ["eval"], ["swarm"], ["run", "create"], ["data", "info"], ["ckpt", "export"], ["status"]):
            error = json.loads(dpnode(*verb, "", "--json").stdout)["error"]
            self.assertEqual((error["exit"], error["what"]), (64, "an argument is empty"), verb)
        self.assertEqual(json.loads(dpnode("", "--json").stdout)["error"]["why"], '""')
        for words in (["up", "--dir", ""], ["join", "DPN1-abc", "--dir="], ["data", "tokenize", "x", "--out", ""]):
            error = json.loads(dpnode(*words, "--json").stdout)["error"]
            self.assertEqual((error["exit"], error["what"]), (64, "an option's path is empty"), words)

    def test_the_manual_has_every_setting_of_the_daemon(self):
        with open(os.path.join(ROOT, "docs", "man", "dpnoded.8"), encoding="utf-8") as file:
            sections = file.read().replace("\\-", "-").split("\n.SH OPTIONS\n")[1].split("\n.SH ")[0].split(".TP\n")[1:]
        manual = {section.split()[1]: section.split("\n", 1)[1] for section in sections}
        told = subprocess.run([os.path.join(BINARIES, "dpnoded"), "--help"], capture_output=True, text=True, timeout=30, check=True).stdout
        settings = dict(re.findall(r"^  (--[a-z-]+)(.*)$", told, re.MULTILINE))
        self.assertGreater(len(settings), 10)
        self.assertEqual(list(manual), list(settings))
        for name, text in manual.items(): # The manual may say more behind it.
            plain = " ".join(re.sub(r"^\.[BIR]+ ", "", text, flags=re.MULTILINE).split())
            self.assertTrue(any(" ".join(settings[name].split()[at:]) in plain for at in (0, 1)), f"{name}: {plain}")

    def test_a_manifest_of_no_bytes_is_told(self):
        path = os.path.join(self.folder.path, "empty.yaml")
        open(path, "w", encoding="utf-8").close()
        error = json.loads(dpnode("run", "validate", path, "--json").stdout)["error"]
        self.assertIn("empty.yaml:1:1: ", error["why"] + error["what"])

    def test_a_folder_in_place_of_a_manifest_is_told(self):
        error = json.loads(dpnode("run", "validate", self.folder.path, "--json").stdout)["error"]
        self.assertEqual((error["exit"], error["why"]), (66, f"{self.folder.path}: it is not a file"))

    def test_validate_shows_what_training_takes_here(self):
        for preset, fits in (("llama-tiny", True), ("gpt2-774m", None)):
            path = os.path.join(self.folder.path, "run.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"name: a\nmodel: {{preset: {preset}}}\n")
            done = dpnode("run", "validate", path, "--json")
            plan = json.loads(done.stdout)["plan"]
            self.assertEqual(done.returncode, 0 if json.loads(done.stdout)["valid"] else 1, done.stderr)
            self.assertTrue(plan["fits"] or done.returncode == 1)
            parts = ("weights", "gradients", "moments", "anchors", "packed", "buffers", "daemon", "data", "activations")
            self.assertEqual(plan["total"], sum(plan[part] for part in parts))
            self.assertEqual(plan["fits"], plan["rows"] > 0)
            self.assertTrue(fits is None or plan["fits"] == fits, plan)
            text = dpnode("run", "validate", path).stdout.decode()
            self.assertIn("activations", text)
            self.assertIn(" at a time, recomputes: " if plan["fits"] else "does not fit this machine", text)

    def test_validate_ends_with_1_where_a_run_could_not_train(self):
        self.file("short.txt", "a few words, " * 8)
        small = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < systemtest.VAST_BYTES
        for manifest, fits in (("text: short.txt\n" + systemtest.TINY, True), (systemtest.VAST, False)):
            path = self.file("run.yaml", manifest)
            done = dpnode("run", "validate", path, "--json")
            told = json.loads(done.stdout)
            if fits or small:
                self.assertEqual((done.returncode, told["valid"], told["plan"]["fits"]), (1, False, fits), told)
                self.assertEqual("are held out" in told.get("text_why", ""), fits)
                done = dpnode("run", "validate", path, LC_ALL="C.UTF-8")
                self.assertEqual((done.returncode, "\u2717" in done.stdout.decode()), (1, True))
        self.file("enough.txt", "a few words, " * 80)
        self.assertEqual(dpnode("run", "validate", self.file("run.yaml", "text: enough.txt\n" + systemtest.TINY)).returncode, 0)

    def test_validate_counts_the_data_that_the_manifest_names(self):
        path = os.path.join(self.folder.path, "run.yaml")
        data = os.path.join(self.folder.path, "data")
        os.makedirs(data, exist_ok=True)
        for name, size in (("a.bin", 3000), ("b.bin", 4000), ("a.txt", 50000)):
            with open(os.path.join(data, name), "wb") as file:
                file.write(b"x" * size)
        for text, size in (("data", 7000), ("data/a.txt", 50000), (data, 7000)):
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"name: a\ntext: {text}\nmodel: {{preset: llama-tiny}}\n")
            done = dpnode("run", "validate", path, "--json")
            self.assertEqual(json.loads(done.stdout)["plan"]["data"], size, text)

    def test_help_begins_with_examples_and_names_every_option(self):
        listed = dpnode("--help").stdout.decode()
        verbs = [line[2:16].strip() for line in listed.split("usage:")[1].splitlines()[2:] if line.startswith("  ")]
        self.assertGreater(len(verbs), 20)
        for verb in verbs:
            done = dpnode(*verb.split(), "--help")
            self.assertEqual(done.returncode, 0, verb)
            self.assertIn(f"dpnode {verb}", done.stdout.decode().splitlines()[0], verb)
            self.assertIn(f"\nusage: dpnode {verb}", done.stdout.decode(), verb)
            self.assertEqual("--json" in done.stdout.decode(), verb != "top", verb)
        self.assertEqual(json.loads(dpnode("top", "--json").stdout)["error"]["code"], "E0001")

    def test_the_first_word_of_several_verbs_has_a_help(self):
        for word, verbs in (("run", ("run create", "run validate", "run fork", "run merge")), ("token", ("token inspect", "token ls", "token revoke")),
                            ("ckpt", ("ckpt ls", "ckpt verify", "ckpt export"))):
            for asked in ((word, "--help"), (word, "-h"), ("help", word)):
                done = dpnode(*asked)
                self.assertEqual(done.returncode, 0, asked)
                for verb in verbs:
                    self.assertIn(f"\n  {verb} ", done.stdout.decode(), asked)
        self.assertIn("\n  data tokenize ", dpnode("data", "--help").stdout.decode())

    def test_a_verb_that_is_nearly_right_is_named(self):
        for words, meant in ((("statsu",), "status"), (("run", "creat"), "run create"), (("create",), "run create"),
                             (("ckpt", "exprot", "x"), "ckpt export"), (("data", "tokenise", "x"), "data tokenize"),
                             (("helpp",), "help"), (("--versoin",), "--version")):
            done = dpnode(*words, "--json")
            error = json.loads(done.stdout)["error"]
            self.assertEqual((done.returncode, error["code"]), (64, "E0002"), words)
            self.assertTrue(error["why"].endswith(f"; did you mean {meant}?"), error)
        for words in (("zebra",), ("run", "zebra")):
            self.assertNotIn("did you mean", dpnode(*words).stderr.decode(), words)

    def test_the_version_is_told_in_every_spelling(self):
        for words in (("-V",), ("--version",), ("version",)):
            self.assertEqual(dpnode(*words).stdout, dpnode("--version").stdout)
            self.assertEqual(dpnode(*words).returncode, 0)
        done = subprocess.run([os.path.join(BINARIES, "dpnoded"), "-V"], capture_output=True, text=True, timeout=30, check=True)
        self.assertRegex(done.stdout, r"^dpnoded \d")

    def test_the_completion_script_is_bash(self):
        script = dpnode("completion", "bash").stdout
        self.assertEqual(subprocess.run(["bash", "-n"], input=script, check=False).returncode, 0)
        ask = b"\nCOMP_WORDS=(dpnode run cr); COMP_CWORD=2; compopt() { :; }; _dpnode; echo ${COMPREPLY[@]}"
        done = subprocess.run(["bash"], input=script + ask, capture_output=True, check=False)
        self.assertEqual(done.stdout.strip(), b"create")

    def test_the_completions_in_contrib_are_those_that_are_printed(self):
        for shell in ("bash", "zsh", "fish"):
            with open(os.path.join(ROOT, "contrib", "dpnode." + shell), "rb") as file:
                self.assertEqual(file.read(), dpnode("completion", shell).stdout, shell)

    def test_the_completions_of_zsh_and_fish_answer_where_these_are_installed(self):
        asks = {"zsh": ("-f", "compdef() { :; }; _files() { :; }; _describe() { print -rl -- ${(PM)2:#${words[CURRENT]}*}; }; source FILE; "
                              "words=(dpnode ckpt ve); CURRENT=3; _dpnode"),
                "fish": ("--no-config", "source FILE; complete -C 'dpnode ckpt ve'")}
        for shell, (flag, ask) in asks.items():
            if shutil.which(shell) is None:
                continue
            file = os.path.join(ROOT, "contrib", "dpnode." + shell)
            done = subprocess.run([shell, flag, "-c", ask.replace("FILE", file)], capture_output=True, text=True, timeout=30, check=False)
            self.assertEqual(re.sub(r"[:\t]", ": ", done.stdout), "verify: read every checkpoint and check its hashes\n", done.stderr)

    def test_the_manual_has_every_verb_with_its_options(self):
        with open(os.path.join(ROOT, "docs", "man", "dpnode.1"), encoding="utf-8") as file:
            verbs = file.read().split("\n.SH VERBS\n")[1].split("\n.SH ")[0]
        plain = re.sub(r" +", " ", re.sub(r'\\f[A-Z]|"', "", verbs).replace("\\-", "-"))
        sections = plain.split(".TP\n")[1:]
        listed = dpnode("--help").stdout.decode().split("usage:")[1].splitlines()[2:]
        for verb in [line[2:16].strip() for line in listed if line.startswith("  ")]:
            named = re.compile(rf"^\.B\w* (.*, )?{verb}\b(?! (create|tokenize|info|verify))")
            of_verb = "".join(section for section in sections if named.match(section.splitlines()[0]))
            self.assertTrue(of_verb, verb)
            options = re.findall(r"^  (-\w,|   ) (--[\w-]+)", dpnode(*verb.split(), "--help").stdout.decode(), re.MULTILINE)
            for letter, option in options:
                if option not in ("--json", "--socket", "--help"):
                    told = f"{letter[:2]} " in of_verb or option in of_verb
                    self.assertTrue(told, f"dpnode.1 has no {option} with {verb}")

    def test_the_manual_has_every_exit_status_of_an_error(self):
        with open(os.path.join(ROOT, "docs", "ERRORS.md"), encoding="utf-8") as file:
            rows = re.findall(r"^\| E\d{4} \[([^\]]+)\]", file.read(), re.MULTILINE)
        used = {int(word) for row in rows for word in row.split(", ") if word.isdigit()}
        with open(os.path.join(ROOT, "docs", "man", "dpnode.1"), encoding="utf-8") as file:
            told = file.read().split('.SH "EXIT STATUS"\n')[1].split("\n.SH ")[0]
        self.assertGreater(len(used), 8)
        self.assertLessEqual(used, {int(word) for word in re.findall(r"\b(\d+) [a-z]", told)})

    def test_the_manual_has_every_exit_status_of_the_daemon(self):
        with open(os.path.join(ROOT, "daemon", "main.c"), encoding="utf-8") as file:
            used = {int(word) for word in re.findall(r"\bEXIT_[A-Z]+ = (\d+)", file.read())}
        for path in sources("daemon"): # Ends of the daemon outside of its main.
            with open(path, encoding="utf-8") as file:
                used |= {int(word) for word in re.findall(r"\bdp_daemon_end\([^,;]*, (\d+),", file.read())}
        with open(os.path.join(ROOT, "docs", "man", "dpnoded.8"), encoding="utf-8") as file:
            told = file.read().split('.SH "EXIT STATUS"\n')[1].split("\n.SH ")[0]
        self.assertGreater(len(used), 7)
        self.assertEqual(used, {int(word) for word in re.findall(r"\b(\d+) (?!and\b)[a-z]", told)})

    def test_each_variable_of_the_environment_is_told(self):
        used, told = set(), ""
        for path in sources("base", "cli", "daemon", "compute", "store"):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            used |= set(re.findall(r'(?:getenv|folder_of)\("([A-Z_]+)"\)', text))
            used |= set(re.findall(r'"((?:VAST|RUNPOD|PUBLIC)_[A-Z_]+)=?"', text)) # advertise.c
        for folder in ("docs", os.path.join("docs", "man")):
            for name in os.listdir(os.path.join(ROOT, folder)):
                if name.endswith((".md", ".1", ".8")):
                    with open(os.path.join(ROOT, folder, name), encoding="utf-8") as file:
                        told += file.read()
        self.assertGreater(len(used), 14)
        self.assertEqual([name for name in sorted(used) if name not in told and not name.startswith("DPNODE_")], [])

    def test_the_page_of_the_benches_names_those_without_json(self):
        without = []
        for path in sources("bench"):
            with open(path, encoding="utf-8") as file:
                if re.search(r"bench_\w+\.c$", path) and "--json" not in file.read():
                    without.append(os.path.basename(path)[:-len(".c")])
        with open(os.path.join(ROOT, "docs", "BENCHMARKS.md"), encoding="utf-8") as file:
            told = re.search(r"Each takes `--json`,\s+but for ([^.]+)\.", file.read()).group(1)
        self.assertEqual(re.findall(r"`(\w+)`", told), without)

    def test_the_manual_of_the_page_has_its_options(self):
        web = os.path.join(BINARIES, "dpnode-web")
        if not os.access(web, os.X_OK):
            self.skipTest("it is not built")
        with open(os.path.join(ROOT, "docs", "man", "dpnode-web.1"), encoding="utf-8") as file:
            told = re.findall(r"^\.BI? (--\S+)", file.read().replace("\\-", "-"), re.MULTILINE)
        given = subprocess.run([web, "--help"], capture_output=True, text=True, timeout=20, check=True).stdout
        self.assertEqual(sorted(told), sorted(set(re.findall(r"(--[\w-]+) ", given.split("usage:")[1])) - {"--help"}))

    def test_the_page_of_the_manifest_has_every_key_as_the_program_has_it(self):
        with open(os.path.join(ROOT, "docs", "MANIFEST.md"), encoding="utf-8") as file:
            page = " ".join(file.read().split())
        told = json.loads(dpnode("run", "validate", "--keys", "--json").stdout)
        for row in told["keys"]:
            found = re.search(rf"{re.escape(row['key'])} (\S+) (\S+) (\S+) {re.escape(row['text'])}", page)
            self.assertTrue(found, row)
            default, least, most = (word.replace(",", "") for word in found.groups())
            self.assertEqual((float(default), float(least)), (row["standard"], row["least"]), row["key"])
            self.assertEqual(most == "any", row["most"] >= 2 ** 62, row["key"])
            self.assertTrue(most == "any" or f"{float(most):.11g}" == f"{row['most']:.11g}", row["key"]) # JSON has 12 digits
        for row in told["words"]:
            self.assertIn(f"{row['key']} {row['standard']} {' | '.join(row['words'])} {row['text']}", page)

    def test_the_page_of_the_manifest_names_the_families_that_take_a_key(self):
        with open(os.path.join(ROOT, "docs", "MANIFEST.md"), encoding="utf-8") as file:
            told = dict(re.findall(r"^\| `model\.(\w+)` \| only ([a-z0-9_, ]+?)(?:;| \|)", file.read(), re.MULTILINE))
        with open(os.path.join(ROOT, "base", "run", "model_family.h"), encoding="utf-8") as file:
            settings = len(re.findall(r"\bDP_TAKES_\w+ = ", file.read()))
        self.assertEqual(len(told), settings - 1) # kv_heads has a row of each family that lacks it.
        archs = next(row["words"] for row in json.loads(dpnode("run", "validate", "--keys", "--json").stdout)["words"] if row["key"] == "model.arch")
        values = {"activation": "relu2", "qk_norm": "on", "rope_scaling": "linear"}
        path = os.path.join(self.folder.path, "run.yaml")
        for key, families in told.items():
            taken = []
            for arch in archs:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(f"name: a\nmodel: {{arch: {arch}, {key}: {values.get(key, 2)}}}\n")
                refused = re.compile(rf"model\.arch {arch}(, model\.{key} must be| has no other model\.{key} than its own)")
                if arch != "external" and not refused.search(dpnode("run", "validate", path, "--json").stdout.decode()):
                    taken.append(arch)
            self.assertEqual(families.split(", "), taken, key)

    def test_every_error_code_is_explained_once(self):
        used = set()
        for path in sources("cli", "daemon", "tests/chaos"):
            with open(path, encoding="utf-8") as file:
                used |= set(re.findall(r'"(E0\d{3})"', file.read()))
        with open(os.path.join(ROOT, "docs", "ERRORS.md"), encoding="utf-8") as file:
            told = re.findall(r"^\| (E0\d{3}) ", file.read(), re.MULTILINE)
        self.assertEqual(sorted(told), sorted(used))
        with open(os.path.join(ROOT, "docs", "HOWTO.md"), encoding="utf-8") as file:
            groups = re.findall(r"\b(E0\d)\s", file.read().split("\n## g. An error code\n")[1].split("\n## ")[0])
        self.assertEqual(sorted(groups), sorted({code[:3] for code in used}))

    def test_each_exit_status_stands_in_the_row_of_its_code(self):
        """Every call with a code as a literal: its exit status is a number, a DP_EXIT_, or what daemon/control/control_run.c makes of a status."""
        with open(os.path.join(ROOT, "docs", "ERRORS.md"), encoding="utf-8") as file:
            rows = {code: set(row.split(", ")) for code, row in re.findall(r"^\| (E0\d{3}) \[([^]]+)\]", file.read(), re.MULTILINE)}
        with open(os.path.join(ROOT, "cli", "cmd.h"), encoding="utf-8") as file:
            words = dict(re.findall(r"\b(DP_EXIT_\w+) = (\d+)", file.read()))
        with open(os.path.join(ROOT, "daemon", "control", "control_run.c"), encoding="utf-8") as file:
            words |= dict(re.findall(r"status == (DP_\w+)\s+\? (\d+)", file.read()))
        call = re.compile(r'\b(?:dp_call_fail|dp_error_set|give_up|finish|done)\(\s*[^;{}]{1,60}?,\s*([^;{}"]{1,200}?),\s*(?:[^;{}",]*\?\s*)?'
                          r'"(E0\d{3})"(?:\s*:\s*"(E0\d{3})")?')
        calls = 0
        for path in sources("cli", "daemon"):
            with open(path, encoding="utf-8") as file:
                found = call.findall(file.read())
            for exits, *codes in found:
                calls += 1
                used = {words.get(word, "65") if word.startswith("DP_") else word
                        for word in re.findall(r"\bDP_[A-Z_]+\b|\b\d+\b", exits.split("?", 1)[-1])}
                for code in filter(None, codes):
                    self.assertTrue("-" in rows[code] or used <= rows[code], f"{path}: {code} {exits}, {rows[code]} in docs/ERRORS.md")
        self.assertGreater(calls, 180)

    def test_no_fix_destroys_anything(self):
        """Every string literal in the tree that is printed after "fix:"."""
        text = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
        places = [r'"E\d{4}",\s*' + text, r"snprintf\(\s*[\w.>-]*fix[\w.>-]*,[^,]*,\s*" + text,
                  r"#define \w*FIX\w*\s+" + text, r"dp_finding_fix\(\w+,\s*" + text, r'"fix",\s*' + text]
        destroys = re.compile(r"\b(leave|revoke|rm|rmdir|unlink|delete|remove|erase|wipe|shred|truncate|mkfs|fork|reset)\b"
                              r"|--(force|delete-run|yes|now)\b")
        self.assertTrue(destroys.search("dpnode leave   # or use another daemon"))
        seen = 0
        for path in sources("base", "cli", "daemon", "compute"):
            with open(path, encoding="utf-8") as file:
                source = file.read()
            for place in places:
                for found in re.findall(place, source):
                    seen += 1
                    self.assertIsNone(destroys.search(found), f"{path}: {found}")
        self.assertGreater(seen, 150)

    def test_a_manifest_is_checked_with_line_and_column(self):
        path = self.file("run.yaml", "name: x\nmodel:\n  widht: 128\n")
        done = dpnode("run", "validate", path, "--json")
        error = json.loads(done.stdout)["error"]
        self.assertEqual((done.returncode, error["code"]), (65, "E0301"))
        self.assertIn(f"{path}:3:3: unknown key \"model.widht\" (did you mean model.width?)", error["why"])
        self.assertEqual(dpnode("run", "validate", self.file("good.yaml", systemtest.TINY)).returncode, 0)
        missing = self.file("text.yaml", "text: there/is/none.txt\n" + systemtest.TINY)
        error = json.loads(dpnode("run", "validate", missing, "--json").stdout)["error"]
        self.assertEqual((error["code"], error["exit"]), ("E0309", 66), error)
        self.file("some.txt", "words of some text. " * 50)
        self.assertEqual(dpnode("run", "validate", self.file("text.yaml", "text: some.txt\n" + systemtest.TINY)).returncode, 0)
        self.assertEqual(dpnode("run", "validate", "/nonexistent").returncode, 66)
        self.assertEqual(dpnode("run", "validate", self.folder.path).returncode, 66)

    def test_a_text_that_is_no_token_is_refused_offline(self):
        for text in (b"", b"DPN1-AAAA", b"\0\xff" * 40, b"DPN1-" + b"A" * 9000, b"hello"):
            done = dpnode("token", "inspect", "-", "--json", stdin=text)
            self.assertEqual(done.returncode, 65, text[:20])
            self.assertEqual(json.loads(done.stdout)["error"]["code"], "E0203")

    def test_a_run_without_a_text_says_what_to_do(self):
        path = self.file("run.yaml", "name: x\n")
        done = dpnode("run", "create", path, "--json")
        self.assertEqual((done.returncode, json.loads(done.stdout)["error"]["code"]), (64, "E0308"))
        done = dpnode("run", "create", path, "--text", "/nonexistent", "--json")
        self.assertEqual((done.returncode, json.loads(done.stdout)["error"]["code"]), (66, "E0309"))

    def test_a_directory_that_cannot_be_made_is_an_error_not_a_wait(self):
        path = self.file("file", "")
        done = dpnode("up", "--dir", path + "/below", "--socket", self.folder.path + "/s", "--json")
        self.assertEqual((done.returncode, json.loads(done.stdout)["error"]["code"]), (73, "E0108"))
        self.assertIn(path + "/below: ", json.loads(done.stdout)["error"]["why"])

    def test_a_directory_that_cannot_be_written_is_told_with_the_reason_and_no_line_of_an_older_log(self):
        os.makedirs(os.path.join(self.folder.path, "node", "dpnoded.log"))  # Root may write everywhere else.
        done = dpnode("up", "--dir", self.folder.path + "/node", "--socket", self.folder.path + "/s", "--json")
        error = json.loads(done.stdout)["error"]
        self.assertEqual((done.returncode, error["code"]), (73, "E0108"))
        self.assertIn("node/dpnoded.log: Is a directory", error["why"])


if __name__ == "__main__":
    systemtest.main()
