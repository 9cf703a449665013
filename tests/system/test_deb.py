#!/usr/bin/env python3
"""The packages of script/package deb on a fresh Debian 12 with systemd: two commands make a node that trains; an upgrade drains and keeps its orders;
nothing is destroyed unasked. bench/bench_install.py measures the two commands. Skipped without packages, root or mmdebstrap."""

import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from systemtest import SystemTest, main, wait_for  # noqa: E402
import machine  # noqa: E402

BUILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build")
PACKAGES = os.path.abspath(os.path.join(BUILD, "package"))
PATIENCE_S = 120
NEXT = "99.0.0" # a version after any of ours


def package(name):
    found = glob.glob(os.path.join(PACKAGES, name + "_*.deb"))
    return found[0] if found else None


class Deb(SystemTest):
    @classmethod
    def setUpClass(cls):
        cls.reason = machine.reason_for_none() or (None if package("dpnode") else "no packages: script/package deb")

    def setUp(self):
        super().setUp()
        if self.reason:
            self.skipTest(self.reason)
        self.machine = machine.Machine(self.folder.path, PACKAGES)
        self.addCleanup(self.machine.end)
        try:
            self.machine.unpack()
            self.deb, self.library = self.lay(package("dpnode")), self.lay(package("python3-dpnode"))
            self.machine.fetch(self.deb, self.library)
        except (RuntimeError, subprocess.TimeoutExpired) as problem:
            self.skipTest(str(problem))
        machine.own_network()

    def lay(self, deb):
        """Its path on the machine."""
        shutil.copy(deb, self.machine.path("root"))
        return "/root/" + os.path.basename(deb)

    def next_version(self):
        """A package of a later version, with the same files."""
        with tempfile.TemporaryDirectory(dir=PACKAGES) as folder:
            subprocess.run(["dpkg-deb", "-R", package("dpnode"), folder + "/d"], check=True)
            control = folder + "/d/DEBIAN/control"
            with open(control, encoding="utf-8") as file:
                lines = [f"Version: {NEXT}\n" if line.startswith("Version:") else line for line in file]
            with open(control, "w", encoding="utf-8") as file:
                file.writelines(lines)
            subprocess.run(["dpkg-deb", "--root-owner-group", "-b", folder + "/d", folder + f"/dpnode_{NEXT}.deb"], check=True,
                           capture_output=True)
            return self.lay(folder + f"/dpnode_{NEXT}.deb")

    def apt(self, *words):
        self.machine.must("apt-get", "-y", "-qq", *words)

    def ask(self, *words, **more):
        return json.loads(self.machine.must("dpnode", *words, "--json", **more).splitlines()[-1])

    def trains(self):
        def counted():
            status = self.ask("status")
            return status["state"] == "training" and (status["run"].get("counted") or 0) > 0 and status
        return wait_for(counted, PATIENCE_S, "a round has counted the machine")

    def pid(self):
        return int(self.machine.must("systemctl", "show", "-P", "MainPID", "dpnoded"))

    def user_of_daemon(self):
        return self.machine.must("ps", "-o", "user=", "-C", "dpnoded") if shutil.which("ps", path=self.machine.path("bin")) else \
            self.machine.must("stat", "-c", "%U", f"/proc/{self.ask('status')['pid']}")

    def test_two_commands_make_a_node_that_trains_and_an_upgrade_keeps_its_orders(self):
        founder, token = self.found()
        self.machine.boot()
        self.apt("install", self.deb)
        self.assertEqual(self.machine.must("systemctl", "is-enabled", "dpnoded").strip(), "enabled")
        self.assertEqual(self.ask("status")["state"], "idle")
        self.assertNotIn(":1E25 ", self.machine.must("cat", "/proc/net/tcp", "/proc/net/tcp6")) # 7717: no port is open
        self.machine.must("dpnode", "join", token)
        node = self.trains()["id"]
        self.assertEqual(self.user_of_daemon().strip(), "dpnode")
        self.assertEqual(self.pid(), self.ask("status")["pid"])
        self.assertEqual(founder.run()["members"], 2)

        self.ask("limits", "--upload", "5")
        before = self.pid()
        self.apt("install", self.next_version())
        self.assertEqual(self.machine.must("dpkg-query", "-W", "-f", "${Version}", "dpnode"), NEXT)
        wait_for(lambda: self.pid() not in (0, before), PATIENCE_S, "the new daemon")
        self.assertRegex(self.machine.must("journalctl", "-u", "dpnoded", "--no-pager"), "drained: (this node's work is counted|no round is open)")
        self.assertEqual(self.trains()["id"], node)
        limits = self.ask("limits")
        self.assertEqual((limits["upload_mbit"], limits["from"]["upload_mbit"]), (5, "dpnode limits"))
        self.ask("pause")
        before = self.pid()
        self.apt("install", "--allow-downgrades", self.deb)
        status = wait_for(lambda: self.pid() not in (0, before) and self.ask("status"), PATIENCE_S, "the old daemon again")
        self.assertEqual((status["id"], status["state"]), (node, "paused"))
        self.ask("resume")

        self.ask("down")
        wait_for(lambda: self.machine.run("systemctl", "is-active", "dpnoded").stdout.strip() == "inactive", PATIENCE_S, "the unit has ended")
        self.ask("up")
        self.assertEqual(self.machine.must("systemctl", "is-active", "dpnoded").strip(), "active")
        self.assertEqual(self.trains()["id"], node)

        self.apt("remove", "dpnode")
        done = self.machine.run("apt-get", "-y", "purge", "dpnode")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("/var/lib/dpnode is kept", done.stdout + done.stderr)
        self.assertTrue(os.path.exists(self.machine.path("var/lib/dpnode/identity.key")))
        self.apt("install", self.deb)
        self.assertEqual(self.trains()["id"], node) # the same node

    def test_members_of_the_group_may_look_and_others_have_a_node_of_their_own(self):
        _, token = self.found()
        self.machine.boot()
        self.apt("install", self.deb)
        self.machine.must("adduser", "--quiet", "--disabled-password", "--gecos", "", "alice")
        self.machine.must("adduser", "--quiet", "--disabled-password", "--gecos", "", "bob")
        self.machine.must("adduser", "--quiet", "alice", "dpnode")
        self.assertEqual(self.ask("status", user="alice", HOME="/home/alice")["pid"], self.pid())
        refused = self.machine.run("dpnode", "join", token, "--json", user="alice", HOME="/home/alice")
        self.assertEqual(json.loads(refused.stdout)["error"]["code"], "E0113")
        self.machine.must("loginctl", "enable-linger", "bob")
        uid = self.machine.must("id", "-u", "bob").strip()
        bobs = {"user": "bob", "HOME": "/home/bob", "XDG_RUNTIME_DIR": f"/run/user/{uid}"}
        wait_for(lambda: os.path.exists(f"/proc/{self.machine.init}/root/run/user/{uid}/systemd/private"), PATIENCE_S, "bob's manager")
        self.machine.must("systemctl", "--user", "start", "dpnoded", **bobs)
        self.assertEqual(self.ask("status", **bobs)["state"], "idle")
        self.assertNotEqual(self.ask("status", **bobs)["pid"], self.pid())
        self.ask("join", token, "--listen", "127.0.0.1:0", **bobs)
        wait_for(lambda: self.ask("status", **bobs)["state"] == "training", PATIENCE_S, "bob's node trains")
        self.assertEqual(self.ask("status")["state"], "idle")

    def test_without_systemd_join_starts_the_daemon_as_its_user(self):
        _, token = self.found()
        self.machine.boot(systemd=False)
        self.apt("install", self.deb, self.library)
        self.machine.must("dpnode", "join", token)
        self.trains()
        self.assertEqual(self.machine.must("python3", "-c", "import dpnode; print(dpnode.__version__)"),
                         json.loads(self.machine.must("dpnode", "version", "--json"))["version"] + "\n")
        self.assertEqual(self.user_of_daemon().strip(), "dpnode")
        self.assertEqual(self.machine.must("stat", "-c", "%U:%G %a", "/run/dpnode").strip(), "dpnode:dpnode 750")
        self.assertEqual(self.machine.must("stat", "-c", "%U %a", "/var/lib/dpnode", "/var/lib/dpnode/dpnoded.log").split(),
                         ["dpnode", "700", "dpnode", "600"])
        self.ask("down")


if __name__ == "__main__":
    main()
