#!/usr/bin/env bash
# simulate.sh - the engine against the naive model, SIM_STEPS steps in all: some
# fixed seeds, and one of today that no run had before. Any of them can be run
# again by hand: build/test/sim/engine --seed N --steps N.
#
# tests: one thread
set -euo pipefail
cd "$(dirname "$0")/../.."

engine=build${HOLDFAST_SAN:+/san-$HOLDFAST_SAN}/test/sim/engine
steps=${SIM_STEPS:-1000000}
if [[ -n ${HOLDFAST_SAN:-} && -z ${SIM_STEPS:-} ]]; then
    steps=100000 # sanitizers are slow; the plain run does the rest
fi
today=$(date +%Y%m%d)
seeds=(1 2 3 4 5 6 7 8 9 "$today")
each=$((steps / ${#seeds[@]}))
passed=0
failed=0

for seed in "${seeds[@]}"; do
    if text=$("$engine" --seed "$seed" --steps "$each" 2>&1); then
        passed=$((passed + 1))
        echo "ok engine --seed $seed --steps $each: $(tail -n 1 <<<"$text")"
    else
        failed=$((failed + 1))
        echo "FAIL engine --seed $seed --steps $each:"
        echo "$text"
    fi
done

# One seed is one run, whatever the build.
first=$("$engine" --seed 1 --steps 5000 | tail -n 1)
second=$("$engine" --seed 1 --steps 5000 | tail -n 1)
if [[ -n $first && $first == "$second" ]]; then
    passed=$((passed + 1))
    echo "ok the same seed twice: $first"
else
    failed=$((failed + 1))
    echo "FAIL the same seed twice: '$first' and '$second'"
fi
echo "simulate: $passed passed, $failed failed"
((failed == 0))
