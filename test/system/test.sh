#!/usr/bin/env bash
# test.sh - tests of tools/test: nothing that goes wrong is taken for a pass.
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
cd "$(dirname "$0")/../.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export TEST_LOGS=$folder/log

# program NAME: a script with the body from standard input.
program() {
    { printf '#!/bin/bash\n' && cat; } >"$folder/$1"
    chmod +x "$folder/$1"
}

# run NAME...: sets status, output and last, its last line.
run() {
    status=0
    output=$(tools/test -- "${@/#/$folder/}" 2>&1) || status=$?
    last=${output##*$'\n'}
}

says() {
    check "the output says: $1" grep -qF -- "$1" <<<"$output"
}

program good <<'END'
echo "good: 3 passed, 0 failed"
END
program better <<'END'
echo "better: 40 passed, 0 failed"
END
run good better
expect "what passed is summed up" "43 passed, 0 failed" "$last"
expect "and that is a success" 0 "$status"

program bad <<'END'
echo "hello"
echo "bad.c:7: it_works: expected 1 == 2"
echo "bad: 5 passed, 2 failed"
exit 1
END
run good bad better
expect "failures are counted beside the rest" "48 passed, 2 failed" "$last"
expect "and the run fails" 1 "$status"
says "bad.c:7: it_works: expected 1 == 2"
check "other lines are left out" bash -c '! grep -q hello' <<<"$output"

program lenient <<'END'
echo "lenient: 5 passed, 2 failed"
END
run lenient
expect "a failed count counts without a status" "5 passed, 2 failed" "$last"

program liar <<'END'
echo "liar: 5 passed, 0 failed"
exit 3
END
run liar
expect "a status counts without a failed count" "5 passed, 1 failed" "$last"
says "exit status 3"

program silent <<'END'
echo "about to do nothing"
END
run silent
expect "no count is a failure" "0 passed, 1 failed" "$last"
says "about to do nothing"

program dying <<'END'
for i in {1..40}; do echo "line $i"; done
kill -SEGV $$
END
run dying
expect "death is a failure" "0 passed, 1 failed" "$last"
says "line 40"
says "line 11"
check "only the last 30 lines are shown" bash -c '! grep -q "line 10$"' <<<"$output"

program early <<'END'
echo "early: 1 passed, 0 failed"
echo "and then something else"
END
run early
expect "the count must be the last line" "0 passed, 1 failed" "$last"

program idle <<'END'
echo "idle: 0 passed, 0 failed"
END
run idle
expect "a program without tests is a failure" "0 passed, 1 failed" "$last"

run absent
expect "a program that is missing is a failure" "0 passed, 1 failed" "$last"
says "is missing"

# The time limit is the one thing that cannot be shown without waiting: the
# program waits for ever, the limit is as short as it can be.
program endless <<'END'
echo "started"
read -r < <(tail -f /dev/null)
END
TEST_LIMIT=1 run endless
expect "a program that does not end is a failure" "0 passed, 1 failed" "$last"
says "stopped after 1 seconds"

program litter <<'END'
tail -f /dev/null >/dev/null 2>&1 &
echo $! >"$LITTER"
touch "$TMPDIR/left"
echo "$TMPDIR" >>"$LITTER"
echo "litter: 1 passed, 0 failed"
END
LITTER=$folder/pid run litter
{ read -r pid && read -r temporary; } <"$folder/pid"
expect "a program may leave things behind" "1 passed, 0 failed" "$last"
gone() { # or a corpse that nobody has looked at yet
    local state
    state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$pid/status" 2>/dev/null) ||
        return 0
    [[ $state == [ZX] ]]
}
until gone; do :; done # the time limit of this test is the limit here
check "its processes are ended" gone
check "its temporary folder is removed" test ! -e "$temporary"

# A sanitizer's report by any process of the test, even if the test is happy.
program reporting <<'END'
path=${ASAN_OPTIONS#*log_path=}
echo "==1==ERROR: AddressSanitizer: heap-use-after-free" >"${path%%:*}.123"
echo "reporting: 1 passed, 0 failed"
END
run reporting
expect "a sanitizer's report is a failure" "1 passed, 1 failed" "$last"
says "heap-use-after-free"

run
expect "nothing at all is counted" "0 passed, 0 failed" "$last"
expect "and is no success" 1 "$status"


# Which tests run with which sanitizer, in a tree of four.
tree=$folder/tree
mkdir -p "$tree"/{tools,test/{unit,system}}
cp tools/test "$tree/tools"
printf 'all tests units fuzzers:\n' >"$tree/Makefile"
small() { # FILE LINE: a test that passes
    printf '#!/bin/bash\n%s\necho "it: 1 passed, 0 failed"\n' "$2" >"$tree/$1"
    chmod +x "$tree/$1"
}
small tools/tidy ''
small test/unit/any.sh 'echo "$HOLDFAST_SAN $SCHEDULES" >>"$SEEN"'
small test/unit/single.sh '# tests: one thread'
small test/system/plain.sh ''
small test/system/both.sh '# tests: also under sanitizers'
export SEEN=$folder/seen
unset SCHEDULES
# ran ARGUMENT...: what ran, sorted; sets last.
ran() {
    output=$(unset TEST_LOGS && "$tree/tools/test" "$@" 2>&1) || true
    last=${output##*$'\n'}
    names=$(awk '$1 == "ok" && $2 ~ "/" { print $2 }' <<<"$output" | sort | tr '\n' ' ')
}
ran
expect "all of them run, and with each sanitizer those that gain by it" "\
address/system/both address/unit/any address/unit/single \
system/both system/plain thread/system/both thread/unit/any \
unit/any unit/single " "$names"
expect "each has its number of schedules" " |address 1000|thread 300" \
    "$(paste -sd'|' "$SEEN")"
expect "each is counted" "10 passed, 0 failed" "$last" # tidy too
ran thread
expect "one sanitizer: every suite" \
    "thread/system/both thread/system/plain thread/unit/any " "$names"
ran --only system address
expect "one suite" "address/system/both address/system/plain " "$names"
ran undefined
check "undefined is a part of address" grep -q '^tools/test address' <<<"$output"

status=0
output=$(tools/test --only nonsense 2>&1) || status=$?
expect "an unknown suite is a usage error" 2 "$status"
finish
