#!/usr/bin/env python3
"""The first start of a node that an orchestrator owns: it joins by a token, or creates a run from a manifest, without a command. A token or a manifest
that cannot be used is named in the log, in status and in why, and destroys nothing."""

import contextlib
import hashlib
import os
import shutil
import signal
import sqlite3
import stat
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from systemtest import BINARIES, TINY, SystemTest, main, tiny_text, wait_for  # noqa: E402

PATIENCE_S = 60


def variables(pid):
    with open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as file:
        return file.read().split("\0")


class FirstStart(SystemTest):
    def manifest(self, more=""):
        tiny_text(os.path.join(self.folder.path, "text.txt"))
        return self.file("tiny.yaml", TINY + "text: text.txt\n" + more)

    def founder(self, name="founder", more=""):
        """A node that creates the tiny run at its start, and the file with its invite."""
        invite = os.path.join(self.folder.path, "invite")
        node = self.folder.node(name)
        node.environment = {"DPNODE_CREATE_FROM": self.manifest(more), "DPNODE_TOKEN_FILE": invite}
        node.start()
        wait_for(lambda: os.path.exists(invite), PATIENCE_S, "the invite of the created run")
        return node, invite

    def pod(self, name, **environment):
        node = self.folder.node(name)
        node.environment = environment
        return node.start()

    def trains(self, node):
        return wait_for(lambda: node.run().get("counted", 0) > 0 and node.run(), PATIENCE_S, f"a round has counted {node.name}")

    def problem(self, node, code):
        """status, why and the log name the problem."""
        told = wait_for(lambda: (lambda p: p.get("code") == code and p)(node.ask("status").get("problem", {})), PATIENCE_S,
                        f"{node.name} has {code}: {node.tail(5)}")
        self.assertTrue(told["what"] and told["why"] and told["fix"])
        self.assertIn(f"{code} {told['what']}", node.ask("why")["answer"])
        # Another thread writes the log, after status has it.
        wait_for(lambda: f"{code} {told['what']}" in node.tail(100000), PATIENCE_S, f"the log of {node.name} has {code}")
        return told

    def test_wait_does_not_give_up_before_the_first_try_has_ended(self):
        node = self.folder.node("founder")
        node.environment = {"DPNODE_CREATE_FROM": self.manifest()}
        node.start() # It answers; the manifest is still to be read.
        self.assertEqual(node.ask("wait", "--peers", "1", "--timeout", "1m", timeout=PATIENCE_S)["run"], "tiny")

    def test_one_founder_and_two_joiners_need_only_their_environment(self):
        founder, invite = self.founder()
        created = founder.run()["id"]
        self.assertEqual(stat.S_IMODE(os.stat(invite).st_mode), 0o600)
        with open(invite, encoding="ascii") as file:
            token = file.read()
        told = founder.ask("token", "inspect", token)
        self.assertEqual((told["uses"], "vote" in told["roles"]), (0, True))
        by_file = self.pod("by_file", DPNODE_TOKEN_FILE=invite)
        by_text = self.pod("by_text", DPNODE_TOKEN=token)
        self.assertEqual(founder.ask("wait", "--peers", "3", "--timeout", "1m")["alive"], 3)
        self.assertGreaterEqual(by_text.ask("wait", "--round", "3", "--loss", "9", "--timeout", "1m")["round"], 3)
        for node in (by_file, by_text):
            self.assertEqual(self.trains(node)["id"], created)
            self.assertNotIn("problem", node.ask("status"))
        trainer = variables(by_text.run()["trainer_pid"])
        self.assertTrue([v for v in trainer if v.startswith("DPNODE_BACKEND=")])
        self.assertFalse([v for v in trainer if v.startswith("DPNODE_TOKEN=")]) # it is not the trainer's business
        founder.end()
        founder.start()
        self.assertEqual(self.trains(founder)["id"], created) # it has not created another one
        os.unlink(invite)
        founder.end()
        founder.start()
        wait_for(lambda: os.path.exists(invite), PATIENCE_S, "the founder writes the lost file again")
        by_text.ask("leave")
        self.assertEqual(by_text.ask("status")["state"], "idle")
        self.assertEqual(by_file.ask("status")["run"]["id"], created)

    def test_a_token_of_members_that_do_not_answer_is_tried_again_until_one_does(self):
        first, token = self.found()
        first.end()
        node = self.pod("early", DPNODE_TOKEN=token)
        told = self.problem(node, "E0202")
        self.assertIn(f"127.0.0.1:{first.port}", told["why"])
        first.start()
        self.trains(node)
        self.assertNotIn("problem", node.ask("status"))

    def test_a_token_holds_while_its_issuer_is_away(self):
        """It names the voters, too: a founder that has lost its volume must not depend on itself."""
        first, token = self.found()
        others = [self.joined(f"voter{i}", token) for i in range(2)]
        wait_for(lambda: all(peer["voter"] and peer["linked"] or peer["self"] for peer in first.ask("peers")["peers"])
                 and first.run()["voters"] == 3, PATIENCE_S, "three vote")
        later = first.ask("invite")["token"]
        told = first.ask("token", "inspect", later)["addresses"]
        self.assertEqual(sorted(told), sorted(f"127.0.0.1:{node.port}" for node in (first, *others)))
        first.end()
        self.trains(self.pod("late", DPNODE_TOKEN=later))

    def test_a_token_that_is_none_is_named_and_the_file_may_be_corrected(self):
        _, token = self.found()
        path = self.file("token", "")
        node = self.pod("node", DPNODE_TOKEN_FILE=path)
        self.assertEqual(self.problem(node, "E0215")["why"], path + ": the file is empty")
        self.file("token", "DPN1-junk\n")
        self.problem(node, "E0203")
        names = [event["name"] for event in node.lines("logs", "--only", "join.fa,join.w")]
        self.assertEqual(names, ["join.waits", "join.failed"])
        self.assertIn("E0203", self.fails("E0129", 75, node.ask, "wait", "--round", "1", "--timeout", "1s")["why"])
        self.assertEqual(node.ask("status", "--check", "live")["state"], "idle") # its orchestrator need not restart it
        os.chmod(path, 0o644)
        self.file("token", token + "\n")
        self.trains(node)
        self.assertNotIn("problem", node.ask("status"))
        idle = self.pod("idle") # without a token, nothing is amiss
        self.fails("E0110", 69, idle.ask, "why")
        self.fails("E0110", 69, idle.ask, "wait", "--peers", "2")

    def test_a_token_that_others_can_read_is_used_and_the_log_says_so(self):
        """Docker and Kubernetes give secrets as files that all users of a container may read."""
        _, token = self.found()
        path = self.file("token", token)
        os.chmod(path, 0o444)
        node = self.pod("node", DPNODE_TOKEN_FILE=path)
        self.trains(node)
        self.assertIn("chmod o-r " + path, node.tail(100000))
        os.chmod(path, 0o440)
        other = self.pod("other", DPNODE_TOKEN_FILE=path)
        self.trains(other)
        self.assertNotIn("chmod", other.tail(100000))

    def test_a_token_of_another_run_changes_nothing(self):
        node, _ = self.found()
        created = node.run()["id"]
        other = self.folder.node("other").start()
        token = other.create(self.file("two.yaml", TINY.replace("tiny", "two")), "--text",
                             os.path.join(self.folder.path, "text.txt"))["invite"]
        node.end()
        node.environment = {"DPNODE_TOKEN_FILE": self.file("token", token)}
        node.start()
        told = self.problem(node, "E0216")
        self.assertIn("is of the run two, and this node is a member of another run, tiny", told["why"])
        self.assertEqual(self.trains(node)["id"], created)

    def test_sigterm_while_it_joins_ends_it_at_once_and_the_next_start_joins(self):
        first, token = self.found()
        first.process.send_signal(signal.SIGSTOP) # it accepts, and does not answer
        node = self.pod("node", DPNODE_TOKEN=token)
        wait_for(lambda: node.ask("status")["state"] == "joining", 10, "it joins")
        node.process.send_signal(signal.SIGTERM)
        self.assertEqual(node.process.wait(5), 0)
        first.process.send_signal(signal.SIGCONT)
        node.start()
        self.trains(node)
        self.assertEqual(first.run()["members"], 2)

    def test_sigterm_while_a_command_joins_forgets_no_run_and_the_next_start_goes_on(self):
        first, token = self.found()
        others = [self.joined(f"voter{i}", token) for i in range(2)]
        wait_for(lambda: first.run().get("voters") == 3, PATIENCE_S, "three vote")
        for voter in others:
            voter.process.send_signal(signal.SIGSTOP) # without them no record admits anybody
        node = self.folder.node("node").start()
        joining = subprocess.Popen(node.command("join", "-"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(joining.wait)
        self.addCleanup(joining.kill)
        joining.stdin.write(token)
        joining.stdin.close()
        wait_for(lambda: os.path.exists(os.path.join(node.dir, "run.member")) and node.run().get("name") == "tiny", PATIENCE_S, "it has the manifest")
        node.process.send_signal(signal.SIGTERM)
        self.assertEqual(node.process.wait(5), 0)
        self.assertIn(joining.wait(20), (69, 75), joining.stdout.read())
        joining.stdout.close()
        node.start()
        self.assertNotEqual(node.ask("status")["state"], "idle")
        for voter in others:
            voter.process.send_signal(signal.SIGCONT)
        self.trains(node)
        self.assertEqual(first.run()["members"], 4)

    def test_sigterm_while_it_creates_ends_it_at_once_and_the_next_start_creates_one_run(self):
        node = self.folder.node("node")
        node.environment = {"DPNODE_CREATE_FROM": self.manifest()}
        node.start()
        wait_for(lambda: "creating a run from" in node.tail(10), 10, "it creates the run")
        node.process.send_signal(signal.SIGTERM)
        self.assertEqual(node.process.wait(5), 0)
        left = os.path.join(node.dir, "work-aBc123") # of a life that was killed
        os.makedirs(left, exist_ok=True)
        node.start()
        wait_for(lambda: not os.path.exists(left), PATIENCE_S, "it removes what the killed one left")
        created = self.trains(node)["id"]
        node.process.send_signal(signal.SIGTERM)
        node.process.wait(30)
        node.start()
        self.assertEqual(self.trains(node)["id"], created)

    def test_a_second_pod_with_the_volume_of_a_first_ends_and_says_why(self):
        founder, invite = self.founder()
        created = founder.run()["id"]
        second = subprocess.run([os.path.join(BINARIES, "dpnoded"), "--dir", founder.dir, "--socket", founder.socket + "2",
                                 "--listen", "127.0.0.1:0", "--ballast", "1M", "--margin", "1M"],
                                env={**os.environ, "DPNODE_TOKEN_FILE": invite}, capture_output=True, text=True, timeout=20, check=False)
        self.assertEqual(second.returncode, 73, second.stderr)
        self.assertIn(founder.dir, second.stderr)
        self.assertIn(str(founder.process.pid), second.stderr)
        self.assertEqual(self.trains(founder)["id"], created)

    def test_a_pod_without_a_volume_joins_anew_and_gets_the_place_of_the_one_before(self):
        founder, invite = self.founder(more="members: {max: 2, absent: 1}\n")
        with open(invite, encoding="ascii") as file:
            token = file.read()
        pod = self.pod("pod", DPNODE_TOKEN=token)
        self.trains(pod)
        before = pod.ask("status")["id"]
        pod.kill()
        shutil.rmtree(pod.dir)
        pod.start()
        self.assertIn("members.max", self.problem(pod, "E0211")["why"]) # at first the run is full
        self.trains(pod)
        self.assertNotEqual(pod.ask("status")["id"], before)
        self.assertEqual(founder.run()["members"], 2)

    def test_a_manifest_may_name_the_tensors_of_any_model(self):
        header = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
        self.file("any.safetensors", len(header).to_bytes(8, "little") + header + bytes(8))
        path = self.file("any.yaml", "name: any\nmodel: {arch: external}\nfrom: any.safetensors\ndata: {samples: 100}\n"
                                     "members: {trust: members}\n")
        node = self.pod("node", DPNODE_CREATE_FROM=path)
        wait_for(lambda: node.ask("status")["state"] == "waiting", PATIENCE_S, "it holds the model, and waits for a script")
        self.assertEqual(node.run()["name"], "any")

    def test_a_manifest_that_cannot_be_used_is_named_and_may_be_corrected(self):
        node = self.folder.node("node")
        path = os.path.join(self.folder.path, "tiny.yaml")
        node.environment = {"DPNODE_CREATE_FROM": path}
        node.start()
        self.assertIn(path, self.problem(node, "E0306")["why"])
        self.file("tiny.yaml", TINY + "texts: text.txt\n")
        self.assertIn("tiny.yaml:7:1", self.problem(node, "E0301")["why"])
        self.file("tiny.yaml", TINY + "text: nowhere.txt\n")
        self.assertIn("nowhere.txt", self.problem(node, "E0309")["why"])
        self.manifest()
        self.trains(node)
        self.assertNotIn("problem", node.ask("status"))

    def test_a_founder_that_has_left_its_run_creates_no_second_one(self):
        founder, invite = self.founder()
        self.assertTrue(founder.ask("leave", "--delete-run", "tiny")["run"])
        os.unlink(invite)
        founder.end()
        founder.start()
        self.assertIn(founder.dir, self.problem(founder, "E0316")["why"])
        self.assertTrue(os.path.exists(os.path.join(founder.dir, "root.key")))

    def test_a_founder_that_was_killed_before_its_run_was_stored_creates_one(self):
        founder, invite = self.founder()
        before = founder.run()["id"]
        founder.end()
        os.unlink(invite)
        with open(os.path.join(founder.dir, "root.key"), "rb") as file:
            key = file.read()
        with contextlib.closing(sqlite3.connect(os.path.join(founder.dir, "meta.db"))) as db:
            facts, = db.execute("SELECT val FROM kv WHERE key='run'").fetchone()
            value = facts[2:66]  # the run and its root key
            check = hashlib.blake2b(b"dpnode/store-row/1\0", digest_size=32)
            for kind, part in ((3, b"run.founding"), (4, value)):
                check.update(struct.pack("<QQ", kind, len(part)) + part)
            db.execute("INSERT INTO kv(key,val,chk) VALUES('run.founding',?,?)", (value, check.digest()))
            db.execute("DELETE FROM kv WHERE key='run'")
            db.execute("DELETE FROM head")
            db.execute("DELETE FROM record")
            db.commit()
        founder.start()
        wait_for(lambda: os.path.exists(invite), PATIENCE_S, "the invite of the created run")
        self.assertNotEqual(founder.run()["id"], before)
        with open(os.path.join(founder.dir, "root.key"), "rb") as file:
            self.assertNotEqual(file.read(), key)
        self.assertEqual([name for name in os.listdir(founder.dir) if name.startswith("root.key.")], [])
        self.trains(founder)

    def test_a_founder_without_its_volume_joins_the_run_that_it_created(self):
        founder, invite = self.founder()
        created = founder.run()["id"]
        with open(invite, encoding="ascii") as file:
            other = self.pod("other", DPNODE_TOKEN=file.read())
        self.trains(other)
        pod = self.folder.node("founder2")
        pod.environment = founder.environment
        pod.start()
        self.assertEqual(self.trains(pod)["id"], created)

    def test_a_daemon_that_a_verb_starts_leaves_the_token_to_the_verb(self):
        """dpnode up starts it for an orchestrator; join and run create give it their own run."""
        _, token = self.found()
        for verb, tried in (("join", False), ("up", True)):
            node = self.folder.node(verb)
            done = subprocess.run([os.path.join(BINARIES, "dpnode"), verb, "--dir", node.dir, "--listen", f"127.0.0.1:{node.port}",
                                   "--socket", node.socket],
                                  env={**os.environ, "DPNODE_TOKEN": token, "DPNODE_BALLAST": "1M", "DPNODE_MARGIN": "1M"},
                                  capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            pid = node.ask("status")["pid"]
            self.addCleanup(lambda pid=pid: os.path.exists(f"/proc/{pid}") and os.kill(pid, signal.SIGKILL))
            self.trains(node)
            with open(os.path.join(node.dir, "dpnoded.log"), encoding="utf-8") as log:
                self.assertEqual("joining by the token in DPNODE_TOKEN" in log.read(), tried)
            node.ask("down")

    def test_a_node_that_was_told_to_leave_stays_out_until_it_has_another_token_or_is_told_to_join(self):
        founder, token = self.found()
        path = self.file("token", token)
        node = self.pod("node", DPNODE_TOKEN_FILE=path)
        self.trains(node)
        self.assertEqual(node.ask("leave")["run"], "tiny")
        for _ in range(2): # its orchestrator starts it again
            told = self.problem(node, "E0218")
            self.assertIn(path, told["why"])
            self.assertIn("dpnode join TOKEN", told["fix"])
            self.assertEqual(node.ask("status")["state"], "idle")
            node.end()
            node.start()
        self.problem(node, "E0218")
        self.file("token", founder.ask("invite", "--uses", "2")["token"])
        told = self.problem(node, "E0219") # the run has not forgotten it
        self.assertIn(f"mv {node.dir} {node.dir}.left;", told["fix"])
        node.ask("leave")
        self.problem(node, "E0218")
        self.fails("E0219", 77, node.ask, "join", "-", "--name", "node", stdin=token)
        self.problem(node, "E0218") # nor by the file, after this
        node.end()
        with contextlib.closing(sqlite3.connect(os.path.join(node.dir, "meta.db"))) as meta:
            for table in ("pin", "object", "vote", "record", "ckpt"): # Three refused joins have left nothing.
                self.assertEqual(meta.execute(f"SELECT count(*) FROM {table}").fetchone()[0], 0, table)
        os.rename(node.dir, node.dir + ".left")
        node.start() # as a new node, to which nobody said leave
        self.assertNotIn("problem", self.trains(node) and node.ask("status"))

    def test_an_order_to_leave_ends_the_tries_to_join(self):
        first, token = self.found()
        first.end()
        node = self.pod("early", DPNODE_TOKEN=token)
        self.problem(node, "E0202")
        self.assertIsNone(wait_for(lambda: self.leaves(node), 30, "it leaves between two tries, or during one")["run"])
        first.start()
        self.problem(node, "E0218")
        self.fails("E0110", 69, node.ask, "leave")

    def leaves(self, node):
        told = node.ask("leave")
        return told if told["run"] is None else None

    def test_two_ways_to_a_run_are_a_usage_error(self):
        for name in ("DPNODE_TOKEN_FILE", "DPNODE_CREATE_FROM"):
            done = subprocess.run([os.path.join(BINARIES, "dpnoded"), "--dir", self.folder.path],
                                  env={**os.environ, name: "/nowhere", "DPNODE_TOKEN": "DPN1-A"}, capture_output=True, text=True, timeout=20,
                                  check=False)
            self.assertEqual(done.returncode, 64)
            self.assertIn("unset DPNODE_TOKEN", done.stderr)


if __name__ == "__main__":
    main()
