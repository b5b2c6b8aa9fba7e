#!/usr/bin/env bash
# bench.sh - `holdfast bench` with a pace, and its sale of stock that expires.
#
# What is said of time holds on a machine of any speed: how long a run takes at
# least, and that all of it is counted from when it was due.
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
. "$(dirname "$0")/../support/server.sh"

# bench ARGUMENT...: sets json and status.
bench() {
    status=0
    json=$(timeout 300 "$HOLDFAST" bench --port "$port" --warmup 0 --json "$@" \
        2>"$scratch/err") || status=$?
}

field() {
    sed -n "s/.*\"$1\": \([0-9a-z.]*\).*/\1/p" <<<"$json"
}

# holds EXPRESSION: in awk, where a word in upper case is a field.
holds() {
    local text=$1 word
    for word in $(grep -oE '[A-Z][A-Z0-9_]+' <<<"$text"); do
        text=${text//$word/$(field "${word,,}")}
    done
    awk "BEGIN { exit !($text) }"
}

# sold SKU: units of it that are sold, and reserved.
sold() {
    "$HOLDFAST" stock get "$1" --port "$port" |
        awk '$1 == "reserved:" { reserved = $2 }
            $1 == "sold:" { print $2, reserved }'
}

start_server

bench --work ping --clients 4 --requests 100 --pace 200
expect "a run with a pace succeeds" 0 "$status"
check "it is not faster than its pace: $json" holds 'SECONDS >= 0.49'
check "and tells the pace" holds 'PACE == 200'

# All are due at the beginning, so that the last one waits for the whole run.
bench --work ping --clients 4 --requests 10000 --pace 1000000000
check "the time counts from when it was due: $json" \
    holds 'MAX_US >= SECONDS * 1e6 / 2'
bench --work lock --clients 3 --pipeline 4 --requests 100 --pace 400
check "a batch falls due as one: $json" holds 'SECONDS >= 0.23'
check "of whole operations" holds 'REQUESTS >= 200 && ERRORS == 0'
bench --work ping --clients 1000 --seconds 1 --pace 1
expect "a pace of less than one a connection succeeds" 0 "$status"
check "those that rest are ended, too: $json" \
    holds 'OPERATIONS <= SECONDS + 1'

bench --work sell --keys 20 --prepare --requests 500 --confirm 100 --ttl 60000
expect "a sale that is confirmed in full succeeds" 0 "$status"
check "each is confirmed: $json" holds 'CONFIRMED >= 500 && ERRORS == 0'
expect "and the sums agree" true "$(field sums_agree)"
bench --work sell --keys 1 --prepare --requests 200 --confirm 0 --ttl 100
expect "a sale that expires succeeds" 0 "$status"
before=$(sold bench:00000000)
expect "none of it is reserved afterwards" 0 "${before#* }"
bench --work sell --clients 2 --keys 1 --requests 200 --pipeline 5 --ttl 1000
expect "a sale of which a part is confirmed succeeds" 0 "$status"
check "some are: $json" holds 'CONFIRMED >= 20 && CONFIRMED <= 200'
after=$(sold bench:00000000)
expect "and are sold" $((${before% *} + $(field confirmed))) "${after% *}"

# Somebody else sells, too, while the run is stopped.
"$HOLDFAST" bench --port "$port" --work sell --keys 1 --seconds 2 --warmup 0 \
    --confirm 0 --ttl 5000 >"$scratch/out" 2>&1 &
job=$!
until [[ $(sold bench:00000000) != *" 0" ]]; do :; done
kill -STOP "$job"
"$HOLDFAST" reserve other bench:00000000=1 --port "$port" >"$scratch/said"
"$HOLDFAST" confirm other --port "$port" >"$scratch/said"
kill -CONT "$job"
status=0
wait "$job" || status=$?
expect "a unit that it did not sell is noticed" 1 "$status"
check "and told" grep -q 'other units are sold than were confirmed' "$scratch/out"

tells 64 'handoff has no --pace' \
    "$HOLDFAST" bench --port "$port" --work handoff --pace 5
tells 64 "there is no work 'sell' in dialect redis" \
    "$HOLDFAST" bench --port "$port" --work sell --dialect redis
stop_server
finish
