#!/usr/bin/env bash
# All sources as clang-format writes them. Status 77: there is no clang-format, or not the one of the style's version.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v clang-format >/dev/null || exit 77
# Other versions break some lines elsewhere.
clang-format --version | grep -q ' 14\.' || exit 77

find base gossip compute store daemon cli contrib tests bench \( -name '*.[ch]' -o -name '*.inl' \) -print0 |
  xargs -0 -n 50 -P "$(nproc)" clang-format --dry-run -Werror
