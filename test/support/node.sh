# node.sh - clients from npm for a test script. To be sourced after check.sh:
#
#   install_modules         brings them to $modules, with the tests that use them
#
# They come into build/, once for each set of versions; tests that run beside
# each other take turns.
# shellcheck shell=bash
modules=build/node

install_modules() (
    mkdir -p "$modules"
    exec {turn}>"$modules/turn"
    flock "$turn"
    if ! cmp -s test/system/node/package-lock.json "$modules/installed.json"; then
        cp test/system/node/package.json test/system/node/package-lock.json "$modules"
        cd "$modules" && npm ci --no-audit --no-fund --loglevel=error || return 1
        cp package-lock.json installed.json
        cd - >/dev/null
    fi
    for file in test/system/node/*.mjs; do
        cmp -s "$file" "$modules/${file##*/}" || cp "$file" "$modules"
    done
)
