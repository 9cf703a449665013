#!/usr/bin/env python3
"""dpnode web: a page and metrics of a real daemon. It only reads, for hosts that it knows; a daemon that is away or hangs is told as that."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import BINARIES, SystemTest, wait_for  # noqa: E402

WEB = os.path.join(BINARIES, "dpnode-web")

# told where a clock is wrong, where there are sensors, and once held-out text was measured
RARE = {"dpnode_clock_behind_seconds", "dpnode_device_temperature_celsius", "dpnode_device_power_watts",
        "dpnode_held_out_loss_nats", "dpnode_held_out_bits_per_byte", "dpnode_held_out_round"}


class Site:
    """dpnode web of a node's socket, at a port of its own."""

    def __init__(self, test, *words, socket_path="/nonexistent/socket"):
        self.test = test
        self.process = subprocess.Popen([os.path.join(BINARIES, "dpnode"), "web", "--json", "--listen", "127.0.0.1:0", "--socket",
                                         socket_path, *words], stdout=subprocess.PIPE, text=True)
        test.addCleanup(lambda: test.assertEqual(self.end(), 0))
        host, port = json.loads(self.process.stdout.readline())["address"].rsplit(":", 1)
        self.host, self.port = host, int(port)

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
        status = self.process.wait(20)
        self.process.stdout.close()
        return status

    def ask(self, path, method="GET", host=None, body=None, timeout=30):
        """Status and body."""
        line = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        line.request(method, path, body=body, headers={"Host": host or f"{self.host}:{self.port}"})
        answer = line.getresponse()
        text = answer.read().decode()
        self.headers = dict(answer.getheaders())
        line.close()
        return answer.status, text

    def stream(self, name="state", after=None):
        """The data of events of this name as they come; of news with their ids."""
        line = http.client.HTTPConnection(self.host, self.port, timeout=30)
        self.test.addCleanup(line.close)
        line.request("GET", "/api/v1/stream", headers={"Last-Event-ID": after} if after else {})
        answer = line.getresponse()
        self.test.addCleanup(answer.close)
        assert answer.getheader("Content-Type") == "text/event-stream"
        while True:
            text = answer.readline().decode()
            if not text:
                return
            if text.startswith("event: "):
                kind = text[len("event: "):].strip()
            if text.startswith("id: "):
                ident = text[len("id: "):].strip()
            if text.startswith("data: ") and kind == name:
                data = json.loads(text[len("data: "):])
                yield data if name == "state" else (ident, data)


def metric(text, name):
    """The value of a line; None: there is none."""
    return next((float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name + " ")), None)


class Web(SystemTest):
    def test_the_pages_follow_a_node_that_trains_is_paused_and_goes(self):
        node, _ = self.found()
        site = Site(self, socket_path=node.socket)
        wait_for(lambda: site.ask("/readyz")[0] == 200, 60, "it trains")
        self.assertEqual(site.ask("/healthz"), (200, "ok: training\n"))
        wait_for(lambda: (metric(site.ask("/metrics")[1], 'dpnode_round{run="tiny"}') or 0) >= 2, 60, "rounds are counted")
        text = site.ask("/metrics")[1]
        self.assertEqual(metric(text, 'dpnode_state{state="training"}'), 1)
        self.assertGreater(metric(text, 'dpnode_tokens_total{run="tiny"}'), 0)
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "daemon", "owner", "rest.c"), encoding="utf-8") as file:
            words = re.findall(r'\[DP_REST_\w+\] = \{"(\w+)"', file.read())
        self.assertEqual(re.findall(r'^dpnode_rest\{reason="(\w+)"\} 0$', text, re.MULTILINE), words)
        wait_for(lambda: metric(site.ask("/metrics")[1], 'dpnode_round_phase_seconds{run="tiny",phase="wait"}') is not None, 60, "phases are told")
        self.assertGreaterEqual(metric(text, 'dpnode_rounds_decided_total{run="tiny",members="all"}'), 2)
        if shutil.which("promtool"):
            done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))
        rounds = json.loads(site.ask("/api/v1/rounds?last=2")[1])
        self.assertEqual(len(rounds), 2)
        self.assertLess(rounds[0]["slot"], rounds[1]["slot"])
        self.assertTrue(json.loads(site.ask("/api/v1/events")[1])[0]["text"])
        states = site.stream()
        self.assertEqual(next(states)["status"]["run"]["name"], "tiny")
        self.assertEqual(len(next(states)["peers"]["peers"]), 1)
        node.ask("pause")
        wait_for(lambda: site.ask("/readyz") == (503, "not ok: paused\n"), 30, "the pause is seen")
        self.assertEqual(site.ask("/healthz")[0], 200)
        self.assertEqual(metric(site.ask("/metrics")[1], "dpnode_paused_by_owner"), 1)
        node.end()
        wait_for(lambda: site.ask("/healthz")[0] == 503, 30, "its end is seen")
        self.assertIn("no daemon is running", site.ask("/healthz")[1])
        self.assertEqual(metric(site.ask("/metrics")[1], "dpnode_up"), 0)
        error = next(state["error"] for state in states if "error" in state)
        self.assertIn("dpnode up", error["fix"])
        node.start()
        wait_for(lambda: next(states).get("status"), 60, "the stream goes on with the daemon")

    def test_news_go_on_where_a_reader_was_cut_over_a_restart_of_the_daemon(self):
        node, _ = self.found()
        site = Site(self, socket_path=node.socket)
        wait_for(lambda: node.run().get("round", 0) >= 1, 90, "a round")
        ident, news = next(site.stream("news"))
        self.assertEqual(news, {"events": [], "rounds": []})
        node.end()
        node.start()
        had = node.run().get("round") or 0
        wait_for(lambda: (node.run().get("round") or 0) > had + 1, 90, "more rounds")
        events, rounds = [], []
        for _, news in site.stream("news", ident):
            events += news["events"]
            rounds += news["rounds"]
            if any(e["name"] == "daemon.started" for e in events) and len(rounds) >= 2:
                break
        slots = [r["slot"] for r in rounds]
        self.assertEqual(slots, list(range(int(ident.split("-")[2]) + 1, slots[-1] + 1)))
        ids = [e["id"] for e in events]
        self.assertEqual(ids, sorted(set(ids)))
        self.assertGreater(ids[0], int(ident.split("-")[0]))

    def test_a_daemon_that_hangs_is_told_as_that(self):
        node, _ = self.found()
        site = Site(self, socket_path=node.socket)
        wait_for(lambda: site.ask("/healthz")[0] == 200, 30, "it lives")
        node.process.send_signal(signal.SIGSTOP)
        try:
            wait_for(lambda: site.ask("/healthz")[0] == 503, 30, "it is seen to hang")
            self.assertIn("it is busy, or it hangs", site.ask("/healthz")[1])
            self.assertEqual(site.ask("/")[0], 200)
        finally:
            node.process.send_signal(signal.SIGCONT)
        wait_for(lambda: site.ask("/healthz")[0] == 200, 30, "it lives again")

    def test_a_foreign_page_learns_and_changes_nothing(self):
        site = Site(self, "--name", "node.example,other.example")
        self.assertEqual(site.ask("/", host="evil.example")[0], 403)
        self.assertEqual(site.ask("/api/v1/status", host="evil.example:80")[0], 403)
        self.assertEqual(site.ask("/", host="other.example")[0], 200)
        self.assertEqual(site.ask("/")[0], 200)
        policy = site.headers["Content-Security-Policy"]
        self.assertIn("default-src 'none'", policy)
        self.assertIn("frame-ancestors 'none'", policy)
        self.assertEqual(site.headers["X-Content-Type-Options"], "nosniff")
        self.assertNotIn("Access-Control-Allow-Origin", site.headers)
        self.assertEqual(site.ask("/metrics", "POST", body="x" * 100_000)[0], 405)
        self.assertEqual(site.ask("/", "HEAD"), (200, ""))
        self.assertEqual(site.ask("/nowhere")[0], 404)

    def test_readers_that_read_nothing_hold_nobody_up(self):
        site = Site(self)
        silent = []
        for _ in range(20):
            line = socket.create_connection((site.host, site.port))
            self.addCleanup(line.close)
            line.sendall(b"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
            silent.append(line)
        half = socket.create_connection((site.host, site.port))
        self.addCleanup(half.close)
        half.sendall(b"GET / HT")
        self.assertEqual(site.ask("/healthz")[0], 503)
        self.assertIn("error", next(site.stream()))

    def test_the_page_asks_no_other_machine(self):
        site = Site(self)
        for path in ("/", "/app.js", "/app.css"):
            status, text = site.ask(path)
            self.assertEqual(status, 200)
            self.assertEqual([word for word in text.split() if "://" in word and "www.w3.org" not in word], [], path)
        self.assertLess(sum(len(site.ask(path)[1]) for path in ("/", "/app.js", "/app.css")), 120_000)

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not here")
    def test_each_alert_fires_in_its_case_and_none_for_a_node_that_is_well(self):
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "contrib", "prometheus")
        for words in (("check", "config", "scrape.yml"), ("test", "rules", "alerts_test.yml", "alerts_long_test.yml")):
            done = subprocess.run(["promtool", *words], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(os.path.join(folder, "alerts.yml"), encoding="utf-8") as file:
            rules = file.read()
        with open(os.path.join(folder, "alerts_test.yml"), encoding="utf-8") as file:
            cases = file.read()
        for name in re.findall(r"alert: (\w+)", rules): # each fires, and each is quiet
            fires = cases.count(f"alertname: {name}\n        exp_alerts:")
            self.assertGreaterEqual(fires, 1, name)
            self.assertEqual(cases.count(f"alertname: {name}\n"), fires + 1, name)
        node, _ = self.found()
        site = Site(self, socket_path=node.socket)
        wait_for(lambda: metric(site.ask("/metrics")[1], 'dpnode_round_phase_seconds{run="tiny",phase="compute"}'), 60, "a round has its phases")
        told = set(re.findall(r"^(dpnode_\w+)", site.ask("/metrics")[1], re.MULTILINE))
        used = set(re.findall(r"dpnode_\w+", " ".join(re.findall(r"expr: (.*)", rules))))
        self.assertEqual(used - told - RARE, set())

    def dashboard(self):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "contrib", "grafana", "dpnode.json")
        with open(path, encoding="utf-8") as file:
            made = json.load(file)
        panels = [panel for panel in made["panels"] if panel["type"] != "row"]
        return made, panels, [target["expr"] for panel in panels for target in panel["targets"]]

    def test_the_dashboard_shows_every_metric_and_none_that_there_is_not(self):
        made, panels, expressions = self.dashboard()
        node, token = self.found()
        self.joined("node2", token)
        node.ask("limits", "--upload", "1000", "--download", "1000", "--upload-month", "200GB", "--download-month", "200GB")
        site = Site(self, socket_path=node.socket)

        def told():
            return set(re.findall(r"^(dpnode_\w+)", site.ask("/metrics")[1], re.MULTILINE))
        used = set(re.findall(r"dpnode_\w+", " ".join(expressions)))
        wait_for(lambda: used - RARE <= told(), 60, "each metric of the dashboard is told")
        self.assertEqual(told() - used, set()) # a metric that nobody looks at is none
        names = [variable["name"] for variable in made["templating"]["list"]]
        self.assertEqual(names, ["source", "run", "instance"])
        for expression in expressions:
            self.assertLessEqual(set(re.findall(r"\$(\w+)", expression)), set(names), expression)

    def test_the_panels_of_the_dashboard_have_places_and_texts_of_their_own(self):
        made, panels, _ = self.dashboard()
        ids = [panel["id"] for panel in made["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        places = [(panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y) for panel in made["panels"]
                  for x in range(panel["gridPos"]["w"]) for y in range(panel["gridPos"]["h"])]
        self.assertEqual(len(places), len(set(places)))
        self.assertLess(max(x for x, _ in places), 24)
        for panel in panels:
            self.assertTrue(panel["title"] and panel["description"].endswith("."), panel["title"])
            self.assertEqual(panel["datasource"]["uid"], "${source}")

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not here")
    def test_prometheus_can_read_the_expressions_of_the_dashboard(self):
        _, _, expressions = self.dashboard()
        rules = [{"record": f"panel:{number}", "expr": re.sub(r"\$\w+", ".*", expression)} for number, expression in enumerate(expressions)]
        path = self.file("rules.yml", json.dumps({"groups": [{"name": "dashboard", "rules": rules}]})) # JSON is YAML
        done = subprocess.run(["promtool", "check", "rules", path], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_it_ends_at_once_and_says_what_is_wrong_with_an_address(self):
        site = Site(self)
        for words, code, status in ((("--listen", f"127.0.0.1:{site.port}"), "E0602", 69), (("--listen", "nowhere"), "E0601", 64),
                                    (("--listen", "127.0.0.1:99999"), "E0601", 64), (("--listen", "192.0.2.1:0"), "E0603", 69),
                                    (("--name", "a,,b"), "E0604", 64), (("--sample", 8193 * "x"), "E0001", 64)):
            done = subprocess.run([WEB, "--json", *words], capture_output=True, text=True, timeout=20, check=False)
            self.assertEqual((json.loads(done.stdout)["error"]["code"], done.returncode), (code, status), words)
        stream = site.stream()
        next(stream)
        self.assertEqual(site.end(), 0)


if __name__ == "__main__":
    if not os.access(WEB, os.X_OK):
        print("dpnode-web is not built, since libmicrohttpd is not here: skipped")
        sys.exit(77)
    systemtest.main()
