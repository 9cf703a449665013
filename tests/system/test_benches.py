#!/usr/bin/env python3
"""A bench refuses a request that it cannot measure, since users would trust a figure with a wrong label."""

import os
import re
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "..", "bench")]
import learning_cells  # noqa: E402
import systemtest  # noqa: E402
from systemtest import BINARIES, SystemTest  # noqa: E402


class BenchEngine(SystemTest):
    def bench(self, *words):
        """Chooses a shape name that does not exist, so nothing is measured."""
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

    def test_an_optimizer_is_one_of_those_it_has(self):
        for name, status in (("adamw", 0), ("muon", 0), ("both", 0), ("lamb", 64)):
            self.assertEqual(self.bench("--optimizer", name).returncode, status, name)


class BenchWeb(SystemTest):
    def bench(self, *words):
        return subprocess.run([sys.executable, os.path.join(HERE, "..", "..", "bench", "bench_web.py"), "--binaries", BINARIES, *words],
                              capture_output=True, text=True, timeout=240, check=False)

    @unittest.skipUnless(os.access(os.path.join(BINARIES, "dpnode-web"), os.X_OK), "dpnode-web is not built")
    def test_the_page_is_measured_beside_rounds_without_it(self):
        done = self.bench("--pairs", "2", "--stretch", "5", "--scrape", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        page, shares, rounds = done.stdout.splitlines()
        told = [float(number) for number in re.findall(r"([0-9.]+) kB", page)]
        self.assertEqual(len(told), 5)
        self.assertTrue(all(kilobytes > 0 for kilobytes in told) and told[1] < told[0] and told[3] < told[2], page)
        self.assertRegex(shares, r"dpnode-web [0-9.]+ % of a core, .*; the daemon [0-9.]+ %")
        ratio, least, most = (float(number) for number in re.search(r"with them ([0-9.]+) of that \[([0-9.]+) to ([0-9.]+)\]", rounds).groups())
        # Two noisy pairs have an interval that is told as beginning at 0.000.
        self.assertTrue(0 <= least <= ratio <= most and ratio > 0, rounds)

    def test_one_pair_has_no_interval(self):
        done = self.bench("--pairs", "1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--pairs is a number from 2 to", done.stderr)


class LearningSweep(unittest.TestCase):
    """bench/learning.py compares methods at rates that its sweep found for the table's runs, not for its own short ones."""
    ROW = learning_cells.Row(learning_cells.Group("bible", "adamw", 8, 30), "shipped")
    SCALE = learning_cells.SCALES["1m"]

    def wanted(self, sweep, results):
        return list(learning_cells.wanted([self.ROW], self.SCALE, sweep, range(1, 3), results))

    def finish(self, sweep, loss_of):
        """Runs what is wanted until nothing is. Gives the rates of the sweep and of the table."""
        results, rates, tables = {}, [], []
        while cells := self.wanted(sweep, results):
            for cell in cells:
                results[learning_cells.key_of(cell)] = {"losses": [loss_of(cell["lr"])]}
                (rates if cell["points"] == 1 else tables).append(cell["lr"])
        edge = learning_cells.is_at_edge(self.ROW, self.SCALE, sweep, results)
        return sorted(rates), tables, edge

    def test_a_sweep_whose_best_rate_is_at_an_edge_goes_on_there(self):
        sweep = learning_cells.Sweep((0.5, 1, 2), ((0.7, 0.8),), 0.15, 2)
        self.assertEqual(self.finish(sweep, lambda rate: abs(rate - 0.002)), ([0.001, 0.002, 0.004], [0.002] * 2, False))
        self.assertEqual(self.finish(sweep, lambda rate: abs(rate - 0.008)), ([0.001, 0.002, 0.004, 0.008, 0.016], [0.008] * 2, False))
        self.assertEqual(self.finish(sweep, lambda rate: rate), ([0.00025, 0.0005, 0.001, 0.002, 0.004], [0.00025] * 2, True))

    def test_where_there_is_no_choice_there_is_no_sweep(self):
        sweep = learning_cells.Sweep((1,), ((0.7, 0.8),), 0.15, 2)
        self.assertEqual(self.finish(sweep, lambda rate: rate), ([], [0.002] * 2, False))


if __name__ == "__main__":
    systemtest.main()
