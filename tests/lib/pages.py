"""Examples of a session in pages of docs/: blocks of ```console whose commands a test runs, and whose output it compares.

    <!-- test: run alice -->         a directive, which a reader does not see; its meaning is the test's
    ```console
    alice$ sudo dpnode invite        a command of a person; sudo is left out
    DPN1-AEAA                        its output: numbers, ids, tokens and units of measure stand for any others
    ...                              any lines, also none; at the end of a line any text
    ```
"""

import re

PROMPT = re.compile(r"^([a-z]+)\$ (.*)$")
DIRECTIVE = re.compile(r"^<!-- test: (.+) -->$")
ANY = "..."
# In this order. What stands for something else on another machine or at another time, and its name.
MASKS = [(re.compile(pattern), name) for pattern, name in (
    (r"\bDPN1-[A-Z0-9]+", "<token>"),
    (r"\b[0-9a-f]{16,64}\b", "<id>"),
    (r"\b[a-z2-7]{12}\b", "<id>"),
    (r"/tmp/dpnode-kjv-\w+", "<folder>"),
    (r"\b(avx512|avx2|generic|neon)\b", "<kernels>"),
    (r"\bby [a-z_][a-z0-9_-]*, (?=since|\d{4}-)", "by <user>, "),
    (r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?=\d)", "<day> "),
    (r"\d[\d,.:]*(e[+-]?\d+)?k?( (min|h|d) \d+ (s|min|h)\b| (us|ms|s|min|h|d|B|KiB|MiB|GiB|kB|MB|GB)\b(?!/))?", "<value>"),
    (r"(?<=\s)-(?=\s|$)", "<value>"), # none yet
)]


def masked(line):
    for pattern, name in MASKS:
        line = pattern.sub(name, line)
    return " ".join(line.split())


def steps(text):
    """[(kind, who, words, lines)] of a page, in order: kind is "directive" (who and lines are empty) or "command"."""
    found, fenced, output = [], False, None
    for line in text.splitlines():
        prompt = PROMPT.match(line) if fenced else None
        directive = None if fenced else DIRECTIVE.match(line)
        if line == "```console":
            fenced, output = True, None
        elif line == "```":
            fenced = False
        elif prompt:
            output = []
            found.append(("command", prompt.group(1), prompt.group(2), output))
        elif directive:
            found.append(("directive", "", directive.group(1), []))
        elif fenced:
            if output is None:
                raise ValueError(f"output without a command: {line}")
            output.append(line)
    return found


def _fits_line(shown, said):
    if shown.endswith(" " + ANY):
        begin = shown[:-len(ANY)].rstrip()
        # A word that a model continues may look like an id: beginninging.
        return said.startswith(begin) or masked(said).startswith(masked(begin))
    return masked(shown) == masked(said)


def difference(shown, said):
    """None if the lines that a command said are those that the page shows; else the first shown line that they lack, or a line too many."""
    if not shown:
        return None if not any(line.strip() for line in said) else f"said, not shown: {said[0]}"
    if shown[0] == ANY:
        rest = [difference(shown[1:], said[at:]) for at in range(len(said) + 1)]
        return None if None in rest else rest[0]
    if not said:
        return f"shown, not said: {shown[0]}"
    if not _fits_line(shown[0], said[0]):
        return f"shown: {shown[0]} | said: {said[0]}"
    return difference(shown[1:], said[1:])
