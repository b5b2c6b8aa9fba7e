/* cache_load.c - loaders, who waits for them, and refresh ahead.
 *
 * A load that runs has a record in its segment's list, found by its key. Who
 * asks for that key meanwhile holds the record and waits for its bell; when the
 * loader is done, its entry is in the record (held, so that it lasts even if it
 * is not in the table, or no more) and everybody takes it from there.
 *
 *   asks first    record in the list -> loader -> lock: store, out of the list
 *   asks later    holds the record ............... done: value or failure
 *   put, remove   takes it out of the list: it is detached, its value is not
 *                 stored, and who asks from then on begins a new one
 */
#include "base/memory.h"
#include "keep/cache_state.h"

struct cache_load {
    struct cache_load *next;    /* (m) of the segment */
    struct hf_cache *cache;     /* (i) */
    hf_cache_load_fn *load;     /* (i) */
    void *context;              /* (i) */
    struct hf_atomic_u32 holds; /* (a) who may look at it */
    struct hf_atomic_u32 slot;  /* (a) of the thread that loads */
    struct hf_atomic_u32 done;  /* (a) what follows is set */
    struct hf_event event;      /* (a) of those who wait */
    enum hf_status status;      /* how the loader ended */
    struct hf_atomic_ptr entry; /* (a) held; NULL: none */
    bool listed;                /* (m) not detached */
    bool refresh;               /* (i) */
    uint64_t hash;              /* (i) */
    size_t key_len;             /* (i) */
    unsigned char key[];        /* (i) */
};

static void load_drop(struct hf_epoch_reader *reader, struct cache_load *load)
{
    /* Acquire: what the others did with it; release: what this one did. */
    if (hf_u32_sub(&load->holds, 1, __ATOMIC_ACQ_REL) != 1)
        return;
    /* Relaxed: as above. */
    struct cache_entry *entry = hf_ptr_load(&load->entry, __ATOMIC_RELAXED);
    if (entry != NULL)
        hf_cache_entry_drop(reader, entry);
    hf_free(load);
}

static struct cache_load *find(const struct cache_segment *segment,
                               const struct cache_key *key)
{
    struct cache_load *load = segment->loads;

    while (load != NULL &&
           (load->hash != key->hash || load->key_len != key->len ||
            memcmp(load->key, key->data, key->len) != 0))
        load = load->next;
    return load;
}

static void unlist(struct cache_segment *segment, struct cache_load *load)
{
    struct cache_load **link = &segment->loads;

    while (*link != load)
        link = &(*link)->next;
    *link = load->next;
    load->listed = false;
}

void hf_cache_loads_detach(struct cache_segment *segment,
                           const struct cache_key *key)
{
    struct cache_load *load;

    if (__builtin_expect(segment->loads == NULL, 1))
        return;
    while ((load = key == NULL ? segment->loads : find(segment, key)) != NULL)
        unlist(segment, load);
}

void hf_cache_loads_wake(struct cache_segment *segment)
{
    for (struct cache_load *load = segment->loads; load != NULL;
         load = load->next)
        hf_event_wake_all(&load->event);
}

/* In the list; the caller holds it. NULL without memory. */
static struct cache_load *begin(struct hf_cache *cache,
                                struct cache_segment *segment,
                                const struct cache_key *key,
                                hf_cache_load_fn *fn, void *context,
                                bool refresh)
{
    struct cache_load *load = hf_alloc(sizeof *load + key->len);

    if (load == NULL)
        return NULL;
    *load = (struct cache_load){.next = segment->loads,
                                .cache = cache,
                                .load = fn,
                                .context = context,
                                .holds.value = 1,
                                .slot.value = hf_thread_slot(),
                                .listed = true,
                                .refresh = refresh,
                                .hash = key->hash,
                                .key_len = key->len};
    if (key->len > 0)
        memcpy(load->key, key->data, key->len);
    segment->loads = load;
    return load;
}

/* Puts what was loaded there, or the fact that there is nothing. The record is
 * out of the list afterwards. */
static enum hf_status settle(struct cache_load *load,
                             struct hf_epoch_reader *reader,
                             enum hf_status status, struct cache_entry *entry)
{
    struct hf_cache *cache = load->cache;
    struct cache_segment *segment = cache_segment_of(cache, load->hash);
    struct cache_key key = {load->key, load->key_len, load->hash};
    struct cache_store store = {.entry = entry, .when = CACHE_LOADED};
    struct cache_batch batch = {0};
    struct cache_place place;
    struct cache_entry *old;
    bool stored = false;

    hf_cache_lock(cache, segment);
    /* Relaxed: a cache that is shut keeps it or not. */
    bool kept =
        load->listed && hf_u32_load(&cache->shut, __ATOMIC_RELAXED) == 0;
    if (kept && entry != NULL)
        stored =
            hf_cache_store(cache, segment, reader, &store, &batch) == HF_OK;
    else if (kept && status == HF_NOTFOUND &&
             (old = hf_cache_table_find(segment, &key, &place)) != NULL)
        hf_cache_take(segment, old, &place, HF_CACHE_EXPLICIT, &batch);
    if (load->listed)
        unlist(segment, load);
    hf_mutex_unlock(&segment->mutex);
    if (entry != NULL && !stored) {
        hf_u64_add(&cache->load_discards, 1, __ATOMIC_RELAXED);
        hf_cache_entry_drop(reader, entry); /* the table's hold */
    }
    hf_cache_batch_end(cache, reader, &batch);
    return status;
}

/* A refresh that failed: the next try comes later. */
static void put_off(struct hf_cache *cache, struct hf_epoch_reader *reader,
                    const struct cache_key *key)
{
    struct cache_entry *entry =
        cache_find(cache_segment_of(cache, key->hash), reader, key);

    if (entry != NULL) /* relaxed: a time, for itself */
        hf_u64_store(&entry->refresh_at_ns,
                     cache_after(cache_now(cache), cache->opts.refresh_ns),
                     __ATOMIC_RELAXED);
}

/* Gives the loader's value, which did not become an entry, back. */
static void discard(const struct hf_cache *cache, void *value)
{
    if (cache->opts.release != NULL)
        cache->opts.release(cache->opts.context, value);
}

/* What the loader found, as an entry. */
static enum hf_status make_entry(struct cache_load *load, enum hf_status status,
                                 const struct hf_cache_loaded *loaded,
                                 struct cache_entry **entry)
{
    struct hf_cache *cache = load->cache;
    struct cache_key key = {load->key, load->key_len, load->hash};

    if (status == HF_OK && loaded->value == NULL)
        return HF_FAILED;
    if (status == HF_OK) {
        status = hf_cache_entry_new(cache, &key, loaded->value, loaded->ttl_ns,
                                    entry);
        if (status != HF_OK)
            discard(cache, loaded->value);
    } else if (status == HF_NOTFOUND && cache->opts.negative_ttl_ns != 0) {
        /* Without memory it is not kept, and still true. */
        (void)hf_cache_entry_new(cache, &key, NULL, cache->opts.negative_ttl_ns,
                                 entry);
    }
    return status;
}

static void count_load(struct cache_load *load, enum hf_status status,
                       uint64_t ns)
{
    struct hf_cache *cache = load->cache;

    /* Relaxed: figures. */
    hf_u64_add(&cache->loads, 1, __ATOMIC_RELAXED);
    hf_u64_add(&cache->load_ns, ns, __ATOMIC_RELAXED);
    if (load->refresh)
        hf_u64_add(&cache->refreshes, 1, __ATOMIC_RELAXED);
    if (status == HF_NOTFOUND)
        hf_u64_add(&cache->load_negatives, 1, __ATOMIC_RELAXED);
    else if (status != HF_OK)
        hf_u64_add(&cache->load_failures, 1, __ATOMIC_RELAXED);
}

/* Runs the loader of a record that this thread began. */
static void run(struct cache_load *load)
{
    struct hf_cache *cache = load->cache;
    struct cache_key key = {load->key, load->key_len, load->hash};
    struct hf_cache_loaded loaded = {0};
    struct cache_entry *entry = NULL;
    uint64_t start_ns = cache_now(cache);

    enum hf_status status =
        load->load(load->context, load->key, load->key_len, &loaded);
    uint64_t end_ns = cache_now(cache);
    status = make_entry(load, status, &loaded, &entry);
    count_load(load, status, end_ns > start_ns ? end_ns - start_ns : 0);
    struct hf_epoch_reader *reader = epoch_enter(cache->epoch);
    assert(reader != NULL); /* not this thread's first call */
    if (entry != NULL) {
        hf_epoch_born(reader, &entry->retired.epoch);
        entry->holds.value = 2; /* the table's, and the record's */
        hf_ptr_store(&load->entry, entry, __ATOMIC_RELAXED); /* by `done` */
    }
    load->status = settle(load, reader, status, entry);
    if (load->refresh && status != HF_OK && status != HF_NOTFOUND)
        put_off(cache, reader, &key);
    hf_u32_store(&load->slot, CIRCLE_NOBODY, __ATOMIC_RELAXED);
    /* Release: status and entry. */
    hf_u32_store(&load->done, 1, __ATOMIC_RELEASE);
    hf_event_wake_all(&load->event);
    epoch_leave(reader);
}

/* What the loader got, for one who holds the record and gives it up by that. */
static enum hf_status take_result(struct hf_cache *cache,
                                  struct cache_load *load, void **value)
{
    struct hf_epoch_reader *reader = epoch_enter(cache->epoch);
    enum hf_status status = load->status;

    assert(reader != NULL);
    struct cache_entry *entry = epoch_load(reader, &load->entry);
    if (status == HF_OK)
        hf_cache_hand_out(cache, entry, value);
    load_drop(reader, load);
    epoch_leave(reader);
    return status;
}

/* Relaxed: the thread that loads is either this one, which knows, or one that
 * waits, and its wait was listed under the circle's lock. */
static uint32_t loader_of(void *context, const void *load)
{
    (void)context;
    return hf_u32_load(&((const struct cache_load *)load)->slot,
                       __ATOMIC_RELAXED);
}

static enum hf_status attempt(void *context)
{
    const struct cache_load *load = context;

    /* Acquire, both: the result; hf_cache_shutdown(). */
    if (hf_u32_load(&load->done, __ATOMIC_ACQUIRE) != 0)
        return HF_OK;
    if (hf_u32_load(&load->cache->shut, __ATOMIC_ACQUIRE) != 0)
        return HF_CLOSED;
    return HF_PENDING;
}

/* Waits for a record that the caller holds. */
static enum hf_status wait_done(struct hf_cache *cache, struct cache_load *load,
                                uint64_t deadline_ns)
{
    struct circle_wait self;

    if (!hf_circle_enter(&cache->circle, &self, loader_of, NULL, load))
        return HF_INVALID;
    hf_u64_add(&cache->load_waits, 1, __ATOMIC_RELAXED);
    enum hf_status status = hf_event_until(&load->event, attempt, load,
                                           cache->opts.clock, deadline_ns);
    hf_circle_leave(&cache->circle, &self);
    return status;
}

/* The pool's thread has no memory to begin. */
static void fail(struct cache_load *load)
{
    struct cache_segment *segment = cache_segment_of(load->cache, load->hash);

    hf_mutex_lock(&segment->mutex);
    if (load->listed)
        unlist(segment, load);
    hf_mutex_unlock(&segment->mutex);
    count_load(load, HF_NOMEM, 0);
    load->status = HF_NOMEM;
    /* Release: the status. */
    hf_u32_store(&load->done, 1, __ATOMIC_RELEASE);
    hf_event_wake_all(&load->event);
    load_drop(NULL, load); /* it has no entry to retire */
}

static int refresh_task(void *arg)
{
    struct cache_load *load = arg;
    struct hf_cache *cache = load->cache;

    /* Relaxed: whoever waits for this thread finds it by the list. */
    hf_u32_store(&load->slot, hf_thread_slot(), __ATOMIC_RELAXED);
    if (hf_cache_enter(cache) == HF_OK) {
        hf_cache_leave(cache); /* a record for this thread is all it wanted */
        run(load);
        (void)take_result(cache, load, NULL);
    } else {
        fail(load);
    }
    /* Close waits for the first, and then for this thread to be through with
     * the event. Release: all that was done here. */
    hf_u32_sub(&cache->refreshing, 1, __ATOMIC_RELEASE);
    hf_event_wake_all(&cache->refreshed);
    hf_u32_sub(&cache->leaving, 1, __ATOMIC_RELEASE);
    return 0;
}

static enum hf_status no_refreshes(void *context)
{
    const struct hf_cache *cache = context;

    /* Acquire: what they did. */
    return hf_u32_load(&cache->refreshing, __ATOMIC_ACQUIRE) == 0 ? HF_OK
                                                                  : HF_PENDING;
}

void hf_cache_refreshes_await(struct hf_cache *cache)
{
    (void)hf_event_until(&cache->refreshed, no_refreshes, cache,
                         cache->opts.clock, HF_FOREVER);
    while (hf_u32_load(&cache->leaving, __ATOMIC_ACQUIRE) != 0)
        hf_thread_yield(); /* for as long as a wake-up takes */
}

/* Loads again what the caller has just read, if it is the first to see that it
 * is time. */
static void refresh(struct hf_cache *cache, const struct cache_key *key,
                    hf_cache_load_fn *fn, void *context)
{
    struct cache_segment *segment = cache_segment_of(cache, key->hash);
    bool pooled = cache->opts.refresher != NULL && fn == cache->opts.load &&
                  context == cache->opts.context;

    hf_cache_lock(cache, segment);
    struct cache_load *load =
        find(segment, key) != NULL ||
                hf_u32_load(&cache->shut, __ATOMIC_RELAXED) != 0
            ? NULL
            : begin(cache, segment, key, fn, context, true);
    if (load != NULL && pooled) /* relaxed: under the lock */
        hf_u32_store(&load->slot, CIRCLE_NOBODY, __ATOMIC_RELAXED);
    hf_mutex_unlock(&segment->mutex);
    if (load == NULL) { /* one runs already, or there is no memory */
        struct hf_epoch_reader *reader = epoch_enter(cache->epoch);
        put_off(cache, reader, key);
        epoch_leave(reader);
        return;
    }
    if (pooled) {
        /* Relaxed: close comes after this call. */
        hf_u32_add(&cache->refreshing, 1, __ATOMIC_RELAXED);
        hf_u32_add(&cache->leaving, 1, __ATOMIC_RELAXED);
        if (hf_pool_submit(cache->opts.refresher, refresh_task, load, NULL,
                           NULL) == HF_OK)
            return;
        hf_u32_sub(&cache->leaving, 1, __ATOMIC_RELAXED);
        hf_u32_sub(&cache->refreshing, 1, __ATOMIC_RELAXED);
        hf_u32_store(&load->slot, hf_thread_slot(), __ATOMIC_RELAXED);
    }
    run(load);
    (void)take_result(cache, load, NULL);
}

/* Is it time, and is this the one to see to it? */
static bool claims_refresh(const struct hf_cache *cache,
                           struct cache_entry *entry)
{
    if (cache->opts.refresh_ns == 0)
        return false;
    /* Relaxed: a time, for itself; one caller wins. */
    uint64_t at_ns = hf_u64_load(&entry->refresh_at_ns, __ATOMIC_RELAXED);
    return at_ns != HF_FOREVER && cache_now(cache) >= at_ns &&
           hf_u64_cas(&entry->refresh_at_ns, &at_ns, HF_FOREVER,
                      __ATOMIC_RELAXED);
}

/* HF_OK, HF_NOTFOUND: it was there, or known not to be. HF_PENDING: neither. */
static enum hf_status try_get(struct hf_cache *cache,
                              const struct cache_key *key, void **value,
                              bool *stale)
{
    struct cache_segment *segment = cache_segment_of(cache, key->hash);
    cache_fetch(segment, key->hash);
    struct hf_epoch_reader *reader = epoch_enter(cache->epoch);
    bool negative = false;

    if (reader == NULL)
        return HF_NOMEM;
    struct cache_entry *entry =
        hf_cache_look_up(cache, segment, reader, key, &negative);
    if (entry != NULL) {
        hf_cache_hand_out(cache, entry, value);
        *stale = claims_refresh(cache, entry);
        hf_cache_note_read(cache, segment, entry);
    }
    epoch_leave(reader);
    return entry != NULL ? HF_OK : negative ? HF_NOTFOUND : HF_PENDING;
}

/* What to do about a key that was not there: HF_OK or HF_NOTFOUND: it came
 * meanwhile. HF_MORE: begin what is in `load`; HF_PENDING: wait for it. */
static enum hf_status join(struct hf_cache *cache, const struct cache_key *key,
                           hf_cache_load_fn *fn, void *context,
                           struct cache_load **load, void **value)
{
    struct cache_segment *segment = cache_segment_of(cache, key->hash);
    struct hf_epoch_reader *reader = epoch_enter(cache->epoch);
    enum hf_status status = HF_MORE;
    uint64_t now_ns = 0;

    assert(reader != NULL); /* not this thread's first call */
    hf_cache_lock(cache, segment);
    struct cache_entry *entry = cache_find(segment, reader, key);
    if (entry != NULL && !cache_is_over(cache, entry, &now_ns)) {
        status = entry->negative ? HF_NOTFOUND : HF_OK;
    } else if ((*load = find(segment, key)) != NULL) {
        /* Relaxed: who has it under the lock may hand out holds. */
        hf_u32_add(&(*load)->holds, 1, __ATOMIC_RELAXED);
        status = HF_PENDING;
    } else if (hf_u32_load(&cache->shut, __ATOMIC_ACQUIRE) != 0) {
        status = HF_CLOSED;
    } else {
        *load = begin(cache, segment, key, fn, context, false);
        status = *load == NULL ? HF_NOMEM : HF_MORE;
    }
    hf_mutex_unlock(&segment->mutex);
    if (status == HF_OK)
        hf_cache_hand_out(cache, entry, value);
    epoch_leave(reader);
    return status;
}

enum hf_status hf_cache_get_or_load(struct hf_cache *cache, const void *data,
                                    size_t len, hf_cache_load_fn *fn,
                                    void *context, uint64_t deadline_ns,
                                    void **value)
{
    struct cache_load *load = NULL;
    struct cache_key key;
    bool stale = false;

    if (!cache_key_init(cache, data, len, &key) ||
        (fn == NULL && cache->opts.load == NULL))
        return HF_INVALID;
    if (fn == NULL) {
        fn = cache->opts.load;
        context = cache->opts.context;
    }
    enum hf_status status = try_get(cache, &key, value, &stale);
    if (stale)
        refresh(cache, &key, fn, context);
    if (status != HF_PENDING)
        return status;
    status = join(cache, &key, fn, context, &load, value);
    if (status == HF_MORE) {
        run(load);
        return take_result(cache, load, value);
    }
    if (status != HF_PENDING)
        return status;
    status = wait_done(cache, load, deadline_ns);
    if (status == HF_OK)
        return take_result(cache, load, value);
    struct hf_epoch_reader *reader = epoch_enter(cache->epoch);
    load_drop(reader, load);
    epoch_leave(reader);
    return status;
}
