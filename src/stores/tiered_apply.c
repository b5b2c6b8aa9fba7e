/* tiered_apply.c - changes: to the store first, then all levels let go.
 *
 * Why in this order is said in tiered.c.
 */
#include "stores/tiered_state.h"

static enum hf_status drop_near(void *context, const void *key, size_t key_len)
{
    struct hf_tiered *tiered = context;
    enum hf_status status = hf_cache_remove(tiered->l2, key, key_len);

    /* HF_NOTFOUND: the stamp has moved all the same. */
    return status == HF_NOTFOUND ? HF_OK : status;
}

/* So that drop_near() will not want memory: a record for this thread in L2. */
static enum hf_status prepare(struct hf_tiered *tiered)
{
    enum hf_status status = hf_cache_enter(tiered->l2);

    if (status == HF_OK)
        hf_cache_leave(tiered->l2);
    return status;
}

static enum hf_status forget(struct hf_tiered *tiered, const void *key,
                             size_t key_len, uint64_t deadline_ns)
{
    tiered_count(&tiered->changes);
    if (tiered->remote == NULL)
        return drop_near(tiered, key, key_len);
    return hf_tiered_remote_change(tiered->remote, key, key_len, deadline_ns,
                                   drop_near);
}

enum hf_status hf_tiered_invalidate(struct hf_tiered *tiered, const void *key,
                                    size_t key_len, uint64_t deadline_ns)
{
    if (tiered == NULL || key == NULL || key_len == 0 ||
        key_len > HF_STORE_KEY_MAX)
        return HF_INVALID;
    if (tiered_is_shut(tiered))
        return HF_CLOSED;
    enum hf_status status = prepare(tiered);
    return status != HF_OK ? status : forget(tiered, key, key_len, deadline_ns);
}

static bool change_is_valid(const struct hf_store_change *change)
{
    return change->key != NULL && change->key_len > 0 &&
           change->key_len <= HF_STORE_KEY_MAX &&
           (change->value != NULL || change->value_len == 0 ||
            change->remove) &&
           change->value_len <= HF_STORE_VALUE_MAX;
}

enum hf_status hf_tiered_apply(struct hf_tiered *tiered,
                               const struct hf_store_change *changes,
                               size_t count, uint64_t deadline_ns,
                               bool *written)
{
    if (written != NULL)
        *written = false;
    if (tiered == NULL || (changes == NULL && count > 0))
        return HF_INVALID;
    for (size_t i = 0; i < count; i++) {
        if (!change_is_valid(&changes[i]))
            return HF_INVALID;
    }
    if (count == 0)
        return HF_OK;
    enum hf_status status =
        tiered_is_shut(tiered) ? HF_CLOSED : prepare(tiered);
    if (status != HF_OK)
        return status;
    enum hf_status applied =
        tiered->store.apply(tiered->store.context, changes, count);
    if (written != NULL)
        *written = applied == HF_OK;
    /* Also after a failure: it may be there all the same. And all of them, also
     * if it is shut meanwhile. */
    for (size_t i = 0; i < count; i++) {
        enum hf_status told =
            forget(tiered, changes[i].key, changes[i].key_len, deadline_ns);
        /* That one was not told of is worse than that one was not heard of. */
        if (told != HF_OK && (status == HF_OK || status == HF_PENDING))
            status = told;
        else if (told == HF_IO)
            status = HF_IO;
    }
    return applied != HF_OK ? applied : status;
}

enum hf_status hf_tiered_put(struct hf_tiered *tiered, const void *key,
                             size_t key_len, const void *value,
                             size_t value_len, uint64_t deadline_ns)
{
    struct hf_store_change change = {
        .key = key, .key_len = key_len, .value = value, .value_len = value_len};

    return hf_tiered_apply(tiered, &change, 1, deadline_ns, NULL);
}

enum hf_status hf_tiered_delete(struct hf_tiered *tiered, const void *key,
                                size_t key_len, uint64_t deadline_ns)
{
    struct hf_store_change change = {
        .key = key, .key_len = key_len, .remove = true};

    return hf_tiered_apply(tiered, &change, 1, deadline_ns, NULL);
}

/* ---- As a store. ---- */

static enum hf_status store_read(void *context, const void *key, size_t key_len,
                                 void (*found)(void *arg, const void *value,
                                               size_t value_len),
                                 void *arg)
{
    return hf_tiered_read(context, key, key_len, HF_FOREVER, found, arg);
}

/* Once it is in the store the batch must not be applied again: whether others
 * have heard is their lease's to settle. */
static enum hf_status
store_apply(void *context, const struct hf_store_change *changes, size_t count)
{
    struct hf_tiered *tiered = context;
    bool written;
    enum hf_status status = hf_tiered_apply(
        tiered, changes, count,
        hf_clock_after_ms(tiered->clock, 2 * tiered->opts.lease_ms), &written);

    return written ? HF_OK : status;
}

enum hf_status hf_tiered_as_store(struct hf_tiered *tiered,
                                  struct hf_store *out)
{
    if (tiered == NULL || out == NULL)
        return HF_INVALID;
    *out = (struct hf_store){
        .read = store_read, .apply = store_apply, .context = tiered};
    return HF_OK;
}
