#!/usr/bin/env bash
# soak.sh - tests of tools/soak, in a tree whose tests are scripts that write
# down which seed they were given.
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
cd "$(dirname "$0")/../.."

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{tools,test/{schedule,stress,unit,fuzz},build/test/{schedule,stress,unit}}
cp tools/{test,soak} "$tree/tools"
export SEEN=$tree/seen JOBS=1
unset SAN TEST_LOGS HOLDFAST_SAN
: >"$SEEN"

# program NAME: a test with the body from standard input.
program() {
    echo 'uint64_t seed = test_seed();' >"$tree/test/$1.c"
    { printf '#!/bin/bash\n' && cat; } >"$tree/build/test/$1"
    chmod +x "$tree/build/test/$1"
}

# soak ARGUMENT...: sets status, output and last, its last line.
soak() {
    status=0
    output=$("$tree/tools/soak" "$@" 2>&1) || status=$?
    last=${output##*$'\n'}
}

contains() {
    [[ $output == *"$1"* ]]
}

says() {
    check "the output says: $1" contains "$1"
}

soak 1
expect "nothing to run is an error" 2 "$status"
says "nothing is built"

program schedule/one <<'END'
echo "schedule $SCHEDULE_FIRST $SCHEDULES" >>"$SEEN"
echo "one: 1 passed, 0 failed"
END
program stress/two <<'END'
echo "stress $TEST_SEED" >>"$SEEN"
echo "two: 1 passed, 0 failed"
END
soak 0
expect "there is a turn even in no time" "soak: 1 passed, 0 failed" "$last"
expect "and that is a success" 0 "$status"
for _ in 1 2 3 4 5 6 7; do
    soak 0
done
expect "turns are counted over calls" "soak: 8 passed, 0 failed" "$last"
expect "each seed once, in order" "10001 15001" \
    "$(awk '$1 == "schedule" { print $2 }' "$SEEN" | head -n 2 | tr '\n' ' ' | sed 's/ $//')"
expect "no seed twice" "$(sort "$SEEN")" "$(sort -u "$SEEN")"
expect "both kinds had their turn" "schedule stress" \
    "$(awk '{ print $1 }' "$SEEN" | sort -u | tr '\n' ' ' | sed 's/ $//')"
says "stress"
says "seeds"

# One that fails with its second seed.
rm "$tree/build/test/stress/two" "$tree/build/test/schedule/one"
program unit/three <<'END'
echo "unit $TEST_SEED" >>"$SEEN"
((TEST_SEED != 2)) || { echo "three.c:7: wrong with 2"; exit 1; }
echo "three: 1 passed, 0 failed"
END
soak 0
expect "a seed that passes" 0 "$status"
soak 0
expect "one that fails, fails the call" 1 "$status"
expect "and is counted" "soak: 9 passed, 1 failed" "$last"
says "FAIL  unit/three, seed 2: TEST_SEED=2 HOLDFAST=build/holdfast build/test/unit/three"
says "three.c:7: wrong with 2"
again=$(sed -n 's/^ *again: //p' <<<"$output")
: >"$SEEN"
status=0
(cd "$tree" && eval "$again") >"$tree/out" 2>&1 || status=$?
expect "the command repeats it" "1 unit 2" "$status $(cat "$SEEN")"
said=$(sed -n 's/^ *said: *//p' <<<"$output")
check "what it printed is kept" grep -q 'wrong with 2' "$tree/$said/three.log"
soak 0
expect "the next call goes on" "unit 3" "$(tail -n 1 "$SEEN")"
expect "and does not forget" 1 "$status"
says "again: $again"
soak --report
expect "nor does the report" "soak: 10 passed, 1 failed" "$last"
rm "$tree/build/soak/failures"
soak --report
expect "until it is told to" 0 "$status"

# Several at once; and one that is stopped gets its seed again.
rm -r "$tree/build/soak"
mkfifo "$tree/started"
program unit/three <<END
echo "unit \$TEST_SEED" >>"\$SEEN"
echo >"$tree/started"
read -r < <(tail -f /dev/null)
END
"$tree/tools/soak" 10 >"$tree/out" 2>&1 &
job=$!
read -r <"$tree/started"
soak 0
expect "two at a time are refused" 2 "$status"
kill -TERM "$job"
status=0
wait "$job" || status=$?
expect "it can be stopped" 130 "$status"
: >"$SEEN"
program unit/three <<'END'
echo "unit $TEST_SEED" >>"$SEEN"
echo "three: 1 passed, 0 failed"
END
soak 0
expect "what was stopped is done again" "unit 1" "$(cat "$SEEN")"

# A script of test/soak runs as it is, beside a command that is built.
rm -r "$tree/build/soak" "$tree/build/test/unit/three"
mkdir "$tree/test/soak"
cat >"$tree/test/soak/steady.sh" <<'END'
#!/bin/bash
echo "steady $HOLDFAST" >>"$SEEN"
echo "steady: 1 passed, 0 failed"
END
chmod +x "$tree/test/soak/steady.sh"
: >"$SEEN"
soak 0
expect "without the command there is none" 2 "$status"
printf '#!/bin/bash\n' >"$tree/build/holdfast"
chmod +x "$tree/build/holdfast"
soak 0
expect "with it there is a turn" "soak: 1 passed, 0 failed" "$last"
expect "on that command" "steady build/holdfast" "$(cat "$SEEN")"
says "sustain"

soak
expect "minutes are needed" 2 "$status"
soak many
expect "as a number" 2 "$status"
finish
