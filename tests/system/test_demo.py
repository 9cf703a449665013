#!/usr/bin/env python3
"""script/demo before it runs: wrong options are reported before it installs or builds anything. The run itself takes minutes; script/demo.py checks
it."""

import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import SystemTest  # noqa: E402

DEMO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "script", "demo")


class Demo(SystemTest):
    def refused(self, *words):
        """Its error output; it must not have begun to install or to build."""
        begin = time.monotonic()
        done = subprocess.run([DEMO, *words], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 64, done.stdout + done.stderr)
        self.assertNotIn("building", done.stdout)
        self.assertLess(time.monotonic() - begin, 30)
        return done.stderr

    def test_wrong_options_are_told_before_anything_is_built(self):
        self.assertIn("--minutes must be", self.refused("--minutes", "1"))
        self.assertIn("--nodes 3 to 16", self.refused("--nodes", "2"))
        self.assertIn("unrecognized arguments", self.refused("--minuets", "4"))
        self.assertIn("No such file", self.refused("--text", os.path.join(self.folder.path, "gone")))
        self.assertIn("No such file", self.refused("--summary", os.path.join(self.folder.path, "gone", "x.json")))
        self.assertIn("too few to learn from", self.refused("--text", self.file("short", "In the beginning")))
        path = os.path.join(self.folder.path, "latin1")
        with open(path, "wb") as file:
            file.write("Es war einmal ein M\u00e4dchen. ".encode("latin-1") * 1000)
        self.assertIn("no UTF-8", self.refused("--text", path))


if __name__ == "__main__":
    systemtest.main()
