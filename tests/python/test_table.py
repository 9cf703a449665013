#!/usr/bin/env python3
"""The bytes of the table of tensors, and what cannot stand in one."""

import kit
from played_worker import rows_of
from dpnode import Mismatch, table
from dpnode.table import BF16, F16, F32, Row


class Table(kit.Test):
    def test_one_set_of_tensors_has_one_form(self):
        rows = [Row("b.weight", F32, (2, 3)), Row("a", BF16, ()), Row("b", F16, (5,))]
        data = table.encode(rows)
        self.assertEqual(data, table.encode(rows[::-1]))
        self.assertEqual(rows_of(data), [("a", BF16, ()), ("b", F16, (5,)), ("b.weight", F32, (2, 3))])
        self.assertEqual(data.hex(), "44505831" "0100" "0000" "03000000" "00000000" "0c00000000000000"
                         "030001" "61" "020101" "62" "05000000" "010208" "622e776569676874" "02000000" "03000000")

    def test_what_cannot_travel_is_refused_by_name(self):
        cases = [([], "nothing to train"),
                 ([Row("a b", F32, (1,))], "'a b'"), ([Row("", F32, (1,))], "''"), ([Row("é", F32, (1,))], "'é'"),
                 ([Row('a"', F32, (1,))], "a\""), ([Row("__metadata__", F32, (1,))], "__metadata__"),
                 ([Row("n" * 256, F32, (1,))], "255"), ([Row("nil", F32, (3, 0))], "nil"),
                 ([Row("deep", F32, (1,) * 9)], "9 dimensions"), ([Row("i", 9, (1,))], "tensor i"),
                 ([Row("w", F32, (1,)), Row("w", F32, (2,))], "the name w"),
                 ([Row("long", F32, (1 << 33,))], "32 bits"),
                 ([Row("vast", F32, (1 << 31, 1 << 6))], str(1 << 37)),
                 ([Row(f"n{i}", F32, (1,)) for i in range((1 << 16) + 1)], "65537 tensors"),
                 ([Row(f"{i:0250}", F32, (1,)) for i in range(17000)], "bytes")]
        for rows, words in cases:
            error = self.fails(Mismatch, table.encode, rows)
            self.assertIn(words, str(error))
            self.assertTrue(error.fix, error.what)

    def test_names_of_255_bytes_and_8_dimensions_are_fine(self):
        self.assertEqual(rows_of(table.encode([Row("n" * 255, F32, (1,) * 8)])), [("n" * 255, F32, (1,) * 8)])


if __name__ == "__main__":
    kit.main()
