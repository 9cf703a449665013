"""Which files of Parquet and Arrow a dataset has, and the rows in them. Needs pyarrow."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any, Iterator, Sequence

from .errors import Error

ROWS = 1024  # read at a time
ENDS = (".parquet", ".arrow")
# Before -00000-of-00004 stands the split, unless it is one of these, which every split has.
PART = re.compile(r"(.+)-\d+-of-\d+\.")
NO_SPLITS = ("data", "part")
# A folder or a file of such a name is a split.
SPLITS = ("train", "training", "test", "testing", "validation", "valid", "val", "dev", "eval")


class Bad(Error):
    """A source that cannot be read, or rows that dpnode cannot learn from."""


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise Bad("Parquet and Arrow are read by pyarrow", str(error), "pip install pyarrow") from error
    return pyarrow


# ---- Files.


def _stop(error: OSError) -> None:
    raise error


def _files_below(folder: str) -> list[str]:
    """Files of data in a folder and those below it, by name; caches of the library are left out."""
    found = []
    seen = set()
    for place, folders, names in os.walk(folder, followlinks=True, onerror=_stop):
        real = os.path.realpath(place)
        # A link may lead to a folder above it.
        folders[:] = [] if real in seen else sorted(name for name in folders if not name.startswith("."))
        names = [] if real in seen else sorted(names)
        seen.add(real)
        for name in names:
            path = os.path.join(place, name)
            if not name.endswith(ENDS) or name.startswith((".", "cache-")):
                continue
            if os.path.exists(path):
                found.append(path)
            else:
                print(f"{path} is left out: it is a link to a file that is not there", file=sys.stderr)
    return found


def _of_saved(folder: str, split: str | None) -> str:
    """The folder of a split, of a folder that save_to_disk wrote with several."""
    about = os.path.join(folder, "dataset_dict.json")
    try:
        with open(about, encoding="utf-8") as file:
            splits = json.load(file)["splits"]
        if not splits or not all(isinstance(name, str) for name in splits):
            raise ValueError("it names no splits")
    except (ValueError, KeyError, TypeError) as error:
        raise Bad(f"{about} cannot be read", str(error), "save the dataset again, or name the folder of a split") from error
    if split is None and len(splits) > 1:
        raise Bad(f"{folder} has several splits", ", ".join(splits), f"--split {splits[0]}")
    chosen = split if split is not None else splits[0]
    if chosen not in splits:
        raise Bad(f"{folder} has no split {chosen}", "it has " + ", ".join(splits), f"--split {splits[0]}")
    return os.path.join(folder, chosen)


def _split_of(path: str) -> str | None:
    """The split that the name of a file, or of a folder above it, tells."""
    folder, name = os.path.split(path)
    part = PART.match(name)
    if part and part[1] not in NO_SPLITS:
        return part[1]
    stem = name.split(".")[0]
    named = [word for word in (stem, *reversed(folder.split(os.sep))) if word in SPLITS]
    return named[0] if named else None


def _by_name(path: str, split: str) -> bool:
    name = os.path.basename(path)
    part = PART.match(name)
    if part:
        return part[1] == split or part[1].endswith("-" + split)
    return name.startswith((split + "-", split + ".")) or name.endswith(tuple("-" + split + end for end in ENDS))


def _by_folder(path: str, split: str) -> bool:
    return split in path.split(os.sep)[:-1]


def _of_split(files: list[str], folder: str, split: str | None) -> list[str]:
    """The files of a split: those with its name, else those in a folder with its name. Without a split all, if all are of one."""
    above = os.path.dirname(os.path.abspath(folder))
    # From the source's own folder on: folders above it may have any names.
    below = {path: os.path.relpath(os.path.abspath(path), above) for path in files}
    if split is not None:
        return [path for path in files if _by_name(path, split)] or [path for path in files if _by_folder(below[path], split)]
    splits = list(dict.fromkeys(name for name in map(_split_of, below.values()) if name is not None))
    if len(splits) > 1:
        raise Bad(f"{folder} has several splits", ", ".join(splits), f"--split {splits[-1]}, or name the files")
    return files


def files_of(source: str, split: str | None = None) -> list[str]:
    """The files of a source, in the order in which their rows come. split chooses among those of a folder: by SPLIT-00000-of-00004.parquet, by
    SPLIT.parquet, or by a folder SPLIT."""
    if not os.path.exists(source):
        raise Bad(f"there is no {source}", "", "name a file or a folder")
    if not os.path.isdir(source):
        if split is not None:
            raise Bad(f"{source} is a file", "--split chooses among the files of a folder", "leave --split out, or name the folder")
        return [source]
    if os.path.exists(os.path.join(source, "dataset_dict.json")):
        files = _files_below(_of_saved(source, split))
    else:
        files = _of_split(_files_below(source), source, split)
    if not files:
        raise Bad(f"{source} has no files of data" + (f" of the split {split}" if split else ""), "files of data end in " + " or ".join(ENDS) +
                  (f", and begin with {split} or are in a folder of that name" if split else ""), "name another folder")
    return files


# ---- Rows.


def _opened(path: str) -> Any:
    """A Parquet file, or an Arrow file with its batches as a generator; both have a schema, and are closed by with."""
    arrow = _pyarrow()
    with open(path, "rb") as file:
        head = file.read(6)
    if head.startswith(b"PAR1"):
        return arrow.parquet.ParquetFile(path)
    if head == b"ARROW1":
        return arrow.ipc.open_file(arrow.memory_map(path))
    if head.startswith(b"\xff\xff\xff\xff"):
        return arrow.ipc.open_stream(arrow.memory_map(path))
    raise Bad(f"{path} is neither Parquet nor Arrow", "its first bytes are others'",
              f"give JSON lines and plain text to dpnode as they are: dpnode run create --text {path}, or dpnode data tokenize {path}")


def _unreadable(path: str, error: Exception) -> Bad:
    return Bad(f"{path} cannot be read", str(error), "download it, or save it, again")


def schema_of(path: str) -> Any:
    """The names and types of a file's columns, as pyarrow has them."""
    arrow = _pyarrow()
    try:
        with _opened(path) as file:
            return file.schema_arrow if isinstance(file, arrow.parquet.ParquetFile) else file.schema
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def rows_of(path: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Those columns of the rows of one file, a few rows at a time in memory."""
    arrow = _pyarrow()
    try:
        with _opened(path) as file:
            if isinstance(file, arrow.parquet.ParquetFile):
                for batch in file.iter_batches(ROWS, columns=list(columns)):
                    yield from batch.to_pylist()
                return
            whole = isinstance(file, arrow.ipc.RecordBatchFileReader)
            for batch in (file.get_batch(i) for i in range(file.num_record_batches)) if whole else file:
                chosen = batch.select(list(columns))
                for at in range(0, batch.num_rows, ROWS):
                    yield from chosen.slice(at, ROWS).to_pylist()
    except (arrow.ArrowException, OSError, ValueError, OverflowError, KeyError) as error:
        raise _unreadable(path, error) from error
