/* lease.c - takes, renews and gives back, and when to do which. */
#include "cli/lease.h"

#include <assert.h>

#include "resp/resp.h"

/* The words of each kind, and the fields of its replies. */
static const struct {
    const char *renew[2];
    const char *give[2];
    bool named;         /* the name comes before the number */
    bool timed;         /* a renewal says for how long */
    const char *number; /* field: the token, or what is in its place */
    const char *left;   /* field: milliseconds until the end */
} kinds[] = {
    [LEASE_LOCK] = {{"RENEW"}, {"UNLOCK"}, true, true, "token", "safe_ms"},
    [LEASE_SET] =
        {{"RENEWSET"}, {"UNLOCKSET"}, false, true, "token", "safe_ms"},
    [LEASE_ELECTION] = {{"RENEW"}, {"RESIGN"}, true, true, "token", "safe_ms"},
    [LEASE_SESSION] = {{"SESSION", "KEEP"},
                       {"SESSION", "CLOSE"},
                       false,
                       false,
                       "session",
                       "ttl_ms"},
};

static uint64_t clamp(uint64_t number, uint64_t low, uint64_t high)
{
    return number < low ? low : number > high ? high : number;
}

static uint64_t span_ns(const struct lease *lease)
{
    assert(lease->safe_ns >= lease->since_ns);
    return lease->safe_ns - lease->since_ns;
}

uint64_t lease_renew_ns(const struct lease *lease)
{
    return lease->since_ns + span_ns(lease) / 3;
}

uint64_t lease_warn_ns(const struct lease *lease)
{
    return lease->since_ns + span_ns(lease) / 3 * 2;
}

/* Early enough for the signal to be delivered on a busy machine. */
uint64_t lease_kill_ns(const struct lease *lease)
{
    return lease->safe_ns - clamp(span_ns(lease) / 10, 0, 1000 * HF_NS_PER_MS);
}

void lease_extend(struct lease *lease, uint64_t asked_ns, uint64_t safe_ms)
{
    uint64_t whole_ns = clamp(safe_ms, 0, LEASE_TTL_MAX_MS) * HF_NS_PER_MS;
    uint64_t drift_ns = whole_ns / 100 + 2 * HF_NS_PER_MS;

    lease->since_ns = asked_ns;
    lease->safe_ns = asked_ns + (whole_ns > drift_ns ? whole_ns - drift_ns : 0);
}

bool lease_is_error(struct hf_bytes reply, struct hf_bytes *text)
{
    struct resp_value value;
    size_t at = 0;

    if (resp_read(reply, &at, &value) != HF_OK || value.kind != RESP_ERROR)
        return false;
    *text = value.text;
    return true;
}

bool lease_starts(struct hf_bytes text, const char *code)
{
    size_t len = strlen(code);

    return text.len >= len && !memcmp(text.data, code, len);
}

/* `verb`, and what it is about. */
static void address_words(const struct lease *lease, struct words *request,
                          const char *const verb[2])
{
    words_text(request, verb[0]);
    if (verb[1] != NULL)
        words_text(request, verb[1]);
    if (kinds[lease->kind].named)
        words_text(request, lease->name);
    words_number(request, lease->token);
}

static enum hf_status send_renew(struct lease *lease)
{
    struct words request = {0};

    address_words(lease, &request, kinds[lease->kind].renew);
    if (kinds[lease->kind].timed)
        words_amount(&request, "TTL", lease->ttl_ms);
    return client_send(&lease->client, request.count, request.list);
}

/* Extends it by a renewal. If that brings nothing, its end stands: it was
 * revoked or wounded, or may be held no longer. Then the work must be told to
 * stop at two thirds of the whole time, and not of what is left again and
 * again. */
static void extend_on(struct lease *lease, uint64_t safe_ms)
{
    uint64_t since_ns = lease->since_ns;
    uint64_t end_ns = lease->safe_ns + span_ns(lease) / 50;

    lease_extend(lease, lease->asked_ns, safe_ms);
    if (lease->safe_ns > end_ns)
        return;
    lease->since_ns = since_ns;
    lease->retry_ns = lease->asked_ns + (lease->safe_ns - lease->asked_ns) / 3;
}

/* What a renewal was answered. HF_IO: neither yes nor no. */
static enum hf_status judge_renew(struct lease *lease, struct hf_bytes reply)
{
    struct hf_bytes error;
    int64_t safe_ms;

    if (lease_is_error(reply, &error)) {
        bool gone = lease_starts(error, "LOST") ||
                    lease_starts(error, "NOTHELD") ||
                    lease_starts(error, "NOTFOUND");
        return gone ? HF_CLOSED : HF_IO;
    }
    if (!resp_field_number(reply, kinds[lease->kind].left, &safe_ms) ||
        safe_ms < 0)
        return HF_IO;
    extend_on(lease, (uint64_t)safe_ms);
    return HF_OK;
}

/* The first renewal, when the grant came so late after the question that
 * counting from the question would leave little time. */
static enum hf_status renew_now(struct lease *lease, struct hf_bytes *error)
{
    struct hf_bytes reply;
    uint64_t now_ns = client_now_ns();

    lease->asked_ns = now_ns;
    enum hf_status status = send_renew(lease);
    if (status == HF_OK)
        status = client_step(&lease->client);
    if (status == HF_OK)
        status = client_receive(
            &lease->client, now_ns + CLIENT_REPLY_MS * HF_NS_PER_MS, &reply);
    if (status != HF_OK)
        return status;
    status = judge_renew(lease, reply);
    lease->asked_ns = 0;
    if (status == HF_OK)
        return HF_OK;
    return lease_is_error(reply, error) ? HF_FAILED : HF_INVALID;
}

/* What the grant says; false: it is not understood. */
static bool read_grant(struct lease *lease, struct hf_bytes reply,
                       int64_t *safe_ms)
{
    int64_t token;
    int64_t fence;

    if (!resp_field_number(reply, kinds[lease->kind].number, &token) ||
        token < 0 ||
        !resp_field_number(reply, kinds[lease->kind].left, safe_ms) ||
        *safe_ms < 0)
        return false;
    lease->token = (uint64_t)token;
    if (!resp_field_number(reply, "fence", &fence))
        fence = lease->counting ? 0 : token;
    lease->fence = (uint64_t)fence;
    return true;
}

enum hf_status lease_take(struct lease *lease, const struct words *request,
                          uint64_t wait_ms, struct hf_bytes *error)
{
    struct hf_bytes reply;
    uint64_t asked_ns = client_now_ns();
    uint64_t deadline_ns =
        wait_ms == LEASE_FOREVER
            ? UINT64_MAX
            : asked_ns + (wait_ms + CLIENT_REPLY_MS) * HF_NS_PER_MS;
    int64_t safe_ms;

    enum hf_status status = client_call(&lease->client, request->count,
                                        request->list, deadline_ns, &reply);
    if (status != HF_OK)
        return status;
    if (lease_is_error(reply, error))
        return HF_FAILED;
    if (!read_grant(lease, reply, &safe_ms))
        return HF_INVALID;
    lease_extend(lease, asked_ns, (uint64_t)safe_ms);
    if (client_now_ns() - asked_ns > span_ns(lease) / 6)
        return renew_now(lease, error);
    return HF_OK;
}

/* Gives the question up; the next one uses a new connection. */
static void drop(struct lease *lease, uint64_t now_ns)
{
    uint64_t pause_ns =
        clamp(span_ns(lease) / 30, 5 * HF_NS_PER_MS, 500 * HF_NS_PER_MS);

    client_close(&lease->client);
    lease->asked_ns = 0;
    lease->retry_ns = now_ns + pause_ns;
}

static uint64_t answer_limit_ns(const struct lease *lease)
{
    return lease->asked_ns + span_ns(lease) / 6;
}

static enum hf_status ask(struct lease *lease, uint64_t now_ns)
{
    enum hf_status status = HF_OK;

    if (lease->client.fd < 0)
        status = client_start(&lease->client, &lease->target);
    lease->asked_ns = now_ns;
    if (status == HF_OK)
        status = send_renew(lease);
    return status;
}

/* Looks for the answer to the question under way, and for pushes. HF_CLOSED
 * in `*held`: it is not ours any more. */
static enum hf_status listen_now(struct lease *lease, enum hf_status *held)
{
    struct hf_bytes reply;
    enum hf_status status = client_step(&lease->client);
    enum hf_status took = client_take(&lease->client, &reply);

    if (took == HF_OK && lease->asked_ns != 0) {
        took = judge_renew(lease, reply);
        if (took == HF_CLOSED)
            *held = HF_CLOSED;
        lease->asked_ns = 0;
    }
    return took != HF_MORE && took != HF_OK ? took : status;
}

enum hf_status lease_step(struct lease *lease, uint64_t now_ns)
{
    enum hf_status held = HF_OK;
    enum hf_status status = HF_OK;

    if (lease->asked_ns == 0 && now_ns >= lease_wake_ns(lease))
        status = ask(lease, now_ns);
    if (status == HF_OK && lease->client.fd >= 0)
        status = listen_now(lease, &held);
    if (held == HF_CLOSED)
        return HF_CLOSED;
    if (status == HF_OK && lease->asked_ns == 0 && lease->client.warned) {
        lease->client.warned = false;
        status = ask(lease, now_ns);
        if (status == HF_OK)
            status = client_step(&lease->client);
    }
    bool late = lease->asked_ns != 0 && now_ns >= answer_limit_ns(lease);
    if (status != HF_OK || late)
        drop(lease, now_ns);
    return HF_OK;
}

uint64_t lease_wake_ns(const struct lease *lease)
{
    uint64_t renew_ns = lease_renew_ns(lease);

    if (lease->asked_ns != 0)
        return answer_limit_ns(lease);
    return renew_ns > lease->retry_ns ? renew_ns : lease->retry_ns;
}

enum hf_status lease_call(struct lease *lease, const struct words *request,
                          uint64_t deadline_ns, struct hf_bytes *reply)
{
    enum hf_status status = HF_OK;

    /* an answer under way would be taken for this one's */
    if (lease->asked_ns != 0)
        client_close(&lease->client);
    lease->asked_ns = 0;
    if (lease->client.fd < 0)
        status = client_start(&lease->client, &lease->target);
    while (status == HF_OK && lease->client.connecting)
        status = client_wait(&lease->client, deadline_ns);
    if (status == HF_OK)
        status = client_call(&lease->client, request->count, request->list,
                             deadline_ns, reply);
    if (status != HF_OK)
        client_close(&lease->client);
    return status;
}

void lease_give_words(const struct lease *lease, struct words *request)
{
    address_words(lease, request, kinds[lease->kind].give);
}

enum hf_status lease_release(struct lease *lease)
{
    struct words request = {0};
    struct hf_bytes reply;
    struct hf_bytes error;

    lease_give_words(lease, &request);
    enum hf_status status = lease_call(
        lease, &request, client_now_ns() + 1000 * HF_NS_PER_MS, &reply);
    return status == HF_OK && lease_is_error(reply, &error) ? HF_CLOSED
                                                            : status;
}
