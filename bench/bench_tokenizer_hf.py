#!/usr/bin/python3
"""bench_tokenizer beside Hugging Face's tokenizers: the same tokenizer.json and text, one thread, process CPU time, alternating; prints MB/s of
both, their ratio, and whether the number of tokens is equal. The figure of Hugging Face is the better one of the text as a whole and of pages of
twenty lines without offsets (encode_batch_fast), which is faster there.

bench_tokenizer_hf.py --bench PATH TOKENIZER TEXT [--json]. Exit status 77 when tokenizers cannot be imported (PyPI).
"""
import argparse
import json
import os
import subprocess
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
try:
    import tokenizers
except ImportError:
    print("bench_tokenizer_hf: no tokenizers; pip install tokenizers", file=sys.stderr)
    sys.exit(77)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", required=True)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("tokenizer")
    parser.add_argument("text")
    given = parser.parse_args()
    with open(given.text, encoding="utf-8", newline="") as file:
        text = file.read()
    start = time.process_time()
    theirs = tokenizers.Tokenizer.from_file(given.tokenizer)
    load = time.process_time() - start
    best = 0
    runs = []
    count = 0
    lines = text.splitlines(keepends=True)
    pages = ["".join(lines[i:i + 20]) for i in range(0, len(lines), 20)]
    for _ in range(3):
        start = time.process_time()
        count = len(theirs.encode(text, add_special_tokens=False).ids)
        best = max(best, len(text.encode()) / (time.process_time() - start) * 1e-6)
        start = time.process_time()
        theirs.encode_batch_fast(pages, add_special_tokens=False)
        best = max(best, len(text.encode()) / (time.process_time() - start) * 1e-6)
        runs.append(json.loads(subprocess.run([given.bench, "--json", "--tokenizer", given.tokenizer, given.text],
                                              capture_output=True, check=True).stdout))
    ours = max(run["first_mb_s"] for run in runs)
    found = {"ours_mb_s": ours, "theirs_mb_s": round(best, 2), "ratio": round(ours / best, 2),
             "load_ratio": round(load / min(run["load_s"] for run in runs), 2), "same_count": runs[0]["tokens"] == count,
             "tokens": count, "vocab": runs[0]["vocab"], "tokenizers": tokenizers.__version__}
    if given.json:
        print(json.dumps(found))
    else:
        print("dpnode {ours_mb_s} MB/s, tokenizers {tokenizers} {theirs_mb_s} MB/s: {ratio} times; loading {load_ratio} "
              "times as fast; {tokens} tokens, same count: {same_count}".format(**found))


if __name__ == "__main__":
    main()
