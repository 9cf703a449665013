#!/usr/bin/env bash
# same.sh DPSIM OTHER [SEEDS]: two builds (other compiler, optimisation or processor) see the same worlds, event by event.
set -euo pipefail

# Of the last line, which sums up all seeds.
digest() {
  "$@" --json | tail -n 1 | grep -Eo '"digest":"[0-9a-f]{16}"'
}

worst=0
while read -r -a args; do
  one=$(digest "$1" "${args[@]}")
  other=$(digest "$2" "${args[@]}")
  if [[ -z $one || $one != "$other" ]]; then
    echo "same: ${args[*]}: $one by $1, $other by $2"
    worst=1
  else
    echo "same: ${args[*]}: $one"
  fi
done <<END
--seeds ${3:-1..12}
--seeds 1..60 --profile rivals
--seeds 1..15 --profile gossip
--seeds 1..3000 --profile duel
END
exit "$worst"
