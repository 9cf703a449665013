#!/usr/bin/env python3
"""What dpnode web costs: the bytes of its page and of a minute of its updates, the processor time of dpnode-web and of the daemon that it asks, and
the pace of rounds, while one page is open and /metrics is scraped. Real nodes of one small run on this machine; stretches with and without the
readers alternate, so that what else the machine does falls on both.

    python3 bench/bench_web.py --binaries build/release [--nodes 2] [--pairs 8] [--stretch 20] [--scrape 15]

Rounds end after a number of steps and not after a time, so each second of processor time that the readers take makes them slower. The ratio is that of
rounds per second, with readers to without, of each pair of stretches: its geometric mean, and the interval of 95 % by Student's t."""
import argparse
import gzip
import http.client
import json
import math
import os
import statistics
import subprocess
import sys
import threading
import time
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "lib"))
from daemons import Folder, wait_for  # noqa: E402
from small_run import create_and_join  # noqa: E402

WARM_ROUNDS = 10
PAIRS_MAX = 1000
ROUNDS, EVENTS, TEXTS_S = 512, 20, 3 # as in cli/web/app.js
ROUND_S, STEPS = 60, 40 # the steps end a round, not its time
T_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131) # of 1, 2.. degrees of freedom


def used_by(pid):
    """Seconds of processor time of all threads so far."""
    nanoseconds = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
            nanoseconds += int(file.read().split()[0])
    return nanoseconds / 1e9


class Site:
    """dpnode web of a node, and what its readers ask for."""

    def __init__(self, binaries, node):
        self.process = subprocess.Popen([os.path.join(binaries, "dpnode"), "web", "--json", "--listen", "127.0.0.1:0", "--socket", node.socket],
                                        stdout=subprocess.PIPE, text=True)
        self.address = json.loads(self.process.stdout.readline())["address"]

    def get(self, path):
        line = http.client.HTTPConnection(self.address, timeout=30)
        line.request("GET", path)
        body = line.getresponse().read()
        line.close()
        return body

    def end(self):
        self.process.terminate()
        self.process.wait(20)
        self.process.stdout.close()


class Page(threading.Thread):
    """A browser: the page, the stream until it is told to end, and for each news of a round the newest rounds again, as app.js does."""

    def __init__(self, site):
        super().__init__()
        self.site = site
        self.over = False
        self.sent = self.packed = 0 # bytes, after the page itself

    def run(self):
        for path in ("/", "/app.css", "/app.js"):
            self.site.get(path)
        packer = zlib.compressobj(9)
        line = http.client.HTTPConnection(self.site.address, timeout=30)
        line.request("GET", "/api/v1/stream")
        answer = line.getresponse()
        first, kind, texts_at = True, "", 0.0
        while not self.over:
            text = answer.readline()
            self.take(text, packer)
            if text.startswith(b"event: "):
                kind = text.split()[1]
            elif text.startswith(b"data: ") and kind == b"news":
                rounds = len(json.loads(text[6:])["rounds"])
                if first: # not of the minute
                    self.site.get(f"/api/v1/events?last={EVENTS}")
                    self.site.get(f"/api/v1/rounds?last={ROUNDS}")
                elif rounds > 0:
                    self.take(self.site.get(f"/api/v1/rounds?last={rounds + 2}"), packer)
                first = False
            if time.monotonic() - texts_at > TEXTS_S:
                texts_at = time.monotonic()
                self.take(self.site.get("/api/v1/texts"), packer)
        line.close()

    def take(self, data, packer):
        self.sent += len(data)
        self.packed += len(packer.compress(data)) + len(packer.flush(zlib.Z_SYNC_FLUSH))


class Scraper(threading.Thread):
    """Prometheus."""

    def __init__(self, site, every):
        super().__init__()
        self.site, self.every = site, every
        self.ended = threading.Event()
        self.size = 0

    def run(self):
        while True:
            self.size = len(self.site.get("/metrics"))
            if self.ended.wait(self.every):
                return


def stretch(options, site, node, reads):
    """Rounds per second, and with readers the shares of a core and the bytes of a minute."""
    page, scraper = (Page(site), Scraper(site, options.scrape)) if reads else (None, None)
    for reader in (page, scraper):
        if reader is not None:
            reader.start()
    before = node.run()["round"]
    began, web, daemon = time.monotonic(), used_by(site.process.pid), used_by(node.process.pid)
    time.sleep(options.stretch)
    seconds = time.monotonic() - began
    web, daemon = used_by(site.process.pid) - web, used_by(node.process.pid) - daemon
    told = {"rounds": (node.run()["round"] - before) / seconds, "web": web / seconds, "daemon": daemon / seconds}
    if reads:
        page.over = True
        scraper.ended.set()
        told.update(sent=60 * page.sent / seconds, packed=60 * page.packed / seconds, scrape=scraper.size)
        page.join()
        scraper.join()
    return told


def interval(ratios):
    logs = [math.log(ratio) for ratio in ratios]
    free = len(logs) - 1
    around = (T_95[free - 1] if free <= len(T_95) else 1.96 + 2.4 / free) * statistics.stdev(logs) / math.sqrt(len(logs))
    mean = statistics.mean(logs)
    return math.exp(mean), math.exp(mean - around), math.exp(mean + around)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default="build/release")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--stretch", type=float, default=20)
    parser.add_argument("--scrape", type=float, default=15)
    options = parser.parse_args()
    if not 2 <= options.pairs <= PAIRS_MAX:
        parser.error(f"--pairs is a number from 2 to {PAIRS_MAX}")
    with Folder(os.path.abspath(options.binaries), "dpnode-bench-") as folder:
        node = create_and_join(folder, options.nodes, round_s=ROUND_S, steps_max=STEPS)[0]
        wait_for(lambda: node.run()["round"] >= WARM_ROUNDS, 300, "the first rounds")
        site = Site(os.path.abspath(options.binaries), node)
        page = b"".join(site.get(path) for path in ("/", "/app.css", "/app.js"))
        packed = sum(len(gzip.compress(site.get(path))) for path in ("/", "/app.css", "/app.js"))
        with_readers, without = [], []
        for pair in range(options.pairs):
            for reads in (True, False) if pair % 2 == 0 else (False, True):
                (with_readers if reads else without).append(stretch(options, site, node, reads))
        site.end()
    if not all(told["rounds"] > 0 for told in with_readers + without):
        sys.exit("a stretch had no round: give longer ones by --stretch")
    middle = lambda key, told: statistics.median(one[key] for one in told) # noqa: E731
    ratio, least, most = interval([a["rounds"] / b["rounds"] for a, b in zip(with_readers, without)])
    print(f"page {len(page) / 1000:.1f} kB, {packed / 1000:.1f} kB by gzip; a minute of updates {middle('sent', with_readers) / 1000:.1f} kB, "
          f"{middle('packed', with_readers) / 1000:.1f} kB by gzip; /metrics {middle('scrape', with_readers) / 1000:.1f} kB")
    print(f"dpnode-web {100 * middle('web', with_readers):.2f} % of a core, {100 * middle('web', without):.2f} % without readers; the daemon "
          f"{100 * middle('daemon', with_readers):.2f} %, {100 * middle('daemon', without):.2f} % without")
    print(f"{options.nodes} nodes, {middle('rounds', without):.2f} rounds per second without readers; with them {ratio:.3f} of that "
          f"[{least:.3f} to {most:.3f}], {options.pairs} pairs of {options.stretch:g} s; load {os.getloadavg()[0]:.0f}")


if __name__ == "__main__":
    sys.exit(main())
