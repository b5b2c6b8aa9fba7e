#!/usr/bin/env bash
# library.sh - the libraries as others link them: which names they have, static,
# shared and in a plugin, and without the packages that only the stores need.
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
cd "$(dirname "$0")/../.."
export LC_ALL=C

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
build=$(dirname "${HOLDFAST:-build/holdfast}")
export LD_LIBRARY_PATH=$build
version=$(sed -n 's|^#define HOLDFAST_VERSION "\(.*\)"|\1|p' \
    include/holdfast/version.h)
abi=${version%.*}
private=HOLDFAST_PRIVATE_$version

# ---- Names ----

# defined FILE: its global names; of the compiler's own it has one.
defined() {
    nm -g --defined-only "$1" 2>/dev/null |
        awk 'NF == 3 && $3 !~ /^DW\.ref\./ { print $3 }' | sort -u
}
# exported FILE: its names with their versions.
exported() {
    nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' | sort -u
}
foreign() { grep -v '^hf_' || true; }

cat include/holdfast/*.h | sed '/^#/d' | gcc -fpreprocessed -dD -E -P -x c - |
    grep -oE '\bhf_[a-z0-9_]+' | sort -u >"$folder/told"
: >"$folder/needed"
for name in holdfast holdfast-stores; do
    archive=$build/lib$name.a shared=$build/lib$name.so
    node=HOLDFAST${name#holdfast}_$abi
    node=${node/-stores/_STORES}
    expect "lib$name.a has names with hf_ only" "" \
        "$(defined "$archive" | foreign)"
    exported "$shared" >"$folder/exported"
    expect "lib$name.so has names with hf_ only" "" \
        "$(foreign <"$folder/exported")"
    expect "lib$name.so exports what the headers declare" \
        "$(defined "$archive" | comm -12 - "$folder/told" | tr '\n' ' ')" \
        "$(sed -n "s/@@$node\$//p" "$folder/exported" | tr '\n' ' ')"
    expect "the soname has the version" "lib$name.so.$abi" \
        "$(readelf -d "$shared" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')"
    sed -n "s/@@$private\$//p" "$folder/exported" >>"$folder/private"
    nm -D --undefined-only "$shared" |
        sed -n "s/.* \(hf_.*\)@$private\$/\1/p" >>"$folder/needed"
done
expect "the stores take of the library what the list says" \
    "$(cat src/stores/needs.txt)" "$(cat "$folder/needed")"
expect "and nothing else is exported for them" \
    "$(cat src/stores/needs.txt)" "$(cat "$folder/private")"
expect "the library needs libc alone" "libc.so.6 libgcc_s.so.1 libm.so.6 " \
    "$(readelf -d "$build/libholdfast.so" |
        sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | sort | tr '\n' ' ')"

# ---- One header for all ----

for header in include/holdfast/*.h; do
    name=${header#include/}
    [[ $name == holdfast/holdfast.h ]] ||
        check "holdfast.h includes $name" \
            grep -qx "#include \"$name\"" include/holdfast/holdfast.h
done

# ---- A program with names of its own, and plugins ----

cat >"$folder/user.c" <<'END'
#include <holdfast/holdfast.h>
#include <stdio.h>

int blocking_array = 7;
int pool_put(int value);
int map_insert(int value);

int pool_put(int value)
{
    return value + blocking_array;
}

int map_insert(int value)
{
    return pool_put(value) + 1;
}

static int add(void *arg)
{
    (void)__atomic_add_fetch((int *)arg, 1, __ATOMIC_SEQ_CST);
    return 0;
}

int use(void);
int use(void)
{
    struct hf_pool_opts opts = {.max_threads = 2};
    int ran = 0;
    struct hf_blocking_opts queue = {.kind = HF_BLOCKING_ARRAY, .capacity = 2};
    struct hf_blocking *blocking = NULL;
    struct hf_pool *pool = NULL;

    if (hf_pool_open(&pool, &opts) || hf_blocking_open(&blocking, &queue))
        return 1;
    for (int i = 0; i < 100; i++)
        if (hf_pool_submit(pool, add, &ran, NULL, NULL))
            return 2;
    hf_pool_close(pool);
    hf_blocking_close(blocking);
    printf("%d %d of %s\n", ran, map_insert(1), HOLDFAST_VERSION);
    return 0;
}
END
cat >"$folder/main.c" <<'END'
int use(void);
int main(void)
{
    return use();
}
END
cat >"$folder/host.c" <<'END'
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

/* Uses the plugin and unloads it; then the thread ends, which must need none of
 * the plugin's code. */
static void *run(void *path)
{
    void *plugin = dlopen(path, RTLD_NOW);
    int (*use)(void) = NULL;

    if (plugin == NULL)
        return puts(dlerror()), (void *)1;
    *(void **)&use = dlsym(plugin, "use");
    intptr_t status = use == NULL ? 2 : use();
    if (dlclose(plugin) != 0)
        status = 3;
    return (void *)status;
}

int main(int argc, char **argv)
{
    void *failed = NULL;

    for (int i = 0; i < 2 && argc > 1 && failed == NULL; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, run, argv[1]))
            return 4;
        pthread_join(thread, &failed);
    }
    return (int)(intptr_t)failed;
}
END
flags=(-std=c11 -Wall -Wextra -Werror -Iinclude -pthread)
declare -A link=([static]="$build/libholdfast.a -lm"
    [shared]="-L$build -lholdfast")
check "a host of plugins builds" gcc "${flags[@]}" -o "$folder/host" \
    "$folder/host.c" -ldl
for how in static shared; do
    check "a program with names of its own links, $how" gcc "${flags[@]}" \
        -o "$folder/$how" "$folder/user.c" "$folder/main.c" ${link[$how]}
    expect "and runs" "100 9 of $version" "$("$folder/$how")"
    check "a plugin with them links, $how" gcc "${flags[@]}" -fPIC -shared \
        -o "$folder/$how.so" "$folder/user.c" ${link[$how]}
    expect "and its pool works, each time that it is loaded" \
        "100 9 of $version 100 9 of $version " \
        "$("$folder/host" "$folder/$how.so" | tr '\n' ' ')"
done

# ---- Without the packages of the stores ----

mkdir "$folder/without"
for header in sqlite3.h libpq-fe.h hiredis.h uv.h xxhash.h liburing.h; do
    echo '#error "is not there"' >"$folder/without/$header"
done
mkdir "$folder/without/hiredis"
mv "$folder/without/hiredis.h" "$folder/without/hiredis"
expect "the stores need what is hidden" 2 "$(make -s BUILD="$folder/built" \
    CFLAGS="-O0 -I$folder/without" stores >/dev/null 2>&1 || echo $?)"
check "the library builds without" make -s -j2 BUILD="$folder/built" \
    CFLAGS="-O0 -I$folder/without" toolkit
cat >"$folder/stack.c" <<'END'
#include <holdfast/stack.h>

int main(void)
{
    struct hf_stack_opts opts = {.name = "one"};
    struct hf_stack *stack = NULL;

    if (hf_stack_open(&stack, &opts))
        return 1;
    hf_stack_close(stack);
    return 0;
}
END
check "and a program with it" gcc "${flags[@]}" "-I$folder/without" \
    -o "$folder/stack" "$folder/stack.c" "$folder/built/libholdfast.a" -lm
check "which runs" "$folder/stack"
check "the library can be installed without" make -s BUILD="$folder/built" \
    CFLAGS="-O0 -I$folder/without" DESTDIR="$folder/there" PREFIX=/usr \
    install-toolkit
export PKG_CONFIG_PATH=$folder/there/usr/lib/pkgconfig
export PKG_CONFIG_SYSROOT_DIR=$folder/there
check "and be built with then" gcc "${flags[@]}" -o "$folder/stack" \
    "$folder/stack.c" $(pkg-config --cflags --libs --static holdfast)
check "which runs" env LD_LIBRARY_PATH="$folder/there/usr/lib" "$folder/stack"

finish
