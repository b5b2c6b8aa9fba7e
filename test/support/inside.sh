#!/usr/bin/env bash
# inside.sh - fails with 9 if more than MAX are inside at the same time.
#
#   inside.sh PLACE MAX     PLACE: a file with the number of those inside
set -euo pipefail

# count BY: changes the number, alone
count() {
    local n
    flock 9
    read -r n <"$place" || n=0
    echo $((n + $1)) >"$place"
    flock -u 9
    inside=$((n + $1))
}

place=$1
exec 9>"$place.gate"
count 1
found=$inside
count -1
((found <= $2)) || exit 9
