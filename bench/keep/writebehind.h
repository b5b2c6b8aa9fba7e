/* writebehind.h - what the sides of the write-behind contest share.
 *
 *   put-N      puts of 100 bytes, keys at random of 100,000; the store behind
 *              takes everything and keeps nothing
 *   logged-N   the same, and each put is on disk when it returns
 *   flush-N    puts of new keys until all of them are in the database
 */
#ifndef BENCH_KEEP_WRITEBEHIND_H
#define BENCH_KEEP_WRITEBEHIND_H

#include <stdio.h>

#include "../sync/contest.h"

#define WB_KEYS        100000u
#define WB_KEY_BYTES   16
#define WB_VALUE_BYTES 100
#define WB_THREADS_MAX 8

enum wb_shape { WB_PUT, WB_LOGGED, WB_FLUSH };

/* Environment: where a PostgreSQL listens, as libpq takes it. */
#define WB_POSTGRES "BENCH_POSTGRES"

#ifdef __cplusplus
extern "C" {
#endif

/* A new folder under $TMPDIR, and its end with all that is in it. */
void wb_folder_make(char path[256]);
void wb_folder_end(const char *path);

#ifdef __cplusplus
}
#endif

CONTEST_INLINE void wb_key(char out[WB_KEY_BYTES + 1], uint64_t number)
{
    for (int i = WB_KEY_BYTES - 1; i >= 0; i--, number /= 10)
        out[i] = (char)('0' + number % 10);
    out[WB_KEY_BYTES] = 0;
}

/* put(thread, key, value); finish(thread) is a part of what is timed. */
CONTEST_INLINE void wb_run(struct contest_thread *thread,
                           void (*put)(struct contest_thread *thread,
                                       const char *key, const char *value),
                           void (*finish)(struct contest_thread *thread))
{
    char key[WB_KEY_BYTES + 1], value[WB_VALUE_BYTES];
    uint64_t from, count;

    for (int i = 0; i < WB_VALUE_BYTES; i++)
        value[i] = (char)('a' + i % 26);
    while (contest_chunk(thread, &from, &count)) {
        for (uint64_t i = 0; i < count; i++) {
            wb_key(key, thread->work->shape == WB_FLUSH
                            ? from + i
                            : contest_random(thread) % WB_KEYS);
            put(thread, key, value);
        }
    }
    if (thread->work->shape == WB_FLUSH)
        finish(thread);
}

#endif
