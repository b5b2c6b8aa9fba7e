/* pipeline.h - what the tests of hf_pipeline share: stages that do little, a
 * list of what came, a door that holds a worker up, and the sum that must
 * come out. */
#ifndef TEST_SUPPORT_PIPELINE_H
#define TEST_SUPPORT_PIPELINE_H

#include <sched.h>
#include <stdint.h>

#include "base/thread.h"
#include "holdfast/latch.h"
#include "holdfast/pipeline.h"
#include "support/test.h"
#include "sync/mutex.h"

static inline uint64_t in_a_minute(void)
{
    return hf_clock_after_ms(hf_clock_system(), 60000);
}

/* Lets others run until it is so; fails the test after a minute. */
#define AWAIT(condition)                                                 \
    do {                                                                 \
        for (uint64_t until_ns_ = in_a_minute(); !(condition);) {        \
            if (hf_clock_now_ns(hf_clock_system()) >= until_ns_)         \
                test_fail(__FILE__, __LINE__, "awaited %s", #condition); \
            sched_yield();                                               \
        }                                                                \
    } while (0)

/* ---- A list that many threads add to. ---- */

#define LIST_MAX 256

struct list {
    struct hf_mutex mutex;
    void *items[LIST_MAX]; /* (m) */
    int codes[LIST_MAX];   /* (m) */
    unsigned count;        /* (m) also beyond the end */
};

static inline void list_add(struct list *list, void *item, int code)
{
    hf_mutex_lock(&list->mutex);
    if (list->count < LIST_MAX) {
        list->items[list->count] = item;
        list->codes[list->count] = code;
    }
    list->count++;
    hf_mutex_unlock(&list->mutex);
}

static inline unsigned list_count(struct list *list)
{
    hf_mutex_lock(&list->mutex);
    unsigned count = list->count;
    hf_mutex_unlock(&list->mutex);
    return count;
}

/* The list as a stage's context. */
static inline int list_note(void *context, void *item, void **out)
{
    (void)out;
    list_add(context, item, 0);
    return 0;
}

static inline void list_out(void *context, void *item)
{
    list_add(context, item, 0);
}

static inline void list_dead(void *context, void *item, int code)
{
    list_add(context, item, code);
}

static inline void list_drop(void *context, void *item, enum hf_status why)
{
    list_add(context, item, (int)why);
}

/* ---- Stages. ---- */

static inline int keep(void *context, void *item, void **out)
{
    (void)context;
    (void)item;
    (void)out;
    return 0;
}

/* Workers that come wait until it is opened. */
struct door {
    struct hf_latch entered; /* somebody has come */
    struct hf_latch open;
    struct list dropped;
};

static inline void door_init(struct door *door)
{
    *door = (struct door){.dropped = {.count = 0}};
    CHECK_EQ(hf_latch_init(&door->entered, 1, NULL), HF_OK);
    CHECK_EQ(hf_latch_init(&door->open, 1, NULL), HF_OK);
}

static inline int door_pass(void *context, void *item, void **out)
{
    struct door *door = context;

    (void)item;
    (void)out;
    (void)hf_latch_count_down(&door->entered, 1); /* refused if it is open */
    (void)hf_latch_wait(&door->open, HF_FOREVER);
    return 0;
}

static inline void door_drop(void *context, void *item, enum hf_status why)
{
    list_add(&((struct door *)context)->dropped, item, (int)why);
}

static inline uint32_t stage(struct hf_pipeline *line,
                             const struct hf_stage_opts *opts)
{
    uint32_t number;
    CHECK_EQ(hf_pipeline_stage(line, opts, &number), HF_OK);
    return number;
}

/* ---- Figures. ---- */

static inline uint64_t inside(struct hf_pipeline *line)
{
    struct hf_pipeline_stats stats;
    CHECK_EQ(hf_pipeline_stats(line, &stats), HF_OK);
    return stats.inside;
}

/* Nothing is inside, and each stage can account for what came in; `last` is
 * the number of the last stage. */
static inline void check_balance(struct hf_pipeline *line, uint32_t last)
{
    for (uint32_t i = 0; i <= last; i++) {
        struct hf_stage_stats stats;
        CHECK_EQ(hf_pipeline_stage_stats(line, i, &stats), HF_OK);
        CHECK_EQ(stats.in,
                 stats.out + stats.filtered + stats.dead + stats.cancelled);
        CHECK_EQ(stats.depth, 0);
        CHECK_EQ(stats.active, 0);
    }
    CHECK_EQ(inside(line), 0);
}

#endif
