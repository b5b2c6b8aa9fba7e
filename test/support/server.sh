# server.sh - a real server for a test script. To be sourced after check.sh:
#
#   start_server            sets port and server_pid; its data is in $scratch
#   stop_server             asks it to end; fails unless it does so in order
#   tells CODE TEXT COMMAND...   how a command ends, and what it says
#   ask WORDS...            by redis-cli
#   says TEXT WORDS...      the reply to it, in one line, has TEXT
#
# $scratch is a folder of the script's own; both go when the script ends.
# shellcheck shell=bash
HOLDFAST=${HOLDFAST:-build/holdfast}
HOLDFAST=$(cd "$(dirname "$HOLDFAST")" && pwd)/${HOLDFAST##*/}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-XXXXXX")
server_pid=''
port=''

leave() {
    [[ -z $server_pid ]] || kill -KILL "$server_pid" 2>/dev/null || true
    rm -rf "$scratch"
}
trap leave EXIT

start_server() {
    local line
    exec {server_output}< <(exec "$HOLDFAST" serve --port 0 \
        --dir "$scratch/data" "$@" 2>&1)
    server_pid=$!
    while IFS= read -r -t 120 line <&"$server_output"; do
        if [[ $line =~ ^ready.*:([0-9]+) ]]; then
            port=${BASH_REMATCH[1]}
            return
        fi
        echo "$line"
    done
    fail "the server did not start"
    finish
}

stop_server() {
    local status=0
    kill -TERM "$server_pid"
    wait "$server_pid" || status=$?
    server_pid=''
    exec {server_output}<&-
    expect "the server ends in order" 0 "$status"
}

# tells CODE TEXT COMMAND...: the exit code, and what the standard error has.
tells() {
    local code=$1 text=$2 status=0 said
    shift 2
    "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
    expect "the code of ${*:2:2}" "$code" "$status"
    said=$(<"$scratch/err")
    contains() { [[ $said == *"$text"* ]]; }
    check "${*:2:2} says '$said', without '$text'" contains
}

ask() { redis-cli -p "$port" "$@"; }

says() {
    local text=$1
    shift
    ask "$@" 2>&1 | paste -sd ' ' >"$scratch/out"
    check "$*: $text" grep -qF -- "$text" "$scratch/out"
}
