#!/usr/bin/env bash
# Device code of compute/cuda to PTX by clang, without nvcc and without CUDA's headers (tests/cuda/ptx has what they say): whatever only nvcc
# would refuse or allow shows here. Ends with 77 where no clang can. ptx.sh [ARCH...]
set -euo pipefail
cd "$(dirname "$0")/../.."

clang=$(command -v clang || compgen -c clang- | grep -E '^clang-[0-9]+$' | sort -V | tail -n 1 || true)
if [[ -z $clang ]] || ! "$clang" -print-targets 2>/dev/null | grep -q nvptx64; then
  echo "ptx: there is no clang that writes PTX here" >&2
  exit 77
fi
[[ $# -gt 0 ]] || set -- sm_75 sm_80

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# Loop strength reduction of clang 14 makes products of single bits, for which it then has no instruction. No CUDA is
# looked for, so the version of PTX is said. Warnings that nvcc does not give either are off.
flags=(-x cuda --cuda-device-only -nocudainc -nocudalib -Xclang -target-feature -Xclang +ptx72 -std=c++17 -O1 -mllvm -disable-lsr
  -I. -Itests/cuda/ptx -include tests/cuda/ptx/cuda_runtime.h -S -Wall -Wextra -Werror -Wno-unknown-cuda-version
  -Wno-unused-command-line-argument -Wno-unused-parameter -Wno-pass-failed)

# one ARCH SOURCE: some kernel must have come out of it.
one() {
  local ptx=$out/$1-${2##*/}.ptx
  "$clang" "${flags[@]}" --cuda-gpu-arch="$1" -o "$ptx" "$2" || return 1
  grep -q '\.entry ' "$ptx" || {
    echo "ptx: no kernel in $2 for $1" >&2
    return 1
  }
}

failed=0
count=0
for arch; do
  for source in compute/cuda/*.cu; do
    one "$arch" "$source" || failed=1
    count=$((count + 1))
  done
done
echo "$("$clang" --version | head -n 1): $count files to PTX for $*"
exit "$failed"
