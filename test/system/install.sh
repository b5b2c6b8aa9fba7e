#!/usr/bin/env bash
# install.sh - tests of `make install`: what it copies can be built against.
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
cd "$(dirname "$0")/../.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
san=${HOLDFAST_SAN:-}
flags=${san:+-fsanitize=${san/address/address,undefined}}

make -s install SAN="$san" BUILD="$(dirname "$HOLDFAST")" \
    DESTDIR="$folder" PREFIX=/opt/holdfast
there=$folder/opt/holdfast
check "the command runs" "$there/bin/holdfast" --help >/dev/null
check "the library is there" test -s "$there/lib/libholdfast.a"
for header in include/holdfast/*.h; do
    check "$header is there" cmp "$header" "$there/$header"
done
expect "there is nothing else" "bin include lib" "$(cd "$there" && echo *)"

export PKG_CONFIG_PATH=$there/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$folder
read -ra options <<<"$(pkg-config --cflags --libs holdfast)"
expect "pkg-config knows it" "0" "$(pkg-config --exists holdfast && echo 0)"
check "the prefix is not the staging folder" \
    grep -qx 'prefix=/opt/holdfast' "$there/lib/pkgconfig/holdfast.pc"

cat >"$folder/user.c" <<'END'
#include <holdfast/rate.h>
#include <stdio.h>

int main(void)
{
    struct hf_rate rate;

    puts(hf_status_text(hf_rate_init(&rate, 3, 100)));
    return hf_rate_take(&rate, 3, 1000) == 0 ? 0 : 1;
}
END
cp "$folder/user.c" "$folder/user.cc"
check "a C program builds" gcc -std=c11 -Wall -Werror ${flags:+"$flags"} \
    -o "$folder/c" "$folder/user.c" "${options[@]}"
expect "and runs" ok "$("$folder/c")"
check "a C++ program builds" g++ -std=c++11 -Wall -Werror ${flags:+"$flags"} \
    -o "$folder/cc" "$folder/user.cc" "${options[@]}"
expect "and runs" ok "$("$folder/cc")"

# By the line of docs/toolkit.md, which is all that a reader has.
line=$(sed -n 's/^    cc \(.*\)my\.c \$(pkg-config --cflags --libs holdfast)$/\1/p' \
    docs/toolkit.md)
expect "the docs say how to compile" "-std=c11 " "$line"
for example in examples/*.c; do
    check "$example builds as the docs say" gcc ${flags:+"$flags"} $line \
        -Wall -Werror -o "$folder/example" "$example" "${options[@]}"
done

finish
