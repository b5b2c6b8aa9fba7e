#!/usr/bin/env bash
# docs.sh - what the documents say is what the program does.
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
cd "$(dirname "$0")/../.."

binary=${HOLDFAST:-build/holdfast}
commands() { "$binary" commands | cmp -s - docs/commands.md; }
check "docs/commands.md is what holdfast commands prints" commands

# The events that events.md tells of, "kind channel" a line ("the same" is the one
# before), are on the channels that commands.md says.
told_events() {
    awk -F '|' '/^\| `[a-z_]+`.*\|.*\|.*\|$/ {
        if (split($3, part, "`") > 1) {
            channel = part[2]
            sub(/:[A-Z]+$/, ":...", channel)
        }
        count = split($2, kind, "`")
        for (i = 2; i <= count; i += 2)
            print kind[i], channel
    }' docs/events.md
}
check "docs/events.md tells of events" test "$(told_events | wc -l)" -gt 30
while read -r kind channel; do
    check "docs/events.md: $kind is on $channel" \
        grep -qF "| \`$kind\` | \`$channel\` |" docs/commands.md
done < <(told_events)

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
