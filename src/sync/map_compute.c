/* map_compute.c - functions that make values, and who waits for them.
 *
 * compute-if-absent puts a node without a value there, runs the function
 * outside any lock or guard, and gives the node its value. Who finds such a
 * node and wants the value sleeps on an event that several keys share and looks
 * again; who wants to put one puts it there. Nothing of the node is remembered
 * while the function runs: what was made is put in as by put-if-absent, so it
 * does not matter what others did to the key meanwhile.
 */
#include "base/memory.h"
#include "sync/map_state.h"

struct attempt {
    struct hf_map *map;
    const struct map_key *key;
};

/* The thread that makes the value of this key. */
static uint32_t maker_of(void *context, const void *key)
{
    struct hf_map *map = context;
    struct hf_epoch_reader *reader = epoch_enter(map->epoch);

    assert(reader != NULL); /* not this thread's first call */
    struct map_node *node = map_find(map, reader, key);
    /* Acquire: who finds it made finds what its maker did before. */
    bool made =
        node != NULL && hf_ptr_load(&node->value, __ATOMIC_ACQUIRE) == NULL;
    uint32_t maker = made ? node->retired.maker : CIRCLE_NOBODY;
    epoch_leave(reader);
    return maker;
}

static enum hf_status attempt(void *context)
{
    const struct attempt *a = context;

    /* Acquire: pairs with hf_map_shutdown(). */
    if (hf_u32_load(&a->map->shut, __ATOMIC_ACQUIRE) != 0)
        return HF_CLOSED;
    return maker_of(a->map, a->key) != CIRCLE_NOBODY ? HF_PENDING : HF_OK;
}

static enum hf_status wait_made(struct hf_map *map, const struct map_key *key,
                                uint64_t deadline_ns)
{
    struct attempt a = {map, key};
    struct circle_wait self;

    if (!hf_circle_enter(&map->circle, &self, maker_of, map, key))
        return HF_INVALID;
    hf_u64_add(&map->made_waits, 1, __ATOMIC_RELAXED);
    enum hf_status status = hf_event_until(map_made(map, key), attempt, &a,
                                           map->opts.clock, deadline_ns);
    hf_circle_leave(&map->circle, &self);
    return status;
}

/* A value that a function made and that did not get in. */
static void discard(struct hf_map *map, void *value)
{
    if (map->owns && value != NULL && value != HF_MAP_MEMBER)
        map->opts.free_value(map->opts.context, value);
}

/* Takes out the node without a value that this thread put there, if nobody
 * gave it one. */
static void give_up(struct hf_map *map, struct hf_epoch_reader *reader,
                    const struct map_key *key)
{
    struct map_place place;
    void *none = NULL;
    struct map_node *node = hf_map_lock(map, reader, key, &place);

    /* Another thread may be making it by now, if a value was put and removed
     * meanwhile. */
    if (node != NULL && node->retired.maker == hf_thread_slot() &&
        hf_ptr_cas(&node->value, &none, MAP_DEAD, __ATOMIC_ACQ_REL))
        hf_map_unlink(map, reader, &place);
    else
        hf_map_unlock(map, &place);
    hf_event_wake_all(map_made(map, key));
}

/* Runs the function for a key whose node this thread has put there. */
static enum hf_status run(struct hf_map *map, const struct map_key *key,
                          enum hf_status (*make)(void *context, const void *key,
                                                 size_t key_len, void **value),
                          void *context, void **value)
{
    void *made = NULL;
    void *before = NULL;

    hf_u64_add(&map->made, 1, __ATOMIC_RELAXED);
    enum hf_status status = make(context, key->data, key->len, &made);
    if (status == HF_OK && !map_value_ok(made))
        status = made == NULL ? HF_NOMEM : HF_INVALID;
    struct hf_epoch_reader *reader = epoch_enter(map->epoch);
    assert(reader != NULL);
    if (status != HF_OK) {
        hf_u64_add(&map->made_failed, 1, __ATOMIC_RELAXED);
        give_up(map, reader, key);
        made = NULL; /* who fails cleans up */
    } else {
        status = hf_map_change(map, reader, key, MAP_ABSENT, made, &before);
        *value = status == HF_OK ? made : before;
    }
    epoch_leave(reader);
    if (status != HF_OK)
        discard(map, made);
    return status;
}

/* Looks for the value; if it is not there and nobody makes it, this thread
 * shall: HF_OK. HF_EXISTS: `value` is there. HF_PENDING: another makes it.
 * HF_MORE: look again. */
static enum hf_status claim(struct hf_map *map, const struct map_key *key,
                            struct map_node **spare, void **value)
{
    struct hf_epoch_reader *reader = epoch_enter(map->epoch);
    enum hf_status status;

    if (reader == NULL)
        return HF_NOMEM;
    struct map_node *node = map_find(map, reader, key);
    void *found = node == NULL ? MAP_DEAD
                               /* Acquire: what the value points to. */
                               : hf_ptr_load(&node->value, __ATOMIC_ACQUIRE);
    if (found == NULL) {
        status = HF_PENDING;
    } else if (found != MAP_DEAD) {
        *value = found;
        status = HF_EXISTS;
    } else if (hf_u32_load(&map->shut, __ATOMIC_ACQUIRE) != 0) {
        status = HF_CLOSED;
    } else {
        if (*spare == NULL)
            *spare = hf_map_node_new(key, NULL);
        if (*spare != NULL)
            (*spare)->retired.maker = (uint16_t)hf_thread_slot();
        status =
            *spare == NULL ? HF_NOMEM : hf_map_insert(map, reader, key, *spare);
        if (status == HF_OK)
            *spare = NULL;
        else if (status == HF_EXISTS)
            status = HF_MORE;
    }
    epoch_leave(reader);
    return status;
}

enum hf_status
hf_map_compute_if_absent(struct hf_map *map, const void *data, size_t len,
                         enum hf_status (*make)(void *context, const void *key,
                                                size_t key_len, void **value),
                         void *context, uint64_t deadline_ns, void **value)
{
    struct map_node *spare = NULL;
    struct map_key key;
    void *found = NULL;
    enum hf_status status;

    if (make == NULL || !hf_map_key_init(map, data, len, &key))
        return HF_INVALID;
    do {
        status = claim(map, &key, &spare, &found);
        if (status == HF_PENDING) {
            status = wait_made(map, &key, deadline_ns);
            status = status == HF_OK ? HF_MORE : status;
        }
    } while (status == HF_MORE);
    if (spare != NULL)
        hf_free(spare);
    if (status == HF_OK)
        status = run(map, &key, make, context, &found);
    if ((status == HF_OK || status == HF_EXISTS) && value != NULL)
        *value = found;
    return status;
}

void hf_map_shutdown(struct hf_map *map)
{
    if (map == NULL)
        return;
    /* Release: before the wake-ups, which those who wait look after. */
    hf_u32_store(&map->shut, 1, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < MAP_STRIPES; i++)
        hf_event_wake_all(&map->parks[i].made);
}

/* Puts `value`, or nothing if it is NULL, in the place of `old`. HF_MORE: what
 * is there is no longer `old`. */
static enum hf_status settle(struct hf_map *map, struct hf_epoch_reader *reader,
                             const struct map_key *key, void *old, void *value)
{
    void *before;
    enum hf_status status;

    if (value != NULL && !map_value_ok(value))
        return HF_INVALID;
    status = value == NULL
                 ? hf_map_take(map, reader, key, old, &before)
                 : hf_map_change(map, reader, key, old, value, &before);
    return status == HF_EXISTS || status == HF_NOTFOUND ? HF_MORE : status;
}

enum hf_status hf_map_compute_if_present(
    struct hf_map *map, const void *data, size_t len,
    enum hf_status (*change)(void *context, const void *key, size_t key_len,
                             void **value),
    void *context, void **result)
{
    struct map_key key;
    enum hf_status status;
    void *value;

    if (change == NULL || !hf_map_key_init(map, data, len, &key))
        return HF_INVALID;
    /* The guard keeps the old value alive while the function reads it, and its
     * address from being that of another value. */
    struct hf_epoch_reader *reader = epoch_enter(map->epoch);
    if (reader == NULL)
        return HF_NOMEM;
    do {
        void *old = map_value(map_find(map, reader, &key));
        value = old;
        status = old == NULL ? HF_NOTFOUND : change(context, data, len, &value);
        if (old != NULL && status == HF_OK) {
            status = settle(map, reader, &key, old, value);
            if (status != HF_OK && value != old)
                discard(map, value);
        }
    } while (status == HF_MORE);
    epoch_leave(reader);
    if (status == HF_OK && result != NULL)
        *result = value;
    return status;
}

enum hf_status
hf_map_merge(struct hf_map *map, const void *data, size_t len, void *value,
             void *(*merge)(void *context, void *old, void *value),
             void *context, void **result)
{
    struct map_key key;
    enum hf_status status;
    void *merged;

    if (merge == NULL || !map_value_ok(value) ||
        !hf_map_key_init(map, data, len, &key))
        return HF_INVALID;
    struct hf_epoch_reader *reader = epoch_enter(map->epoch);
    if (reader == NULL)
        return HF_NOMEM;
    do { /* the guard: as above */
        void *old = map_value(map_find(map, reader, &key));
        merged = old == NULL ? value : merge(context, old, value);
        status = settle(map, reader, &key, old, merged);
        if (status != HF_OK && merged != old && merged != value)
            discard(map, merged);
    } while (status == HF_MORE);
    epoch_leave(reader);
    if (status == HF_OK && result != NULL)
        *result = merged;
    return status;
}
