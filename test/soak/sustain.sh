#!/usr/bin/env bash
# sustain.sh - half of what a server can sell, for five minutes, while half of
# the reservations expire: nothing is lost, and memory does not grow.
#
# SUSTAIN_SECONDS (300) is how long. The most that it can sell is measured right
# before, so that the pace fits the machine as it is now. What others do on the
# machine may slow it down: the pace is to be held but for a tenth. Latency is
# told and not judged. SUSTAIN_KEEP_MS (3000) is how long an ended reservation is
# remembered; from then on the number of records stays the same.
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
. "$(dirname "$0")/../support/server.sh"

seconds=${SUSTAIN_SECONDS:-300}
keep_ms=${SUSTAIN_KEEP_MS:-3000}
ttl_ms=1000
options=(--work sell --clients 50 --keys 10000 --ttl "$ttl_ms" --json)

figure() { # SECTION NAME
    redis-cli -p "$port" INFO "$1" | tr -d '\r' | sed -n "s/^$2://p"
}

field() { # JSON NAME
    sed -n "s/.*\"$2\": \([0-9a-z.]*\).*/\1/p" <<<"$1"
}

resident() {
    awk '/^VmRSS:/ { print $2 * 1024 }' "/proc/$server_pid/status"
}

# flat FILE PART SPARE: the most in the second half is not more than in the
# first, but for that part and so many bytes. The first lines are of the time
# until there is as much as there will be.
flat() {
    awk -v part="$2" -v spare="$3" '
        { bytes[NR] = $1 }
        END {
            from = int(NR / 5) + 1
            half = int((from + NR) / 2)
            for (i = from; i <= NR; i++) {
                if (i <= half && bytes[i] > first) first = bytes[i]
                if (i > half && bytes[i] > second) second = bytes[i]
            }
            printf "%d bytes at most in the first half, %d in the second\n", \
                first, second
            exit !(NR >= 10 && second <= first * (1 + part) + spare)
        }' "$1"
}

start_server --ended-keep-ms "$keep_ms"
json=$("$HOLDFAST" bench --port "$port" "${options[@]}" --prepare --seconds 10)
most=$(field "$json" operations_per_second)
pace=$((most / 2))
echo "sells $most a second at most; from now on $pace"
expired=$(figure stats 'events_total{event="reservation_expired"}')

"$HOLDFAST" bench --port "$port" "${options[@]}" --seconds "$seconds" \
    --pace "$pace" >"$scratch/json" 2>"$scratch/err" &
job=$!
while kill -0 "$job" 2>/dev/null; do
    figure memory engine_bytes >>"$scratch/engine"
    resident >>"$scratch/resident"
    sleep 0.5
done
status=0
wait "$job" || status=$?
json=$(<"$scratch/json")
echo "$json"
cat "$scratch/err"

expect "the run succeeds" 0 "$status"
expect "exactly what was confirmed is sold, and the sums agree" true \
    "$(field "$json" sums_agree)"
expect "every product was read" 10000 "$(field "$json" products_checked)"
check "the pace is held but for a tenth" awk -v pace="$pace" \
    -v found="$(field "$json" operations_per_second)" \
    'BEGIN { exit !(found >= pace * 0.9) }'
expired=$(($(figure stats 'events_total{event="reservation_expired"}') - expired))
check "reservations expired meanwhile: $expired" \
    test "$expired" -ge $((pace * seconds / 4))
check "the engine does not grow" flat "$scratch/engine" 0.05 1048576
check "nor does the process" flat "$scratch/resident" 0.1 8388608

# What has ended is forgotten in the end.
for ((i = 0; i < 600; i++)); do
    left=$(figure holds reservations)
    [[ $left != 0 ]] || break
    sleep 0.1
done
expect "no reservation is left" 0 "$left"
stop_server
check "the journal proves it" "$HOLDFAST" verify "$scratch/data"
finish
