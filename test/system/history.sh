#!/usr/bin/env bash
# history.sh - `bench --record` on a real server, `verify --history` on what it
# wrote; and a history in which one line is changed.
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
. "$(dirname "$0")/../support/server.sh"

run() {
    local work=$1
    shift
    "$HOLDFAST" bench --work "$work" --port "$port" --clients 4 --warmup 0 \
        --record "$scratch/$work.txt" "$@" >"$scratch/out" 2>&1
}

verify() {
    "$HOLDFAST" verify --history "$@" >"$scratch/out" 2>&1
}

says() {
    grep -qF -- "$1" "$scratch/out"
}

# What json says of a field.
field() {
    sed -n "s/.*\"$2\": \([0-9a-z]*\).*/\1/p" <<<"$1"
}

start_server
check "a run of locks is recorded" run lock --requests 500 --pipeline 3
check "and is good" verify "$scratch/lock.txt"
json=$("$HOLDFAST" verify --history "$scratch/lock.txt" --json)
expect "it is good in JSON, too" true "$(field "$json" ok)"
expect "without a violation" 0 "$(field "$json" violations)"
check "every operation is a grant" test "$(field "$json" grants)" -ge 500
check "and every call is answered" test "$(field "$json" calls)" = \
    "$(field "$json" answers)"
check "a run of hand-overs is recorded" run handoff --requests 300 --hold 0
check "and is good" verify "$scratch/handoff.txt"
check "a run of reservations is recorded" run reserve --requests 500 \
    --keys 20 --prepare
check "and is good" verify "$scratch/reserve.txt"
check "and has reservations in it" grep -qE '[1-9][0-9]* reservations' \
    "$scratch/out"
check "a run of groups is recorded" run checkout --requests 500 --keys 20 \
    --pipeline 3
check "and is good" verify "$scratch/checkout.txt"
check "and groups were carried out" grep -q 'answer [0-9]* \*5%0D%0A' \
    "$scratch/checkout.txt"
check "a run of limits is recorded" run limit --requests 500 --keys 3 \
    --rate 10
check "and is good" verify "$scratch/limit.txt"
stop_server

# The last token that was told becomes the first one: one line of thousands.
changed=$scratch/changed.txt
first=$(grep -m1 -o 'token%0D%0A:[0-9]*' "$scratch/handoff.txt")
last=$(grep -o 'token%0D%0A:[0-9]*' "$scratch/handoff.txt" | tail -n 1)
line=$(grep -n -F "$last%" "$scratch/handoff.txt" | tail -n 1 | cut -d: -f1)
sed "${line}s/$last%/$first%/" "$scratch/handoff.txt" >"$changed"
check "the line is changed" test -n "$(diff "$scratch/handoff.txt" "$changed")"
status=0
verify "$changed" || status=$?
expect "a history with one line changed fails" 1 "$status"
check "and the call is shown" says "is told token ${first##*:}"
status=0
json=$("$HOLDFAST" verify --history "$changed" --json) || status=$?
expect "it fails in JSON, too" "1 false" "$status $(field "$json" ok)"

# The version that the last member of a group was told is that of the one before.
told=$(grep 'answer [0-9]* \*5%0D%0A' "$scratch/checkout.txt" | tail -n 1)
mapfile -t versions < <(grep -o 'version%0D%0A:[0-9]*' <<<"$told")
sed "s/${versions[2]}%/${versions[1]}%/" "$scratch/checkout.txt" >"$changed"
status=0
verify "$changed" || status=$?
expect "a group with one number changed fails" 1 "$status"

# A server that forgets sooner than by default, or when it is full.
crlf='%0D%0A'
reserved() { # STATUS
    echo "*8$crlf\$2${crlf}id$crlf\$1${crlf}r$crlf\$6${crlf}status$crlf\$${#1}$crlf$1$crlf\$10${crlf}expires_ms$crlf:0$crlf\$5${crlf}items$crlf*1$crlf*4$crlf\$3${crlf}sku$crlf\$1${crlf}s$crlf\$8${crlf}quantity$crlf:2$crlf"
}
granted() { # TOKEN
    echo "*8$crlf\$5${crlf}token$crlf:$1$crlf\$7${crlf}safe_ms$crlf:0$crlf\$5${crlf}count$crlf:1$crlf\$9${crlf}waited_ms$crlf:0$crlf"
}
cat >"$scratch/forgets.txt" <<END
holdfast history 1
1000000 1 open
1000001 1 call 1 RESERVE r ITEM s 2
1000002 1 answer 1 $(reserved PENDING)
1000003 1 call 2 CANCEL r
1000004 1 answer 2 $(reserved CANCELLED)
4000000 1 call 3 RESERVATION r
4000001 1 answer 3 -NOTFOUND%20no%20reservation%20'r'$crlf
4000002 1 call 4 LOCK a OWNER o TTL 1 REQ k
4000003 1 answer 4 $(granted 7)
9000000 1 call 5 LOCK a OWNER o TTL 1 REQ k
9000001 1 answer 5 $(granted 9)
END
status=0
verify "$scratch/forgets.txt" || status=$?
expect "what was forgotten too soon fails" 1 "$status"
check "a reservation" says 'missing: '
check "and an answer to a REQ" says 'request: '
check "it is good if ids and reservations are kept for less" \
    verify "$scratch/forgets.txt" --request-keep-ms 4000 --ended-keep-ms 2000
status=0
verify "$scratch/forgets.txt" --ended-keep-ms 2000 || status=$?
expect "each by itself" 1 "$status"
check "a reservation may be gone if there were too many" \
    verify "$scratch/forgets.txt" --request-keep-ms 4000 --full
status=0
"$HOLDFAST" verify "$scratch/data" --full >"$scratch/out" 2>&1 || status=$?
expect "of a folder nothing of it is asked" 64 "$status"

# What is not a history.
head -c -5 "$scratch/lock.txt" >"$scratch/cut.txt"
status=0
verify "$scratch/cut.txt" || status=$?
expect "a file that was cut is refused" 1 "$status"
check "with the number of the line" says "line $(wc -l <"$scratch/lock.txt"): "
printf 'holdfast history 1\n' >"$scratch/empty.txt"
status=0
verify "$scratch/empty.txt" || status=$?
expect "a check of nothing is no success" 1 "$status"
check "and says so" says 'there is no call in it'
status=0
verify "$scratch/lock.txt" "$scratch/data" || status=$?
expect "a folder and a history are too much" 64 "$status"
status=0
run lock --dialect redis || status=$?
expect "only Holdfast is recorded" 64 "$status"
finish
