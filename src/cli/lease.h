/* lease.h - a lock that is held by renewing it in time.
 *
 * All instants come from before the request that last extended the hold was
 * sent, so that the server's idea of its end is never earlier than ours:
 *
 *   since         renew           warn            kill   safe
 *     |------------|---------------|---------------|------|----> time
 *     sent       1/3 of it       2/3 of it        just before
 *
 * From `renew` on, the server is asked again and again, over a new connection
 * where the old one does not answer. An answer moves all of it to the right.
 * At `warn` the work under the lock must be told to stop, and at `kill` it
 * must be stopped.
 *
 * Time: the caller passes client_now_ns().
 */
#ifndef CLI_LEASE_H
#define CLI_LEASE_H

#include "cli/client.h"

#define LEASE_TTL_MIN_MS 100
#define LEASE_TTL_MAX_MS (24 * 3600 * 1000)

struct lease {
    const char *name;
    const char *owner;
    uint64_t ttl_ms;
    uint64_t token;

    uint64_t since_ns;
    uint64_t safe_ns;

    struct client client;
    struct client_target target;
    uint64_t asked_ns; /* when the question under way was sent; 0: none */
    uint64_t retry_ns; /* no new question before then */
};

uint64_t lease_renew_ns(const struct lease *lease);
uint64_t lease_warn_ns(const struct lease *lease);
uint64_t lease_kill_ns(const struct lease *lease);

/* Records an extension by `safe_ms` that was asked for at `asked_ns`; a part
 * of it is given up, as clocks do not go equally fast. */
void lease_extend(struct lease *lease, uint64_t asked_ns, uint64_t safe_ms);

/* Takes the lock over the open client, waiting in the queue up to `wait_ms`.
 * HF_OK: held. HF_EXISTS: busy, or the wait timed out; HF_INVALID: refused;
 * in both cases `*error` is the server's sentence, until the next call.
 * Otherwise as client_call. */
enum hf_status lease_take(struct lease *lease, uint64_t wait_ms,
                          struct hf_bytes *error);

/* Renews when it is time to, without waiting. HF_OK: held, as far as is
 * known; HF_CLOSED: the server says that it is not ours any more. */
enum hf_status lease_step(struct lease *lease, uint64_t now_ns);
/* When lease_step has something to do if the socket stays silent. */
uint64_t lease_wake_ns(const struct lease *lease);

/* Gives it back, waiting a moment for the answer. HF_CLOSED: it was not held
 * any more; otherwise as client_call. */
enum hf_status lease_release(struct lease *lease);

#endif
