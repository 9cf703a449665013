"""Datasets as JSON lines, as `dpnode run create --text` and `dpnode data tokenize` read them.

    python3 -m dpnode.dataset SOURCE... [--split NAME] [--rename COLUMN=NAME ...] [--out FILE]

SOURCE is a Parquet file, an Arrow file, a folder of them, or a folder that the `datasets` library saved (save_to_disk). The rows come in the
order of the sorted files, and only the columns that dpnode reads are written: text; prompt and completion; input and output; messages.
Needs pyarrow.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import IO, Any, Iterator

from .errors import Error

ROWS = 1024 # read at a time
COLUMNS = ("text", "prompt", "completion", "input", "output", "messages")
KINDS = (("text",), ("prompt", "completion"), ("input", "output"), ("messages",))
ROLES = {"human": "user", "gpt": "assistant", "system": "system"} # of the form {"from": R, "value": T}


class Bad(Error):
    """A source that cannot be read, or rows that dpnode cannot learn from."""


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise Bad("Parquet and Arrow are read by pyarrow", str(error), "pip install pyarrow") from error
    return pyarrow


def _is_arrow(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4) in (b"ARRO", b"\xff\xff\xff\xff")


def _is_parquet(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"PAR1"


def _files_below(folder: str) -> list[str]:
    """Files of data in a folder and those below it, by name; caches of the library are left out."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [os.path.join(place, name) for name in sorted(names)
                  if name.endswith((".parquet", ".arrow")) and not name.startswith((".", "cache-"))]
    return found


def _of_split(folder: str, split: str | None) -> str:
    """The folder of a split, of a folder with several."""
    about = os.path.join(folder, "dataset_dict.json")
    if not os.path.exists(about):
        return folder
    with open(about, encoding="utf-8") as file:
        splits = json.load(file).get("splits", [])
    if split is None and len(splits) > 1:
        raise Bad(f"{folder} has several splits", ", ".join(splits), f"--split {splits[0]}")
    chosen = split if split is not None else splits[0]
    if chosen not in splits:
        raise Bad(f"{folder} has no split {chosen}", "it has " + ", ".join(splits), f"--split {splits[0]}")
    return os.path.join(folder, chosen)


def files_of(source: str, split: str | None = None) -> list[str]:
    """The files of a source, in the order in which their rows come. split also chooses among files of the form SPLIT-00000-of-00004.parquet."""
    if not os.path.exists(source):
        raise Bad(f"there is no {source}", "", "name a file or a folder")
    if not os.path.isdir(source):
        return [source]
    saved = os.path.exists(os.path.join(source, "dataset_dict.json"))
    files = _files_below(_of_split(source, split))
    if split is not None and not saved:
        files = [path for path in files if os.path.basename(path).startswith(split + "-") or os.path.basename(path).startswith(split + ".")]
    if not files:
        raise Bad(f"{source} has no files of data", "files of data end in .parquet or .arrow" + (f", and begin with {split}" if split else ""),
                  "name another folder")
    return files


def rows_of(path: str) -> Iterator[dict[str, Any]]:
    """Rows of one file, a few at a time in memory."""
    arrow = _pyarrow()
    try:
        if _is_parquet(path):
            with arrow.parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(ROWS):
                    yield from batch.to_pylist()
        elif _is_arrow(path):
            with arrow.memory_map(path) as file:
                with open(path, "rb") as head:
                    whole = head.read(6) == b"ARROW1"
                if whole:
                    reader = arrow.ipc.open_file(file)
                    batches: Any = (reader.get_batch(i) for i in range(reader.num_record_batches))
                else:
                    batches = arrow.ipc.open_stream(file)
                for batch in batches:
                    for at in range(0, batch.num_rows, ROWS):
                        yield from batch.slice(at, ROWS).to_pylist()
        else:
            raise Bad(f"{path} is neither Parquet nor Arrow", "its first bytes are others'", "give text and JSON lines to dpnode as they are")
    except (arrow.ArrowException, OSError) as error:
        raise Bad(f"{path} cannot be read", str(error)) from error


def _message(turn: Any) -> Any:
    if isinstance(turn, dict) and "from" in turn and "value" in turn:
        return {"role": ROLES.get(turn["from"], turn["from"]), "content": turn["value"]}
    # A column has one shape for all rows: what a turn does not have is null there.
    return {name: value for name, value in turn.items() if value is not None} if isinstance(turn, dict) else turn


def line_of(row: dict[str, Any], renamed: dict[str, str]) -> dict[str, Any]:
    """What dpnode reads of a row. Without anything that it reads, empty. A column that was renamed goes before one that has the name already."""
    named = {name: value for name, value in row.items() if name not in renamed}
    named.update({renamed[name]: value for name, value in row.items() if name in renamed})
    for kind in KINDS:
        if all(named.get(name) is not None for name in kind):
            line = {name: named[name] for name in kind}
            if "messages" in line and isinstance(line["messages"], list):
                line["messages"] = [_message(turn) for turn in line["messages"]]
            return line
    return {}


def convert(sources: list[str], out: IO[str], split: str | None = None, renamed: dict[str, str] | None = None) -> tuple[int, int]:
    """Writes the rows of all sources; gives their number, and that of rows that had nothing to learn from and were left out. Bad if no row has."""
    written = left_out = 0
    columns: list[str] = []
    for source in sources:
        for path in files_of(source, split):
            for row in rows_of(path):
                line = line_of(row, renamed or {})
                columns = columns or list(row)
                if line:
                    out.write(json.dumps(line, ensure_ascii=False, default=str) + "\n")
                    written += 1
                else:
                    left_out += 1
    if written == 0:
        raise Bad("no row has anything to learn from", "the columns are " + (", ".join(columns) or "none") + "; dpnode reads " + ", ".join(COLUMNS),
                  f"--rename {columns[0] if columns else 'COLUMN'}=text")
    return written, left_out


def _rename(word: str) -> tuple[str, str]:
    column, equals, name = word.rpartition("=")
    if not equals or not column or name not in COLUMNS:
        raise argparse.ArgumentTypeError(f"{word}: write COLUMN=NAME, where NAME is one of {', '.join(COLUMNS)}")
    return column, name


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m dpnode.dataset", description="Writes datasets as JSON lines for dpnode.",
                                     epilog="Then: dpnode run create --text data.jsonl, or dpnode data tokenize data.jsonl")
    parser.add_argument("source", nargs="+", help="a Parquet or Arrow file, a folder of them, or one that datasets saved")
    parser.add_argument("--split", help="which split of a folder, such as train")
    parser.add_argument("--rename", type=_rename, action="append", default=[], metavar="COLUMN=NAME",
                        help="what a column is to dpnode, such as instruction=prompt or conversations=messages")
    parser.add_argument("--out", help="the file to write [standard output]")
    asked = parser.parse_args(words)
    try:
        if asked.out is None:
            written, left_out = convert(asked.source, sys.stdout, asked.split, dict(asked.rename))
            sys.stdout.flush()
        else:
            with open(asked.out, "w", encoding="utf-8") as out:
                written, left_out = convert(asked.source, out, asked.split, dict(asked.rename))
    except Error as error:
        print(error, file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1) # The reader has enough.
        return 1
    print(f"{written} rows" + (f"; {left_out} had nothing to learn from and were left out" if left_out else ""), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
