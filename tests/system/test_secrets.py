#!/usr/bin/env python3
"""Secrets are readable only for the user of the daemon: modes of files and directories, keys that others may read."""

import contextlib
import os
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from systemtest import BINARIES, CliError, SystemTest, main, wait_for  # noqa: E402


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def is_for_debuggers():
    """Whether this build lets a debugger look into dpnoded."""
    with open(os.path.join(BINARIES, "CMakeCache.txt"), encoding="utf-8") as cache:
        text = cache.read()
    return "DP_PARANOID:BOOL=ON" in text or "DP_SANITIZE:STRING=address" in text


def places_of(pid, needle):
    """Finds needle in the memory of a process: for each place, whether its pages are locked. Needs root."""
    with open(f"/proc/{pid}/smaps", encoding="ascii", errors="replace") as smaps, open(f"/proc/{pid}/mem", "rb") as memory:
        maps = []
        for line in smaps:
            words = line.split()
            if "-" in words[0] and not words[0].endswith(":"):
                maps.append([[int(end, 16) for end in words[0].split("-")], words[1], False])
            elif words[0] == "VmFlags:":
                maps[-1][2] = "lo" in words
        found = []
        for (begin, end), rights, locked in maps:
            if "rw" in rights:
                with contextlib.suppress(OSError, ValueError, OverflowError): # it may have gone
                    memory.seek(begin)
                    found += [locked] * memory.read(end - begin).count(needle)
        return found


def files_below(folder):
    for where, folders, names in os.walk(folder):
        for name in folders + names:
            yield os.path.join(where, name)


class Secrets(SystemTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(os.umask, os.umask(0o022)) # As most users have it; the daemon inherits it.

    def log_of(self, node):
        with open(node.log, encoding="utf-8") as log:
            return log.read()

    def refused(self, node):
        """The daemon of node must end with 77; returns its last output."""
        node.start(wait=False)
        self.assertEqual(node.process.wait(20), 77, node.tail())
        return node.tail(1)

    def test_no_other_user_may_read_the_files_of_the_daemon(self):
        node, _ = self.found("node1", "--log-file", os.path.join(self.folder.path, "node1.own.log"))
        wait_for(lambda: node.run().get("round", 0) >= 1, 60, "a round")
        loose = {path: oct(mode(path)) for path in files_below(node.dir) if mode(path) & 0o077}
        self.assertEqual(loose, {})
        self.assertEqual(mode(node.dir), 0o700)
        self.assertEqual(mode(os.path.join(node.dir, "meta.db")), 0o600)
        self.assertEqual(mode(os.path.join(self.folder.path, "node1.own.log")), 0o600)

    def test_exported_files_have_the_modes_that_the_user_chose(self):
        node, _ = self.found()
        wait_for(lambda: node.run().get("round", 0) >= 1, 60, "a round")
        for mask in (0o022, 0o027, 0o077):
            out = os.path.join(self.folder.path, f"model{mask:o}")
            before = os.umask(mask)
            wait_for(lambda: self.exported(node, out), 60, "a checkpoint")
            os.umask(before)
            self.assertEqual(mode(out), 0o755 & ~mask)
            for path in files_below(out):
                self.assertEqual(mode(path), 0o644 & ~mask, path)

    def exported(self, node, out):
        try:
            return node.ask("ckpt", "export", out)
        except CliError as problem:
            if problem.error.get("code") != "E0404":
                raise
            return None

    def test_a_directory_that_others_may_enter_is_made_private_with_a_word(self):
        node = self.folder.node("node1")
        os.mkdir(node.dir, 0o755)
        node.start()
        node.ask("down")
        node.process.wait(20)
        self.assertEqual(mode(node.dir), 0o700)
        wait_for(lambda: "mode_was=0755 files=0" in self.log_of(node), 20, "the directory is named in the log")
        os.chmod(node.dir, 0o755)
        os.chmod(os.path.join(node.dir, "meta.db"), 0o644) # as an earlier version left both
        node.start()
        self.assertEqual(mode(node.dir), 0o700)
        self.assertEqual(mode(os.path.join(node.dir, "meta.db")), 0o600)
        wait_for(lambda: "mode_was=0755 files=1" in self.log_of(node), 20, "and the file")

    def test_a_directory_of_other_things_is_left_alone(self):
        node = self.folder.node("node1")
        os.mkdir(node.dir, 0o755)
        with open(os.path.join(node.dir, "letter.txt"), "w", encoding="utf-8") as file:
            file.write("dear")
        self.assertIn(f"chmod 700 {node.dir}", self.refused(node))
        self.assertEqual(mode(node.dir), 0o755)

    def test_a_key_that_others_may_read_is_refused_with_the_fix(self):
        node, _ = self.found()
        node.ask("down")
        node.process.wait(20)
        for name in ("identity.key", "root.key"):
            path = os.path.join(node.dir, name)
            os.chmod(path, 0o644)
            self.assertIn(f"chmod 600 {path}", self.refused(node))
            self.assertEqual(mode(path), 0o644)
            os.chmod(path, 0o600)
        node.start()
        self.assertEqual(node.ask("status")["run"]["name"], "tiny")

    @unittest.skipUnless(os.geteuid() == 0, "root alone can be several users")
    def test_a_group_to_which_the_socket_is_open_looks_and_gives_no_orders(self):
        owner, group, other = 51001, 51002, 51003
        os.chmod(self.folder.path, 0o755)
        node = self.folder.node("node1")
        place = os.path.join(self.folder.path, "run")
        node.socket = os.path.join(place, "s")
        node.user = (owner, group)
        for path, bits in ((node.dir, 0o700), (place, 0o750)):
            os.mkdir(path)
            os.chmod(path, bits)
            os.chown(path, owner, group)
        node.start()
        self.assertEqual(mode(node.socket), 0o660)

        def as_user(uid, gid, *words):
            done = subprocess.run(node.command(*words), capture_output=True, text=True, timeout=60, check=False,
                                  user=uid, group=gid, extra_groups=[])
            return done.returncode, done.stdout

        self.assertEqual(as_user(other, group, "status")[0], 0)
        for words in (("pause",), ("down",), ("limits", "--upload", "1"), ("invite",)):
            status, said = as_user(other, group, *words)
            self.assertEqual(status, 77, said)
            self.assertIn('"E0113"', said)
        self.assertIn('"E0104"', as_user(other, other, "status")[1]) # not of the group
        self.assertEqual(as_user(0, 0, "limits", "--upload", "1")[0], 0)
        self.assertEqual(as_user(owner, group, "down")[0], 0)

    @unittest.skipUnless(os.geteuid() == 0, "root alone can be several users")
    def test_a_directory_or_key_of_another_user_is_refused_by_name(self):
        os.chmod(self.folder.path, 0o777)
        node = self.folder.node("node1")
        node.user = (51001, 51001)
        node.start()
        node.ask("down")
        node.process.wait(20)
        key = os.path.join(node.dir, "identity.key")
        os.chown(key, 0, 0)
        self.assertIn(f"{key} belongs to the user with uid 0, and dpnoded runs as uid 51001", self.refused(node))
        node.user = None
        self.assertIn(f"{node.dir} belongs to the user with uid 51001", self.refused(node))

    @unittest.skipIf(is_for_debuggers(), "a build for debuggers")
    def test_no_core_file_and_no_other_process_of_its_user_gets_the_keys(self):
        node = self.folder.node("node1").start()
        with open(f"/proc/{node.process.pid}/limits", encoding="ascii") as limits:
            core = next(line.split() for line in limits if line.startswith("Max core file size"))
        self.assertEqual(core[4:6], ["0", "0"])
        if os.geteuid() == 0: # It may look all the same; the daemon of another user shows who owns its memory now.
            os.chmod(self.folder.path, 0o777)
            node = self.folder.node("node2")
            node.user = (51001, 51001)
            node.start()
            self.assertEqual(os.stat(f"/proc/{node.process.pid}/mem").st_uid, 0)
            return
        with self.assertRaises(PermissionError):
            os.listdir(f"/proc/{node.process.pid}/fd")

    @unittest.skipUnless(os.geteuid() == 0, "root alone may look into a daemon")
    def test_the_keys_lie_in_locked_pages(self):
        node, _ = self.found()
        node.ask("down") # it alone may open its store
        node.process.wait(20)
        with open(os.path.join(node.dir, "identity.key"), "rb") as file:
            seed = file.read()[8:72]
        with open(os.path.join(node.dir, "root.key"), "rb") as file:
            root = file.read()
        with contextlib.closing(sqlite3.connect(os.path.join(node.dir, "meta.db"))) as meta:
            vote = meta.execute("SELECT secret FROM vote").fetchone()[0]
        node.start()
        wait_for(lambda: node.run().get("round", 0) >= 1, 60, "a round")
        for name, secret in (("identity", seed), ("root", root), ("vote", bytes(vote))):
            places = places_of(node.process.pid, secret)
            self.assertTrue(any(places), f"{name}: {places}")
            if name != "vote": # SQLite may have the page of its row
                self.assertTrue(all(places), f"{name}: {places}")

    @unittest.skipUnless(os.geteuid() == 0, "root alone can be a user without rights to lock memory")
    def test_a_daemon_that_may_lock_no_memory_says_so_and_runs(self):
        os.chmod(self.folder.path, 0o777)
        before = resource.getrlimit(resource.RLIMIT_MEMLOCK)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_MEMLOCK, before)
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, before[1]))
        node = self.folder.node("node1")
        node.user = (51001, 51001)
        node.start()
        self.assertEqual(node.ask("status")["state"], "idle")
        self.assertEqual(self.log_of(node).count("keys.unlocked"), 1)

    @unittest.skipIf(shutil.which("systemd-analyze") is None, "no systemd-analyze")
    def test_the_unit_leaves_little_open_and_bounds_the_memory(self):
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "contrib", "dpnoded.service")
        with open(source, encoding="utf-8") as file:
            text = file.read()
        for line in ("UMask=0077", "MemoryMax=90%", "OOMPolicy=continue", "LimitCORE=0"):
            self.assertIn(line, text.splitlines())
        unit = self.file("dpnoded.service", text.replace("/usr/bin/dpnoded", os.path.join(BINARIES, "dpnoded")))

        def analyze(*words):
            done = subprocess.run(["systemd-analyze", *words, unit], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 0, done.stdout[-200:] + done.stderr)
            return done.stderr

        analyze("security", "--offline=true", "--no-pager", "--threshold=18") # 1.8 at most
        self.assertEqual(analyze("verify", "--man=no"), "")


if __name__ == "__main__":
    main()
