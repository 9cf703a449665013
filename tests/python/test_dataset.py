#!/usr/bin/env python3
"""Parquet, Arrow and folders of the datasets library as JSON lines."""

import contextlib
import io
import json
import os
import subprocess
import sys
import unittest.mock

import kit
from dpnode import dataset, dataset_files

if kit.has("pyarrow"):
    import pyarrow
    import pyarrow.parquet

ROWS = [{"text": "first\nline", "id": 1}, {"text": "zweite Zeile: ä", "id": 2}]


def line(row, **renamed):
    """What becomes of a row; renamed: COLUMN=NAME."""
    return dataset.line_of(row, dataset.names_of(row, renamed))


class Lines(kit.Test):
    """What a row becomes; needs no library."""

    def bad(self, row, **renamed):
        return str(self.fails(dataset.Bad, line, row, **renamed))

    def test_only_what_dpnode_reads_of_a_row_is_written(self):
        self.assertEqual(line({"text": "a", "id": 7}), {"text": "a"})
        self.assertEqual(line({"prompt": "p", "completion": "c", "score": 1.0}), {"prompt": "p", "completion": "c"})
        self.assertEqual(line({"text": None, "id": 7}), {})
        self.assertEqual(line({"prompt": "p", "completion": None}), {})

    def test_a_renamed_column_goes_before_one_that_has_the_name(self):
        row = {"instruction": "p", "input": "", "output": "c"}
        self.assertEqual(line(row, instruction="prompt", output="completion"), {"prompt": "p", "completion": "c"})
        self.assertEqual(line({"text": "old", "body": "new"}, body="text"), {"text": "new"})

    def test_a_kind_that_a_rename_names_goes_before_others_that_are_complete(self):
        row = {"instruction": "p", "input": "", "output": "c", "text": "all of it"}
        self.assertEqual(line(row, instruction="prompt", output="completion"), {"prompt": "p", "completion": "c"})
        self.assertEqual(line(row), {"text": "all of it"})
        self.assertEqual(line({"text": "a", "messages": []}, messages="messages"), {"messages": []})
        self.assertEqual(dataset.names_of(["text", "q"], {"q": "prompt"}), {})

    def test_turns_of_both_forms_become_roles_and_contents(self):
        turns = [{"from": "human", "value": "hello"}, {"from": "gpt", "value": "hi"}]
        wanted = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
        self.assertEqual(line({"conversations": turns}, conversations="messages"), {"messages": wanted})
        self.assertEqual(line({"messages": [{**turn, "name": None} for turn in wanted]}), {"messages": wanted})

    def test_roles_of_the_other_form_are_known_by_all_their_names(self):
        for name, role in (("chatgpt", "assistant"), ("User", "user"), ("Human", "user"), ("function_call", "assistant"),
                           ("observation", "tool"), ("system", "system")):
            self.assertEqual(line({"messages": [{"from": name, "value": "v"}]}), {"messages": [{"role": role, "content": "v"}]})
        self.assertIn("of the type list", self.bad({"messages": [{"from": ["human"], "value": "v"}]}))

    def test_tools_stand_beside_messages_and_fillers_are_gone_from_both(self):
        call = {"function": {"name": "f", "arguments": {"city": "x", "zip": None}}, "id": None}
        tool = {"name": "f", "parameters": {"city": {"type": "string", "enum": None}}}
        row = {"messages": [{"role": "assistant", "content": None, "tool_calls": [call]}], "tools": [tool]}
        wanted = {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"city": "x"}}}]}],
                  "tools": [{"name": "f", "parameters": {"city": {"type": "string"}}}]}
        self.assertEqual(line(row), wanted)
        self.assertEqual(line({**row, "tools": None}), {"messages": wanted["messages"]})
        self.assertEqual(line({**row, "tools": '[{"default": null}]'})["tools"], [{"default": None}])
        self.assertEqual(line({"messages": row["messages"], "functions": [tool]}, functions="tools"), wanted)
        self.assertIn("no JSON", self.bad({**row, "tools": "f"}))
        self.assertIn("of the type dict", self.bad({**row, "tools": tool}))

    def test_a_prompt_and_a_completion_of_turns_become_one_chat(self):
        row = {"prompt": [{"role": "user", "content": "q"}], "completion": [{"role": "assistant", "content": "a"}]}
        self.assertEqual(line(row), {"messages": row["prompt"] + row["completion"]})
        self.assertIn("completion has values of the type str", self.bad({**row, "completion": "a"}))

    def test_values_that_are_no_text_are_refused_and_bytes_of_text_are_read(self):
        self.assertEqual(line({"text": "ä".encode()}), {"text": "ä"})
        for value, kind in ((7, "int"), (0.5, "float"), (["a"], "list"), ({"a": 1}, "dict")):
            self.assertIn(f"the column body has values of the type {kind}", self.bad({"body": value}, body="text"))
        self.assertIn("bytes that are no text", self.bad({"text": b"\xff"}))
        self.assertIn("the column messages has values of the type str", self.bad({"messages": "[]"}))
        self.assertIn("the column messages has turns of the type NoneType", self.bad({"messages": [None]}))


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
        split = more.pop("split", None)
        files = [path for source in sources for path in dataset_files.files_of(source, split)]
        self.done = dataset.convert(files, out, **more)
        lines = [json.loads(text) for text in out.getvalue().split("\n")[:-1]]
        self.assertEqual(self.done.written, len(lines))
        return lines

    def test_a_file_of_each_kind_gives_the_same_lines(self):
        wanted = [{"text": row["text"]} for row in ROWS]
        for path in (self.parquet("a.parquet"), self.arrow("a.arrow"), self.arrow("b.arrow", stream=True)):
            self.assertEqual(self.lines(path), wanted, path)

    def test_more_rows_than_are_read_at_a_time_all_come(self):
        rows = [{"text": str(i)} for i in range(3 * dataset_files.ROWS + 1)]
        for path in (self.parquet("many.parquet", rows), self.arrow("many.arrow", rows, stream=True)):
            self.assertEqual(self.lines(path), rows)

    def test_a_folder_gives_its_files_by_name_and_a_split_chooses_among_them(self):
        self.parquet("hub/data/train-00001-of-00002.parquet", [{"text": "b"}])
        self.parquet("hub/data/train-00000-of-00002.parquet", [{"text": "a"}])
        self.parquet("hub/data/test-00000-of-00001.parquet", [{"text": "t"}])
        self.arrow("hub/.cache/cache-1.arrow", [{"text": "never"}])
        self.assertEqual(self.lines(self.path("hub"), split="train"), [{"text": "a"}, {"text": "b"}])
        said = self.refused("hub has several splits: test, train", self.path("hub"))
        self.assertIn("fix: --split train", said)
        self.refused("no files of data", self.path("hub"), split="validation")
        self.refused("is a file", self.path("hub/data/test-00000-of-00001.parquet"), split="test")

    def test_a_folder_may_be_a_split(self):
        self.parquet("hub/default/train/0000.parquet", [{"text": "a"}])
        self.parquet("hub/default/train/0001.parquet", [{"text": "b"}])
        self.parquet("hub/default/test/0000.parquet", [{"text": "t"}])
        for source in ("hub", "hub/default", "hub/default/train"):
            self.assertEqual(self.lines(self.path(source), split="train"), [{"text": "a"}, {"text": "b"}], source)
        self.assertEqual(self.lines(self.path("hub/default/test")), [{"text": "t"}])
        self.refused("several splits", self.path("hub"))

    def test_names_of_other_forms_tell_their_split(self):
        self.arrow("cache/books-train-00000-of-00002.arrow", [{"text": "a"}], stream=True)
        self.arrow("cache/books-train-00001-of-00002.arrow", [{"text": "b"}], stream=True)
        self.arrow("cache/books-test.arrow", [{"text": "t"}], stream=True)
        self.assertEqual(self.lines(self.path("cache"), split="train"), [{"text": "a"}, {"text": "b"}])
        self.assertEqual(self.lines(self.path("cache"), split="test"), [{"text": "t"}])
        self.parquet("plain/test.parquet", [{"text": "t"}])
        self.parquet("plain/train.parquet", [{"text": "a"}])
        self.refused("several splits", self.path("plain"))
        self.assertEqual(self.lines(self.path("plain"), split="train"), [{"text": "a"}])
        self.parquet("parts/data-00000-of-00002.parquet", [{"text": "a"}])
        self.parquet("parts/more.parquet", [{"text": "b"}])
        self.assertEqual(len(self.lines(self.path("parts"))), 2)

    def test_links_are_followed_once_and_one_to_nothing_is_left_out(self):
        self.parquet("blobs/1.parquet", [{"text": "a"}])
        os.mkdir(self.path("linked"))
        os.symlink("../blobs", self.path("linked/data"))
        os.symlink("..", self.path("blobs/up"))
        os.symlink("nowhere", self.path("blobs/0.parquet"))
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertEqual(self.lines(self.path("linked")), [{"text": "a"}])
        self.assertIn("0.parquet is left out", said.getvalue())

    def test_a_saved_folder_with_splits_asks_which_one(self):
        with open(self.path("saved/dataset_dict.json"), "w", encoding="utf-8") as file:
            json.dump({"splits": ["train", "test"]}, file)
        self.arrow("saved/train/data-00000-of-00001.arrow", [{"text": "a"}], stream=True)
        self.arrow("saved/test/data-00000-of-00001.arrow", [{"text": "t"}], stream=True)
        self.assertEqual(self.lines(self.path("saved"), split="test"), [{"text": "t"}])
        self.refused("several splits", self.path("saved"))
        self.refused("has no split x", self.path("saved"), split="x")
        for about in ("{}", '{"splits": []}', "no JSON", "[]"):
            with open(self.path("saved/dataset_dict.json"), "w", encoding="utf-8") as file:
                file.write(about)
            self.refused("dataset_dict.json cannot be read", self.path("saved"))

    def refused(self, what, *sources, **more):
        with self.assertRaises(dataset.Bad) as raised:
            self.lines(*sources, **more)
        self.assertIn(what, str(raised.exception))
        return str(raised.exception)

    def test_rows_without_text_are_counted_and_a_file_of_nothing_else_names_its_columns(self):
        self.assertEqual(self.lines(self.parquet("gaps.parquet", [{"text": "a"}, {"text": None}])), [{"text": "a"}])
        self.assertEqual(self.done.left_out, 1)
        said = self.refused("has no columns to learn from", self.parquet("odd.parquet", [{"n": 1, "body": "a"}]))
        self.assertIn("n, body", said)
        self.assertIn("--rename body=text", said)
        turns = [{"from": "human", "value": "q"}]
        said = self.refused("no columns to learn from", self.parquet("chat.parquet", [{"id": "1", "conversations": turns}]))
        self.assertIn("--rename conversations=messages", said)
        said = self.refused("no columns to learn from", self.parquet("null.parquet", [{"text": None, "messages": None, "body": "a"}]))
        self.assertIn("--rename body=text", said)
        typed = pyarrow.table({"text": pyarrow.array([None, None], pyarrow.string())})
        pyarrow.parquet.write_table(typed, self.path("empty.parquet"))
        self.refused("of 2 rows none has a value in text", self.path("empty.parquet"))

    def test_a_rename_that_fits_no_column_is_refused(self):
        path = self.parquet("a.parquet", [{"text": "a", "body": "b", "question": "q"}])
        self.assertIn("text, body, question", self.refused("there is no column boddy", path, renamed={"boddy": "text"}))
        self.assertIn("beside prompt it needs completion", self.refused("no columns to learn from", path, renamed={"question": "prompt"}))

    def test_files_of_unlike_forms_are_not_mixed(self):
        first = self.parquet("mixed/a.parquet", [{"text": "a"}])
        self.parquet("mixed/b.parquet", [{"messages": [{"role": "user", "content": "q"}]}])
        self.refused("b.parquet has turns, and " + first + " has text", self.path("mixed"))
        self.parquet("alike/a.parquet", [{"text": "a"}])
        self.parquet("alike/b.parquet", [{"body": "b"}])
        self.assertEqual(len(self.lines(self.path("alike"), renamed={"body": "text", "text": "text"})), 2)

    def test_only_the_columns_that_are_written_are_read(self):
        late = pyarrow.table({"text": ["a"], "when": pyarrow.array([2 ** 62], pyarrow.timestamp("ms")), "a.b": ["dotted"]})
        pyarrow.parquet.write_table(late, self.path("late.parquet"))
        with pyarrow.OSFile(self.path("late.arrow"), "wb") as file, pyarrow.ipc.new_file(file, late.schema) as writer:
            writer.write_table(late)
        for path in (self.path("late.parquet"), self.path("late.arrow")):
            self.assertEqual(self.lines(path), [{"text": "a"}])
            self.assertEqual((self.done.columns, self.done.others), (["text"], ["when", "a.b"]))
            self.assertEqual(self.lines(path, renamed={"a.b": "text"}), [{"text": "dotted"}])
            self.refused("late", path, renamed={"when": "text"})

    def test_tools_come_with_messages_of_a_file(self):
        turns = [{"role": "user", "content": "q"}]
        path = self.parquet("tools.parquet", [{"messages": turns, "tools": [{"name": "f"}]}, {"messages": turns, "tools": None}])
        self.assertEqual(self.lines(path), [{"messages": turns, "tools": [{"name": "f"}]}, {"messages": turns}])
        path = self.parquet("pairs.parquet", [{"prompt": "p", "completion": "c", "tools": [{"name": "f"}]}])
        self.assertEqual(self.lines(path), [{"prompt": "p", "completion": "c"}])
        self.assertEqual(self.done.others, ["tools"])

    def test_a_number_that_json_has_not_names_its_row(self):
        turns = [{"role": "user", "content": "q", "weight": float("nan")}]
        self.refused("nan.parquet, row 1", self.parquet("nan.parquet", [{"messages": turns}]))

    def test_a_damaged_file_and_one_of_another_kind_are_named(self):
        path = self.parquet("cut.parquet")
        with open(path, "r+b") as file:
            file.truncate(40)
        self.assertIn("fix: download it", self.refused("cut.parquet cannot be read", path))
        for name in ("plain.parquet", "lines.jsonl"):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write("words")
            said = self.refused("neither Parquet nor Arrow", self.path(name))
            self.assertIn("dpnode run create --text " + self.path(name), said)
        self.refused("there is no", self.path("absent.parquet"))

    def command(self, *words, **more):
        environment = {**os.environ, "PYTHONPATH": kit.PACKAGE, **more}
        return subprocess.run([sys.executable, "-m", "dpnode.dataset", *words], check=False, capture_output=True, env=environment)

    def test_the_command_writes_lines_and_says_how_many_and_of_which_columns(self):
        path = self.parquet("a.parquet")
        done = self.command(path, PYTHONIOENCODING="ascii")
        self.assertEqual([json.loads(text)["text"] for text in done.stdout.decode().splitlines()], [row["text"] for row in ROWS])
        self.assertEqual(done.stderr.decode(), "2 rows\nwritten: text; not written: id\n")
        failed = self.command(self.path("absent"))
        self.assertEqual((failed.returncode, failed.stdout), (1, b""))
        self.assertIn(b"fix: name a file", failed.stderr)
        self.assertEqual(self.command(path, "--rename", "id=words").returncode, 2)
        for words in (("a=text", "b=text"), ("a=text", "a=prompt")):
            failed = self.command(path, "--rename", words[0], "--rename", words[1])
            self.assertEqual(failed.returncode, 1)
            self.assertIn(b"exclude each other", failed.stderr)

    def test_a_file_is_replaced_only_by_a_whole_one(self):
        path = self.parquet("a.parquet", [{"text": str(i), "id": i} for i in range(3000)])
        out = self.path("out/data.jsonl")
        self.assertEqual(self.command(path, "--out", out).returncode, 0)
        with open(out, encoding="utf-8") as file:
            before = file.read()
        self.assertEqual(before.count("\n"), 3000)
        failed = self.command(path, "--rename", "id=text", "--out", out)
        self.assertEqual(failed.returncode, 1)
        self.assertIn(b"a.parquet, row 1: the column id has values of the type int", failed.stderr)
        with open(out, encoding="utf-8") as file:
            self.assertEqual(file.read(), before)
        self.assertEqual(os.listdir(self.path("out")), ["data.jsonl"])
        refused = self.command(path, "--out", path)
        self.assertIn(b"is a source", refused.stderr)
        absent = self.command(path, "--out", self.dir + "/absent/data.jsonl")
        self.assertEqual(absent.returncode, 1)
        self.assertIn(b"No such file or directory", absent.stderr)
        self.assertEqual(self.command(path, "--out", "/dev/null").returncode, 0)
        full = self.command(path, "--out", "/dev/full")
        self.assertEqual(full.returncode, 1)
        self.assertIn(b"No space left", full.stderr)

    def test_a_reader_that_has_enough_and_an_interrupt_end_the_command_quietly(self):
        path = self.parquet("a.parquet", [{"text": "a" * 100}] * 3000)
        environment = {**os.environ, "PYTHONPATH": kit.PACKAGE}
        with subprocess.Popen([sys.executable, "-m", "dpnode.dataset", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=environment) as writes:
            writes.stdout.close()
            self.assertEqual((writes.stderr.read(), writes.wait()), (b"", 1))
        out = self.path("data.jsonl")
        with unittest.mock.patch.object(dataset, "line_of", side_effect=KeyboardInterrupt):
            self.assertEqual(dataset.main([path, "--out", out]), 130)
        self.assertFalse(os.path.exists(out))

    def test_the_library_itself_saves_what_is_read(self):
        if not kit.has("datasets"):
            self.skipTest("datasets is not installed")
        import datasets
        made = datasets.DatasetDict({"train": datasets.Dataset.from_list(ROWS), "test": datasets.Dataset.from_list(ROWS[:1])})
        made.save_to_disk(self.path("disk"))
        self.assertEqual(self.lines(self.path("disk"), split="train"), [{"text": row["text"]} for row in ROWS])


if __name__ == "__main__":
    kit.main()
