/* writebehind.h - a writebehind on a store in memory, by a clock that the test
 * moves, and what it gave up.
 *
 *   begin((struct hf_writebehind_opts){.batch_max = 2});
 *   put("a", "1"); put("b", "2"); await_writes("a=1 b=2;"); end();
 */
#ifndef TEST_SUPPORT_WRITEBEHIND_H
#define TEST_SUPPORT_WRITEBEHIND_H

#include <sched.h>

#include "holdfast/writebehind.h"
#include "support/clock.h"
#include "support/memory_store.h"
#include "support/test.h"

#define MS UINT64_C(1000000)

static struct {
    struct hf_writebehind *behind;
    struct test_clock hands;
    struct hf_clock clock;                /* the same, and tells who waits */
    struct hf_atomic_u64 sleeps_until_ns; /* the last wait's deadline */
    struct memory_store memory;
    struct hf_mutex mutex; /* guards the rest */
    char dead[1024];       /* "a=1 b-!3;": a group and its status */
    uint64_t dead_count;   /* changes */
    uint64_t told;         /* of failures */
    void (*inner)(void);   /* called once, by the next callback */
} test;

static inline void note_dead(void *context, enum hf_status why,
                             const struct hf_store_change *group, size_t count)
{
    char text[256] = "";
    size_t len = 0;

    (void)context;
    for (size_t i = 0; i < count; i++)
        len += (size_t)snprintf(
            text + len, sizeof text - len, "%s%.*s%s%.*s", i > 0 ? " " : "",
            (int)group[i].key_len, (const char *)group[i].key,
            group[i].remove ? "-" : "=", (int)group[i].value_len,
            group[i].remove ? "" : (const char *)group[i].value);
    hf_mutex_lock(&test.mutex);
    size_t at = strlen(test.dead);
    snprintf(test.dead + at, sizeof test.dead - at, "%s!%d;", text, (int)why);
    test.dead_count += count;
    void (*inner)(void) = test.inner;
    test.inner = NULL;
    hf_mutex_unlock(&test.mutex);
    if (inner != NULL)
        inner();
}

static inline void note_failed(void *context, enum hf_status why, size_t count)
{
    (void)context;
    hf_mutex_lock(&test.mutex);
    test.told += why != HF_OK && count > 0;
    hf_mutex_unlock(&test.mutex);
}

static inline void note_wait(void *context, const uint32_t *word,
                             uint32_t expected, uint64_t deadline_ns)
{
    hf_u64_store(&test.sleeps_until_ns, deadline_ns, __ATOMIC_RELAXED);
    test.hands.clock.wait(context, word, expected, deadline_ns);
}

/* Options with what the tests stand on; the others as given. */
static inline struct hf_writebehind_opts
completed(struct hf_writebehind_opts opts)
{
    opts.store = &test.memory.store;
    opts.dead = note_dead;
    opts.failed = note_failed;
    opts.clock = &test.clock;
    opts.seed = 1;
    return opts;
}

static inline void prepare(void)
{
    memory_store_init(&test.memory);
    test.hands = (struct test_clock){.now_ns = 1000};
    test.clock = *test_clock(&test.hands);
    test.clock.wait = note_wait;
    test.dead[0] = 0;
    test.dead_count = test.told = 0;
    test.inner = NULL;
}

static inline void begin(struct hf_writebehind_opts opts)
{
    prepare();
    opts = completed(opts);
    CHECK_EQ(hf_writebehind_open(&test.behind, &opts), HF_OK);
}

static inline struct hf_writebehind_stats figures(void)
{
    struct hf_writebehind_stats stats;

    hf_writebehind_stats(test.behind, &stats);
    return stats;
}

static inline enum hf_status try_put(const char *key, const char *value,
                                     uint64_t deadline_ns)
{
    return hf_writebehind_put(test.behind, key, strlen(key), value,
                              strlen(value), deadline_ns);
}

static inline void put(const char *key, const char *value)
{
    CHECK_EQ(try_put(key, value, HF_NOW), HF_OK);
}

static inline void drop(const char *key)
{
    CHECK_EQ(hf_writebehind_delete(test.behind, key, strlen(key), HF_NOW),
             HF_OK);
}

#define GROUP_MAX 16

/* "a=1 b- c=2" as changes; their bytes are those of the text. */
static inline size_t changes_of(const char *text, struct hf_store_change *out)
{
    size_t count = 0;

    while (*text != 0 && count < GROUP_MAX) {
        size_t key_len = strcspn(text, "=-");
        size_t len = strcspn(text, " ");
        out[count++] = (struct hf_store_change){
            .key = text,
            .key_len = key_len,
            .value = text + key_len + 1,
            .value_len = len - key_len - 1,
            .remove = text[key_len] == '-',
        };
        text += len + (text[len] == ' ');
    }
    return count;
}

static inline enum hf_status try_group(const char *text, uint64_t deadline_ns)
{
    struct hf_store_change changes[GROUP_MAX];
    size_t count = changes_of(text, changes);

    return hf_writebehind_put_all(test.behind, changes, count, deadline_ns);
}

static inline void put_group(const char *text)
{
    CHECK_EQ(try_group(text, HF_NOW), HF_OK);
}

static inline enum hf_status through(const char *text, uint64_t deadline_ns)
{
    struct hf_store_change changes[GROUP_MAX];
    size_t count = changes_of(text, changes);

    return hf_writebehind_through(test.behind, changes, count, deadline_ns);
}

static inline void flush(void)
{
    CHECK_EQ(hf_writebehind_flush(test.behind, HF_FOREVER), HF_OK);
}

static inline void note_value(void *arg, const void *value, size_t len)
{
    char *text = arg;

    memcpy(text, value, len < MEMORY_BYTES ? len : MEMORY_BYTES - 1);
    text[len < MEMORY_BYTES ? len : MEMORY_BYTES - 1] = 0;
}

static inline void check_get(const char *key, const char *expected)
{
    char text[MEMORY_BYTES] = "";
    enum hf_status status =
        hf_writebehind_get(test.behind, key, strlen(key), note_value, text);

    CHECK_EQ(status, expected == NULL ? HF_NOTFOUND : HF_OK);
    if (expected != NULL)
        CHECK_TEXT(text, strlen(text), expected);
}

static inline void await(bool (*condition)(uint64_t), uint64_t value)
{
    const struct hf_clock *real = hf_clock_system();
    uint64_t deadline_ns = hf_clock_after_ms(real, 60000);

    while (!condition(value)) {
        CHECK(hf_clock_now_ns(real) < deadline_ns);
        sched_yield();
    }
}

static inline bool dirty_is(uint64_t count)
{
    return figures().dirty == count;
}

/* Whoever waited last waits until after this time. */
static inline bool sleeps_beyond(uint64_t now_ns)
{
    return hf_u64_load(&test.sleeps_until_ns, __ATOMIC_RELAXED) > now_ns;
}

static inline bool failures_are(uint64_t count)
{
    return figures().failures == count;
}

static inline bool dead_are(uint64_t count)
{
    hf_mutex_lock(&test.mutex);
    bool are = test.dead_count == count;
    hf_mutex_unlock(&test.mutex);
    return are && figures().dead == count;
}

/* What the store was given so far, all of it. */
static inline void check_trace(const char *expected)
{
    hf_mutex_lock(&test.memory.mutex);
    bool equal = strcmp(test.memory.trace, expected) == 0;
    hf_mutex_unlock(&test.memory.mutex);
    if (!equal)
        CHECK_TEXT(test.memory.trace, test.memory.trace_len, expected);
}

/* Every change is accounted for, and nothing is left. */
static inline void end(void)
{
    struct hf_writebehind_stats now;

    CHECK_EQ(hf_writebehind_flush(test.behind, HF_FOREVER), HF_OK);
    now = figures();
    CHECK_EQ(now.dirty, 0);
    CHECK_EQ(now.dirty_bytes, 0);
    CHECK_EQ(now.changes, now.coalesced + now.flushed + now.dead);
    CHECK_EQ(hf_writebehind_close(test.behind, HF_FOREVER), HF_OK);
}

#endif
