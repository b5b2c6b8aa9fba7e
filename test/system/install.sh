#!/usr/bin/env bash
# install.sh - tests of `make install`: what it copies can be built against.
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
cd "$(dirname "$0")/../.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
san=${HOLDFAST_SAN:-}
flags=${san:+-fsanitize=${san/address/address,undefined}}

install() {
    make -s install SAN="$san" BUILD="$(dirname "$HOLDFAST")" \
        DESTDIR="$folder" PREFIX=/opt/holdfast
}
install
there=$folder/opt/holdfast
check "the command runs" "$there/bin/holdfast" --help >/dev/null
for name in holdfast holdfast-stores; do
    check "lib$name is there" test -s "$there/lib/lib$name.a" -a \
        -s "$there/lib/lib$name.so"
done
for header in include/holdfast/*.h; do
    check "$header is there" cmp "$header" "$there/$header"
done
expect "there is nothing else" "bin include lib" "$(cd "$there" && echo *)"

told() { make -n install "$@" BUILD="$(dirname "$HOLDFAST")" | grep -c ldconfig; }
expect "the loader is told of both libraries" 2 "$(told DESTDIR=)"
expect "and not of a staging folder" 0 "$(told DESTDIR=/there || true)"

# Programs that run have the old files mapped.
mkdir "$folder/old"
cp -al "$there/bin" "$there/lib" "$folder/old"
check "it can be installed again" install
for file in bin/holdfast lib/libholdfast.so lib/libholdfast-stores.so; do
    check "$file is a new file then" \
        test ! "$(readlink -f "$folder/old/$file")" -ef "$there/$file"
done

export PKG_CONFIG_PATH=$there/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$folder
export LD_LIBRARY_PATH=$there/lib
read -ra options <<<"$(pkg-config --cflags --libs holdfast)"
read -ra static <<<"$(pkg-config --cflags --libs --static holdfast)"
read -ra stores <<<"$(pkg-config --cflags --libs holdfast-stores)"
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
expect "it asks for nothing else" "-lholdfast -lm -pthread" \
    "$(printf '%s\n' "${static[@]:2}" | sort -u | tr '\n' ' ' | sed 's/ $//')"
sed -e 's/rate\.h/store.h/' -e '/hf_rate rate/d' -e '/hf_rate_take/d' \
    -e 's/hf_rate_init([^)]*)/hf_store_sqlite_open(NULL, NULL)/' \
    -e 's/^}/    return 0;\n}/' "$folder/user.c" >"$folder/store.c"
check "a program with a store builds" gcc -std=c11 -Wall -Werror \
    ${flags:+"$flags"} -o "$folder/store" "$folder/store.c" "${stores[@]}"
expect "and runs" "invalid argument" "$("$folder/store")"
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
