/* memory_store.h - a store in memory that fails, waits or lies when told to.
 *
 *   static struct memory_store memory;
 *   memory_store_init(&memory);
 *   opts.store = &memory.store;
 *   memory.fail = 3; memory.status = HF_IO;      // the next three calls
 *
 * It writes down every transaction: "a=1 b-;c=2;" is a put of a and a delete of
 * b in one, then a put of c.
 *
 * Threads: all of it is under its mutex, which also stands in fibers. Fields
 *          are set by the test while nobody calls, or between lock and unlock.
 */
#ifndef TEST_SUPPORT_MEMORY_STORE_H
#define TEST_SUPPORT_MEMORY_STORE_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "holdfast/store.h"
#include "sync/mutex.h"

#define MEMORY_CELLS 4096u
#define MEMORY_BYTES 16u /* of a key or a value, with a final zero */
#define MEMORY_TRACE 4096u

struct memory_cell {
    char key[MEMORY_BYTES], value[MEMORY_BYTES];
    bool used, there;
};

struct memory_store {
    struct hf_store store;
    struct hf_mutex mutex;
    struct hf_event moved; /* a call began, or may go on */
    struct memory_cell cells[MEMORY_CELLS];
    char trace[MEMORY_TRACE];
    size_t trace_len;
    uint64_t calls;        /* of apply */
    uint64_t applies;      /* that were done */
    size_t largest;        /* changes of one of them */
    int fail;              /* so many calls of apply fail */
    enum hf_status status; /* with this */
    bool lie;              /* and are done all the same */
    const char *poison;    /* a batch with this key fails for good */
    enum hf_status reads;  /* reads fail with this; HF_OK: they do not */
    bool hold;             /* calls of apply do not return */
    uint32_t inside;       /* calls that are being made */
    /* Called after each transaction, with the mutex; NULL: nobody. */
    void (*applied)(void *context, struct memory_store *memory);
    void *context;
};

static inline struct memory_cell *memory_cell(struct memory_store *memory,
                                              const char *key, size_t len)
{
    uint32_t at = 5381;

    for (size_t i = 0; i < len; i++)
        at = at * 33 + (unsigned char)key[i];
    for (;; at++) {
        struct memory_cell *cell = &memory->cells[at % MEMORY_CELLS];
        if (cell->used && strlen(cell->key) == len &&
            memcmp(cell->key, key, len) == 0)
            return cell;
        if (!cell->used) {
            cell->used = true;
            memcpy(cell->key, key, len);
            cell->key[len] = 0;
            return cell;
        }
    }
}

static inline void memory_note(struct memory_store *memory, const char *text,
                               size_t len)
{
    if (memory->trace_len + len < MEMORY_TRACE) {
        memcpy(memory->trace + memory->trace_len, text, len);
        memory->trace_len += len;
        memory->trace[memory->trace_len] = 0;
    }
}

static inline void memory_change(struct memory_store *memory,
                                 const struct hf_store_change *change)
{
    struct memory_cell *cell =
        memory_cell(memory, change->key, change->key_len);

    cell->there = !change->remove;
    memory_note(memory, change->key, change->key_len);
    if (change->remove) {
        memory_note(memory, "-", 1);
        return;
    }
    memcpy(cell->value, change->value, change->value_len);
    cell->value[change->value_len] = 0;
    memory_note(memory, "=", 1);
    memory_note(memory, change->value, change->value_len);
}

static inline enum hf_status memory_wish(struct memory_store *memory,
                                         const struct hf_store_change *changes,
                                         size_t count)
{
    for (size_t i = 0; i < count && memory->poison != NULL; i++)
        if (strlen(memory->poison) == changes[i].key_len &&
            memcmp(memory->poison, changes[i].key, changes[i].key_len) == 0)
            return HF_FAILED;
    if (memory->fail == 0)
        return HF_OK;
    memory->fail--;
    return memory->status;
}

/* Until it is let go; with the mutex. */
static inline void memory_wait(struct memory_store *memory)
{
    memory->inside++;
    hf_event_wake_all(&memory->moved);
    while (memory->hold) {
        uint32_t key = hf_event_prepare(&memory->moved);
        hf_mutex_unlock(&memory->mutex);
        (void)hf_event_wait(&memory->moved, key, NULL, HF_FOREVER);
        hf_mutex_lock(&memory->mutex);
    }
    memory->inside--;
}

static inline enum hf_status
memory_apply(void *context, const struct hf_store_change *changes, size_t count)
{
    struct memory_store *memory = context;

    hf_mutex_lock(&memory->mutex);
    memory->calls++;
    memory_wait(memory);
    enum hf_status status = memory_wish(memory, changes, count);
    if (status == HF_OK || (memory->lie && status != HF_FAILED)) {
        for (size_t i = 0; i < count; i++) {
            if (i > 0)
                memory_note(memory, " ", 1);
            memory_change(memory, &changes[i]);
        }
        memory_note(memory, ";", 1);
        memory->applies++;
        if (memory->largest < count)
            memory->largest = count;
        if (memory->applied != NULL)
            memory->applied(memory->context, memory);
    }
    hf_mutex_unlock(&memory->mutex);
    return status;
}

static inline enum hf_status
memory_read(void *context, const void *key, size_t key_len,
            void (*found)(void *arg, const void *value, size_t value_len),
            void *arg)
{
    struct memory_store *memory = context;
    char value[MEMORY_BYTES];

    hf_mutex_lock(&memory->mutex);
    enum hf_status status = memory->reads;
    struct memory_cell *cell = memory_cell(memory, key, key_len);
    memcpy(value, cell->value, sizeof value);
    if (status == HF_OK && !cell->there)
        status = HF_NOTFOUND;
    hf_mutex_unlock(&memory->mutex);
    if (status == HF_OK)
        found(arg, value, strlen(value));
    return status;
}

static inline void memory_store_init(struct memory_store *memory)
{
    memset(memory, 0, sizeof *memory);
    memory->store = (struct hf_store){
        .read = memory_read, .apply = memory_apply, .context = memory};
}

static inline void memory_hold(struct memory_store *memory, bool hold)
{
    hf_mutex_lock(&memory->mutex);
    memory->hold = hold;
    hf_mutex_unlock(&memory->mutex);
    hf_event_wake_all(&memory->moved);
}

/* Until a call of apply waits. */
static inline void memory_await(struct memory_store *memory)
{
    for (;;) {
        uint32_t key = hf_event_prepare(&memory->moved);
        hf_mutex_lock(&memory->mutex);
        bool is_inside = memory->inside > 0;
        hf_mutex_unlock(&memory->mutex);
        if (is_inside) {
            hf_event_cancel(&memory->moved, key);
            return;
        }
        (void)hf_event_wait(&memory->moved, key, NULL, HF_FOREVER);
    }
}

/* The value of a key, NULL if it is not there; with the mutex, or at the end.
 */
static inline const char *memory_value(struct memory_store *memory,
                                       const char *key)
{
    struct memory_cell *cell = memory_cell(memory, key, strlen(key));

    return cell->there ? cell->value : NULL;
}

#endif
