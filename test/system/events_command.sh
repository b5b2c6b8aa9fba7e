#!/usr/bin/env bash
# events_command.sh - holdfast events: pages, gaps, and going on over crashes.
# tests: also under sanitizers
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
cd "$(dirname "$0")/../.."
. test/support/server.sh

follower=''
trap '[[ -z $follower ]] || kill "$follower" 2>/dev/null || true; leave' EXIT

start_server --durability none
export HOLDFAST_URL=127.0.0.1:$port

events() {
    "$HOLDFAST" events "$@"
}

# change COUNT: so many changes of a product, over one connection.
change() {
    local i
    for ((i = 1; i <= $1; i++)); do
        printf 'STOCK SET bolt %d\r\n' $((i + 9))
    done | redis-cli -p "$port" --pipe >/dev/null
}

# numbers: those of the lines that were printed.
numbers() {
    sed -n 's/^seq=\([0-9]*\) .*/\1/p' "$1"
}

# await COUNT FILE: until the file has so many lines.
await() {
    local i
    for ((i = 0; i < 60000; i++)); do
        (($(wc -l <"$2") < $1)) || return 0
        read -r -t 0.01 <> <(:) || true
    done
    return 1
}

# Command lines that are wrong, and no server.
tells 64 'nothing but options' "$HOLDFAST" events 5
tells 64 '--count takes a number' "$HOLDFAST" events --count 0
tells 64 '--from takes a number' "$HOLDFAST" events --from -1
tells 69 'connection refused' "$HOLDFAST" events --port 1
tells 69 'connection refused' "$HOLDFAST" events --follow --port 1

# Lines, JSON, and which.
tells 0 '' "$HOLDFAST" events
expect "nothing has happened yet" '' "$(<"$scratch/out")"
"$HOLDFAST" stock set bolt 5 >/dev/null
"$HOLDFAST" reserve r bolt=2 --owner ann >/dev/null
"$HOLDFAST" stock set nut 7 >/dev/null
expect "a line for each" \
    'kind=stock_changed sku=bolt total=5 available=5
kind=reserved id=r owner=ann items=sku=bolt quantity=2
kind=stock_changed sku=nut total=7 available=7' \
    "$(events | sed -E 's/^seq=[0-9]+ //; s/ at_ms=[0-9]+//')"
check "an object for each" grep -qE \
    '^\{"seq": [0-9]+, "kind": "reserved", "at_ms": [0-9]+, "id": "r", ' \
    <<<"$(events --json | sed -n 2p)"
expect "by channel" 2 "$(events --match 'hf:stock:bolt' | wc -l)"
expect "no more than that" 1 "$(events --count 1 | wc -l)"
second=$(events | numbers /dev/stdin | sed -n 2p)
expect "from a number on" 1 "$(events --from "$second" | wc -l)"
tells 65 'BADARG' "$HOLDFAST" events --match "$(printf '%0300d' 1)"

# Many pages.
change 2500
events >"$scratch/all"
expect "all pages" 2503 "$(wc -l <"$scratch/all")"
expect "in order, none twice" "$(numbers "$scratch/all")" \
    "$(numbers "$scratch/all" | sort -nu)"
expect "as many as asked for, over pages" 1500 "$(events --count 1500 | wc -l)"

# A follower goes on where it was, also when the server was killed meanwhile.
last=$(numbers "$scratch/all" | tail -n 1)
"$HOLDFAST" events --follow --from "$last" >"$scratch/heard" \
    2>"$scratch/told" &
follower=$!
for ((round = 1; round <= 3; round++)); do
    change 200
    # it is there, and perhaps in the middle of it
    check "it hears of it" await \
        $((round == 2 ? 400 : 200 * (round - 1) + 1)) "$scratch/heard"
    kill -KILL "$server_pid"
    wait "$server_pid" || true
    start_server --durability none --port "$port"
done
change 100
check "it hears all after crashes" await 700 "$scratch/heard"
expect "and nothing else" 700 "$(wc -l <"$scratch/heard")"
expect "in order, none twice" "$(numbers "$scratch/heard")" \
    "$(numbers "$scratch/heard" | sort -nu)"
events --from "$last" >"$scratch/after"
expect "which is what there is" "$(<"$scratch/after")" "$(<"$scratch/heard")"
check "it said that the server was away" grep -q 127.0.0.1 "$scratch/told"
kill "$follower"
wait "$follower" || true
follower=''
expect "one and no more" 1 "$(events --follow --count 1 | wc -l)"

# What is not kept any more.
change 5000
stop_server
# Small files, of which only the last stays; they go when the next is written.
start_server --durability none --events-keep-bytes 100000 --port "$port"
change 5000
stop_server
start_server --durability none --events-keep-bytes 100000 --port "$port"
tells 1 "what happened from $((last + 1)) up to" "$HOLDFAST" events --from "$last"
check "the rest is told" test -s "$scratch/out"
tells 0 '' "$HOLDFAST" events
expect "nobody asked for what was before" '' "$(<"$scratch/err")"
tells 0 "not kept any more" "$HOLDFAST" events --from "$last" --follow --count 3
expect "and it goes on" 3 "$(wc -l <"$scratch/out")"
stop_server

start_server --events-keep-bytes 0
tells 65 'STATE events are not kept' "$HOLDFAST" events --port "$port"
stop_server
finish
