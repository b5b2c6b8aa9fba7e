/* tiered_change.c - a change that all processes must have heard of.
 *
 * One script makes L3 let go of the key, publishes, and says who listens. From
 * then on the answers come to the listener, which crosses them out here; some
 * come before the list of names does.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "holdfast/backoff.h"
#include "stores/tiered_link.h"

#define RETRY_MAX_NS UINT64_C(100000000)

/* What Redis said about those who listen. */
struct listeners {
    long long now_ms;   /* by Redis */
    long long until_ms; /* when the last of their leases ends */
    bool young;         /* there may be some that the set does not know */
};

/* Fills in the names of all but this process. */
static enum hf_status read_members(const struct tiered_remote *remote,
                                   const redisReply *reply,
                                   struct link_change *change,
                                   struct listeners *out)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[1]->type != REDIS_REPLY_ARRAY)
        return HF_IO;
    const redisReply *list = reply->element[1];
    long long now_ms = reply->element[0]->integer;
    *out = (struct listeners){.now_ms = now_ms, .until_ms = now_ms};
    change->names =
        hf_alloc_zeroed((list->elements / 2 + 1) * sizeof change->names[0]);
    if (change->names == NULL)
        return HF_NOMEM;
    for (size_t i = 0; i + 1 < list->elements; i += 2) {
        const redisReply *name = list->element[i];
        long long end_ms = strtoll(list->element[i + 1]->str, NULL, 10);
        if (name->str[0] == 's') {
            end_ms = strtoll(name->str + 1, NULL, 10) +
                     remote->tiered->opts.lease_ms;
            out->young = now_ms < end_ms;
        } else if (strcmp(name->str, remote->id) != 0 &&
                   (size_t)name->len == LINK_HEX) {
            memcpy(change->names[change->left++], name->str, LINK_HEX + 1);
        } else {
            continue;
        }
        if (end_ms > out->until_ms)
            out->until_ms = end_ms;
    }
    return HF_OK;
}

static void change_begin(struct tiered_remote *remote,
                         struct link_change *change)
{
    hf_mutex_lock(&remote->mutex);
    change->next = remote->changes;
    remote->changes = change;
    hf_mutex_unlock(&remote->mutex);
}

static void change_end(struct tiered_remote *remote, struct link_change *change)
{
    hf_mutex_lock(&remote->mutex);
    struct link_change **at = &remote->changes;
    while (*at != change)
        at = &(*at)->next;
    *at = change->next;
    hf_mutex_unlock(&remote->mutex);
    hf_free(change->names);
    hf_free(change->early);
}

static void cross_out(struct link_change *change, const char *id)
{
    for (size_t i = 0; i < change->left; i++) {
        if (strcmp(change->names[i], id) != 0)
            continue;
        change->left--;
        memcpy(change->names[i], change->names[change->left], LINK_HEX + 1);
        return;
    }
}

/* The names are known: those who answered before that are crossed out. */
static void change_known(struct tiered_remote *remote,
                         struct link_change *change)
{
    hf_mutex_lock(&remote->mutex);
    change->known = true;
    for (size_t i = 0; i < change->early_count; i++)
        cross_out(change, change->early[i]);
    hf_mutex_unlock(&remote->mutex);
}

/* An answer that comes while the names are being asked for. If it cannot be
 * noted, the lease of that process is waited for. */
static void note_early(struct link_change *change, const char *id)
{
    void *more = hf_realloc(change->early, (change->early_count + 1) *
                                               sizeof change->early[0]);
    if (more == NULL)
        return;
    change->early = more;
    memcpy(change->early[change->early_count++], id, LINK_HEX + 1);
}

void hf_link_answer(struct tiered_remote *remote, uint64_t seq, const char *id)
{
    bool is_last = false;

    hf_mutex_lock(&remote->mutex);
    for (struct link_change *change = remote->changes; change != NULL;
         change = change->next) {
        if (change->seq != seq)
            continue;
        if (change->known)
            cross_out(change, id);
        else
            note_early(change, id);
        is_last = change->known && change->left == 0;
    }
    hf_mutex_unlock(&remote->mutex);
    if (is_last)
        hf_event_wake_all(&remote->answered);
}

struct waiting {
    struct tiered_remote *remote;
    struct link_change *change;
    bool young;
};

static enum hf_status all_answered(void *context)
{
    struct waiting *waiting = context;

    hf_mutex_lock(&waiting->remote->mutex);
    size_t left = waiting->change->left;
    hf_mutex_unlock(&waiting->remote->mutex);
    if (left == 0 && !waiting->young)
        return HF_OK;
    return tiered_is_shut(waiting->remote->tiered) ? HF_CLOSED : HF_PENDING;
}

/* Until all have answered, or the leases of all who have not are over. */
static enum hf_status wait_for_others(struct tiered_remote *remote,
                                      struct link_change *change,
                                      const struct listeners *listeners,
                                      uint64_t told_ns, uint64_t deadline_ns)
{
    struct waiting waiting = {remote, change, listeners->young};
    uint64_t left_ms = (uint64_t)(listeners->until_ms - listeners->now_ms) + 1;
    uint64_t until_ns = told_ns + left_ms * HF_NS_PER_MS;
    enum hf_status status =
        hf_event_until(&remote->answered, all_answered, &waiting, remote->clock,
                       until_ns < deadline_ns ? until_ns : deadline_ns);

    if (status != HF_TIMEOUT)
        return status;
    return until_ns <= deadline_ns ? HF_OK : HF_PENDING;
}

/* Makes L3 let go of the key and tells the others; the answers come to
 * `change`. */
static enum hf_status tell(struct tiered_remote *remote, const void *key,
                           size_t key_len, struct link_change *change,
                           struct listeners *listeners)
{
    const size_t head = 1 + 2 * LINK_HEX;
    char token[TIERED_TOKEN_MAX];
    redisReply *reply;
    char *message = hf_alloc(head + 1 + key_len);

    if (message == NULL)
        return HF_NOMEM;
    hf_link_unique(remote, token);
    (void)snprintf(message, head + 1, "C%s%016" PRIx64, remote->id,
                   change->seq);
    memcpy(message + head, key, key_len);
    struct hf_bytes args[] = {hf_bytes_text(token),
                              hf_bytes_text(remote->channel),
                              hf_bytes(message, head + key_len)};
    enum hf_status status = hf_link_call(
        remote, LINK_CHANGE, hf_bytes(key, key_len), args, 3, &reply);
    if (status == HF_OK)
        status = read_members(remote, reply, change, listeners);
    freeReplyObject(reply);
    hf_free(message);
    return status;
}

static enum hf_status is_shut(void *context)
{
    return tiered_is_shut(context) ? HF_CLOSED : HF_PENDING;
}

enum hf_status hf_tiered_remote_change(
    struct tiered_remote *remote, const void *key, size_t key_len,
    uint64_t deadline_ns,
    enum hf_status (*drop)(void *context, const void *key, size_t key_len))
{
    struct link_change change = {.seq = hf_link_number(remote)};
    struct listeners listeners = {0};
    struct hf_backoff backoff;
    enum hf_status status;
    uint64_t pause_ns;

    (void)hf_backoff_init(&backoff,
                          &(struct hf_backoff_opts){.cap_ns = RETRY_MAX_NS});
    change_begin(remote, &change);
    for (;;) {
        status = tell(remote, key, key_len, &change, &listeners);
        uint64_t now_ns = hf_clock_now_ns(remote->clock);
        if (status != HF_IO ||
            hf_backoff_next(&backoff, now_ns, deadline_ns, &pause_ns) != HF_OK)
            break;
        if (hf_event_until(&remote->answered, is_shut, remote->tiered,
                           remote->clock, now_ns + pause_ns) == HF_CLOSED)
            break;
    }
    uint64_t told_ns = hf_clock_now_ns(remote->clock);
    enum hf_status dropped = drop(remote->tiered, key, key_len);
    if (status == HF_OK) {
        change_known(remote, &change);
        status =
            wait_for_others(remote, &change, &listeners, told_ns, deadline_ns);
    }
    change_end(remote, &change);
    return dropped != HF_OK ? dropped : status;
}
