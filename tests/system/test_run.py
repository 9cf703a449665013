#!/usr/bin/env python3
"""A tiny run of real daemons through the command line: every verb once, as a user would run it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import BINARIES, CliError, SystemTest, wait_for  # noqa: E402


def runs(pid):
    """False also for a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class TinyRun(SystemTest):
    def counted(self, node, rounds=1):
        return wait_for(lambda: node.run().get("counted", 0) >= rounds and node.run(), 30, f"{node.name} is counted")

    def audited(self, node):
        """The chain proves that each sample was committed once; a member that was counted twice continued in its lease."""
        audit = node.ask("audit")
        self.assertEqual((audit["n_findings"], audit["findings"], audit["twice"]), (0, [], 0))
        self.assertEqual(audit["records"], audit["head"])
        self.assertGreater(audit["pass_samples"], 0)
        self.assertEqual(audit["samples"] + audit["holes"], audit["leased"] + audit["own"])
        for name in ("samples", "leased", "own", "counted"):
            self.assertEqual(sum(m[name] for m in audit["members"]), audit[name], name)
        self.assertGreater(audit["leased"], 0)
        return audit

    def test_two_nodes_train_and_end_with_the_same_model(self):
        first, token = self.found()
        second = self.joined("node2", token)
        self.counted(first)
        self.counted(second, 2)

        peers = {p["name"]: p for p in first.ask("peers")["peers"]}
        self.assertEqual(set(peers), {"node1", "node2"})
        self.assertTrue(peers["node1"]["self"] and peers["node2"]["linked"])
        self.assertEqual(first.ask("status", "--check", "ready")["state"], "training")
        rounds = first.lines("rounds", "-n", "100")
        self.assertEqual([r["round"] for r in rounds], list(range(1, len(rounds) + 1)))
        self.assertIn(2, [r["listed"] for r in rounds])
        names = {e["name"] for e in second.lines("logs", "-n", "200")}
        self.assertIn("round.decided", names)
        self.assertTrue(first.ask("why")["answer"])
        self.assertIn("round 1", first.ask("why", "round", "1")["answer"])
        with self.assertRaises(CliError) as none:
            first.ask("why", "round", "999999")
        self.assertEqual(none.exception.status, 1)
        self.fails("E0120", 1, first.ask, "why", "peer", "nobody")
        self.fails("E0120", 1, first.ask, "why", "peer", "x" * 200)
        for key in ("name", "short", "id"):
            self.assertIn("node2", first.ask("why", "peer", peers["node2"][key])["answer"], key)

        def same_root():
            runs = [n.run() for n in (first, second)]
            return runs[0]["applied"] == runs[1]["applied"] and runs
        runs = wait_for(same_root, 30, "both stand at one round")
        self.assertEqual(runs[0]["state_root"], runs[1]["state_root"])

        audits = [self.audited(n) for n in (first, second)]
        self.assertEqual([m["id"] for m in audits[0]["members"]], [m["id"] for m in audits[1]["members"]])
        self.assertTrue(all(m["counted"] > 0 and m["samples"] > 0 for m in audits[0]["members"]))

        self.assertGreater(second.ask("eval", "-n", "500")["bits_per_byte"], 0)
        self.assertIn("abc", second.ask("sample", "-p", "abc", "-n", "20", "--seed", "3")["text"])
        self.assertTrue(all(d["local"] for d in second.ask("data")["data"]))
        self.assertEqual(second.ask("pause")["state"] in ("paused", "training"), True)
        wait_for(lambda: second.ask("status")["state"] == "paused", 10, "node2 pauses")
        second.ask("resume")
        wait_for(lambda: second.ask("status")["state"] == "training", 20, "node2 trains again")
        self.assertEqual(second.ask("leave")["run"], "tiny")
        self.assertEqual(second.ask("status")["state"], "idle")
        self.fails("E0110", 69, second.ask, "peers")

    def test_checkpoints_are_listed_verified_and_exported(self):
        node, _ = self.found()
        wait_for(lambda: node.ask("ckpt", "ls")["checkpoints"], 30, "a checkpoint")
        self.assertEqual(node.ask("ckpt", "verify")["bad"], 0)
        out = os.path.join(self.folder.path, "model")
        files = node.ask("ckpt", "export", out)["files"]
        self.assertIn("model.safetensors", files)
        self.fails("E0407", 73, node.ask, "ckpt", "export", out)
        self.assertEqual(node.ask("ckpt", "export", out, "--force")["files"], files)
        with open(os.path.join(out, "model.safetensors"), "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            self.assertIn("__metadata__", {"__metadata__": 0, **json.loads(file.read(size))})
        self.assertEqual(node.ask("ckpt", "export", out, "--gguf", "q8_0")["files"], ["model.gguf"])
        with open(os.path.join(out, "model.gguf"), "rb") as file:
            self.assertEqual(file.read(8), b"GGUF\3\0\0\0")
        for wrong in ("q9_0", "somewhat long"):
            self.fails("E0403", 64, node.ask, "ckpt", "export", out, "--gguf", wrong)

    def test_join_starts_a_daemon_that_outlives_it(self):
        _, token = self.found()
        late = self.folder.node("late")
        done = subprocess.run([os.path.join(BINARIES, "dpnode"), "join", "--name", "late", "--dir", late.dir,
                               "--listen", f"127.0.0.1:{late.port}", "--socket", late.socket, "--json"],
                              env={**os.environ, "DPNODE_TOKEN": token, "DPNODE_BALLAST": "1M", "DPNODE_MARGIN": "1M"},
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(json.loads(done.stdout.splitlines()[-1])["run"], "tiny")
        pid = late.ask("status")["pid"]
        self.addCleanup(lambda: os.path.exists(f"/proc/{pid}") and os.kill(pid, signal.SIGKILL))
        self.assertEqual(late.ask("up")["started"], False)
        self.assertEqual(late.ask("status")["name"], "late")
        self.assertTrue(os.path.exists(os.path.join(late.dir, "dpnoded.log")))
        self.assertEqual(late.ask("down"), {"pid": pid, "ended": True})
        self.assertFalse(runs(pid))
        self.assertFalse(os.path.exists(late.socket))

    def test_a_token_tells_its_terms_offline(self):
        node, _ = self.found()
        token = node.ask("invite", "--uses", "3", "--expires", "2h", "--role", "train")["token"]
        told = node.ask("token", "inspect", token)
        self.assertEqual((told["run"], told["uses"], told["valid"]), ("tiny", 3, True))
        self.assertEqual(told["roles"], ["train", "relay", "serve"])
        self.assertEqual(told["addresses"], [f"127.0.0.1:{node.port}"])
        self.assertNotIn("secret", json.dumps(told))

    def test_an_invite_gives_least_where_nothing_is_said(self):
        """A person who finds the token can train, as one node, for a day: no vote, no second node, no invites."""
        node, _ = self.found()
        told = node.ask("token", "inspect", node.ask("invite")["token"])
        self.assertEqual((told["uses"], told["roles"]), (1, ["train", "relay", "serve"]))
        self.assertLess(told["expires_ms"] - time.time() * 1000, 24.1 * 3600 * 1000)
        more = node.ask("token", "inspect", node.ask("invite", "--role", "vote", "--uses", "2")["token"])
        self.assertEqual((more["uses"], "vote" in more["roles"]), (2, True))

    def test_all_killed_at_once_go_on_where_they_were(self):
        first, token = self.found()
        nodes = [first, self.joined("node2", token), self.joined("node3", token)]
        for node in nodes:
            self.counted(node, 2)
        before = max(node.run()["round"] for node in nodes)
        roots = {r["round"]: r["state_root"] for n in nodes for r in n.lines("rounds", "-n", "1000") if "state_root" in r}
        for node in nodes:
            node.kill()
        for node in nodes:
            node.start()
        wait_for(lambda: min(n.run().get("round", 0) for n in nodes) > before, 30, "the run goes on")
        self.audited(nodes[1])
        again = {r["round"]: r.get("state_root") for r in first.lines("rounds", "-n", "1000")}
        self.assertEqual(sorted(set(again) & set(range(1, before + 1))), list(range(1, before + 1)))
        for number, root in roots.items():
            self.assertIn(again[number], (root, None))

    def test_the_built_in_demo_starts(self):
        if not shutil.which("bible"):
            self.skipTest("needs bible-kjv")
        node = self.folder.node("node1").start()
        created = node.ask("run", "create", "--demo", "kjv")
        self.assertEqual(created["run"], "kjv")
        self.assertNotIn("DPN1-", str(created)) # The token for others comes from a command of its own.
        data = {d["kind"]: d["bytes"] for d in node.ask("data")["data"]}
        self.assertGreater(data["tokens"], 2_000_000)

    def test_a_swarm_leaves_nothing_behind(self):
        text = systemtest.tiny_text(os.path.join(self.folder.path, "text.txt"))
        done = subprocess.run([os.path.join(BINARIES, "dpnode"), "swarm", "-n", "2", "--rounds", "3", "--json",
                               self.file("tiny.yaml", systemtest.TINY), "--text", text],
                              env={**os.environ, "TMPDIR": self.folder.path}, capture_output=True, text=True, timeout=90,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        pids = [line["pid"] for line in lines if "pid" in line]
        self.assertEqual((len(pids), len([r for r in lines if r.get("listed") == 2])), (2, 3))
        self.assertFalse([p for p in pids if os.path.exists(f"/proc/{p}")])
        self.assertFalse([n for n in os.listdir(self.folder.path) if n.startswith("dpnode-swarm")])

    def test_an_interrupted_swarm_leaves_nothing_behind(self):
        text = systemtest.tiny_text(os.path.join(self.folder.path, "text.txt"))
        swarm = subprocess.Popen([os.path.join(BINARIES, "dpnode"), "swarm", "-n", "2", "--json",
                                  self.file("tiny.yaml", systemtest.TINY), "--text", text],
                                 env={**os.environ, "TMPDIR": self.folder.path}, stdout=subprocess.PIPE, text=True)
        pids = [json.loads(swarm.stdout.readline())["pid"] for _ in range(2)]
        swarm.send_signal(signal.SIGINT)
        self.assertEqual(swarm.wait(20), 0)
        swarm.stdout.close()
        self.assertFalse([p for p in pids if os.path.exists(f"/proc/{p}")])
        self.assertFalse([n for n in os.listdir(self.folder.path) if n.startswith("dpnode-swarm")])


if __name__ == "__main__":
    systemtest.main()
