/* store.c - what all stores share. */
#include "keep/store_state.h"

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

bool hf_store_key_fits(const void *key, size_t key_len)
{
    return key != NULL && key_len > 0 && key_len <= HF_STORE_KEY_MAX;
}

bool hf_store_changes_fit(const struct hf_store_change *changes, size_t count)
{
    if (changes == NULL && count > 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct hf_store_change *one = &changes[i];
        if (!hf_store_key_fits(one->key, one->key_len))
            return false;
        if (!one->remove && ((one->value == NULL && one->value_len > 0) ||
                             one->value_len > HF_STORE_VALUE_MAX))
            return false;
    }
    return true;
}
