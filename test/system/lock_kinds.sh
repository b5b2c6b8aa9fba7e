#!/usr/bin/env bash
# lock_kinds.sh - shared and counting locks, sets, once, elections and sessions
# from the command line: what each does, and how each refuses.
#
# Processes tell each other by files how far they are; nothing waits for time.
# tests: also under sanitizers
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
cd "$(dirname "$0")/../.."
. test/support/server.sh
. test/support/process.sh

start_server
export HOLDFAST HOLDFAST_URL=127.0.0.1:$port
cd "$scratch"

# meet A B: says that A is there and waits for B, or fails.
cat >meet <<'END'
#!/bin/bash
touch "$1"
for ((i = 0; i < 6000; i++)); do
    [ ! -e "$2" ] || exit 0
    sleep 0.01
done
exit 9
END
chmod +x meet
fails=0
# ends PID WHAT: it ends with 0
ends() { wait "$1" || { fail "$2 ends with $?"; fails=1; }; }

# Command lines that are wrong.
while IFS='|' read -r words text; do
    # shellcheck disable=SC2086 # words
    tells 64 "$text" "$HOLDFAST" $words
done <<'END'
lock -- true|one lock name is needed, or --set
lock a b -- true|one lock name is needed, or --set
lock a --shared --permits 1/2 -- true|--shared and --permits cannot be combined
lock a --tree --permits 1/2 -- true|--tree and --permits cannot be combined
lock a --permits 2 -- true|--permits takes N/MAX, N from 1 to MAX, not '2'
lock a --permits 3/2 -- true|not '3/2'
lock a --permits 0/2 -- true|not '0/2'
lock a --permits 1/x -- true|not '1/x'
lock a --set b,c -- true|--set takes the place of NAME, 'a'
lock --set a,b --shared -- true|--set cannot be combined with --shared
lock --set a,,b -- true|none of them empty
lock --set a, -- true|none of them empty
lock a --wait soon -- true|--wait takes milliseconds from 0 to 86400000, or forever, not 'soon'
lock a --wait 86400001 -- true|or forever, not '86400001'
lock a --priority 4 -- true|--priority takes a number from 0 to 3
lock a --session 0 -- true|--session takes a number from 1
lock a|a command is needed behind --
once -- true|one name is needed
once a --for 0 -- true|--for takes a number from 1
once a|a command is needed behind --
elect -- true|the name of one election is needed
elect a|a command is needed behind --
session|open, keep, close, info, list or a command behind -- is needed
session begin|open, keep, close, info, list or a command behind -- is needed
session keep|one session id follows keep
session keep a|'a' is not the id of a session
session open 1|nothing follows open
session close 1 --ttl 1000|--ttl and --name belong to open
session info 1 --count 1|--cursor and --count belong to list
session keep 1 -- true|'keep' and a command cannot be combined
session --count 1 -- true|--cursor and --count belong to list
session open --cursor 18446744073709551615 --count 1|belong to list
locks a b|at most one pattern may be given
lockinfo|one lock name is needed
explain|one lock name is needed
waitgraph a|waitgraph takes no name
leader|the name of one election is needed
END
many=$(printf 'n%d,' {1..64})last
tells 64 'a set has at most 64 names' "$HOLDFAST" lock --set "$many" -- true

# Shared: two readers are inside at the same time, a writer is not.
cat >reader <<'END'
[ "$HOLDFAST_FENCE" = "$(cat fence 2>/dev/null || echo "$HOLDFAST_FENCE")" ] ||
    exit 8
echo "$HOLDFAST_FENCE" >"$1.fence" # whole or not at all for the other
mv "$1.fence" fence
exec ./meet "$1" "$2"
END
"$HOLDFAST" lock rw --shared --wait forever -- sh reader r1 r2 &
one=$!
"$HOLDFAST" lock rw --shared --wait forever -- sh reader r2 r1 &
ends $! 'the second reader'
ends "$one" 'the first reader'
"$HOLDFAST" lock rw --shared -- ./meet r3 let-go &
one=$!
until_true 60 test -e r3
tells 75 "BUSY lock 'rw' is held by" "$HOLDFAST" lock rw -- true
touch let-go
ends "$one" 'the third reader'
tells 0 '' "$HOLDFAST" lock rw -- true

# Counting: three are inside together, the fourth is not.
for ((i = 1; i <= 3; i++)); do
    "$HOLDFAST" lock pool --permits 1/3 --wait forever -- sh -c \
        "[ -z \"\${HOLDFAST_FENCE-}\" ] && ./meet p$i p-go" &
    pids[i]=$!
    until_true 60 test -e "p$i"
done
tells 75 "BUSY lock 'pool'" "$HOLDFAST" lock pool --permits 1/3 -- true
tells 65 'STATE' "$HOLDFAST" lock pool --permits 1/4 -- true

# A name and all names below it.
tells 75 "with TREE on 'db'" "$HOLDFAST" lock db --tree -- \
    "$HOLDFAST" lock db/orders -- true
tells 75 "'db/orders' below it is held by" "$HOLDFAST" lock db/orders -- \
    "$HOLDFAST" lock db --tree -- true
check "a name beside a tree is free" "$HOLDFAST" lock db --tree -- \
    "$HOLDFAST" lock db2/orders -- true
touch p-go
for pid in "${pids[@]}"; do
    ends "$pid" 'a holder of a permit'
done
tells 0 '' "$HOLDFAST" lock outer -- "$HOLDFAST" lock pool --permits 1/3 -- \
    sh -c '[ "$HOLDFAST_LOCK" = pool ] && [ -z "${HOLDFAST_FENCE-}" ]'

# A set: all or none, with one token, and renewed as one.
"$HOLDFAST" lock --set s1,s2 --set-shared s3 --ttl 60000 -- sh -c \
    'echo "$HOLDFAST_LOCK $HOLDFAST_TOKEN $HOLDFAST_FENCE" >set
     ./meet set-held set-go' &
one=$!
until_true 60 test -e set-held
read -r names token fence <set
expect "the names of the set" s1,s2,s3 "$names"
expect "its fence is its token" "$token" "$fence"
for name in s1 s2 s3; do
    expect "$name is held with it" OK "$(ask HELD "$name" "$token")"
done
tells 75 BUSY "$HOLDFAST" lock --set s0,s2 -- true
tells 75 BUSY "$HOLDFAST" lock s3 -- true
tells 0 '' "$HOLDFAST" lock s3 --shared -- true
tells 0 '' "$HOLDFAST" lock s0 -- true
touch set-go
ends "$one" 'the holder of the set'
tells 0 '' "$HOLDFAST" lock --set s3,s2,s1 -- true
tells 65 'a set has each name once' "$HOLDFAST" lock --set s1,s1 -- true

# What the other options say reaches the server.
"$HOLDFAST" lock noted --note 'who looks' --owner me --priority 2 -- sh -c \
    '"$HOLDFAST" lockinfo noted --json >info; "$HOLDFAST" locks "not*" >list'
check "the note and the owner are shown" grep -q \
    '"owner": "me".*"mode": "exclusive".*"note": "who looks"' info
check "the lock is listed" grep -q 'name=noted owner=me' list
ask LOCK shut OWNER o TTL 1 DELAY 600000 >/dev/null
closed() { [[ $(ask LOCKINFO "$1") == *closed* ]]; }
check "a lock that was lost is closed" until_true 60 closed shut
tells 75 BUSY "$HOLDFAST" lock shut -- true

# A deadlock is refused by its own code, with the story; the graph shows it.
ask LOCK d1 OWNER alice TTL 600000 >/dev/null
ask LOCK d2 OWNER bob TTL 600000 NOTE 'moves stock' >/dev/null
"$HOLDFAST" lock d2 --owner alice --wait forever -- true &
one=$!
waits() { [[ $("$HOLDFAST" lockinfo "$1" --json) == *'"waiting": 1'* ]]; }
until_true 60 waits d2
tells 77 "DEADLOCK waiting for 'd1'" "$HOLDFAST" lock d1 --owner bob \
    --wait 600000 -- true
check "the deadlock names who waits" grep -q "'alice'" err
tells 0 '' "$HOLDFAST" waitgraph
check "the graph has the edge" grep -q 'owner=alice .*name=d2 .*holder=bob' out
tells 0 '' "$HOLDFAST" waitgraph --dot
check "the graph has it in DOT" grep -q '"alice" -> "bob"' out
expect "and begins as one" 'digraph waits {' "$(head -n 1 out)"
tells 0 '' "$HOLDFAST" waitgraph --cursor 0 --count 1
check "a page of it tells where to go on" grep -q '^cursor: ' out
ask REVOKE d2 "$(ask LOCKINFO d2 | sed -n 6p)" >/dev/null
ends "$one" 'who waited'
tells 0 '' "$HOLDFAST" explain d2
check "what happened is told" grep -q 'what=lock_lost .*owner=bob' out

# once: what was printed is what others are told.
tells 0 '' "$HOLDFAST" once job -- printf 'one\ntwo\n'
expect "it is printed" $'one\ntwo' "$(<out)"
tells 0 '' "$HOLDFAST" once job -- touch ran-twice
expect "the result is told" $'one\ntwo' "$(<out)"
code=0
"$HOLDFAST" once job -- true >/dev/full || code=$?
expect "a result that cannot be printed is no success" 1 "$code"
code=0
"$HOLDFAST" once full -- echo lost >/dev/full 2>err || code=$?
expect "nor is output that cannot be written" 1 "$code"
check "which is told" grep -q "output of 'full' cannot be written" err
tells 0 '' "$HOLDFAST" once full -- true
expect "but the work is done" lost "$(<out)"
check "it runs once" test ! -e ran-twice
tells 0 '' "$HOLDFAST" once silent -- true
tells 0 '' "$HOLDFAST" once silent -- touch ran-twice
expect "a silent one has no result" '' "$(<out)"
check "a silent one runs once" test ! -e ran-twice
tells 0 '' "$HOLDFAST" once bytes -- printf 'a\0b'
tells 0 '' "$HOLDFAST" once bytes -- true
expect "any byte may be in a result" 6100620a "$(od -An -tx1 out | tr -d ' ')"
tells 78 "DONE the work of 'job' is done" "$HOLDFAST" lock job -- true
tells 3 '' "$HOLDFAST" once broken -- sh -c 'echo half; exit 3'
tells 0 '' "$HOLDFAST" once broken --wait 0 -- echo whole
expect "a failure is not kept" whole "$(<out)"
tells 127 'cannot run' "$HOLDFAST" once absent -- ./no-such-command
tells 0 '' "$HOLDFAST" once absent --wait 0 -- true
tells 0 '' "$HOLDFAST" once long -- seq 1000
expect "all of it is passed on" 1000 "$(wc -l <out)"
tells 0 '' "$HOLDFAST" once long -- true
expect "whole lines of it are kept" $'998\n999\n1000' "$(tail -n 3 out)"
check "of no more than 256 bytes" test "$(wc -c <out)" -le 257
expect "the first of them is whole" 3 "$(head -n 1 out | tr -d '\n' | wc -c)"
"$HOLDFAST" once piped -- seq 100000 2>/dev/null | head -n 1 >first || true
expect "a reader that goes ends it" 1 "$(<first)"

# A success that cannot be recorded is told; one that can in the end, is.
tells 76 'could not be recorded' "$HOLDFAST" once frozen --ttl 1000 -- \
    kill -STOP "$server_pid"
kill -CONT "$server_pid"
# nor does it try for as long as the hold lasts, if it is told to end
"$HOLDFAST" once hurried --ttl 86400000 -- sh -c \
    "trap '' TERM; kill -STOP $server_pid" 2>hurried &
one=$!
until_true 60 stopped "$server_pid"
code=0
for ((i = 0; i < 600; i++)); do
    kill -TERM "$one" 2>/dev/null || break
    sleep 0.1
done
kill -KILL "$one" 2>/dev/null || true
wait "$one" || code=$?
kill -CONT "$server_pid"
expect "who is told to end does not try on" 76 "$code"
check "and says so" grep -q 'could not be recorded' hurried
# longer than it waits for one answer
{
    until_true 60 stopped "$server_pid" || true
    sleep 1.5
    kill -CONT "$server_pid"
} &
tells 0 '' "$HOLDFAST" once thawed --ttl 3600000 -- sh -c \
    "echo ran; kill -STOP $server_pid"
tells 0 '' "$HOLDFAST" once thawed --wait 0 -- echo again
expect "it was recorded" ran "$(<out)"

# A session: its locks end with the command, or with its keeper.
"$HOLDFAST" session --name batch -- sh -c '
    redis-cli -p '"$port"' LOCK t1 OWNER o SESSION "$HOLDFAST_SESSION" >/dev/null
    redis-cli -p '"$port"' LOCK t2 OWNER o SESSION "$HOLDFAST_SESSION" >/dev/null
    "$HOLDFAST" session info "$HOLDFAST_SESSION" >info
    "$HOLDFAST" session list >list
    exit 5' || expect "the code of the command" 5 $?
check "the session has two locks" grep -q '^locks: 2$' info
check "it is listed by name" grep -q 'name=batch' list
tells 0 '' "$HOLDFAST" lock --set t1,t2 -- true
"$HOLDFAST" session --ttl 2000 -- sh -c '
    redis-cli -p '"$port"' LOCK t1 OWNER o SESSION "$HOLDFAST_SESSION" >/dev/null
    redis-cli -p '"$port"' LOCK t2 OWNER o SESSION "$HOLDFAST_SESSION" >/dev/null
    ./meet t-held never' &
one=$!
until_true 60 test -e t-held
kill -KILL "$one"
wait "$one" 2>/dev/null || true
tells 0 '' "$HOLDFAST" lock --set t1,t2 --wait forever -- true
tells 0 '' "$HOLDFAST" session open --ttl 60000 --name mine --json
id=$(grep -oE '"session": [0-9]+' out | grep -oE '[0-9]+')
tells 0 '' "$HOLDFAST" session keep "$id"
tells 0 '' "$HOLDFAST" lock under --session "$id" -- true
tells 0 '' "$HOLDFAST" session close "$id"
tells 65 "LOST session $id has ended" "$HOLDFAST" session keep "$id"
tells 65 "LOST session $id has ended" "$HOLDFAST" lock under --session "$id" \
    -- true

# An election: one leads, the next one when it resigns or is killed.
"$HOLDFAST" elect chief --value first:80 --ttl 2000 -- ./meet e1 never &
one=$!
until_true 60 test -e e1
tells 75 TIMEOUT "$HOLDFAST" elect chief --wait 1 -- true
tells 0 '' "$HOLDFAST" leader chief --json
check "the leader's value is told" grep -q '"value": "first:80"' out
"$HOLDFAST" elect chief --value second:80 -- sh -c \
    '"$HOLDFAST" leader chief >led; echo "$HOLDFAST_TOKEN" >term' &
two=$!
kill -KILL "$one"
wait "$one" 2>/dev/null || true
ends "$two" 'the second candidate'
check "the second leads" grep -q '^value: second:80$' led
tells 65 NOTFOUND "$HOLDFAST" leader chief
expect "the first term is over" "$(ask FENCE led "$(<term)")" OK

# A lock that is revoked ends its command in the grace time, not a TTL later.
"$HOLDFAST" lock seized --ttl 600000 -- sh -c \
    'echo "$HOLDFAST_TOKEN" >seized; ./meet seized-held never' 2>err &
one=$!
until_true 60 test -e seized-held
ask REVOKE seized "$(<seized)" GRACE 3000 >/dev/null
code=0
wait "$one" || code=$?
expect "the code after a revocation ($(<err))" 76 "$code"

expect "all ended as they should" 0 "$fails"
stop_server
finish
