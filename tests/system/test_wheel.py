#!/usr/bin/env python3
"""The wheel of script/package wheel in fresh environments of Python: pip alone brings programs that train a run of two members, with libraries of
its own, and the Python library from 3.9 on. Skipped without the wheel."""

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import machine  # noqa: E402
from systemtest import TINY, SystemTest, main, tiny_text, wait_for  # noqa: E402

PACKAGES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "package")
PATIENCE_S = 120
GLIBC = (2, 34) # what docs/QUICKSTART.md says
PYTHONS = [path for name in ("python3.9", "python3.10", "python3.11", "python3.12", "python3.13")
           if (path := shutil.which(name)) and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0]


class Wheel(SystemTest):
    def setUp(self):
        super().setUp()
        found = glob.glob(os.path.join(PACKAGES, "dpnode-*-manylinux_*.whl"))
        if not found:
            self.skipTest("no wheel: script/package wheel")
        self.wheel = os.path.abspath(found[0])

    def install(self, python=sys.executable):
        """The folder of an environment with nothing but the wheel."""
        folder = os.path.join(self.folder.path, "venv-" + os.path.basename(python))
        done = subprocess.run([python, "-m", "venv", folder], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        if done.returncode != 0:
            self.skipTest("no venv: " + done.stdout[-200:])
        subprocess.run([folder + "/bin/pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", self.wheel], check=True,
                       timeout=PATIENCE_S)
        return folder

    def test_two_members_of_pips_programs_train(self):
        folder = self.install()
        self.folder.binaries = folder + "/bin" # of nodes from here on
        tiny_text(os.path.join(self.folder.path, "text.txt"))
        node = self.folder.node("node1").start()
        token = node.create(self.file("tiny.yaml", TINY), "--text", os.path.join(self.folder.path, "text.txt"))["invite"]
        self.folder.path, place = os.path.join(self.folder.path, "b"), self.folder.path
        self.addCleanup(setattr, self.folder, "path", place)
        other = self.folder.node("node2")
        # As a user types it: PATH has the environment, and the verb starts the daemon.
        environment = {"PATH": folder + "/bin:/usr/bin:/bin", "HOME": place, "DPNODE_DIR": other.dir, "DPNODE_SOCKET": other.socket,
                       "DPNODE_LISTEN": f"127.0.0.1:{other.port}", "DPNODE_BACKEND": "cpu", "DPNODE_BALLAST": "1M", "DPNODE_MARGIN": "1M"}
        done = subprocess.run(["dpnode", "join", "-"], input=token, env=environment, capture_output=True, text=True, timeout=PATIENCE_S,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        pid = other.ask("status")["pid"]
        self.addCleanup(lambda: os.path.exists(f"/proc/{pid}") and os.kill(pid, signal.SIGKILL))
        for one in (node, other):
            wait_for(lambda one=one: one.run().get("counted", 0) > 0, PATIENCE_S, f"a round has counted {one.name}")
        with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
            loaded = {line.split()[-1] for line in maps if ".so" in line}
        for name in ("libuv", "libsodium", "libsqlite3", "libmsgpackc"):
            self.assertTrue([path for path in loaded if path.startswith(folder + "/lib/dpnode/" + name)], f"{name}: {sorted(loaded)}")
        self.assertFalse([path for path in loaded if not path.startswith(folder)
                          and not re.search(r"/(ld-linux[^/]*|libc|libm|libdl|libpthread|librt|libnss_\w+)\.so", path)])
        other.ask("down")

    def test_the_python_library_is_imported_by_each_python(self):
        self.assertTrue(PYTHONS)
        for python in PYTHONS:
            with self.subTest(python):
                folder = self.install(python)
                done = subprocess.run([folder + "/bin/python", "-c", "import dpnode; print(dpnode.__version__)"], capture_output=True, text=True,
                                      timeout=PATIENCE_S, check=False, cwd="/")
                self.assertEqual(done.returncode, 0, done.stderr)
                told = subprocess.run([folder + "/bin/dpnode", "version", "--json"], capture_output=True, text=True, timeout=PATIENCE_S,
                                      check=False, env={"DPNODE_SOCKET": "/nowhere"})
                self.assertEqual(json.loads(told.stdout)["version"], done.stdout.strip())

    def test_its_name_promises_no_older_glibc_than_it_needs(self):
        named = tuple(int(number) for number in re.search(r"manylinux_(\d+)_(\d+)_", self.wheel).groups())
        self.assertLessEqual(named, GLIBC)
        folder = self.install()
        for path in (*glob.glob(folder + "/bin/dpnode*"), *glob.glob(folder + "/lib/dpnode/*")):
            asked = subprocess.run(["objdump", "-T", path], capture_output=True, text=True, check=True).stdout
            for version in re.findall(r"\bGLIBC_(\d+)\.(\d+)", asked):
                self.assertLessEqual(tuple(int(number) for number in version), named, path)

    def test_its_libraries_come_with_their_licences(self):
        folder = self.install()
        laws = glob.glob(folder + "/lib/python*/site-packages/dpnode-*.dist-info/licenses/*")
        self.assertIn("LICENSE", [os.path.basename(path) for path in laws])
        self.assertGreaterEqual(len(laws), len(os.listdir(folder + "/lib/dpnode")) + 1)

    def test_a_debian_with_nothing_but_python_runs_a_swarm(self):
        reason = machine.reason_for_none()
        if reason:
            self.skipTest(reason)
        one = machine.Machine(self.folder.path, PACKAGES)
        self.addCleanup(one.end)
        try:
            one.unpack()
            one.fetch("python3-venv")
        except (RuntimeError, subprocess.TimeoutExpired) as problem:
            self.skipTest(str(problem))
        for path in (self.wheel, self.file("tiny.yaml", TINY), tiny_text(os.path.join(self.folder.path, "text.txt"))):
            shutil.copy(path, one.path("root"))
        machine.own_network()
        one.boot(systemd=False)
        one.must("apt-get", "-y", "-qq", "install", "python3-venv")
        one.must("python3", "-m", "venv", "/root/venv")
        one.must("/root/venv/bin/pip", "install", "--quiet", "--no-index", "/root/" + os.path.basename(self.wheel))
        told = one.must("/root/venv/bin/dpnode", "swarm", "-n", "2", "--rounds", "2", "/root/tiny.yaml", "--text", "/root/text.txt", "--json",
                        DPNODE_BACKEND="cpu")
        self.assertEqual(len(json.loads(told.splitlines()[-1])["peers"]), 2, told)


if __name__ == "__main__":
    main()
