#!/usr/bin/env python3
"""Secrets stay with the user whose daemon holds them: modes of files and directories, keys that others may read."""

import os
import stat
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from systemtest import CliError, SystemTest, main, wait_for  # noqa: E402


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


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
        """The daemon of node ends with 77; its last words."""
        node.start(wait=False)
        self.assertEqual(node.process.wait(20), 77, node.tail())
        return node.tail(1)

    def test_nobody_else_may_read_what_the_daemon_writes(self):
        node, _ = self.found("node1", "--log-file", os.path.join(self.folder.path, "node1.own.log"))
        wait_for(lambda: node.run().get("round", 0) >= 1, 60, "a round")
        loose = {path: oct(mode(path)) for path in files_below(node.dir) if mode(path) & 0o077}
        self.assertEqual(loose, {})
        self.assertEqual(mode(node.dir), 0o700)
        self.assertEqual(mode(os.path.join(node.dir, "meta.db")), 0o600)
        self.assertEqual(mode(os.path.join(self.folder.path, "node1.own.log")), 0o600)

    def test_what_is_exported_has_the_modes_that_its_user_chose(self):
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
        self.assertIn("mode_was=0755 files=0", self.log_of(node))
        os.chmod(node.dir, 0o755)
        os.chmod(os.path.join(node.dir, "meta.db"), 0o644) # as an earlier version left both
        node.start()
        self.assertEqual(mode(node.dir), 0o700)
        self.assertEqual(mode(os.path.join(node.dir, "meta.db")), 0o600)
        self.assertIn("mode_was=0755 files=1", self.log_of(node))

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


if __name__ == "__main__":
    main()
