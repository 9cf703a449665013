#!/usr/bin/env python3
"""script/demo before it runs: wrong options are reported before it installs or builds anything. The run itself takes minutes; script/demo.py checks
it."""

import importlib.util
import json
import os
import subprocess
import sys
import time
import unittest

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

    @unittest.skipUnless(os.path.exists(os.path.join(systemtest.BINARIES, "bench_quality")), "bench_quality is not built")
    def test_it_promises_the_bytes_that_its_mode_sends(self):
        spec = importlib.util.spec_from_file_location("demo", DEMO + ".py")
        demo = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(demo)
        steps = 15 # of a round in the bench
        done = subprocess.run([os.path.join(systemtest.BINARIES, "bench_quality"), "--json", "--only", "shipped", "--steps", str(4 * steps),
                               "--eval", "512"], capture_output=True, text=True, timeout=120, check=True,
                              cwd=os.path.join(os.path.dirname(DEMO), ".."))
        sent = steps * json.loads(done.stdout.splitlines()[0])["bytes_per_param_step"]
        self.assertLess(sent, demo.BYTES_MOST)
        self.assertLess(demo.BYTES_MOST, 1.1 * sent) # a bound that says something


if __name__ == "__main__":
    systemtest.main()
