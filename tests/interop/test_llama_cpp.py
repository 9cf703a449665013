#!/usr/bin/env python3
"""GGUF files that we write give the same logits in llama.cpp, and gguf's own reader finds in them what we meant.
test_llama_cpp.py FOLDER_OF_BINARIES; says what is missing and ends with 77 where llama-cpp-python and gguf are not installed."""

import json
import os
import subprocess
import sys
import tempfile

KINDS = ("gpt2", "gpt2-untied", "llama", "llama-gqa", "llama-tied", "qwen3")
# Of the standard deviation of the logits. F32: llama.cpp takes its GELU from a table of halves, and keeps q, k and v of a
# head as halves when it is told nothing else. The others round the weights themselves, to 11, 8 and 7 bits.
LIMITS = {"f32": 2e-3, "f16": 5e-3, "bf16": 5e-2, "q8_0": 1e-1}
ARCHS = {"gpt2": "gpt2", "gpt2-untied": "gpt2", "qwen3": "qwen3"}


def check_structure(path, kind):
    """Checks the file with gguf's reader."""
    import gguf

    reader = gguf.GGUFReader(path)
    fields = reader.fields
    arch = fields["general.architecture"].contents()
    assert arch == ARCHS.get(kind, "llama"), arch
    assert len(fields["tokenizer.ggml.tokens"].contents()) == fields[f"{arch}.vocab_size"].contents()
    names = {tensor.name for tensor in reader.tensors}
    known = gguf.get_tensor_name_map(getattr(gguf.MODEL_ARCH, arch.upper()), 2).mapping.values()
    assert names <= {name + end for _, name in known for end in (".weight", ".bias")}, names


def difference(path, ours):
    """The largest difference of a logit over their standard deviation."""
    import llama_cpp
    import numpy

    model = llama_cpp.Llama(path, n_ctx=32, logits_all=True, verbose=False, type_k=0, type_v=0, flash_attn=False, n_threads=1)
    model.eval(ours["tokens"])
    theirs = numpy.array(model.scores[:len(ours["tokens"])])
    logits = numpy.array(ours["logits"])
    return float(numpy.abs(theirs - logits).max() / logits.std())


def main():
    try:
        import gguf  # noqa: F401
        import llama_cpp  # noqa: F401
    except ImportError as missing:
        print(f"skipped: {missing}")
        return 77
    failed = 0
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([os.path.join(sys.argv[1], "engine_logits"), kind, folder], capture_output=True, check=True)
            ours = json.loads(done.stdout)
            for name, limit in LIMITS.items():
                path = os.path.join(folder, f"{name}.gguf")
                check_structure(path, kind)
                off = difference(path, ours)
                failed += not off <= limit
                print(f"{kind:12} {name:5} largest difference {off:.2e} of a deviation", "" if off <= limit else f"ABOVE {limit}",
                      flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
