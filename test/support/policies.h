/* policies.h - the published policies, written plainly, to compare caches with.
 *
 * Each takes a whole stream and tells how many of its keys were found. Keys are
 * small numbers, everything is an array by key, nothing is shared with the
 * library. A key that is not found is put in at once.
 *
 *   policy_lru      one list
 *   policy_tinylfu  W-TinyLFU: window of 1 %, main space in two parts of which
 *                   80 % are protected, count-min sketch of four rows that is
 *                   halved after ten times as many keys as there is room
 *                   (Einziger, Friedman, Manes 2017); `adaptive`: the window
 *                   follows the hit rate (Einziger, Eytan, Friedman, Manes
 * 2018) policy_s3fifo   S3-FIFO: small queue of 10 %, main queue, ghost queue
 *                   (Yang, Zhang, Qiu, Yue, Vigfusson 2023)
 *   policy_best     Belady's: what is needed again last is not kept. Knows the
 *                   future; nothing finds more.
 *
 * Threads: none. Self-contained, for benchmarks as well as tests.
 */
#ifndef TEST_SUPPORT_POLICIES_H
#define TEST_SUPPORT_POLICIES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "traces.h"

#define POLICY_NONE UINT32_MAX

static inline void *policy_array(size_t count, size_t bytes, int fill)
{
    void *array = malloc(count * bytes + 1);

    if (array == NULL)
        abort();
    return memset(array, fill, count * bytes);
}

/* Lists of keys: each key is in one at most. */
struct policy_lists {
    uint32_t *next; /* towards the oldest */
    uint32_t *prev;
    int8_t *of; /* which list, -1: none */
    struct {
        uint32_t newest, oldest, size;
    } at[4];
};

static inline void policy_lists_init(struct policy_lists *lists, uint32_t names)
{
    lists->next = policy_array(names, sizeof(uint32_t), 0xff);
    lists->prev = policy_array(names, sizeof(uint32_t), 0xff);
    lists->of = policy_array(names, 1, 0xff);
    for (int i = 0; i < 4; i++) {
        lists->at[i].newest = lists->at[i].oldest = POLICY_NONE;
        lists->at[i].size = 0;
    }
}

static inline void policy_lists_free(struct policy_lists *lists)
{
    free(lists->next);
    free(lists->prev);
    free(lists->of);
}

static inline void policy_take(struct policy_lists *lists, uint32_t key)
{
    int list = lists->of[key];
    uint32_t prev = lists->prev[key];
    uint32_t next = lists->next[key];

    if (list < 0)
        return;
    *(prev == POLICY_NONE ? &lists->at[list].newest : &lists->next[prev]) =
        next;
    *(next == POLICY_NONE ? &lists->at[list].oldest : &lists->prev[next]) =
        prev;
    lists->at[list].size--;
    lists->of[key] = -1;
}

/* Makes the key the newest of that list, wherever it was. */
static inline void policy_push(struct policy_lists *lists, int list,
                               uint32_t key)
{
    policy_take(lists, key);
    uint32_t newest = lists->at[list].newest;
    lists->prev[key] = POLICY_NONE;
    lists->next[key] = newest;
    *(newest == POLICY_NONE ? &lists->at[list].oldest : &lists->prev[newest]) =
        key;
    lists->at[list].newest = key;
    lists->at[list].size++;
    lists->of[key] = (int8_t)list;
}

static inline uint32_t policy_lru(const struct trace *trace)
{
    struct policy_lists lists;
    uint32_t hits = 0;

    policy_lists_init(&lists, trace->names);
    for (uint32_t i = 0; i < trace->count; i++) {
        hits += lists.of[trace->keys[i]] == 0;
        policy_push(&lists, 0, trace->keys[i]);
        if (lists.at[0].size > trace->room)
            policy_take(&lists, lists.at[0].oldest);
    }
    policy_lists_free(&lists);
    return hits;
}

static inline uint32_t policy_s3fifo(const struct trace *trace)
{
    enum { SMALL, MAIN, GHOST };
    struct policy_lists lists;
    uint8_t *freq = policy_array(trace->names, 1, 0);
    uint32_t small_max = trace->room / 10;
    uint32_t hits = 0;

    policy_lists_init(&lists, trace->names);
    for (uint32_t i = 0; i < trace->count; i++) {
        uint32_t key = trace->keys[i];
        if (lists.of[key] == SMALL || lists.of[key] == MAIN) {
            hits++;
            freq[key] = (uint8_t)(freq[key] + (freq[key] < 3));
            continue;
        }
        while (lists.at[SMALL].size + lists.at[MAIN].size >= trace->room) {
            if (lists.at[SMALL].size >= small_max && lists.at[SMALL].size > 0) {
                uint32_t oldest = lists.at[SMALL].oldest;
                policy_push(&lists, freq[oldest] > 1 ? MAIN : GHOST, oldest);
                freq[oldest] = 0;
                if (lists.at[GHOST].size > trace->room - small_max)
                    policy_take(&lists, lists.at[GHOST].oldest);
            } else {
                uint32_t oldest = lists.at[MAIN].oldest;
                if (freq[oldest] > 0) {
                    freq[oldest]--;
                    policy_push(&lists, MAIN, oldest);
                } else {
                    policy_take(&lists, oldest);
                }
            }
        }
        policy_push(&lists, lists.of[key] == GHOST ? MAIN : SMALL, key);
        freq[key] = 0;
    }
    policy_lists_free(&lists);
    free(freq);
    return hits;
}

/* Four rows of counters up to 15, each as long as the room. */
struct policy_sketch {
    uint8_t *rows[4];
    uint32_t mask;
    uint32_t adds;
    uint32_t adds_max;
};

static inline uint8_t *policy_counter(struct policy_sketch *sketch, int row,
                                      uint32_t key)
{
    static const uint64_t odd[4] = {
        UINT64_C(0xc3a5c85c97cb3127), UINT64_C(0xb492b66fbe98f273),
        UINT64_C(0x9ae16a3b2f90404f), UINT64_C(0xcbf29ce484222325)};
    uint64_t hash = (key + 1) * odd[row];

    return &sketch->rows[row][(hash ^ hash >> 32) & sketch->mask];
}

static inline void policy_sketch_add(struct policy_sketch *sketch, uint32_t key)
{
    for (int row = 0; row < 4; row++) {
        uint8_t *counter = policy_counter(sketch, row, key);
        *counter = (uint8_t)(*counter + (*counter < 15));
    }
    if (++sketch->adds < sketch->adds_max)
        return;
    sketch->adds /= 2;
    for (int row = 0; row < 4; row++)
        for (uint32_t i = 0; i <= sketch->mask; i++)
            sketch->rows[row][i] /= 2;
}

static inline unsigned policy_sketch_count(struct policy_sketch *sketch,
                                           uint32_t key)
{
    unsigned least = 15;

    for (int row = 0; row < 4; row++) {
        unsigned count = *policy_counter(sketch, row, key);
        least = count < least ? count : least;
    }
    return least;
}

static inline void policy_sketch_init(struct policy_sketch *sketch,
                                      uint32_t room)
{
    uint32_t size = 16;

    while (size < room * 4) /* four counters an entry: 16 bits, of 4 each */
        size *= 2;
    for (int row = 0; row < 4; row++)
        sketch->rows[row] = policy_array(size, 1, 0);
    sketch->mask = size - 1;
    sketch->adds = 0;
    sketch->adds_max = room * 10;
}

/* How large the window is to be, by what the last size did. */
struct policy_climb {
    uint32_t reads, hits;
    double last_rate, step;
    bool began;
};

static inline void policy_climb(struct policy_climb *climb, uint32_t room,
                                double *window)
{
    if (climb->reads < room * 10)
        return;
    double rate = (double)climb->hits / climb->reads;
    double change = rate - climb->last_rate;
    climb->last_rate = rate;
    climb->reads = climb->hits = 0;
    if (!climb->began) {
        climb->began = true;
        return;
    }
    if (change < 0)
        climb->step = -climb->step;
    *window += climb->step;
    *window = *window < 1 ? 1 : *window > room * 0.8 ? room * 0.8 : *window;
    if (fabs(change) >= 0.05)
        climb->step = (climb->step < 0 ? -0.0625 : 0.0625) * room;
    else
        climb->step *= 0.98;
}

static inline uint32_t policy_tinylfu(const struct trace *trace, bool adaptive)
{
    enum { WINDOW, PROBATION, PROTECTED };
    struct policy_lists lists;
    struct policy_sketch sketch;
    struct policy_climb climb = {.step = -0.0625 * trace->room};
    double window = trace->room / 100 > 1 ? trace->room / 100 : 1;
    uint32_t hits = 0;

    policy_lists_init(&lists, trace->names);
    policy_sketch_init(&sketch, trace->room);
    for (uint32_t i = 0; i < trace->count; i++) {
        uint32_t key = trace->keys[i];
        int list = lists.of[key];
        policy_sketch_add(&sketch, key);
        hits += list >= 0;
        climb.hits += list >= 0;
        climb.reads++;
        policy_push(&lists, list <= WINDOW ? WINDOW : PROTECTED, key);
        while (lists.at[PROTECTED].size > (trace->room - window) * 0.8)
            policy_push(&lists, PROBATION, lists.at[PROTECTED].oldest);
        while (lists.at[WINDOW].size > window) {
            uint32_t candidate = lists.at[WINDOW].oldest;
            uint32_t victim = lists.at[PROBATION].oldest;
            bool full = lists.at[WINDOW].size + lists.at[PROBATION].size +
                            lists.at[PROTECTED].size >
                        trace->room;
            if (full && victim == POLICY_NONE)
                victim = lists.at[PROTECTED].oldest;
            policy_push(&lists, PROBATION, candidate);
            if (full)
                policy_take(&lists, policy_sketch_count(&sketch, candidate) >
                                            policy_sketch_count(&sketch, victim)
                                        ? victim
                                        : candidate);
        }
        if (lists.at[WINDOW].size + lists.at[PROBATION].size +
                lists.at[PROTECTED].size >
            trace->room) /* the window may hold more now, and was not full */
            policy_take(&lists, lists.at[PROBATION].size > 0
                                    ? lists.at[PROBATION].oldest
                                    : lists.at[PROTECTED].oldest);
        if (adaptive)
            policy_climb(&climb, trace->room, &window);
    }
    for (int row = 0; row < 4; row++)
        free(sketch.rows[row]);
    policy_lists_free(&lists);
    return hits;
}

/* A heap of (next use, key), the latest first; old ones are skipped. */
struct policy_uses {
    struct {
        uint32_t when, key;
    } * at;
    uint32_t count;
};

static inline void policy_uses_push(struct policy_uses *uses, uint32_t when,
                                    uint32_t key)
{
    uint32_t i = ++uses->count;

    for (; i > 1 && uses->at[i / 2].when < when; i /= 2)
        uses->at[i] = uses->at[i / 2];
    uses->at[i].when = when;
    uses->at[i].key = key;
}

static inline void policy_uses_pop(struct policy_uses *uses)
{
    uint32_t when = uses->at[uses->count].when;
    uint32_t key = uses->at[uses->count--].key;
    uint32_t i = 1;

    for (uint32_t child; (child = 2 * i) <= uses->count; i = child) {
        child += child < uses->count &&
                 uses->at[child + 1].when > uses->at[child].when;
        if (uses->at[child].when <= when)
            break;
        uses->at[i] = uses->at[child];
    }
    uses->at[i].when = when;
    uses->at[i].key = key;
}

static inline uint32_t policy_best(const struct trace *trace)
{
    uint32_t *after = policy_array(trace->count, sizeof(uint32_t), 0);
    uint32_t *next = policy_array(trace->names, sizeof(uint32_t), 0xff);
    bool *there = policy_array(trace->names, sizeof(bool), 0);
    struct policy_uses uses = {0};
    uint32_t size = 0;
    uint32_t hits = 0;

    uses.at = policy_array((size_t)trace->count + 2, sizeof *uses.at, 0);
    for (uint32_t i = trace->count; i-- > 0;) {
        after[i] = next[trace->keys[i]];
        next[trace->keys[i]] = i;
    }
    for (uint32_t i = 0; i < trace->count; i++) {
        uint32_t key = trace->keys[i];
        hits += there[key];
        size += !there[key];
        there[key] = true;
        next[key] = after[i];
        policy_uses_push(&uses, after[i], key);
        while (size > trace->room) {
            uint32_t last = uses.at[1].key;
            if (there[last] && uses.at[1].when == next[last]) {
                there[last] = false;
                size--;
            }
            policy_uses_pop(&uses);
        }
    }
    free(uses.at);
    free(after);
    free(next);
    free(there);
    return hits;
}

#endif
