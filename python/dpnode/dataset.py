"""Datasets as JSON lines, as `dpnode run create --text` and `dpnode data tokenize` read them.

    python3 -m dpnode.dataset SOURCE... [--split NAME] [--rename COLUMN=NAME ...] [--out FILE]

SOURCE is a Parquet file, an Arrow file, a folder of them, or a folder that the `datasets` library saved (save_to_disk). The rows come in the
order of the sorted files, and only the columns that dpnode reads are written: text; prompt and completion; input and output; messages and
tools. Needs pyarrow.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from typing import IO, Any, Iterable, Iterator, NamedTuple

from .dataset_files import Bad, files_of, rows_of, schema_of
from .errors import Error

KINDS = (("text",), ("prompt", "completion"), ("input", "output"), ("messages",))
TOOLS = "tools"  # beside turns
NAMES = tuple(name for kind in KINDS for name in kind) + (TOOLS,)
# Of turns of the form {"from": R, "value": T}; a call and its answer are turns of their own there.
ROLES = {"human": "user", "gpt": "assistant", "chatgpt": "assistant", "bing": "assistant", "bard": "assistant", "model": "assistant",
         "function_call": "assistant", "observation": "tool", "function": "tool"}


# ---- What becomes of a row.


def _kind_of(name: str) -> tuple[str, ...]:
    return next(kind for kind in KINDS if name in kind or (name == TOOLS and kind == ("messages",)))


def names_of(columns: Iterable[str], renamed: dict[str, str]) -> dict[str, str]:
    """Which column each name that dpnode reads has, of the first kind that is complete. Only kinds that a rename names are looked at, if one
    does, and a renamed column goes before one that has the name already. Empty: no kind is complete."""
    columns = list(columns)
    named = {column: column for column in columns if column not in renamed and column in NAMES}
    named.update({renamed[column]: column for column in columns if column in renamed})
    asked = [_kind_of(name) for name in renamed.values()]
    for kind in [kind for kind in KINDS if kind in asked] or KINDS:
        if all(name in named for name in kind):
            with_tools = kind != ("text",) and TOOLS in named
            return {name: named[name] for name in kind + ((TOOLS,) if with_tools else ())}
    return {}


def _without_nulls(value: Any) -> Any:
    """A column of objects has one shape for all rows: what an object does not have is null there."""
    if isinstance(value, dict):
        return {name: _without_nulls(part) for name, part in value.items() if part is not None}
    return [_without_nulls(part) for part in value] if isinstance(value, list) else value


def _text(value: Any, column: str) -> str:
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError as error:
            raise Bad(f"the column {column} has bytes that are no text", str(error), "name another column with --rename") from error
    if not isinstance(value, str):
        raise Bad(f"the column {column} has values of the type {type(value).__name__}", "texts are wanted", "name another column with --rename")
    return value


def _turn(turn: Any, column: str) -> dict[str, Any]:
    if not isinstance(turn, dict):
        raise Bad(f"the column {column} has turns of the type {type(turn).__name__}", "objects with role and content are wanted",
                  "name another column with --rename")
    turn = _without_nulls(turn)
    if "from" in turn and "role" not in turn:
        role = _text(turn["from"], column)
        return {"role": ROLES.get(role.lower(), role.lower()), "content": _text(turn.get("value", ""), column)}
    return turn


def _turns(value: Any, column: str) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise Bad(f"the column {column} has values of the type {type(value).__name__}", "lists of turns are wanted",
                  "name another column with --rename")
    return [_turn(turn, column) for turn in value]


def _tools(value: Any, column: str) -> Any:
    """Some datasets have them as text, since their shapes differ from row to row."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise Bad(f"the column {column} has texts that are no JSON", str(error), "name another column with --rename") from error
    else:
        value = _without_nulls(value)
    if not isinstance(value, list):
        raise Bad(f"the column {column} has values of the type {type(value).__name__}", "lists of tools are wanted",
                  "name another column with --rename")
    return value


def line_of(row: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """What dpnode reads of a row; empty if a part of it is missing. A prompt and a completion that are lists of turns become one chat. Bad if
    the values are of other types."""
    needed = {name: row[column] for name, column in names.items() if name != TOOLS}
    if any(value is None for value in needed.values()):
        return {}
    is_chat = "messages" in needed or ("text" not in needed and any(isinstance(value, list) for value in needed.values()))
    if not is_chat:
        return {name: _text(value, names[name]) for name, value in needed.items()}
    line: dict[str, Any] = {"messages": [turn for name, value in needed.items() for turn in _turns(value, names[name])]}
    if TOOLS in names and row[names[TOOLS]] is not None:
        line[TOOLS] = _tools(row[names[TOOLS]], names[TOOLS])
    return line


# ---- Files.


class Done(NamedTuple):
    """rows written; rows that had nothing to learn from and were left out; columns that were written and that were not."""

    written: int
    left_out: int
    columns: list[str]
    others: list[str]


def _hint(schema: Any) -> str:
    """The rename that fits a file whose columns have other names."""
    texts = []
    for field in schema:
        kind = str(field.type)
        if "list<" in kind and ("from: " in kind or "role: " in kind):
            return f"--rename {field.name}=messages"
        if kind in ("string", "large_string", "string_view"):
            texts.append(field.name)
    return f"--rename {texts[0]}=text" if texts else "name another source"


def _has_turns(names: dict[str, str], schema: Any) -> bool:
    return "text" not in names and any("list<" in str(schema.field(column).type) for name, column in names.items() if name != TOOLS)


def _names_in(path: str, schema: Any, renamed: dict[str, str]) -> dict[str, str]:
    """The columns of a file that are read. Bad if it has none to learn from."""
    # A column without any value has the type null.
    names = names_of([field.name for field in schema if str(field.type) != "null" or field.name in renamed], renamed)
    if not names:
        asked = next(iter(renamed.values()), None)
        missing = [name for name in _kind_of(asked) if name not in renamed.values()] if asked else []
        raise Bad(f"{path} has no columns to learn from", (f"beside {asked} it needs {missing[0]}; " if missing else "") +
                  "its columns are " + (", ".join(schema.names) or "none") + "; dpnode reads " + ", ".join(NAMES),
                  f"--rename COLUMN={missing[0]}" if missing else _hint(schema))
    if not _has_turns(names, schema):
        names.pop(TOOLS, None)
    return names


def _form(names: dict[str, str], schema: Any) -> str:
    return "text" if "text" in names else "turns" if _has_turns(names, schema) else "prompts and answers"


def _plan(files: list[str], renamed: dict[str, str]) -> tuple[dict[str, dict[str, str]], list[str]]:
    """The columns of each file that are read, and all columns that there are."""
    schemas = {path: schema_of(path) for path in files}
    columns = list(dict.fromkeys(name for schema in schemas.values() for name in schema.names))
    for column in renamed:
        if column not in columns:
            raise Bad(f"there is no column {column}", "the columns are " + ", ".join(columns), "--rename COLUMN=NAME with one of them")
    names = {path: _names_in(path, schema, renamed) for path, schema in schemas.items()}
    first = _form(names[files[0]], schemas[files[0]])
    for path in files:
        form = _form(names[path], schemas[path])
        if form != first:
            raise Bad(f"{path} has {form}, and {files[0]} has {first}", "the lines of one file are all of one form",
                      "write them to two files, or make them alike by --rename")
    return names, columns


def convert(files: list[str], out: IO[str], renamed: dict[str, str] | None = None) -> Done:
    """Writes the rows of files. Bad if no row has anything to learn from."""
    names, columns = _plan(files, renamed or {})
    written = left_out = 0
    for path in files:
        for at, row in enumerate(rows_of(path, list(dict.fromkeys(names[path].values())))):
            try:
                line = line_of(row, names[path])
                if line:
                    out.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
            except Bad as bad:
                raise Bad(f"{path}, row {at + 1}: {bad.what}", bad.why, bad.fix) from bad
            except (TypeError, ValueError) as error:
                raise Bad(f"{path}, row {at + 1}, cannot be written as JSON", str(error), "name another column with --rename") from error
            written += bool(line)
            left_out += not line
    used = list(dict.fromkeys(column for names_in in names.values() for column in names_in.values()))
    if written == 0:
        raise Bad("no row has anything to learn from", f"of {left_out} rows none has a value in " + " and ".join(used),
                  "name other columns with --rename")
    return Done(written, left_out, used, [column for column in columns if column not in used])


# ---- The command.


def _rename(word: str) -> tuple[str, str]:
    column, equals, name = word.rpartition("=")
    if not equals or not column or name not in NAMES:
        raise argparse.ArgumentTypeError(f"{word}: write COLUMN=NAME, where NAME is one of {', '.join(NAMES)}")
    return column, name


def _renames(pairs: list[tuple[str, str]]) -> dict[str, str]:
    for at, (column, name) in enumerate(pairs):
        for other, taken in pairs[:at]:
            if name == taken or column == other:
                raise Bad(f"--rename {other}={taken} and --rename {column}={name} exclude each other",
                          "each column has one name, and each name one column", "leave one of them out")
    return dict(pairs)


@contextlib.contextmanager
def _written(path: str | None) -> Iterator[IO[str]]:
    """The file to write, under a temporary name until everything is in it; a device or a pipe as it is."""
    if path is None:
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(encoding="utf-8")
        yield sys.stdout
        sys.stdout.flush()
        return
    path = os.path.realpath(path)
    regular = os.path.isfile(path) or not os.path.exists(path)
    temporary = f"{path}.{os.getpid()}.tmp" if regular else path
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            yield file
        if regular:
            os.replace(temporary, path)
    except BaseException:
        if regular:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
        raise


def _run(asked: argparse.Namespace) -> Done:
    renamed = _renames(asked.rename)
    files = [path for source in asked.source for path in files_of(source, asked.split)]
    if asked.out is not None and any(os.path.realpath(path) == os.path.realpath(asked.out) for path in files):
        raise Bad(f"{asked.out} is a source", "it would be replaced by its own rows", "--out with another name")
    with _written(asked.out) as out:
        return convert(files, out, renamed)


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
        done = _run(asked)
    except Error as error:
        print(error, file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # The reader has enough.
        return 1
    except OSError as error:
        print(Error(f"{error.filename or asked.out or 'standard output'} cannot be read or written", error.strerror or str(error)), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(f"{done.written} rows" + (f"; {done.left_out} had nothing to learn from and were left out" if done.left_out else ""), file=sys.stderr)
    print("written: " + ", ".join(done.columns) + ("; not written: " + ", ".join(done.others) if done.others else ""), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
