#!/usr/bin/env bash
# docs.sh - what the documents say is what the program does.
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
cd "$(dirname "$0")/../.."

binary=${HOLDFAST:-build/holdfast}
commands() { "$binary" commands | cmp -s - docs/commands.md; }
check "docs/commands.md is what holdfast commands prints" commands

# Every setting that serve takes stands in the table of operations.md.
for setting in $("$binary" serve --help | grep -oE '^ +--[a-z-]+' |
    grep -oE '[a-z][a-z-]+' | grep -v '^help$'); do
    check "docs/operations.md tells of $setting" \
        grep -qF -- "\`$setting\`" docs/operations.md
done

# Every subcommand has a help with examples.
for subcommand in $("$binary" --help | awk '/^  [a-z]/ { print $1 }'); do
    has_examples() { "$binary" "$1" --help | grep -q '^examples:'; }
    check "holdfast $subcommand --help has examples" \
        has_examples "$subcommand"
done
finish
