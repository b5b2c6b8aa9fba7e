/* ordered.h - calls of hf_skipmap on few keys, and what they must answer.
 *
 * Values are addresses in one array of the test; the model knows them by their
 * index there, from 1.
 *
 *   op                in        in2  result       out
 *   GET ... as in models.h, but out is the value before, or 0
 *   FIRST, LAST       -         -    HF_OK        value * 16 + key
 *                                    HF_EMPTY
 *   FLOOR ... HIGHER  -         -    HF_OK        value * 16 + key
 *                                    HF_NOTFOUND
 *   TAKE_FIRST        -         -    as first     at one instant
 *   IS_FIRST          -         -    as first     the value is not looked at
 *
 * A take that happens at two instants, it is first and it is removed, is
 * recorded as two calls that overlap: IS_FIRST and REMOVE.
 *
 * Threads: ordered_do() from any, each with a number of its own below
 *          `threads`; the history has room for twice as many.
 */
#ifndef TEST_SUPPORT_ORDERED_H
#define TEST_SUPPORT_ORDERED_H

#include <string.h>

#include "holdfast/skipmap.h"
#include "support/linear.h"

#define KEYS 4

enum op {
    GET,
    PUT,
    PUT_IF_ABSENT,
    REPLACE_IF_EQUAL,
    REMOVE,
    REMOVE_IF_EQUAL,
    FIRST,
    LAST,
    FLOOR,
    LOWER,
    CEILING,
    HIGHER,
    TAKE_FIRST, /* as one instant */
    TAKE_LOOSE, /* two instants: it is first, it is removed */
    IS_FIRST,   /* how the model sees the first of them */
    OPS
};

static const char *const ordered_names[OPS] = {
    "get",        "put",          "put if absent", "replace if equal",
    "remove",     "remove if",    "first",         "last",
    "floor",      "lower",        "ceiling",       "higher",
    "take first", "take loosely", "is first"};

struct ordered {
    uint64_t value[KEYS]; /* 0: the key is not there */
};

static inline bool ordered_point(struct ordered *state, const struct call *call)
{
    uint64_t *value = &state->value[call->key];
    uint64_t before = *value;
    enum hf_status status = before == 0 ? HF_NOTFOUND : HF_OK;

    switch (call->op) {
    case GET:
        return call->result == status && call->value == before;
    case PUT:
        *value = call->argument;
        return call->result == HF_OK && call->value == before;
    case PUT_IF_ABSENT:
        if (before == 0)
            *value = call->argument;
        return call->result == (before == 0 ? HF_OK : HF_EXISTS) &&
               call->value == before;
    case REMOVE:
        *value = 0;
        return call->result == status && call->value == before;
    default:
        if (before != 0 && before != call->argument)
            return call->result == HF_EXISTS;
        if (before != 0)
            *value = call->op == REPLACE_IF_EQUAL ? call->argument2 : 0;
        return call->result == status;
    }
}

/* The key that an ordered call must give out, -1: none. */
static inline int ordered_key(const struct ordered *state,
                              const struct call *call)
{
    int key = (int)call->key;
    int step = 1;

    switch (call->op) {
    case LAST:
        key = KEYS - 1;
        step = -1;
        break;
    case FLOOR:
        step = -1;
        break;
    case LOWER:
        key--;
        step = -1;
        break;
    case CEILING:
        break;
    case HIGHER:
        key++;
        break;
    default:
        key = 0;
        break;
    }
    while (key >= 0 && key < KEYS && state->value[key] == 0)
        key += step;
    return key >= 0 && key < KEYS ? key : -1;
}

static inline bool ordered_apply(void *context, const struct call *call,
                                 void *unused)
{
    struct ordered *state = context;

    (void)unused;
    if (call->op < FIRST)
        return ordered_point(state, call);
    int key = ordered_key(state, call);
    if (key < 0)
        return call->result == (call->op >= FLOOR && call->op <= HIGHER
                                    ? HF_NOTFOUND
                                    : HF_EMPTY);
    uint64_t told = state->value[key] * 16 + (uint64_t)key;
    if (call->op == TAKE_FIRST)
        state->value[key] = 0;
    if (call->op == IS_FIRST) /* the value may change before it is taken */
        return call->result == HF_OK && (call->value & 15) == (uint64_t)key;
    return call->result == HF_OK && call->value == told;
}

static inline bool ordered_reads(const struct call *call, void *unused)
{
    (void)unused;
    return call->op == GET || (call->op >= FIRST && call->op != TAKE_FIRST) ||
           (call->result != HF_OK && call->op != PUT);
}

static inline void ordered_init(void *state, void *context)
{
    memcpy(state, context, sizeof(struct ordered));
}

/* `first` is the state at the start, whenever a check begins. */
static inline struct linear_model ordered_model(struct ordered *first)
{
    struct linear_model model = {
        .state_bytes = sizeof(struct ordered),
        .init = ordered_init,
        .apply = ordered_apply,
        .reads_only = ordered_reads,
        .context = first,
        .op_names = ordered_names,
    };
    return model;
}

/* The calls. */

struct ordered_scene {
    struct hf_skipmap *map;
    struct calls *history;
    char *values;
    unsigned threads;
};

/* Nearly as long as the part of a key that nodes keep close by, and longer. */
#define KEY_BYTES 9
static inline void key_make(unsigned char key[KEY_BYTES], uint64_t number)
{
    memcpy(key, "commonly", 8);
    key[8] = (unsigned char)number;
}

static inline enum hf_status do_point(const struct ordered_scene *scene,
                                      unsigned thread, enum op op, uint64_t key,
                                      uint64_t fresh, uint64_t expected)
{
    struct hf_skipmap *map = scene->map;
    unsigned char at[KEY_BYTES];
    void *value = scene->values + fresh;
    void *wanted = scene->values + expected;
    void *out = scene->values; /* 0 */
    enum hf_status status;
    bool equal = op == REPLACE_IF_EQUAL || op == REMOVE_IF_EQUAL;

    key_make(at, key);
    struct call *call =
        calls_begin(scene->history, thread, op, key, equal ? expected : fresh);
    call->argument2 = fresh;
    if (op == GET)
        status = hf_skipmap_get(map, at, KEY_BYTES, &out);
    else if (op == PUT)
        status = hf_skipmap_put(map, at, KEY_BYTES, value, &out);
    else if (op == PUT_IF_ABSENT)
        status = hf_skipmap_put_if_absent(map, at, KEY_BYTES, value, &out);
    else if (op == REPLACE_IF_EQUAL)
        status = hf_skipmap_replace_if_equal(map, at, KEY_BYTES, wanted, value);
    else if (op == REMOVE)
        status = hf_skipmap_remove(map, at, KEY_BYTES, &out);
    else
        status = hf_skipmap_remove_if_equal(map, at, KEY_BYTES, wanted);
    uint64_t told = out == NULL ? 0 : (uint64_t)((char *)out - scene->values);
    calls_end(scene->history, call, status, told);
    return status;
}

static inline enum hf_status ask_ordered(struct hf_skipmap *map, enum op op,
                                         const unsigned char *key,
                                         struct hf_skipmap_entry *entry)
{
    switch (op) {
    case FIRST:
        return hf_skipmap_first(map, entry);
    case LAST:
        return hf_skipmap_last(map, entry);
    case FLOOR:
        return hf_skipmap_floor(map, key, KEY_BYTES, entry);
    case LOWER:
        return hf_skipmap_lower(map, key, KEY_BYTES, entry);
    case CEILING:
        return hf_skipmap_ceiling(map, key, KEY_BYTES, entry);
    case HIGHER:
        return hf_skipmap_higher(map, key, KEY_BYTES, entry);
    default:
        return hf_skipmap_take_first(map, entry);
    }
}

static inline enum hf_status do_ordered(const struct ordered_scene *scene,
                                        unsigned thread, enum op op,
                                        uint64_t key)
{
    unsigned char at[KEY_BYTES];
    unsigned char found[KEY_BYTES] = {0};
    struct hf_skipmap_entry entry = {.key = found, .key_cap = sizeof found};
    struct call *second = NULL;
    enum op first_op = op == TAKE_LOOSE ? IS_FIRST : op;

    key_make(at, key);
    struct call *call = calls_begin(scene->history, thread, first_op, key, 0);
    if (op == TAKE_LOOSE)
        second = calls_begin(scene->history, scene->threads + thread, IS_FIRST,
                             0, 0);
    enum hf_status status = ask_ordered(scene->map, op, at, &entry);
    uint64_t value = 0;
    if (status == HF_OK)
        value = (uint64_t)((char *)entry.value - scene->values);
    calls_end(scene->history, call, status, value * 16 + found[8]);
    if (second != NULL && status == HF_OK) {
        second->op = REMOVE;
        second->key = found[8];
    }
    calls_end(scene->history, second, status, value);
    return status;
}

/* Does a call, which puts `fresh` or asks for `expected` if it is one that
 * does, and records it. */
static inline enum hf_status ordered_do(const struct ordered_scene *scene,
                                        unsigned thread, enum op op,
                                        uint64_t key, uint64_t fresh,
                                        uint64_t expected)
{
    return op < FIRST ? do_point(scene, thread, op, key, fresh, expected)
                      : do_ordered(scene, thread, op, key);
}

#endif
