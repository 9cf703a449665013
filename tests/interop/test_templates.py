#!/usr/bin/env python3
"""Chats become the same text as with Jinja 3, set up as transformers does it, by templates as those of Llama 3, Qwen 2 and 3,
Mistral, Gemma, Phi-3 and ChatML, and by one that has every word of the language. test_templates.py FOLDER_OF_BINARIES; the chats
are random, of seed 1. Ends with 77 where jinja2 is not installed."""

import glob
import json
import os
import random
import subprocess
import sys
import tempfile

try:
    import jinja2
    import jinja2.ext
    from jinja2.sandbox import ImmutableSandboxedEnvironment
except ImportError:
    print("jinja2 is not installed: skipped")
    sys.exit(77)

TEMPLATES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "templates")
CHATS = 40
PIECES = ("hello", "\u00e4", "\n", "  ", "'", '"', "<think>\nhm\n</think>\n\nyes", "{x}", "\\", "42", "\u65e5\u672c", "\t", "\u00a0",
          "\u2003", "\x1f", "</think>", "A b C")


class Generation(jinja2.ext.Extension):
    """transformers has this tag for masks; it writes its inside."""

    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


def environment():
    def refuse(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"])
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = refuse
    return made


def text(draw):
    return "".join(draw.choice(PIECES) for _ in range(draw.randrange(7)))


def chat(draw):
    messages = [{"role": "system", "content": text(draw)}] if draw.random() < 0.5 else []
    for turn in range(draw.randrange(1, 6)):
        message = {"role": "user" if turn % 2 == 0 else "assistant", "content": text(draw)}
        if draw.random() < 0.1:
            message["role"] = draw.choice(["user", "assistant", "tool", "system"])
        if message["role"] == "assistant" and draw.random() < 0.1:
            message["reasoning_content"] = text(draw)
        if message["role"] == "assistant" and draw.random() < 0.1:
            message["tool_calls"] = [{"function": {"name": "f", "arguments": {"a": 1, "b": ["x", None, 1.5, 1e-7, 1e22, True]}}}]
        messages.append(message)
    made = {"messages": messages, "add_generation_prompt": draw.random() < 0.5, "bos_token": "<s>", "eos_token": "</s>",
            "tools": None, "documents": None}
    if draw.random() < 0.3:
        made["tools"] = [{"type": "function", "function": {"name": "f", "parameters": {"x": [1, 2], "y": {}}}}]
    return made


def main():
    draw = random.Random(1)
    made = environment()
    compared = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        variables = os.path.join(folder, "variables.json")
        for path in sorted(glob.glob(os.path.join(TEMPLATES, "*.jinja"))):
            with open(path, encoding="utf-8") as file:
                template = made.from_string(file.read())
            for _ in range(CHATS):
                values = chat(draw)
                with open(variables, "w", encoding="utf-8") as file:
                    json.dump(values, file)
                done = subprocess.run([os.path.join(sys.argv[1], "render_template"), path, variables], capture_output=True, check=False)
                try:
                    wanted = template.render(**values)
                except Exception:  # pylint: disable=broad-except  # Any error of Jinja is a refusal.
                    wanted = None
                got = done.stdout.decode() if done.returncode == 0 else None
                if got != wanted:
                    sys.exit(f"{os.path.basename(path)} of {json.dumps(values)}:\njinja {wanted!r}\nours  {got!r} {done.stderr.decode()}")
                compared += wanted is not None
                refused += wanted is None
    if compared < 4 * CHATS or refused == 0:
        sys.exit(f"only {compared} texts were compared, {refused} were refused by both")
    print(f"{compared} texts are the same, {refused} chats are refused by both")


if __name__ == "__main__":
    main()
