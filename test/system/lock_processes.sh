#!/usr/bin/env bash
# lock_processes.sh - exclusion between processes: a hundred on one lock,
# readers and writers, permits, sets; eight at once; and holders that are killed
# or stand still until their time is over.
#
# TTLs are long where nothing is to be lost, so that a slow machine loses
# nothing; where something is, the test waits for it and not for a time.
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
cd "$(dirname "$0")/../.."
. test/support/server.sh
. test/support/process.sh

start_server
export HOLDFAST port HOLDFAST_URL=127.0.0.1:$port
root=$PWD
mkdir "$scratch/work"
cd "$scratch/work"
long=(--ttl 3600000 --wait forever)

pids=()
# all_end WHAT COUNT: so many of `pids` do not end with 0
all_end() {
    local pid bad=0
    for pid in "${pids[@]}"; do
        wait "$pid" || bad=$((bad + 1))
    done
    pids=()
    expect "$1" "$2" "$bad"
}

# A hundred processes add one each, by reading and then writing.
echo 0 >counter
for ((i = 0; i < 100; i++)); do
    "$HOLDFAST" lock counter "${long[@]}" -- bash -c \
        'read -r n <counter; echo $((n + 1)) >counter' &
    pids+=($!)
done
all_end "how many of a hundred failed" 0
expect "a hundred processes on one counter" 100 "$(<counter)"

# Readers and writers: nobody is beside a writer.
cat >reader <<'END'
[ ! -e writing ] && mkdir "reading.$$" && [ ! -e writing ] && rmdir "reading.$$"
END
cat >writer <<'END'
mkdir writing && [ -z "$(find . -name 'reading.*')" ] && rmdir writing
END
for ((i = 0; i < 24; i++)); do
    if ((i % 3 == 0)); then
        "$HOLDFAST" lock book "${long[@]}" -- bash writer &
    else
        "$HOLDFAST" lock book --shared "${long[@]}" -- bash reader &
    fi
    pids+=($!)
done
all_end "how many readers and writers met" 0

# Permits: never more than three inside.
echo 0 >inside
for ((i = 0; i < 16; i++)); do
    "$HOLDFAST" lock desk --permits 1/3 "${long[@]}" -- \
        "$root/test/support/inside.sh" inside 3 &
    pids+=($!)
done
all_end "how many found no permit free" 0

# Sets that overlap, in every order of names: none deadlocks, none overlaps.
cat >transfer <<'END'
for name in ${HOLDFAST_LOCK//,/ }; do mkdir "in.$name" || exit 9; done
for name in ${HOLDFAST_LOCK//,/ }; do rmdir "in.$name"; done
END
for names in a,b b,a b,c c,b c,a a,c a,b,c c,b,a b,c,d d,a d,c,b,a a,d; do
    "$HOLDFAST" lock --set "$names" "${long[@]}" -- bash transfer &
    pids+=($!)
done
all_end "how many sets met" 0

# once by eight at the same time: one runs, all have its result.
for ((i = 0; i < 8; i++)); do
    "$HOLDFAST" once schema --ttl 3600000 -- bash -c \
        'echo "$$" >>ran; echo "version 42 by $$"' >"result.$i" &
    pids+=($!)
done
all_end "how many of eight failed" 0
expect "how many of eight ran it" 1 "$(wc -l <ran)"
expect "how many results there are" 1 "$(sort -u result.* | wc -l)"
expect "the result" "version 42 by $(<ran)" "$(<result.0)"

# The first two fail: a third one does it, and nobody else.
for ((i = 0; i < 8; i++)); do
    "$HOLDFAST" once shaky --ttl 3600000 -- bash -c \
        'echo >>tried; [ "$(wc -l <tried)" -ge 3 ]' &
    pids+=($!)
done
all_end "how many failed" 2
expect "how often it was tried" 3 "$(wc -l <tried)"

# A holder that stands still past its TTL, and then writes.
cat >late <<'END'
token=$(redis-cli -p "$port" LOCK file OWNER late TTL 50 | sed -n 2p)
echo "$token" >late.token
kill -STOP $$
redis-cli -p "$port" FENCE disk "$token" >late.reply
[ "$(<late.reply)" != OK ] || echo late >data
END
bash late &
late=$!
until_true 60 test -s late.token
until_true 60 stopped "$late"
"$HOLDFAST" lock file "${long[@]}" -- bash -c '
    [ "$(redis-cli -p "$port" FENCE disk "$HOLDFAST_FENCE")" = OK ] &&
    echo new >data'
kill -CONT "$late"
wait "$late" || true
check "the late write is refused: $(<late.reply)" grep -q '^STALE' late.reply
expect "the data" new "$(<data)"

# The same of `holdfast lock` and all its processes, as if the machine had
# stood still. Whoever wakes up first, nothing is written.
"$HOLDFAST" lock still --ttl 1000 -- bash -c '
    echo "$$" >still.pid
    until [ -e wake ]; do sleep 0.01; done
    [ "$(redis-cli -p "$port" FENCE disk "$HOLDFAST_FENCE")" != OK ] ||
        echo late >data' 2>still.err &
still=$!
until_true 60 test -s still.pid
children=$(pgrep -P "$still")
# shellcheck disable=SC2086 # words
kill -STOP $children "$still"
"$HOLDFAST" lock still "${long[@]}" -- bash -c '
    [ "$(redis-cli -p "$port" FENCE disk "$HOLDFAST_FENCE")" = OK ] &&
    echo newer >data'
touch wake
# shellcheck disable=SC2086 # words
kill -CONT $children "$still"
code=0
wait "$still" || code=$?
expect "the code of who stood still ($(<still.err))" 76 "$code"
expect "the data" newer "$(<data)"

# A holder that is killed: its command is dead before the next one begins.
"$HOLDFAST" lock killed --ttl 1000 -- bash -c \
    'echo "$$" >killed.pid; while :; do sleep 0.01; done' &
killed=$!
until_true 60 test -s killed.pid
kill -KILL "$killed"
wait "$killed" 2>/dev/null || true
"$HOLDFAST" lock killed "${long[@]}" -- bash -c '
    . '"$root"'/test/support/process.sh; ended "$(<killed.pid)"' ||
    fail "the command of who was killed runs on"

stop_server
finish
