#!/usr/bin/env python3
"""Parquet, Arrow and folders of the datasets library as JSON lines."""

import io
import json
import os
import subprocess
import sys

import kit
from dpnode import dataset

if kit.has("pyarrow"):
    import pyarrow
    import pyarrow.parquet

ROWS = [{"text": "first\nline", "id": 1}, {"text": "zweite Zeile: ä", "id": 2}]


class Lines(kit.Test):
    """What a row becomes; needs no library."""

    def test_only_what_dpnode_reads_of_a_row_is_written(self):
        self.assertEqual(dataset.line_of({"text": "a", "id": 7}, {}), {"text": "a"})
        self.assertEqual(dataset.line_of({"prompt": "p", "completion": "c", "score": 1.0}, {}), {"prompt": "p", "completion": "c"})
        self.assertEqual(dataset.line_of({"text": None, "id": 7}, {}), {})

    def test_a_renamed_column_goes_before_one_that_has_the_name(self):
        row = {"instruction": "p", "input": "", "output": "c"}
        self.assertEqual(dataset.line_of(row, {"instruction": "prompt", "output": "completion"}), {"prompt": "p", "completion": "c"})
        self.assertEqual(dataset.line_of({"text": "old", "body": "new"}, {"body": "text"}), {"text": "new"})

    def test_turns_of_both_forms_become_roles_and_contents(self):
        turns = [{"from": "human", "value": "hello"}, {"from": "gpt", "value": "hi"}]
        wanted = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
        self.assertEqual(dataset.line_of({"conversations": turns}, {"conversations": "messages"}), {"messages": wanted})
        self.assertEqual(dataset.line_of({"messages": [{**turn, "name": None} for turn in wanted]}, {}), {"messages": wanted})


class Files(kit.Test):
    """Needs pyarrow."""

    def setUp(self):
        super().setUp()
        if not kit.has("pyarrow"):
            self.skipTest("pyarrow is not installed")

    def path(self, name):
        path = os.path.join(self.dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def parquet(self, name, rows=None):
        path = self.path(name)
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS if rows is None else rows), path)
        return path

    def arrow(self, name, rows=None, stream=False):
        path = self.path(name)
        table = pyarrow.Table.from_pylist(ROWS if rows is None else rows)
        with pyarrow.OSFile(path, "wb") as file:
            with (pyarrow.ipc.new_stream if stream else pyarrow.ipc.new_file)(file, table.schema) as writer:
                writer.write_table(table)
        return path

    def lines(self, *sources, **more):
        out = io.StringIO()
        counts = dataset.convert(list(sources), out, **more)
        lines = [json.loads(line) for line in out.getvalue().splitlines()]
        self.assertEqual(counts[0], len(lines))
        return lines

    def test_a_file_of_each_kind_gives_the_same_lines(self):
        wanted = [{"text": row["text"]} for row in ROWS]
        for path in (self.parquet("a.parquet"), self.arrow("a.arrow"), self.arrow("b.arrow", stream=True)):
            self.assertEqual(self.lines(path), wanted, path)

    def test_more_rows_than_are_read_at_a_time_all_come(self):
        rows = [{"text": str(i)} for i in range(3 * dataset.ROWS + 1)]
        for path in (self.parquet("many.parquet", rows), self.arrow("many.arrow", rows, stream=True)):
            self.assertEqual(self.lines(path), rows)

    def test_a_folder_gives_its_files_by_name_and_a_split_chooses_among_them(self):
        self.parquet("hub/data/train-00001-of-00002.parquet", [{"text": "b"}])
        self.parquet("hub/data/train-00000-of-00002.parquet", [{"text": "a"}])
        self.parquet("hub/data/test-00000-of-00001.parquet", [{"text": "t"}])
        self.arrow("hub/.cache/cache-1.arrow", [{"text": "never"}])
        self.assertEqual(self.lines(self.path("hub"), split="train"), [{"text": "a"}, {"text": "b"}])
        self.assertEqual(len(self.lines(self.path("hub"))), 3)
        self.refused("no files of data", self.path("hub"), split="validation")

    def test_a_saved_folder_with_splits_asks_which_one(self):
        with open(self.path("saved/dataset_dict.json"), "w", encoding="utf-8") as file:
            json.dump({"splits": ["train", "test"]}, file)
        self.arrow("saved/train/data-00000-of-00001.arrow", [{"text": "a"}], stream=True)
        self.arrow("saved/test/data-00000-of-00001.arrow", [{"text": "t"}], stream=True)
        self.assertEqual(self.lines(self.path("saved"), split="test"), [{"text": "t"}])
        self.refused("several splits", self.path("saved"))
        self.refused("has no split x", self.path("saved"), split="x")

    def refused(self, what, *sources, **more):
        with self.assertRaises(dataset.Bad) as raised:
            self.lines(*sources, **more)
        self.assertIn(what, str(raised.exception))
        return str(raised.exception)

    def test_rows_without_text_are_counted_and_a_file_of_nothing_else_names_its_columns(self):
        out = io.StringIO()
        self.assertEqual(dataset.convert([self.parquet("gaps.parquet", [{"text": "a"}, {"text": None}])], out), (1, 1))
        said = self.refused("no row has anything", self.parquet("odd.parquet", [{"body": "a", "n": 1}]))
        self.assertIn("body, n", said)
        self.assertIn("--rename body=text", said)

    def test_a_damaged_file_and_one_of_another_kind_are_named(self):
        path = self.parquet("cut.parquet")
        with open(path, "r+b") as file:
            file.truncate(40)
        self.refused("cut.parquet cannot be read", path)
        with open(self.path("plain.parquet"), "w", encoding="utf-8") as file:
            file.write("words")
        self.refused("neither Parquet nor Arrow", self.path("plain.parquet"))
        self.refused("there is no", self.path("absent.parquet"))

    def test_the_command_writes_lines_and_says_how_many(self):
        path = self.parquet("a.parquet")
        command = [sys.executable, "-m", "dpnode.dataset", path]
        environment = {**os.environ, "PYTHONPATH": kit.PACKAGE}
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        self.assertEqual([json.loads(line)["text"] for line in done.stdout.splitlines()], [row["text"] for row in ROWS])
        self.assertEqual(done.stderr, "2 rows\n")
        out = self.path("out.jsonl")
        subprocess.run([*command, "--rename", "id=text", "--out", out], check=True, capture_output=True, env=environment)
        with open(out, encoding="utf-8") as file:
            self.assertEqual([json.loads(line)["text"] for line in file], [1, 2])
        failed = subprocess.run([*command[:-1], self.path("absent")], check=False, capture_output=True, text=True, env=environment)
        self.assertEqual((failed.returncode, failed.stdout), (1, ""))
        self.assertIn("fix: name a file", failed.stderr)
        wrong = subprocess.run([*command, "--rename", "id=words"], check=False, capture_output=True, text=True, env=environment)
        self.assertEqual(wrong.returncode, 2)

    def test_the_library_itself_saves_what_is_read(self):
        if not kit.has("datasets"):
            self.skipTest("datasets is not installed")
        import datasets
        made = datasets.DatasetDict({"train": datasets.Dataset.from_list(ROWS), "test": datasets.Dataset.from_list(ROWS[:1])})
        made.save_to_disk(self.path("disk"))
        self.assertEqual(self.lines(self.path("disk"), split="train"), [{"text": row["text"]} for row in ROWS])


if __name__ == "__main__":
    kit.main()
