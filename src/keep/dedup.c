/* dedup.c - one caller is told "new": the calls.
 *
 * Each call is one section under one shard's lock, which makes it one step for
 * everybody else. The order of the looks matters little for the answer: an item
 * that counts stands in one place only, in the table or in one run.
 */
#include "holdfast/dedup.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "keep/dedup_state.h"

#define WINDOW_DEFAULT_NS UINT64_C(60000000000)
#define WINDOW_MAX_NS     (UINT64_MAX / 4)
#define NOW_MAX_NS        (UINT64_MAX / 2)
#define ITEMS_DEFAULT     1000000u
#define ITEMS_MAX         (UINT64_C(1) << 40)
#define ITEMS_ONE_SHARD   4096u /* up to here one shard will do */
#define SHARDS_DEFAULT    64u
#define DISK_TIMES        100u
#define FILTER_BITS       12u
#define FILTER_BITS_MAX   64u

static uint64_t total(const struct hf_dedup *dedup, size_t figure)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < (size_t)1 << dedup->shard_bits; i++) {
        const char *shard = (const char *)&dedup->shards[i];
        /* Relaxed: a figure. */
        sum += hf_u64_load((const struct hf_atomic_u64 *)(shard + figure),
                           __ATOMIC_RELAXED);
    }
    return sum;
}

#define TOTAL(dedup, member) total(dedup, offsetof(struct dedup_shard, member))

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    const struct hf_dedup *dedup = (const struct hf_dedup *)listed;

    row->depth = TOTAL(dedup, items) + TOTAL(dedup, disk_items);
    row->capacity = dedup->items_max;
    if (dedup->fd >= 0)
        row->capacity += dedup->shard_disk_items << dedup->shard_bits;
    row->rejected = TOTAL(dedup, refused);
}

/* ---- Open and close. ---- */

static enum hf_status check(const struct hf_dedup_opts *opts)
{
    if (opts->window_ns > WINDOW_MAX_NS || opts->items_max > ITEMS_MAX ||
        opts->disk_max > ITEMS_MAX)
        return HF_INVALID;
    if (opts->value_bytes > HF_DEDUP_VALUE_MAX ||
        opts->filter_bits > FILTER_BITS_MAX)
        return HF_INVALID;
    if (opts->folder != NULL && opts->folder[0] == '\0')
        return HF_INVALID; /* not the root */
    if (opts->shards > HF_DEDUP_SHARDS_MAX ||
        (opts->shards & (opts->shards - 1)) != 0)
        return HF_INVALID;
    return HF_OK;
}

/* A shard gets its part of the items by the hash, so not exactly: 6 standard
 * deviations above the mean are enough for all of them. */
static uint64_t share(uint64_t items, uint32_t shard_bits)
{
    double mean = (double)items / (double)(1u << shard_bits);

    if (shard_bits == 0)
        return items;
    return (uint64_t)(mean + 6 * sqrt(mean)) + 1;
}

static void shape(struct hf_dedup *dedup, const struct hf_dedup_opts *opts)
{
    uint32_t shards = opts->shards;

    dedup->window_ns =
        opts->window_ns != 0 ? opts->window_ns : WINDOW_DEFAULT_NS;
    dedup->items_max = opts->items_max != 0 ? opts->items_max : ITEMS_DEFAULT;
    if (shards == 0)
        shards = dedup->items_max <= ITEMS_ONE_SHARD ? 1 : SHARDS_DEFAULT;
    while (1u << dedup->shard_bits < shards)
        dedup->shard_bits++;
    dedup->shard_items = share(dedup->items_max, dedup->shard_bits);
    dedup->shard_disk_items = share(
        opts->disk_max != 0 ? opts->disk_max : DISK_TIMES * dedup->items_max,
        dedup->shard_bits);
    dedup->value_bytes = opts->value_bytes;
    dedup->stride =
        sizeof(struct dedup_entry) + ((size_t)opts->value_bytes + 7) / 8 * 8;
    dedup->page_entries = DEDUP_PAGE_BYTES / dedup->stride;
    dedup->filter_bits =
        opts->filter_bits != 0 ? opts->filter_bits : FILTER_BITS;
}

/* A file without a name: the system frees it with the last descriptor. */
static int make_file(const char *folder)
{
    char path[4096];
    int len = snprintf(path, sizeof path, "%s/dedup-XXXXXX", folder);

    if (len < 0 || (size_t)len >= sizeof path)
        return -1;
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        (void)unlink(path);
    return fd;
}

static enum hf_status make_shards(struct hf_dedup *dedup)
{
    size_t count = (size_t)1 << dedup->shard_bits;
    size_t bytes = count * sizeof(struct dedup_shard);

    dedup->shards = hf_alloc_lines(bytes);
    if (dedup->shards == NULL)
        return HF_NOMEM;
    for (size_t i = 0; dedup->fd >= 0 && i < count; i++) {
        dedup->shards[i].page = hf_alloc(DEDUP_PAGE_BYTES);
        if (dedup->shards[i].page == NULL)
            return HF_NOMEM;
        dedup_count(&dedup->shards[i].memory_bytes, DEDUP_PAGE_BYTES);
    }
    return HF_OK;
}

static void destroy(struct hf_dedup *dedup)
{
    for (size_t i = 0; dedup->shards != NULL && i >> dedup->shard_bits == 0;
         i++) {
        hf_dedup_run_destroy(&dedup->shards[i]);
        hf_free(dedup->shards[i].table.slots);
    }
    if (dedup->fd >= 0)
        (void)close(dedup->fd);
    hf_free(dedup->shards);
    hf_free(dedup);
}

enum hf_status hf_dedup_open(struct hf_dedup **out,
                             const struct hf_dedup_opts *opts)
{
    static const struct hf_dedup_opts defaults;

    if (opts == NULL)
        opts = &defaults;
    if (out == NULL || check(opts) != HF_OK)
        return HF_INVALID;
    struct hf_dedup *dedup = hf_alloc_zeroed(sizeof *dedup);
    if (dedup == NULL)
        return HF_NOMEM;
    shape(dedup, opts);
    dedup->seeds[0] =
        hf_hash_seed((struct hf_hash_seed){{opts->seed[0], opts->seed[1]}});
    dedup->seeds[1] = dedup->seeds[0];
    dedup->seeds[1].key[0] ^= UINT64_C(0xa5a5a5a5a5a5a5a5); /* another hash */
    /* No entry stands at 0. */
    hf_u64_store(&dedup->file_end, DEDUP_PAGE_BYTES, __ATOMIC_RELAXED);
    dedup->fd = opts->folder == NULL ? -1 : make_file(opts->folder);
    enum hf_status status = HF_IO;
    if (opts->folder == NULL || dedup->fd >= 0)
        status = make_shards(dedup);
    if (status != HF_OK) {
        destroy(dedup);
        return status;
    }
    hf_listed_add(&dedup->listed, "dedup", opts->name, fill);
    *out = dedup;
    return HF_OK;
}

void hf_dedup_close(struct hf_dedup *dedup)
{
    if (dedup == NULL)
        return;
    hf_listed_remove(&dedup->listed);
    destroy(dedup);
}

/* ---- The calls. ---- */

/* An item in its shard, which is locked. */
struct place {
    struct dedup_shard *shard;
    uint64_t high;
    uint64_t low;
};

static struct place enter(struct hf_dedup *dedup, const void *item, size_t len,
                          uint64_t now_ns)
{
    struct hf_bytes bytes = hf_bytes(item, len);
    struct place place = {.high = hf_hash(dedup->seeds[0], bytes),
                          .low = hf_hash(dedup->seeds[1], bytes)};
    size_t number =
        dedup->shard_bits == 0 ? 0 : place.high >> (64 - dedup->shard_bits);

    place.shard = &dedup->shards[number];
    hf_mutex_lock(&place.shard->mutex);
    if (now_ns > place.shard->now_ns)
        place.shard->now_ns = now_ns;
    hf_dedup_run_expire(dedup, place.shard);
    return place;
}

static void give(const struct hf_dedup *dedup, const struct dedup_entry *entry,
                 void *value)
{
    if (value != NULL && dedup->value_bytes > 0)
        memcpy(value, entry->value, dedup->value_bytes);
}

static void keep(const struct hf_dedup *dedup, struct dedup_entry *entry,
                 const void *value)
{
    if (value != NULL)
        memcpy(entry->value, value, dedup->value_bytes);
    else
        memset(entry->value, 0, dedup->value_bytes);
}

/* The entry that counts, if there is one. `*stale` is one in the table that
 * has expired; `*offset` is 0 unless the entry was found on disk. */
static enum dedup_answer search(struct hf_dedup *dedup,
                                const struct place *place,
                                struct dedup_entry **out,
                                struct dedup_entry **stale, uint64_t *offset)
{
    struct dedup_shard *shard = place->shard;
    struct dedup_entry *entry =
        hf_dedup_table_find(dedup, &shard->table, place->high, place->low);

    *stale = NULL;
    *offset = 0;
    if (entry != NULL && shard->now_ns < entry->until_ns) {
        *out = entry;
        return DEDUP_YES;
    }
    *stale = entry;
    return hf_dedup_run_find(dedup, shard, place->high, place->low, out,
                             offset);
}

/* Room in the table by letting go what has expired, then by writing it out. */
static enum hf_status make_room(struct hf_dedup *dedup,
                                struct dedup_shard *shard)
{
    hf_dedup_table_step(dedup, shard);
    if (shard->table.count < dedup->shard_items)
        return HF_OK;
    hf_dedup_table_sweep(dedup, shard);
    if (shard->table.count < dedup->shard_items)
        return HF_OK;
    return dedup->fd < 0 ? HF_FULL : hf_dedup_run_write(dedup, shard);
}

static enum hf_status add(struct hf_dedup *dedup, const struct place *place,
                          void *value)
{
    struct dedup_shard *shard = place->shard;
    uint64_t until_ns = shard->now_ns + dedup->window_ns;
    struct dedup_entry *entry, *stale;
    uint64_t offset;

    switch (search(dedup, place, &entry, &stale, &offset)) {
    case DEDUP_YES:
        give(dedup, entry, value);
        return HF_EXISTS;
    case DEDUP_BROKEN:
        return HF_IO;
    case DEDUP_NO:
        break;
    }
    if (stale != NULL) {
        stale->until_ns = until_ns;
        keep(dedup, stale, value);
        return HF_OK;
    }
    enum hf_status status = make_room(dedup, shard);
    if (status == HF_OK)
        status = hf_dedup_table_add(dedup, shard, place->high, place->low,
                                    until_ns, &entry);
    if (status == HF_OK)
        keep(dedup, entry, value);
    return status;
}

static inline bool may_ask(const struct hf_dedup *dedup, const void *item,
                           size_t len, uint64_t now_ns)
{
    return dedup != NULL && (item != NULL || len == 0) && now_ns <= NOW_MAX_NS;
}

enum hf_status hf_dedup_add(struct hf_dedup *dedup, const void *item,
                            size_t len, uint64_t now_ns, void *value)
{
    if (!may_ask(dedup, item, len, now_ns))
        return HF_INVALID;
    struct place place = enter(dedup, item, len, now_ns);
    struct dedup_shard *shard = place.shard;
    enum hf_status status = add(dedup, &place, value);

    if (status == HF_OK)
        dedup_count(&shard->added, 1);
    else if (status == HF_EXISTS)
        dedup_count(&shard->seen, 1);
    else
        dedup_count(&shard->refused, 1);
    hf_mutex_unlock(&shard->mutex);
    return status;
}

enum hf_status hf_dedup_find(struct hf_dedup *dedup, const void *item,
                             size_t len, uint64_t now_ns, void *value)
{
    struct dedup_entry *entry, *stale;
    enum hf_status status = HF_NOTFOUND;
    uint64_t offset;

    if (!may_ask(dedup, item, len, now_ns))
        return HF_INVALID;
    struct place place = enter(dedup, item, len, now_ns);
    enum dedup_answer answer = search(dedup, &place, &entry, &stale, &offset);
    if (answer == DEDUP_YES) {
        give(dedup, entry, value);
        status = HF_OK;
    }
    hf_mutex_unlock(&place.shard->mutex);
    return answer == DEDUP_BROKEN ? HF_IO : status;
}

enum hf_status hf_dedup_forget(struct hf_dedup *dedup, const void *item,
                               size_t len, uint64_t now_ns)
{
    struct dedup_entry *entry, *stale;
    enum hf_status status = HF_NOTFOUND;
    uint64_t offset;

    if (!may_ask(dedup, item, len, now_ns))
        return HF_INVALID;
    struct place place = enter(dedup, item, len, now_ns);
    struct dedup_shard *shard = place.shard;
    switch (search(dedup, &place, &entry, &stale, &offset)) {
    case DEDUP_YES:
        status = HF_OK;
        if (offset == 0)
            hf_dedup_table_remove(dedup, shard, entry);
        else
            status = hf_dedup_run_forget(dedup, offset);
        break;
    case DEDUP_BROKEN:
        status = HF_IO;
        break;
    case DEDUP_NO:
        break;
    }
    if (status == HF_OK)
        dedup_count(&shard->forgotten, 1);
    hf_mutex_unlock(&shard->mutex);
    return status;
}

void hf_dedup_stats(const struct hf_dedup *dedup, struct hf_dedup_stats *out)
{
    if (dedup == NULL || out == NULL)
        return;
    *out = (struct hf_dedup_stats){
        .added = TOTAL(dedup, added),
        .seen = TOTAL(dedup, seen),
        .refused = TOTAL(dedup, refused),
        .forgotten = TOTAL(dedup, forgotten),
        .items = TOTAL(dedup, items),
        .disk_items = TOTAL(dedup, disk_items),
        .memory_bytes = TOTAL(dedup, memory_bytes),
        .disk_bytes = TOTAL(dedup, disk_bytes),
        .runs = TOTAL(dedup, run_total),
        .page_reads = TOTAL(dedup, page_reads),
        .filter_errors = TOTAL(dedup, filter_errors),
    };
}
