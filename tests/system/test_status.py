#!/usr/bin/env python3
"""status and peers report the present state, and mark unknown values as unknown."""

import os
import re
import resource
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import SystemTest, wait_for  # noqa: E402


def shown(node, *words):
    """The output for a person (without --json)."""
    return subprocess.run([word for word in node.command(*words) if word != "--json"], capture_output=True, text=True, timeout=60,
                          check=True).stdout


def raw(node):
    """The run of status with its nulls."""
    return node.ask("status").get("run", {})


class Status(SystemTest):
    def test_a_paused_node_tells_no_speed(self):
        node, _ = self.found()
        wait_for(lambda: raw(node).get("tokens_per_s"), 60, "its speed is measured")
        told = raw(node)
        self.assertTrue(told["trains"] and told["compute_utilisation"] > 0)
        self.assertIn(" tokens/s", shown(node, "status"))
        node.ask("pause")
        wait_for(lambda: not raw(node)["trains"], 20, "the trainer is told to stop")
        told = raw(node)
        self.assertEqual((told["tokens_per_s"], told["compute_utilisation"]), (None, None))
        text = shown(node, "status")
        self.assertIn("trainer up, not training", text)
        self.assertNotIn("tokens/s", text)
        self.assertNotIn("computing", text)
        node.ask("resume")
        wait_for(lambda: raw(node).get("tokens_per_s"), 60, "it trains again")

    def test_the_trainer_gives_way_to_other_programs(self):
        node, _ = self.found()
        trainer = wait_for(lambda: node.run().get("trainer_pid"), 60, "there is a trainer")
        wait_for(lambda: os.getpriority(os.PRIO_PROCESS, trainer) == max(os.nice(0), 10), 20, "it is nice")
        with open("/proc/sys/kernel/sched_autogroup_enabled", encoding="ascii") as file:
            grouped = file.read().strip() == "1"
        if grouped: # Then a niceness counts inside a session only.
            def group(pid):
                with open(f"/proc/{pid}/autogroup", encoding="ascii") as file:
                    return file.read().strip()
            wait_for(lambda: group(trainer).endswith(" nice 10"), 20, "its session is nice")
            self.assertNotEqual(group(trainer), group(node.process.pid))

    def test_a_daemon_may_open_as_many_files_as_its_user(self):
        usual, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (usual, most))
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, most)) # The daemon inherits it.
        node, _ = self.found()
        pid = node.ask("status")["pid"]
        self.assertEqual(resource.prlimit(pid, resource.RLIMIT_NOFILE), (most, most))

    def test_the_rounds_that_counted_it_are_those_of_the_chain(self):
        node, _ = self.found()
        wait_for(lambda: node.run().get("counted", 0) >= 3, 60, "three rounds count it")
        node.ask("pause")
        self.assertEqual(node.end(), 0)
        node.start()
        wait_for(lambda: raw(node).get("counted") is not None, 60, "the chain is read")
        node.ask("pause") # whether that lasted or not
        wait_for(lambda: node.ask("status")["state"] == "paused", 20, "it is paused")
        own = next(member for member in node.ask("audit")["members"])
        self.assertGreaterEqual(own["counted"], 3)
        self.assertEqual(raw(node)["counted"], own["counted"])

    def test_values_not_known_yet_are_null(self):
        gone, token = self.found()
        gone.end()
        node = self.folder.node("node2").start()
        with subprocess.Popen(node.command("join", token), stdout=subprocess.DEVNULL) as joining:
            wait_for(lambda: "run" in node.ask("status"), 20, "it tries to join")
            told = raw(node)
            for key in ("round", "tokens", "members", "alive", "counted", "state_root", "is_voter", "quorum", "tokens_per_s", "loss"):
                self.assertIsNone(told[key], key)
            text = shown(node, "status")
            self.assertIn("no peer has sent the run's manifest yet", text)
            self.assertNotIn("round 0", text)
            self.assertNotIn("members", text)
            joining.terminate()

    def test_a_member_that_was_never_linked_is_a_row_with_a_name_for_it(self):
        first, token = self.found()
        second = self.joined("node2", token)
        wait_for(lambda: second.run().get("counted", 0) > 0, 60, "node2 is counted")
        other = second.ask("status")["id"]
        second.end()
        first.end()
        first.start()
        wait_for(lambda: raw(first).get("round"), 60, "the chain is read")
        row = next(peer for peer in first.ask("peers")["peers"] if peer["id"] == other)
        self.assertIn(row["name"], (None, "node2")) # where it was told by others it is known
        line = next(line for line in shown(first, "peers").splitlines() if row["short"] in line)
        self.assertRegex(line, r"^(\(not linked yet\)|node2) ")

    def test_a_daemon_that_hangs_holds_up_no_check(self):
        node = self.folder.node("n1").start()
        node.process.send_signal(signal.SIGSTOP) # it accepts, and does not answer
        for check in ("live", "ready"):
            error = self.fails("E0103", 1, node.ask, "status", "--check", check, timeout=20)
            self.assertEqual(error["why"], "it is busy, or it hangs")
        error = self.fails("E0129", 75, node.ask, "wait", "--round", "1", "--timeout", "1s", timeout=20)
        self.assertIn("the daemon gives no answer", error["why"])
        self.assertNotIn("daemon", node.ask("version", timeout=20))
        node.process.send_signal(signal.SIGCONT)

    def test_peers_come_in_the_order_that_is_asked_for(self):
        first, token = self.found("zoe")
        self.joined("ann", token)

        def names(*words):
            return [peer["name"] for peer in first.ask("peers", *words)["peers"]]
        wait_for(lambda: set(names()) == {"zoe", "ann"}, 60, "both have told their names")
        self.assertEqual((names(), names("--sort", "name")), (["zoe", "ann"], ["ann", "zoe"]))
        wait_for(lambda: first.ask("peers")["peers"][1].get("rtt_ms"), 60, "ann has answered")
        self.assertEqual(names("--sort", "rtt"), ["ann", "zoe"]) # It measures none to itself.
        wait_for(lambda: all(peer.get("step_ms") for peer in first.ask("peers")["peers"]), 60, "both have told their speed")
        steps = [peer["step_ms"] for peer in first.ask("peers", "--sort", "rate")["peers"]]
        self.assertEqual(steps, sorted(steps))
        self.assertEqual(re.findall(r"^(zoe|ann)\b", shown(first, "peers", "--sort", "name"), re.MULTILINE), ["ann", "zoe"])
        error = self.fails("E0001", 64, first.ask, "peers", "--sort", "speed")
        self.assertIn("rate, rtt or name", error["fix"])


if __name__ == "__main__":
    systemtest.main()
