/* events.c - EVENTS, page after page, over as many connections as it takes. */
#include "cli/commands.h"

#include <poll.h>

#include "cli/call.h"
#include "cli/show.h"
#include "cli/words.h"

/* How long the server may wait for the next event, and we for a server that
 * is gone. */
#define WAIT_MS  30000u
#define AGAIN_MS 200
#define PAGE_MAX 1000u

static const char about[] =
    "Prints what happened to locks, stock, reservations and sessions, in\n"
    "order, a line for each change: its number, its kind, when, to what. It\n"
    "begins with the oldest that the server keeps, or behind --from, which\n"
    "is the number of the last event that is known already.\n"
    "\n"
    "With --follow it waits for more and goes on until it is stopped. If the\n"
    "server goes away it tries again until it is back, and misses and\n"
    "repeats nothing.\n"
    "\n"
    "What the server does not keep any more is told on the standard error.\n"
    "With --from and without --follow the exit code is 1 then.\n";

static const char examples[] =
    "  holdfast events --match 'hf:stock:*' --count 20\n"
    "  holdfast events --follow --match 'hf:lock:invoice-*'\n"
    "  holdfast events --from 4711 --json | jq .kind\n";

#define FROM_NONE UINT64_MAX
static struct call call = {.name = "events", .client = {.fd = -1}};
static const char *match;
static uint64_t from = FROM_NONE, left = UINT64_MAX;
static bool follow;

/* The value of that field of a map, as it stands there. */
static struct hf_bytes find_part(struct hf_bytes map, const char *field)
{
    struct resp_value value;
    size_t at = 0;

    (void)resp_read(map, &at, &value);
    while (resp_read(map, &at, &value) == HF_OK) {
        size_t start = at;
        if (resp_skip(map, &at) != HF_OK)
            break;
        if (hf_bytes_equal(value.text, hf_bytes_text(field)))
            return hf_bytes(map.data + start, at - start);
    }
    return hf_bytes("", 0);
}

/* Asks for the next page. A server that was there is waited for. */
static int ask(struct hf_bytes *reply)
{
    enum hf_status status;
    bool told = false;

    for (;;) {
        struct words request = {0};
        bool known = call.client.reached;
        words_text(&request, "EVENTS");
        words_text(&request, "FROM");
        words_number(&request, from == FROM_NONE ? 0 : from);
        words_amount(&request, "COUNT", left < PAGE_MAX ? left : PAGE_MAX);
        words_amount(&request, "WAIT", follow ? WAIT_MS : 0);
        words_option(&request, "MATCH", match);
        status = call_try(&call, request.count, request.list, reply);
        if (status == HF_OK || !follow || !(known || told))
            return call_judge(&call, status, *reply);
        if (!told)
            (void)call_judge(&call, status, *reply);
        told = true;
        call_close(&call);
        (void)poll(NULL, 0, AGAIN_MS);
    }
}

/* A line for each event. */
static int print(struct hf_bytes events, int64_t count)
{
    struct hf_buf text = {0};
    enum hf_status status = HF_OK;
    struct resp_value head;
    size_t at = 0;

    if (!call.json)
        status = show_reply(&text, events);
    else
        (void)resp_read(events, &at, &head);
    for (int64_t i = 0; call.json && i < count && status == HF_OK; i++) {
        size_t start = at;
        status = resp_skip(events, &at);
        if (status == HF_OK)
            status =
                show_json(&text, hf_bytes(events.data + start, at - start));
        if (status == HF_OK)
            status = hf_buf_append(&text, "\n", 1);
    }
    if (status == HF_OK && text.len > 0)
        fwrite(text.data, 1, text.len, stdout);
    hf_buf_destroy(&text);
    if (status != HF_OK)
        fprintf(stderr, "holdfast events: the answer cannot be shown: %s\n",
                hf_status_text(status));
    return status == HF_OK && fflush(stdout) == 0 ? CLI_DONE : CLI_FAILED;
}

/* Prints a page and goes on behind it; CLI_FAILED also for a gap. `*more`:
 * there may be another page. */
static int take(struct hf_bytes reply, bool *more)
{
    struct hf_bytes events = find_part(reply, "events");
    struct resp_value head = {0};
    int64_t next, gap;
    size_t at = 0;

    if (!resp_field_number(reply, "next", &next) ||
        !resp_field_number(reply, "gap", &gap) ||
        resp_read(events, &at, &head) != HF_OK) {
        fprintf(stderr, "holdfast events: the answer is no page of events\n");
        return CLI_FAILED;
    }
    bool missed = gap > 0 && from != FROM_NONE;
    if (missed)
        fprintf(stderr,
                "holdfast events: what happened from %llu up to %lld is not "
                "kept any more\n",
                (unsigned long long)from + 1, (long long)gap);
    *more = follow || head.number > 0 || gap > 0 ||
            (uint64_t)next > (from == FROM_NONE ? 0 : from);
    from = (uint64_t)next;
    left -= left == UINT64_MAX ? 0 : (uint64_t)head.number;
    *more = *more && left > 0;
    int code = print(events, head.number);
    return code == CLI_DONE && missed && !follow ? CLI_FAILED : code;
}

static int run(void)
{
    int result = CLI_DONE;
    struct hf_bytes reply;
    bool more = true;

    while (more) {
        int code = ask(&reply);
        if (code != CLI_DONE)
            return code;
        code = take(reply, &more);
        if (code != CLI_DONE)
            result = code;
        if (code != CLI_DONE && ferror(stdout))
            return code;
    }
    return result;
}

int events_main(int argc, char **argv)
{
    const struct args_option options[] = {
        ARGS_NUMBER("from", "N", "only what happened after this number", from,
                    0, INT64_MAX),
        ARGS_TEXT("match", "PATTERN",
                  "only of channels that match, such as 'hf:lock:*'", match),
        ARGS_NUMBER("count", "N", "how many at most (all)", left, 1, INT64_MAX),
        ARGS_FLAG("follow", "wait for more", follow),
        CLIENT_OPTIONS(&call.address),
        ARGS_FLAG("json", "print one JSON object per event", call.json),
    };
    const struct args_spec spec = {
        .name = "events",
        .usage = "[--from N] [--match PATTERN] [--count N] [--follow]",
        .about = about,
        .examples = examples,
        .options = options,
        .option_count = sizeof options / sizeof *options,
    };
    struct args args;

    int code = client_args(&spec, argc, argv, &call.address, &args);
    if (code != ARGS_GO)
        return code;
    if (args.count > 0 || args.rest != NULL)
        return args_wrong(&spec, "nothing but options is taken");
    call.wait_ms = follow ? WAIT_MS : 0;
    code = run();
    call_close(&call);
    return code;
}
