/* store.c - what all stores share. */
#include "holdfast/store.h"

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
