/* store_ready.c - the calls of a store, for every kind of database. */
#include "stores/store_ready.h"

#include <string.h>

#define TABLE_DEFAULT   "holdfast"
#define READERS_DEFAULT 2u
#define READERS_MAX     64u

/* A name that can stand between quotes. */
static bool set_table(char table[HF_STORE_TABLE_BYTES], const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

    if (name == NULL)
        name = TABLE_DEFAULT;
    size_t len = strlen(name);
    if (len == 0 || len >= HF_STORE_TABLE_BYTES ||
        strspn(name, letters) != len || (name[0] >= '0' && name[0] <= '9'))
        return false;
    memcpy(table, name, len + 1);
    return true;
}

bool hf_store_ready_init(struct store_ready *ready, const char *table,
                         uint32_t readers)
{
    ready->readers = readers == 0 ? READERS_DEFAULT : readers;
    return readers <= READERS_MAX && set_table(ready->table, table);
}

/* A table that is not there may come back: no reason to give a batch up. */
enum hf_status hf_store_ready_fail(struct store_ready *ready,
                                   enum hf_status status, const char *text)
{
    if (status == HF_NOTFOUND)
        status = HF_IO;
    store_count(&ready->failures, 1);
    if (ready->failed != NULL)
        ready->failed(ready->context, status, text);
    return status;
}

static enum hf_status apply(void *context,
                            const struct hf_store_change *changes, size_t count)
{
    struct store_ready *ready = context;
    char text[STORE_TEXT_BYTES];

    if (!hf_store_changes_fit(changes, count))
        return HF_INVALID;
    if (count == 0)
        return HF_OK;
    enum hf_status status = ready->kind->apply(ready, changes, count, text);
    if (status != HF_OK)
        return hf_store_ready_fail(ready, status, text);
    store_count(&ready->applies, 1);
    store_count(&ready->changes, count);
    return HF_OK;
}

static enum hf_status read_key(void *context, const void *key, size_t key_len,
                               void (*found)(void *arg, const void *value,
                                             size_t value_len),
                               void *arg)
{
    struct store_ready *ready = context;
    struct store_value value = {0};
    char text[STORE_TEXT_BYTES];

    if (!hf_store_key_fits(key, key_len) || found == NULL)
        return HF_INVALID;
    store_count(&ready->reads, 1);
    enum hf_status status =
        ready->kind->read(ready, key, key_len, &value, text);
    if (status != HF_OK)
        return hf_store_ready_fail(ready, status, text);
    if (value.owner == NULL)
        return HF_NOTFOUND;
    /* It is the user's, and so outside the kind's locks. */
    store_count(&ready->found, 1);
    found(arg, value.data, value.len);
    ready->kind->forget(value.owner);
    return HF_OK;
}

/* Relaxed: figures. */
static void stats(void *context, struct hf_store_stats *out)
{
    struct store_ready *ready = context;

    out->reads = hf_u64_load(&ready->reads, __ATOMIC_RELAXED);
    out->found = hf_u64_load(&ready->found, __ATOMIC_RELAXED);
    out->applies = hf_u64_load(&ready->applies, __ATOMIC_RELAXED);
    out->changes = hf_u64_load(&ready->changes, __ATOMIC_RELAXED);
    out->failures = hf_u64_load(&ready->failures, __ATOMIC_RELAXED);
    out->reconnects = hf_u64_load(&ready->reconnects, __ATOMIC_RELAXED);
}

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    const struct store_ready *ready = (const struct store_ready *)listed;

    row->depth = 0;
    row->rejected = hf_u64_load(&ready->failures, __ATOMIC_RELAXED);
}

static void close_store(void *context)
{
    struct store_ready *ready = context;

    hf_listed_remove(&ready->listed);
    ready->kind->close(ready);
}

enum hf_status hf_store_ready_open(struct store_ready *ready, const char *name,
                                   enum hf_status (*connect)(void *store),
                                   struct hf_store *out)
{
    hf_listed_add(&ready->listed, "store", name, fill);
    enum hf_status status = connect(ready);
    if (status != HF_OK) {
        close_store(ready);
        return status;
    }
    *out = (struct hf_store){.read = read_key,
                             .apply = apply,
                             .stats = stats,
                             .close = close_store,
                             .context = ready};
    return HF_OK;
}
