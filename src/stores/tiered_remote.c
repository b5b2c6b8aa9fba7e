/* tiered_remote.c - L3: one Redis for many processes.
 *
 * Every step that must be one step for all processes is a script. See
 * tiered_link.h for what is kept there, and why.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

#include "base/memory.h"
#include "stores/tiered_link.h"

#define TRIES_MS 20u /* how often a load by another is looked for */
#define FAILURES 3u  /* in a row, and Redis is left alone for a while */
#define ALONE_NS UINT64_C(500000000)

uint64_t hf_link_number(struct tiered_remote *remote)
{
    /* Relaxed: different numbers are all that is asked of it. */
    return hf_u64_add(&remote->numbers, 1, __ATOMIC_RELAXED) + 1;
}

void hf_link_unique(struct tiered_remote *remote, char out[TIERED_TOKEN_MAX])
{
    (void)snprintf(out, TIERED_TOKEN_MAX, "%s%016" PRIx64, remote->id,
                   hf_link_number(remote));
}

/* ---- Reading and filling. ---- */

static struct tiered_block *block_of(struct tiered_remote *remote,
                                     const void *key, size_t key_len,
                                     const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_STRING)
        return NULL;
    tiered_count(&remote->l3_hits);
    return hf_tiered_block_new(key, key_len, reply->str, (size_t)reply->len);
}

static enum tiered_claim claim_read(struct tiered_remote *remote,
                                    const void *key, size_t key_len,
                                    const redisReply *reply,
                                    struct tiered_ticket *ticket,
                                    struct tiered_block **out)
{
    long long kind = reply->type == REDIS_REPLY_ARRAY && reply->elements > 0
                         ? reply->element[0]->integer
                         : 0;

    if (kind == 1 && reply->elements == 3) {
        long long left_ms = reply->element[2]->integer;
        ticket->ttl_ns = left_ms > 0 ? (uint64_t)left_ms * HF_NS_PER_MS : 1;
        *out = block_of(remote, key, key_len, reply->element[1]);
        return *out != NULL ? TIERED_FOUND : TIERED_DOWN;
    }
    if (kind == 2 && reply->elements == 2 &&
        (size_t)reply->element[1]->len < TIERED_TOKEN_MAX) {
        ticket->token_len = (size_t)reply->element[1]->len;
        memcpy(ticket->token, reply->element[1]->str, ticket->token_len);
        return TIERED_LOAD;
    }
    return kind == 3 ? TIERED_WAIT : TIERED_DOWN;
}

enum tiered_claim hf_tiered_remote_claim(struct tiered_remote *remote,
                                         const void *key, size_t key_len,
                                         struct tiered_ticket *ticket,
                                         struct tiered_block **out)
{
    redisReply *reply;
    char time[24];
    enum tiered_claim claim = TIERED_DOWN;

    *ticket = (struct tiered_ticket){
        /* Acquire: what is heard from here on ends a wait. */
        .heard = hf_u32_load(&remote->heard, __ATOMIC_ACQUIRE)};
    hf_link_unique(remote, ticket->mine);
    (void)snprintf(time, sizeof time, "%u", remote->tiered->opts.load_ms);
    struct hf_bytes args[] = {hf_bytes_text(ticket->mine), hf_bytes_text(time)};
    if (hf_link_call(remote, LINK_CLAIM, hf_bytes(key, key_len), args, 2,
                     &reply) == HF_OK)
        claim = claim_read(remote, key, key_len, reply, ticket, out);
    freeReplyObject(reply);
    if (claim == TIERED_WAIT)
        tiered_count(&remote->load_waits);
    return claim;
}

void hf_tiered_remote_fill(struct tiered_remote *remote, const void *key,
                           size_t key_len, const struct tiered_ticket *ticket,
                           const struct tiered_block *block)
{
    uint64_t ttl_ms = remote->tiered->opts.ttl_ns / HF_NS_PER_MS;
    redisReply *reply;
    char time[24];

    (void)snprintf(time, sizeof time, "%" PRIu64, block != NULL ? ttl_ms : 0);
    struct hf_bytes args[] = {
        hf_bytes_text(ticket->mine),
        hf_bytes(ticket->token, ticket->token_len),
        hf_bytes_text(remote->channel),
        hf_bytes_text(time),
        block != NULL ? hf_bytes(tiered_value(block), block->len)
                      : hf_bytes_text(""),
    };
    (void)hf_link_call(remote, LINK_FILL, hf_bytes(key, key_len), args, 5,
                       &reply);
    if (reply != NULL && block != NULL)
        tiered_count(reply->integer == 1 ? &remote->fills
                                         : &remote->fills_refused);
    freeReplyObject(reply);
}

void hf_tiered_remote_wait(struct tiered_remote *remote,
                           const struct tiered_ticket *ticket,
                           uint64_t deadline_ns)
{
    /* A message may be lost with the connection: look again soon anyway. */
    uint64_t again_ns = hf_clock_after_ms(remote->clock, TRIES_MS);
    uint32_t key = hf_event_prepare(&remote->heard_event);

    /* Acquire: pairs with the listener's count. */
    if (hf_u32_load(&remote->heard, __ATOMIC_ACQUIRE) != ticket->heard ||
        tiered_is_shut(remote->tiered))
        hf_event_cancel(&remote->heard_event, key);
    else
        (void)hf_event_wait(&remote->heard_event, key, remote->clock,
                            again_ns < deadline_ns ? again_ns : deadline_ns);
}

enum hf_status hf_tiered_remote_get(struct tiered_remote *remote,
                                    const void *key, size_t key_len,
                                    struct tiered_block **out)
{
    struct tiered_ticket ticket;

    /* A claim that is not used: it makes nobody wait, for it is given back. */
    switch (hf_tiered_remote_claim(remote, key, key_len, &ticket, out)) {
    case TIERED_FOUND:
        return HF_OK;
    case TIERED_LOAD:
        hf_tiered_remote_fill(remote, key, key_len, &ticket, NULL);
        return HF_NOTFOUND;
    case TIERED_WAIT:
        return HF_NOTFOUND;
    case TIERED_DOWN:
        break;
    }
    return HF_IO;
}

/* ---- Open, close, figures. ---- */

static int wire_create(void *context, void **resource)
{
    *resource = hf_link_wire_open(context);
    return *resource == NULL;
}

static void wire_destroy(void *context, void *resource)
{
    (void)context;
    hf_link_wire_close(resource);
}

bool hf_tiered_remote_leased(const struct tiered_remote *remote,
                             uint64_t now_ns)
{
    /* Acquire: what the listener did before it took up the lease. */
    return now_ns < hf_u64_load(&remote->lease_until_ns, __ATOMIC_ACQUIRE);
}

static enum hf_status is_leased(void *context)
{
    const struct tiered_remote *remote = context;

    return hf_tiered_remote_leased(remote, hf_clock_now_ns(remote->clock))
               ? HF_OK
               : HF_PENDING;
}

static void name_all(struct tiered_remote *remote)
{
    const char *prefix = remote->tiered->opts.prefix;
    uint64_t id = 0;

    if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id)
        id = hf_clock_wall_us(remote->clock) ^ (uint64_t)(uintptr_t)remote;
    (void)snprintf(remote->id, sizeof remote->id, "%016" PRIx64, id);
    (void)snprintf(remote->channel, LINK_NAME_MAX, "%s:c", prefix);
    (void)snprintf(remote->answers, LINK_NAME_MAX, "%s:a:%s", prefix,
                   remote->id);
}

enum hf_status hf_tiered_remote_open(struct hf_tiered *tiered)
{
    struct tiered_remote *remote = hf_alloc_zeroed(sizeof *remote);

    if (remote == NULL)
        return HF_NOMEM;
    tiered->remote = remote;
    remote->tiered = tiered;
    remote->clock = tiered->clock;
    remote->wake_fd = -1;
    name_all(remote);
    struct hf_lender_opts lender = {
        .name = tiered->opts.name,
        .create = wire_create,
        .destroy = wire_destroy,
        .context = remote,
        .max = tiered->opts.connections,
        .direct = true,
        .trust_ns = HF_FOREVER, /* a broken one is seen when it is used */
        .clock = tiered->clock,
    };
    struct hf_breaker_opts breaker = {.name = tiered->opts.name,
                                      .failures_max = FAILURES,
                                      .open_ns = ALONE_NS};
    enum hf_status status = hf_lender_open(&remote->lender, &lender);
    if (status == HF_OK)
        status = hf_breaker_new(&remote->breaker, &breaker);
    if (status == HF_OK)
        status = hf_link_listen(remote);
    if (status == HF_OK)
        (void)hf_event_until(
            &remote->leased, is_leased, remote, remote->clock,
            hf_clock_after_ms(remote->clock, tiered->opts.timeout_ms));
    return status;
}

void hf_tiered_remote_shutdown(struct tiered_remote *remote)
{
    hf_event_wake_all(&remote->heard_event);
    hf_event_wake_all(&remote->answered);
}

void hf_tiered_remote_close(struct hf_tiered *tiered)
{
    struct tiered_remote *remote = tiered->remote;

    hf_link_stop(remote);
    hf_lender_close(remote->lender);
    hf_breaker_free(remote->breaker);
    hf_free(remote);
    tiered->remote = NULL;
}

void hf_tiered_remote_stats(const struct tiered_remote *remote,
                            struct hf_tiered_stats *out)
{
    out->l3_hits = hf_u64_load(&remote->l3_hits, __ATOMIC_RELAXED);
    out->load_waits = hf_u64_load(&remote->load_waits, __ATOMIC_RELAXED);
    out->fills = hf_u64_load(&remote->fills, __ATOMIC_RELAXED);
    out->fills_refused = hf_u64_load(&remote->fills_refused, __ATOMIC_RELAXED);
    out->heard = hf_u64_load(&remote->changes_heard, __ATOMIC_RELAXED);
    out->leases_lost = hf_u64_load(&remote->leases_lost, __ATOMIC_RELAXED);
    out->redis_errors = hf_u64_load(&remote->errors, __ATOMIC_RELAXED);
}
