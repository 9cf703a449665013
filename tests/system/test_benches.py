#!/usr/bin/env python3
"""Benches measure what they are asked for, or nothing: a figure under another name would be believed."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import BINARIES, SystemTest  # noqa: E402


class BenchEngine(SystemTest):
    def bench(self, *words):
        """No shape has that name: nothing is measured."""
        return subprocess.run([os.path.join(BINARIES, "bench_engine"), "--only", "no such shape", *words], capture_output=True,
                              text=True, timeout=60, check=False)

    def test_a_table_of_another_precision_is_refused_in_either_order(self):
        for words in (("--precision", "bf16", "--ops", "generic"), ("--ops", "generic", "--precision", "bf16")):
            done = self.bench(*words)
            self.assertEqual(done.returncode, 64)
            self.assertIn("no table generic of bf16; there are reference-bf16 generic-bf16", done.stderr)

    def test_a_table_of_the_precision_is_taken(self):
        for words in (("--precision", "bf16", "--ops", "generic-bf16"), ("--ops", "generic-bf16"), ("--precision", "fp32"), ()):
            self.assertEqual(self.bench(*words).returncode, 0, words)
        self.assertEqual(self.bench("--ops", "nowhere").returncode, 64)


if __name__ == "__main__":
    systemtest.main()
