#!/usr/bin/env bash
# setup.sh - tests of tools/setup, on a machine of fakes: nothing is installed.
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
cd "$(dirname "$0")/../.."

fakes=$(mktemp -d)
trap 'rm -rf "$fakes"' EXIT
export SETUP_POLICY=$fakes/policy-rc.d FAKES=$fakes

# fake NAME: a command of that name, with the body from standard input.
fake() {
    { printf '#!/bin/bash\n' && cat; } >"$fakes/$1"
    chmod +x "$fakes/$1"
}

# run PURPOSE...: tools/setup with the fakes first; sets status and output.
run() {
    status=0
    output=$(PATH="$fakes:$PATH" tools/setup "$@" 2>&1) || status=$?
}

# The usual programs, and nothing that setup looks for: a bare PATH.
bare() {
    mkdir -p "$fakes/bare"
    for tool in bash sh awk sort tr cat dirname tee chmod rm env mktemp; do
        ln -sf "$(type -P $tool)" "$fakes/bare/$tool"
    done
    status=0
    output=$(PATH="$fakes/bare${1:+:$1}" "$BASH" tools/setup "$2" 2>&1) || status=$?
}

run
expect "no purpose is a usage error" 2 "$status"
run cook
expect "an unknown purpose is a usage error" 2 "$status"
check "the usage names the purposes" grep -q 'run | test | bench' <<<"$output"

# A machine where every package is there.
fake dpkg-query <<'FAKE'
shift 3
for package; do echo "installed $package"; done
FAKE
fake apt-get <<'FAKE'
echo "apt-get was called: $*"
FAKE
for purpose in run test; do
    run "$purpose"
    expect "$purpose with nothing missing succeeds" 0 "$status"
    expect "$purpose with nothing missing is silent" '' "$output"
done

# A machine without libuv1-dev: it is installed, alone, and no service starts.
fake dpkg-query <<'FAKE'
shift 3
for package; do
    [[ $package == libuv1-dev && ! -e $FAKES/done ]] || echo "installed $package"
done
FAKE
fake apt-get <<'FAKE'
echo "$*" >>"$FAKES/calls"
[[ $* != *install* ]] && exit
touch "$FAKES/done"
"$SETUP_POLICY" redis-server start
echo "policy $?" >>"$FAKES/calls"
FAKE
run run
expect "the missing package is installed" 0 "$status"
expect "it is named" "setup: installing libuv1-dev" "$output"
check "the lists are fetched first" \
    bash -c 'head -n 1 "$1" | grep -q update' - "$fakes/calls"
check "only that package is installed" \
    grep -qE 'install .*--no-install-recommends libuv1-dev$' "$fakes/calls"
check "services are forbidden meanwhile" grep -q '^policy 101$' "$fakes/calls"
check "and no longer afterwards" test ! -e "$SETUP_POLICY"
rm -f "$fakes/calls"
run run
expect "the second time it is silent" '' "$output"
check "and does not call apt-get" test ! -e "$fakes/calls"

# A policy of the machine's own is neither overwritten nor removed.
rm -f "$fakes/done"
printf '#!/bin/sh\nexit 7\n' >"$SETUP_POLICY"
chmod +x "$SETUP_POLICY"
run run
check "the machine's own policy is in force" grep -q '^policy 7$' "$fakes/calls"
check "and stays" grep -q 'exit 7' "$SETUP_POLICY"
rm -f "$SETUP_POLICY"

# A package that cannot be had.
fake apt-get <<'FAKE'
[[ $* != *install* ]] || { echo "E: no such package"; exit 100; } >&2
FAKE
rm -f "$fakes/done"
run run
check "a failed installation is a failure" test "$status" -ne 0
check "with the reason" grep -q 'E: no such package' <<<"$output"
check "and the policy is gone" test ! -e "$SETUP_POLICY"

# A machine with neither compiler nor packages: all of them are asked for.
fake apt-get <<'FAKE'
echo "$*" >"$FAKES/calls"
FAKE
fake dpkg-query </dev/null
bare "$fakes" run
expect "what is missing after all is a failure" 1 "$status"
for package in gcc make redis-tools libc6-dev libuv1-dev libxxhash-dev liburing-dev \
    libsqlite3-dev libpq-dev libhiredis-dev; do
    check "a bare machine asks for $package" \
        grep -qE "(^| )$package( |\$)" "$fakes/calls"
done

# A system that is not Debian.
bare '' run
expect "elsewhere, without a compiler, it fails" 1 "$status"
check "and says which commands" grep -q 'please install: gcc make' <<<"$output"
check "and what the packages are" grep -q libuv1-dev <<<"$output"
for tool in gcc make redis-cli; do
    ln -sf "$(type -P true)" "$fakes/bare/$tool"
done
bare '' run
expect "elsewhere, with the commands, it goes on" 0 "$status"

finish
