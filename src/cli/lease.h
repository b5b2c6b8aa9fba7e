/* lease.h - something that is held by renewing it in time: a lock, a set of
 * locks, an election or a session.
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
#include "cli/words.h"

#define LEASE_TTL_MIN_MS 100
#define LEASE_TTL_MAX_MS (24 * 3600 * 1000)

/* What is held. Each kind is taken, renewed and given back by words of its
 * own; see the table in lease.c. */
enum lease_kind { LEASE_LOCK, LEASE_SET, LEASE_ELECTION, LEASE_SESSION };

struct lease {
    const char *program; /* the subcommand, for messages */
    enum lease_kind kind;
    const char *name; /* of a set: its names, for people */
    const char *owner;
    uint64_t ttl_ms;
    bool counting;  /* permits, which have no fence */
    uint64_t token; /* of a session: its id */
    uint64_t fence; /* for FENCE; 0: there is none */

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

/* Sends `request` over the open client and waits for the grant, up to
 * `wait_ms` and what any answer may take; LEASE_FOREVER: as long as it takes.
 * HF_OK: held. HF_FAILED: refused, and `*error` is the server's sentence until
 * the next call. Otherwise as client_call. */
#define LEASE_FOREVER UINT64_MAX
enum hf_status lease_take(struct lease *lease, const struct words *request,
                          uint64_t wait_ms, struct hf_bytes *error);

/* Renews when it is time to, without waiting. HF_OK: held, as far as is
 * known; HF_CLOSED: the server says that it is not ours any more. */
enum hf_status lease_step(struct lease *lease, uint64_t now_ns);
/* When lease_step has something to do if the socket stays silent. */
uint64_t lease_wake_ns(const struct lease *lease);

/* Asks for something else over a connection that may have to be opened, until
 * `deadline_ns`; between renewals only. As client_call. */
enum hf_status lease_call(struct lease *lease, const struct words *request,
                          uint64_t deadline_ns, struct hf_bytes *reply);

/* The request that gives it back. */
void lease_give_words(const struct lease *lease, struct words *request);
/* Gives it back, waiting a moment for the answer. HF_CLOSED: it was not held
 * any more; otherwise as client_call. */
enum hf_status lease_release(struct lease *lease);

/* Whether the reply is an error; `*text` is then its sentence. */
bool lease_is_error(struct hf_bytes reply, struct hf_bytes *text);
/* Whether such a sentence starts with that code. */
bool lease_starts(struct hf_bytes text, const char *code);

#endif
