#!/usr/bin/env bash
# mutate.sh - tests of tools/mutate: in a tree of three functions it finds the
# change that no test notices, and only that.
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
cd "$(dirname "$0")/../.."

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{tools,src/hold,test/unit}
cp tools/{test,mutate,mutate.awk,copies.sh} "$tree/tools"
cat >"$tree/Makefile" <<'END'
FLAGS := $(if $(SAN),-fsanitize=$(SAN))
BUILD := build$(if $(SAN),/san-$(SAN))
$(BUILD)/test/unit/%: test/unit/%.c src/hold/some.c
	@mkdir -p $(@D)
	gcc -Isrc $(WARN) $(FLAGS) -o $@ $^
END
cat >"$tree/src/hold/some.h" <<'END'
int some_sum(int a, int b);
int some_most(int a, int b);
int some_leak(int a);
END

# Nobody calls some_most() near its bound, or looks what some_leak() leaves.
source_of() {
    cat <<'END'
#include "hold/some.h"

#include <stdlib.h>

int some_sum(int a, int b)
{
    return a + b;
}

int some_most(int a, int b)
{
    return a > b ? b : a;
}
END
}
leak_of() {
    cat <<'END'

int some_leak(int a)
{
    char *copy = malloc(sizeof(a));

    free(copy);
    return a;
}
END
}
source_of >"$tree/src/hold/some.c"
leak_of >>"$tree/src/hold/some.c"
cat >"$tree/test/unit/hold_some.c" <<'END'
#include "hold/some.h"

#include <stdio.h>

int main(void)
{
    int good = some_sum(2, 3) == 5 && some_most(9, 7) == 7 &&
               some_most(2, 7) == 2 && some_leak(4) == 4;

    printf("some: %d passed, %d failed\n", good, !good);
    return !good;
}
END

# mutate ARGUMENT...: sets status and output.
mutate() {
    status=0
    output=$(cd "$tree" && JOBS=1 tools/mutate "$@" 2>&1) || status=$?
}

contains() {
    [[ $output == *"$1"* ]]
}

says() {
    check "the output says: $1" contains "$1"
}

lacks() {
    ! contains "$1"
}

silent() {
    check "the output does not say: $1" lacks "$1"
}

before=$(cd "$tree" && find . -type f -exec cksum {} + | sort)
mutate --list src/hold
expect "all of them" 7 "$(grep -c '^src/hold/some.c:' <<<"$output")"
says $'src/hold/some.c:7: arithmetic\n    - return a + b;\n    + return a - b;'
mutate --plain src/hold/some.c
expect "it ends well" 0 "$status"
says "7 mutants, 7 to try"
says "src/hold: 7 made, 0 did not compile, 0 equivalent, 5 killed, 2 survived, 71.4 % killed"
says "5 unit/hold_some"
says $'src/hold/some.c:12\n    - return a > b ? b : a;\n    + return a >= b ? b : a;'
says $'src/hold/some.c:19\n    - free(copy);\n    + ;'
expect "the tree is as it was" "$before" \
    "$(cd "$tree" && find . -name build -prune -o -type f -exec cksum {} + | sort)"

check "so is the copy that it worked in" diff -r "$tree/src" "$tree/build/mutate/1/src"

mutate --plain src/hold
says "7 mutants, 0 to try"
says "2 survived"

# What only the sanitizer sees; and one that was read and is equivalent.
cat >"$tree/tools/mutate.equivalent" <<'END'
# A comment.
src/hold/some.c
- return a > b ? b : a;
+ return a >= b ? b : a;
If they are equal it does not matter which one is told.
END
mutate --retry src/hold
says "6 mutants, 1 to try"
says "1 equivalent, 6 killed, 0 survived, 100.0 % killed"
says "1 address/unit/hold_some"
mutate --report
says "1 equivalent, 6 killed, 0 survived"
sed -i "s/^- /@ another line\\n&/" "$tree/tools/mutate.equivalent"
mutate --report
says "0 equivalent, 6 killed, 1 survived"
sed -i "s/^@ .*/@ {/" "$tree/tools/mutate.equivalent"
mutate --report
says "1 equivalent, 6 killed, 0 survived"

# What a range of commits changed, and what does not compile or end.
(
    cd "$tree"
    git init -q
    git add Makefile src test tools
    git -c user.name=a -c user.email=a@a commit -qm first
)
cat >>"$tree/src/hold/some.c" <<'END'

int some_loop(int a)
{
    int rest = a;

    while (rest != 0)
        rest /= 2;
    switch (a) {
    case 1:
        return 3;
    case 2:
        return 4;
    }
    return rest;
}
END
sed -i 's/^int some_leak/int some_loop(int a);\n&/' "$tree/src/hold/some.h"
sed -i 's/some_leak(4) == 4/& \&\& some_loop(1) == 3 \&\& some_loop(2) == 4 \&\& some_loop(9) == 0/' \
    "$tree/test/unit/hold_some.c"
MUTATE_LIMIT=1 mutate --plain HEAD..
silent "some.c:7 "
says "2 did not compile"
says "unit/hold_some (time)"
mutate --list HEAD..HEAD
expect "other commits than those there are, are refused" 2 "$status"
says "src is not as in HEAD"

# Some of them, by seed.
mutate --list --count 3 --seed 1 src
first=$output
expect "as many as asked for" 3 "$(grep -c '^src' <<<"$output")"
mutate --list --count 3 --seed 1 src
expect "the same seed picks the same" "$first" "$output"
mutate --list --count 3 --seed 2 src
check "another seed picks others" test "$output" != "$first"

# Comments, strings, types, assertions and the preprocessor's lines stay.
cat >"$tree/src/hold/some.c" <<'END'
#include <assert.h>
#define MOST 3
/* if (a < 1) return 2; */
struct some {
    int values[4];
};
static const int primes[] = {2};
void f(struct some *s, const char **name)
{
    assert(s->values[1] > 0 &&
           s != 0);
    *name = "a < b + 1"; // 1 + 1
    if (!s->values[0] || (s->values[0] < 1 &&
                          name))
        return;
    s->values[0]++;
}
END
mutate --list src/hold/some.c
expect "every change there is" "\
7 (2 + 1) (2 - 1)
12 ; // 1 + 1
13 if (!(!s->values[0] || (s->values[0] < 1 && name)))
13 if (1)
13 if (s->values[0] || (s->values[0] < 1 &&
13 if (!s->values[(0 + 1)] || (s->values[0] < 1 &&
13 if (!s->values[0] && (s->values[0] < 1 &&
13 if (!s->values[0])
13 if ((s->values[0] < 1 &&
13 if (!s->values[0] || (s->values[(0 + 1)] < 1 &&
13 if (!s->values[0] || (s->values[0] <= 1 &&
13 if (!s->values[0] || (s->values[0] >= 1 &&
13 if (!s->values[0] || (s->values[0] < (1 + 1) &&
13 if (!s->values[0] || (s->values[0] < (1 - 1) &&
13 if (!s->values[0] || (s->values[0] < 1 ||
13 if (!s->values[0] || (s->values[0] < 1))
13 if (!s->values[0] || (
15 ;
16 ;
16 s->values[(0 + 1)]++;
16 s->values[0]--;" "$(awk -F: '/^src/ { line = $2 } /^    [+]/ { print line " " substr($0, 7) }' <<<"$output" |
    sed 's/static const int primes\[\] = {\(.*\)};/\1/' |
    awk '$1 == 7 { seven = seven " " substr($0, 3); next } !done++ { print 7 seven } { print }')"

# What goes wrong is told.
echo 'int main(void) { return 1; }' >"$tree/test/unit/hold_some.c"
printf 'int some_sum(void)\n{\n    return 2;\n}\n' >"$tree/src/hold/some.c"
mutate src/hold
expect "tests must pass before anything is changed" 2 "$status"
says "unit/hold_some.c fails without any change"
mutate --skip unit/hold_some src/hold
expect "without a test nothing is tried" 2 "$status"
says "no test is named in the table"
mutate src/nowhere
expect "what is not there is a usage error" 2 "$status"
mutate --nonsense
expect "so is an unknown option" 2 "$status"
finish
