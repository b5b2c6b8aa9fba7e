#!/usr/bin/env bash
# bite.sh - tests of tools/bite: the bugs of test/sim/bites all find their place
# in the sources; in a tree of two functions each result is told as it is.
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
cd "$(dirname "$0")/../.."

check "every bug of test/sim/bites applies" tools/bite --list >/dev/null

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{tools,include,src/server,test/{sim,support}}
cp tools/{bite,bite.awk,copies.sh} "$tree/tools"
cat >"$tree/Makefile" <<'END'
build/test/sim/server: test/sim/server.c src/server/some.c src/server/other.c
	@mkdir -p $(@D)
	gcc $(WARN) -o $@ $^
END
cat >"$tree/src/server/some.c" <<'END'
int some_sum(int a, int b)
{
    int sum = a;

    sum += b;
    return sum;
}

int some_most(int a, int b)
{
    if (a > b)
        return a;
    return b;
}

int some_least(int a, int b)
{
    if (a < b)
        return a;
    return b;
}
END
echo 'int other_one(void) { return 1; }' >"$tree/src/server/other.c"
cat >"$tree/test/sim/server.c" <<'END'
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

int some_sum(int a, int b);
int some_most(int a, int b);
int some_least(int a, int b);
int other_one(void);

static int die(int seed, int number)
{
    printf("FAIL seed %d dies of signal %d\n", seed, number);
    fflush(stdout);
    raise(number);
    return 2;
}

int main(int argc, char **argv)
{
    for (int seed = 1; seed <= atoi(argv[2]); seed++) {
        if (seed > 2 && some_sum(seed, 1) != seed + 1)
            return printf("FAIL seed %d: sum: it is: %d\n", seed, seed);
        if (seed == 4 && some_sum(seed, 0) != seed)
            return 3;
        if (some_most(seed, 5) < 5)
            return die(seed, SIGABRT);
        if (some_most(seed, 2) < seed)
            return die(seed, SIGSEGV);
        if (other_one() == 2)
            return die(seed, SIGXCPU);
    }
    return 0;
}
END

# bite ARGUMENT...: sets status, output and rows, the last without messages.
bite() {
    status=0
    rows=$(cd "$tree" && JOBS=2 tools/bite "$@" 2>"$tree/build.err") || status=$?
    output=$(<"$tree/build.err")
    rm "$tree/build.err"
}

says() {
    check "it says: $1" test "${output/"$1"/}" != "$output"
}

cat >"$tree/test/sim/bites" <<'END'
# A comment.

= Some of them:

the sum is wrong
src/server/some.c
- int sum = a;
-
- sum += b;
+     int sum = a + b + 1;

= Others:

the smaller one is the most
src/server/some.c
@ {
- if (a > b)
+     if (a < b)

it is always the second
src/server/some.c
- if (a > b)
- return a;

one is two, and the least is the most
src/server/other.c
- int other_one(void) { return 1; }
+ int other_one(void) { return 2; }
src/server/some.c
- if (a < b)
+     if (a > b)

the least is the second
unnoticed: nobody asks
src/server/some.c
- if (a < b)
+     if (0)
END
before=$(cd "$tree" && find . -type f -exec cksum {} + | sort)
bite --list
expect "their names" "the sum is wrong
the smaller one is the most
it is always the second
one is two, and the least is the most
the least is the second" "$rows"
bite --check
expect "all of them compile" 0 "$status"
says "5 bugs, 5 to try"
bite --seeds 10
expect "all are noticed, or have a reason" 0 "$status"
expect "the tables" "Some of them:

| broken | noticed by |
|---|---|
| the sum is wrong | seed 3, sum |

Others:

| broken | noticed by |
|---|---|
| the smaller one is the most | seed 1, assertion |
| it is always the second | seed 3, crash |
| one is two, and the least is the most | seed 1, does not end |
| the least is the second | not noticed: nobody asks |" "$rows"
expect "the tree is as it was" "$before" \
    "$(cd "$tree" && find . -name build -prune -o -type f -exec cksum {} + | sort)"
for copy in "$tree"/build/bite/[12]; do
    check "so is a copy that it worked in" diff -r "$tree/src" "$copy/src"
done

# What is known is not tried again, but for other seeds or sources.
first=$rows
bite --seeds 10
says "5 bugs, 0 to try"
expect "the same again" "$first" "$rows"
bite --seeds 2 'SUM IS'
says "1 bugs, 1 to try"
expect "without a reason it must be noticed" 1 "$status"
expect "one of them" "| the sum is wrong | not noticed |" "$(tail -n 1 <<<"$rows")"
echo '/* */' >>"$tree/src/server/other.c"
sed -i 's/^the sum is wrong/&\nunnoticed: it is hard/' "$tree/test/sim/bites"
bite --seeds 10 'sum is'
says "1 bugs, 1 to try"
says "noticed after all: the sum is wrong"
expect "which is no failure" 0 "$status"

# The simulation of the engine, with what changes nothing but src/hold.
mkdir "$tree/src/hold"
echo 'int hold_one(void) { return 1; }' >"$tree/src/hold/one.c"
cat >"$tree/test/sim/engine.c" <<'END'
#include <stdlib.h>

int hold_one(void);

int main(int argc, char **argv)
{
    return argc != 5 || atoi(argv[4]) != 100000 ||
           (atoi(argv[2]) == 4 && hold_one() == 2);
}
END
cat >>"$tree/Makefile" <<'END'
build/test/sim/engine: test/sim/engine.c src/hold/one.c
	@mkdir -p $(@D)
	gcc $(WARN) -o $@ $^
END
cp "$tree/test/sim/bites" "$tree/bites.before"
cat >>"$tree/test/sim/bites" <<'END'

a hold is two
unnoticed: the server does not see it
src/hold/one.c
- int hold_one(void) { return 1; }
+ int hold_one(void) { return 2; }

a hold is three
src/hold/one.c
- int hold_one(void) { return 1; }
+ int hold_one(void) { return 3; }
END
bite --engine
says "2 bugs, 2 to try"
expect "the engine's" "| a hold is two | seed 4 |
| a hold is three | not noticed |" "$(tail -n 2 <<<"$rows")"
expect "it need not notice all" 0 "$status"
bite --engine --seeds 3 'is two'
expect "too few seeds" "| a hold is two | not noticed |" "$(tail -n 1 <<<"$rows")"
mv "$tree/bites.before" "$tree/test/sim/bites"

# What does not compile, or ends without a word, is no result.
cat >>"$tree/test/sim/bites" <<'END'

no sum
src/server/some.c
- sum += b;
+     sum += c;

a bad sum
src/server/some.c
- sum += b;
+     sum += b == 0 ? 1 : b;
END
bite --check 'no sum'
expect "it does not compile" 1 "$status"
says "no sum: does not compile"
for i in 1 2; do
    bite --seeds 10 'a bad sum'
    expect "it has no result" 1 "$status"
    says "1 bugs, 1 to try"
done

# A change whose place is gone, or is not the only one.
# refuses BITE TEXT: a block is refused, with these words.
refuses() {
    printf 'something\nsrc/server/some.c\n%b' "$1" >"$tree/test/sim/bites"
    bite --list
    expect "refused: $2" 1 "$status"
    says "$2"
}
refuses '- return c;\n+ return b;\n' "bites:3: not found in src/server/some.c"
refuses '- return b;\n+ return a;\n' "bites:3: found 2 times in src/server/some.c"
refuses '@ sum += b;\n- return b;\n' "bites:4: not found in src/server/some.c"
refuses '+ return b;\n' "bites:3: not found in src/server/some.c"
refuses '' "nothing is changed"
refuses '- sum += b;\n\nsomething\nsrc/server/some.c\n- sum += b;\n' "two of this name"
sed -i 's/some.c/none.c/' "$tree/test/sim/bites"
bite --list
says "not found in src/server/none.c"

printf 'something\nsrc/server/some.c\n- sum += b;\n' >"$tree/test/sim/bites"
bite --seeds 10 nothing
expect "a name that is not there" 2 "$status"
bite --nonsense
expect "an unknown option" 2 "$status"
bite --seeds none
expect "no number" 2 "$status"
sed -i 's/sum = a;/sum = 1 + a;/' "$tree/src/server/some.c"
bite --seeds 10
expect "the unchanged tree must pass" 2 "$status"
says "seed 3, sum, without any change"
finish
