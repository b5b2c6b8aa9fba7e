/* store.c - what all stores share. */
#include "holdfast/store.h"

#include <string.h>

#include "keep/store_state.h"

#define TABLE_DEFAULT "holdfast"

bool hf_store_may_retry(enum hf_status status)
{
    return status == HF_IO || status == HF_TIMEOUT || status == HF_FULL ||
           status == HF_NOMEM;
}

void hf_store_stats(const struct hf_store *store, struct hf_store_stats *out)
{
    if (out == NULL)
        return;
    *out = (struct hf_store_stats){0};
    if (store != NULL && store->stats != NULL)
        store->stats(store->context, out);
}

void hf_store_close(struct hf_store *store)
{
    if (store == NULL)
        return;
    if (store->close != NULL)
        store->close(store->context);
    *store = (struct hf_store){0};
}

/* ---- For the ready made ones. ---- */

/* Relaxed: figures. */
void store_figures_read(const struct store_figures *figures,
                        struct hf_store_stats *out)
{
    out->reads = hf_u64_load(&figures->reads, __ATOMIC_RELAXED);
    out->found = hf_u64_load(&figures->found, __ATOMIC_RELAXED);
    out->applies = hf_u64_load(&figures->applies, __ATOMIC_RELAXED);
    out->changes = hf_u64_load(&figures->changes, __ATOMIC_RELAXED);
    out->failures = hf_u64_load(&figures->failures, __ATOMIC_RELAXED);
    out->reconnects = hf_u64_load(&figures->reconnects, __ATOMIC_RELAXED);
}

bool store_key_fits(const void *key, size_t key_len)
{
    return key != NULL && key_len > 0 && key_len <= HF_STORE_KEY_MAX;
}

bool store_changes_fit(const struct hf_store_change *changes, size_t count)
{
    if (changes == NULL && count > 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct hf_store_change *one = &changes[i];
        if (!store_key_fits(one->key, one->key_len))
            return false;
        if (!one->remove && ((one->value == NULL && one->value_len > 0) ||
                             one->value_len > HF_STORE_VALUE_MAX))
            return false;
    }
    return true;
}

bool store_table_set(char table[HF_STORE_TABLE_BYTES], const char *name)
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
