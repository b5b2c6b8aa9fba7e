/* lease.c - LOCK, RENEW and UNLOCK, and when to do which. */
#include "cli/lease.h"

#include <assert.h>

#include "resp/resp.h"

#define MS_NS ((uint64_t)1000000)

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
    return lease->safe_ns - clamp(span_ns(lease) / 10, 0, 1000 * MS_NS);
}

void lease_extend(struct lease *lease, uint64_t asked_ns, uint64_t safe_ms)
{
    uint64_t whole_ns = clamp(safe_ms, 0, LEASE_TTL_MAX_MS) * MS_NS;
    uint64_t drift_ns = whole_ns / 100 + 2 * MS_NS;

    lease->since_ns = asked_ns;
    lease->safe_ns = asked_ns + (whole_ns > drift_ns ? whole_ns - drift_ns : 0);
}

static bool is_error(struct hf_bytes reply, struct hf_bytes *text)
{
    struct resp_value value;
    size_t at = 0;

    if (resp_read(reply, &at, &value) != HF_OK || value.kind != RESP_ERROR)
        return false;
    *text = value.text;
    return true;
}

static bool starts_with(struct hf_bytes text, const char *code)
{
    size_t len = strlen(code);

    return text.len >= len && !memcmp(text.data, code, len);
}

static enum hf_status send_renew(struct lease *lease)
{
    char token[HF_DIGITS_MAX];
    char ttl[HF_DIGITS_MAX];
    struct hf_bytes args[] = {
        hf_bytes_text("RENEW"),
        hf_bytes_text(lease->name),
        hf_bytes(token, hf_print_u64(token, lease->token)),
        hf_bytes_text("TTL"),
        hf_bytes(ttl, hf_print_u64(ttl, lease->ttl_ms)),
    };

    return client_send(&lease->client, sizeof args / sizeof *args, args);
}

/* What RENEW was answered. HF_IO: neither yes nor no. */
static enum hf_status judge_renew(struct lease *lease, struct hf_bytes reply)
{
    struct hf_bytes error;
    int64_t safe_ms;

    if (is_error(reply, &error)) {
        bool gone = starts_with(error, "LOST") ||
                    starts_with(error, "NOTHELD") ||
                    starts_with(error, "NOTFOUND");
        return gone ? HF_CLOSED : HF_IO;
    }
    if (!resp_field_number(reply, "safe_ms", &safe_ms) || safe_ms < 0)
        return HF_IO;
    lease_extend(lease, lease->asked_ns, (uint64_t)safe_ms);
    return HF_OK;
}

/* The first RENEW, when the grant came so late after the question that
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
        status = client_receive(&lease->client,
                                now_ns + CLIENT_REPLY_MS * MS_NS, &reply);
    if (status != HF_OK)
        return status;
    status = judge_renew(lease, reply);
    lease->asked_ns = 0;
    if (status != HF_OK && !is_error(reply, error))
        *error = hf_bytes_text("the server's answer is not understood");
    return status == HF_OK ? HF_OK : HF_INVALID;
}

enum hf_status lease_take(struct lease *lease, uint64_t wait_ms,
                          struct hf_bytes *error)
{
    char ttl[HF_DIGITS_MAX];
    char wait[HF_DIGITS_MAX];
    struct hf_bytes reply;
    struct hf_bytes args[] = {
        hf_bytes_text("LOCK"),  hf_bytes_text(lease->name),
        hf_bytes_text("OWNER"), hf_bytes_text(lease->owner),
        hf_bytes_text("TTL"),   hf_bytes(ttl, hf_print_u64(ttl, lease->ttl_ms)),
        hf_bytes_text("WAIT"),  hf_bytes(wait, hf_print_u64(wait, wait_ms)),
    };
    uint64_t asked_ns = client_now_ns();
    uint64_t deadline_ns = asked_ns + (wait_ms + CLIENT_REPLY_MS) * MS_NS;
    int64_t safe_ms;
    int64_t token;

    enum hf_status status = client_call(
        &lease->client, sizeof args / sizeof *args, args, deadline_ns, &reply);
    if (status != HF_OK)
        return status;
    if (is_error(reply, error))
        return starts_with(*error, "BUSY") || starts_with(*error, "TIMEOUT")
                   ? HF_EXISTS
                   : HF_INVALID;
    if (!resp_field_number(reply, "token", &token) || token < 0 ||
        !resp_field_number(reply, "safe_ms", &safe_ms) || safe_ms < 0) {
        *error = hf_bytes_text("the server's answer is not understood");
        return HF_INVALID;
    }
    lease->token = (uint64_t)token;
    lease_extend(lease, asked_ns, (uint64_t)safe_ms);
    if (client_now_ns() - asked_ns > span_ns(lease) / 6)
        return renew_now(lease, error);
    return HF_OK;
}

/* Gives the question up; the next one uses a new connection. */
static void drop(struct lease *lease, uint64_t now_ns)
{
    uint64_t pause_ns = clamp(span_ns(lease) / 30, 5 * MS_NS, 500 * MS_NS);

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

enum hf_status lease_step(struct lease *lease, uint64_t now_ns)
{
    struct hf_bytes reply;
    enum hf_status status = HF_OK;

    if (lease->asked_ns == 0 && now_ns >= lease_renew_ns(lease) &&
        now_ns >= lease->retry_ns)
        status = ask(lease, now_ns);
    if (status == HF_OK && lease->client.fd >= 0)
        status = client_step(&lease->client);
    if (lease->asked_ns != 0 && lease->client.fd >= 0) {
        enum hf_status took = client_take(&lease->client, &reply);
        if (took == HF_OK) {
            took = judge_renew(lease, reply);
            if (took == HF_CLOSED)
                return HF_CLOSED;
            lease->asked_ns = 0;
        }
        if (took != HF_MORE && took != HF_OK)
            status = took;
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

enum hf_status lease_release(struct lease *lease)
{
    char token[HF_DIGITS_MAX];
    struct hf_bytes reply;
    struct hf_bytes error;
    struct hf_bytes args[] = {
        hf_bytes_text("UNLOCK"),
        hf_bytes_text(lease->name),
        hf_bytes(token, hf_print_u64(token, lease->token)),
    };
    uint64_t deadline_ns = client_now_ns() + 1000 * MS_NS;
    enum hf_status status = HF_OK;

    /* an answer under way would be taken for this one's */
    if (lease->asked_ns != 0)
        client_close(&lease->client);
    if (lease->client.fd < 0)
        status = client_start(&lease->client, &lease->target);
    while (status == HF_OK && lease->client.connecting)
        status = client_wait(&lease->client, deadline_ns);
    if (status == HF_OK)
        status = client_call(&lease->client, 3, args, deadline_ns, &reply);
    if (status == HF_OK && is_error(reply, &error))
        status = HF_CLOSED;
    client_close(&lease->client);
    return status;
}
