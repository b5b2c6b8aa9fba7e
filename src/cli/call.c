/* call.c - connects, speaks version 3 (its maps are told from arrays), calls,
 * prints. */
#include "cli/call.h"

#include "cli/show.h"
#include "resp/resp.h"

/* Refusals that have an exit code of their own. */
static const struct {
    const char *code;
    enum cli_exit exit;
} refusals[] = {{"BUSY", CLI_BUSY},     {"SHORT", CLI_BUSY},
                {"TIMEOUT", CLI_BUSY},  {"DENIED", CLI_BUSY},
                {"LIMIT", CLI_BUSY},    {"DEADLOCK", CLI_DEADLOCK},
                {"DONE", CLI_WORK_DONE}};

static int unreachable(const struct call *call, enum hf_status status)
{
    char reason[CLIENT_REASON_MAX];

    client_explain(&call->client, &call->address, status, reason);
    fprintf(stderr, "holdfast %s: %s\n", call->name, reason);
    return CLI_UNREACHABLE;
}

uint64_t call_patience_ns(const struct call *call)
{
    return (call->wait_ms + CLIENT_REPLY_MS) * HF_NS_PER_MS;
}

int call_refused(const char *name, struct hf_bytes sentence)
{
    struct hf_buf text = {0};
    const char *space = memchr(sentence.data, ' ', sentence.len);
    struct hf_bytes code =
        hf_bytes(sentence.data, space != NULL ? (size_t)(space - sentence.data)
                                              : sentence.len);

    (void)show_text(&text, sentence);
    fprintf(stderr, "holdfast %s: %.*s\n", name, (int)text.len,
            text.data != NULL ? text.data : "");
    hf_buf_destroy(&text);
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        if (hf_bytes_is(code, refusals[i].code))
            return (int)refusals[i].exit;
    }
    return CLI_REFUSED;
}

enum hf_status call_try(struct call *call, size_t count,
                        const struct hf_bytes *args, struct hf_bytes *reply)
{
    struct hf_bytes hello[] = {hf_bytes_text("HELLO"), hf_bytes_text("3")};
    enum hf_status status = HF_OK;

    if (call->client.fd < 0) {
        status = client_open(&call->client, &call->address, 0, NULL);
        if (status == HF_OK)
            status = client_call(
                &call->client, 2, hello,
                client_now_ns() + CLIENT_REPLY_MS * HF_NS_PER_MS, reply);
    }
    if (status == HF_OK)
        status = client_call(&call->client, count, args,
                             client_now_ns() + call_patience_ns(call), reply);
    return status;
}

int call_judge(const struct call *call, enum hf_status status,
               struct hf_bytes reply)
{
    struct resp_value value;
    size_t at = 0;

    if (status == HF_OK)
        status = resp_read(reply, &at, &value);
    if (status != HF_OK)
        return unreachable(call, status);
    return value.kind == RESP_ERROR ? call_refused(call->name, value.text)
                                    : CLI_DONE;
}

int call_send(struct call *call, size_t count, const struct hf_bytes *args,
              struct hf_bytes *reply)
{
    return call_judge(call, call_try(call, count, args, reply), *reply);
}

int call_print(const struct call *call, struct hf_bytes reply)
{
    struct hf_buf text = {0};
    enum hf_status status =
        call->json ? show_json(&text, reply) : show_reply(&text, reply);

    if (status == HF_OK && text.len > 0)
        fwrite(text.data, 1, text.len, stdout);
    if (status == HF_OK && call->json)
        putchar('\n');
    if (status != HF_OK)
        fprintf(stderr, "holdfast %s: the answer cannot be shown: %s\n",
                call->name, hf_status_text(status));
    hf_buf_destroy(&text);
    return status == HF_OK && fflush(stdout) == 0 ? CLI_DONE : CLI_FAILED;
}

void call_close(struct call *call)
{
    client_close(&call->client);
}
