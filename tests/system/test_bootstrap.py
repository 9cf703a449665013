#!/usr/bin/env python3
"""script/bootstrap on machines with missing packages, simulated by tools in a folder: packages that all tests need are required, those that a
single test needs may be missing."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))


class Bootstrap(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        for name in ("bash", "env", "sed", "mktemp", "nice", "dirname", "rm"):
            os.symlink(shutil.which(name), os.path.join(self.folder, name))

    def tool(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as script:
            script.write("#!/bin/bash\n" + text)
        os.chmod(path, 0o755)

    def machine(self, lacks="", root=True):
        self.tool("id", f"echo {0 if root else 1000}")
        self.tool("dpkg-query", f'[[ " {lacks} " == *" ${{@: -1}} "* ]] || echo installed')
        self.tool("apt-get", f'echo "$*" >>"{self.folder}/asked"; [[ "$*" != *install* ]] || exit 100')

    def run_script(self, *command):
        return subprocess.run(command, cwd=ROOT, env={"PATH": self.folder}, capture_output=True, text=True, check=False)

    def asked(self):
        path = os.path.join(self.folder, "asked")
        if not os.path.exists(path):
            return ""
        with open(path, encoding="utf-8") as lines:
            return lines.read()

    def test_without_spin_and_without_a_way_to_get_it_the_tests_go_on(self):
        self.machine()
        done = self.run_script("script/bootstrap")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("install --no-install-recommends spin", self.asked())
        self.assertIn("without spin, the tests that need it are skipped", done.stdout)
        self.assertEqual(self.run_script("nice", "-n", "10", "tests/model/run.sh").returncode, 77)

    def test_a_user_that_may_not_install_is_not_asked_for_a_password_for_spin(self):
        self.machine(root=False)
        done = self.run_script("script/bootstrap")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.asked(), "")

    def test_with_everything_there_nothing_is_asked(self):
        self.machine()
        self.tool("spin", "exit 0")
        done = self.run_script("script/bootstrap")
        self.assertEqual((done.returncode, done.stdout, self.asked()), (0, "", ""))

    def test_without_a_package_that_the_build_needs_it_fails(self):
        self.machine(lacks="cmake")
        done = self.run_script("script/bootstrap")
        self.assertNotEqual(done.returncode, 0)
        self.machine(lacks="cmake", root=False)
        done = self.run_script("script/bootstrap")
        self.assertEqual(done.returncode, 77)
        self.assertIn("missing cmake", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
