#!/usr/bin/env bash
# clients.sh - redis-cli, redis-benchmark, ioredis and node-redis, unchanged.
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
cd "$(dirname "$0")/../.."
. test/support/server.sh
. test/support/node.sh

start_server

cli() {
    redis-cli -p "$port" "$@" 2>&1
}

# redis-cli, one command at a time.
expect "ping" PONG "$(cli ping)"
expect "a map in version 2 is a flat list" $'allowed\n1\nlimit\n5\nremaining\n4' \
    "$(cli limit k rate 5 per 60000 | head -n 6)"
expect "stock" $'bolt\ntotal\n10' "$(cli stock set bolt 10 | sed -n '2,4p')"
check "a lock shows its token" grep -q '^token$' <<<"$(cli lock a owner me)"
check "a refusal shows its code" grep -q '^BUSY ' <<<"$(cli lock a owner you)"
check "an unknown command is told" grep -qi 'unknown' <<<"$(cli nosuch)"
expect "fence" OK "$(cli fence db 2)"
check "an older token is stale" grep -q '^STALE ' <<<"$(cli fence db 1)"
expect "a token that was never given" \
    "BADARG the token 4711 was never given, the newest number is 3" \
    "$(cli fence db 4711)"
expect "a fence is deleted" OK "$(cli fence del db)"
expect "only one that is there" "NOTFOUND no fence 'db'" "$(cli fence del db)"

# Version 3.
expect "a map in version 3 is a map" \
    $'1# "allowed" => (integer) 1\n2# "limit" => (integer) 5' \
    "$(redis-cli -3 --no-raw -p "$port" limit k3 rate 5 per 60000 2>&1 | head -n 2)"
expect "version 3 says nothing else" PONG "$(redis-cli -3 -p "$port" ping 2>&1)"

# Several commands from a pipe, and the mass-insertion mode.
expect "commands from a pipe" $'PONG\nOK\nPONG' \
    "$(printf 'ping\nfence pipe 1\nping\n' | cli)"
expect "mass insertion" "errors: 0, replies: 1000" \
    "$(for ((i = 1; i <= 1000; i++)); do printf 'FENCE mass %d\r\n' "$i"; done |
        cli --pipe | tail -n 1)"

# MULTI, as Redis has it: the same words get the same replies from both.
same_words() {
    printf '%s\n' EXEC DISCARD MULTI EXEC EXEC MULTI MULTI EXEC MULTI DISCARD \
        DISCARD MULTI NOSUCH EXEC EXEC MULTI NOSUCH DISCARD EXEC MULTI \
        'MULTI 1' EXEC |
        redis-cli "$@" 2>&1 | sed -E 's/^(ERR|BADARG) (unknown|wrong number).*/\1/
            s/^BADARG/ERR/'
}
redis-server --port 0 --unixsocket "$scratch/redis.sock" --save '' \
    --dir "$scratch" >/dev/null &
redis_pid=$!
for ((i = 0; i < 600; i++)); do
    [[ $(redis-cli -s "$scratch/redis.sock" ping 2>&1) != PONG ]] || break
done
expect "MULTI is told as Redis tells it" "$(same_words -s "$scratch/redis.sock")" \
    "$(same_words -p "$port")"
kill "$redis_pid"
wait "$redis_pid" || true
expect "a group" $'OK\nQUEUED\nQUEUED\nOK\nOK' \
    "$(printf '%s\n' MULTI 'fence multi 1' 'fence multi 1' EXEC | cli)"
check "a refused group" grep -q '^EXECABORT command 2 of 2: STALE ' \
    <<<"$(printf '%s\n' 'fence multi 2' MULTI 'fence other 1' 'fence multi 1' EXEC | cli)"

# benchmark ARGUMENT...: it ends well and warns of nothing.
benchmark() {
    local output status=0
    output=$(redis-benchmark -p "$port" -q "$@" 2>&1) || status=$?
    expect "redis-benchmark $*: status" 0 "$status"
    expect "redis-benchmark $*: complaints" '' \
        "$(tr '\r' '\n' <<<"$output" | grep -iE 'warn|err|could not|fail' || true)"
    check "redis-benchmark $*: result" \
        grep -qE '[0-9.]+ requests per second' <<<"$output"
}
benchmark -t ping_inline,ping_mbulk -n 10000
benchmark -t ping_mbulk -n 10000 -P 16
benchmark -t ping_mbulk -n 10000 -3
benchmark -n 10000 LIMIT k RATE 1000 PER 1000
benchmark -n 2000 -r 100000 STOCK SET sku:__rand_int__ 5
benchmark -n 2000 FENCE bench 1
benchmark -t set,get -n 10000
benchmark -t set,get -n 10000 -r 1000 -P 16

check "npm installs the clients" install_modules
status=0
output=$(node "$modules/families.mjs" "$port" 2>&1) || status=$?
grep -E '^FAIL' <<<"$output" || true
if [[ $(tail -n 1 <<<"$output") =~ ^families:\ ([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
    checks_passed=$((checks_passed + BASH_REMATCH[1]))
    checks_failed=$((checks_failed + BASH_REMATCH[2]))
else
    fail "families.mjs ended with status $status: $(tail -n 5 <<<"$output")"
fi

check "the server is still well" grep -q PONG <<<"$(cli ping)"
stop_server
finish
