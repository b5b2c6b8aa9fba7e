#!/usr/bin/env bash
# lock_clients.sh - lock libraries for Redis, unchanged: each test is run against
# a real Redis and against Holdfast, and the outcomes are the same.
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
cd "$(dirname "$0")/../.."
. test/support/server.sh
. test/support/node.sh

pids=()
end_all() {
    for pid in "${pids[@]}"; do
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    leave
}
trap end_all EXIT

# Five of each; the first are those for one server.
redis=()
holdfast=()
start_redis() {
    local path=$scratch/redis$1.sock
    redis-server --port 0 --unixsocket "$path" --save '' --dir "$scratch" \
        >/dev/null &
    pids+=($!)
    for ((i = 0; i < 600; i++)); do
        [[ $(redis-cli -s "$path" ping 2>&1) != PONG ]] || break
    done
    redis+=("$path")
}
start_another() {
    local line
    exec {output}< <(exec "$HOLDFAST" serve --port 0 --dir "$scratch/data$1" 2>&1)
    pids+=($!)
    while IFS= read -r -t 120 line <&"$output"; do
        [[ $line =~ ^ready.*:([0-9]+) ]] || continue
        holdfast+=("${BASH_REMATCH[1]}")
        return
    done
    fail "server $1 did not start"
    finish
}
for ((n = 1; n <= 5; n++)); do
    start_redis "$n"
    start_another "$n"
done

# outcomes NAME COUNT COMMAND... -- ADDRESS...: so many outcomes, all as promised.
outcomes() {
    local name=$1 count=$2 output
    shift 2
    output=$("$@" 2>&1) || true
    expect "$name: what is not as promised" '' "$(grep -v '^ok ' <<<"$output" || true)"
    expect "$name: outcomes" "$count" "$(grep -c '^ok ' <<<"$output")"
    checks_passed=$((checks_passed + count - 1))
}

# both NAME COUNT COMMAND...
both() {
    local name=$1 count=$2
    shift 2
    outcomes "$name, Redis" "$count" "$@" "${redis[0]}"
    outcomes "$name, Holdfast" "$count" "$@" "${holdfast[0]}"
}

check "npm installs the clients" install_modules
both "redlock 4" 16 node "$modules/redlock4.mjs"
both "redlock 5" 15 node "$modules/redlock5.mjs"
both "redlock-universal" 48 node "$modules/redlock_universal.mjs"
both "redis-semaphore" 26 node "$modules/redis_semaphore.mjs"
both "simple-redis-mutex" 6 node "$modules/simple_redis_mutex.mjs"
both "warlock" 11 node "$modules/warlock.mjs"
both "redis-py" 16 /usr/bin/python3 test/system/redis_lock.py
both "redsync" 29 node "$modules/redsync.mjs"
both "usual scripts" 44 node "$modules/usual_scripts.mjs"
# Holdfast knows its scripts before it has seen their texts.
expect "a SHA1 of redsync's" -1 "$(redis-cli -p "${holdfast[1]}" EVALSHA \
    e950836ed1e694540c503ef9972b8de518044d3b 1 rs me)"

# One lock on five servers, and a majority of them.
outcomes "redlock 4, five" 16 node "$modules/redlock4.mjs" "${holdfast[@]}"
outcomes "redlock 5, five" 15 node "$modules/redlock5.mjs" "${holdfast[@]}"
outcomes "quorum, Redis" 5 node "$modules/redlock_quorum.mjs" "${redis[@]}"
outcomes "quorum, Holdfast" 5 node "$modules/redlock_quorum.mjs" "${holdfast[@]}"

# What they took had tokens, and a history.
check "the history tells of it" grep -q lock_released \
    <<<"$(redis-cli -p "${holdfast[0]}" explain r5:a)"
finish
