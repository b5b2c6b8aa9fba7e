#!/usr/bin/env bash
# log_output.sh - where the server's log goes when its outputs are odd.
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
. "$(dirname "$0")/../support/server.sh"

# Until that file has the line that says so.
await_ready() {
    for _ in $(seq 1200); do
        if grep -qs '^ready' "$1"; then
            return 0
        fi
        sleep 0.05
    done
    return 1
}

write_some() {
    "$HOLDFAST" stock set ticket 100 --port "$1" >/dev/null
}

# works WHAT: the server, just started with its output in $scratch/out, takes
# writes and ends.
works() {
    local status=0
    server_pid=$!
    check "$1" await_ready "$scratch/out"
    port=$(sed -n 's/^ready.*:\([0-9]\{1,\}\).*/\1/p' "$scratch/out")
    check "and works" write_some "$port"
    check "and works on" write_some "$port"
    kill -TERM "$server_pid"
    wait "$server_pid" || status=$?
    server_pid=''
    rm "$scratch/out" # the next start makes it late, and this one is ready
    expect "and ends in order" 0 "$status"
}

# Without a standard error no file of the journal may get its number: the log
# would be written into the journal.
"$HOLDFAST" serve --port 0 --dir "$scratch/closed" --log-level debug \
    >"$scratch/out" 2>&- &
works "starts without a standard error"
check "and its journal is whole" "$HOLDFAST" verify "$scratch/closed"
no_lines_in_data() { ! grep -rqs 'info  st' "$scratch/closed"; }
check "and holds no lines of the log" no_lines_in_data

# A reader that went away.
"$HOLDFAST" serve --port 0 --dir "$scratch/piped" --log-level debug \
    >"$scratch/out" 2> >(head -c 1 >/dev/null) &
works "starts with a reader of its log that ends"

# Whoever looks at the end of what was said finds the reason there.
says_why_last() {
    for _ in $(seq 20); do
        ! "$HOLDFAST" serve --bind 203.0.113.1 --dir "$scratch/nowhere" \
            --segment-bytes 1048576 >"$scratch/out" 2>&1 || return
        tail -n 1 "$scratch/out" | grep -q '^holdfast serve: cannot listen' || return
    done
}
check "a start that fails says why last" says_why_last

wrong() {
    local status=0
    "$HOLDFAST" serve --dir "$scratch/none" "$@" 2>"$scratch/said" || status=$?
    [[ $status == 64 ]]
}
check "an unknown level is refused" wrong --log-level loud
check "by name" grep -qF 'debug, info, warn or error' "$scratch/said"
check "an unknown format is refused" wrong --log-format xml
check "no old files at all is refused" wrong --log-rotate-keep 0
finish
