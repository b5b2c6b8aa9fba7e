/* held.c - from a parsed line to a lease, and back. */
#include "cli/held.h"

#include "cli/call.h"

/* --wait, which is a number or the word. */
static int parse_wait(struct held *held, const struct args_spec *spec)
{
    if (held->wait == NULL)
        return ARGS_GO;
    if (strcmp(held->wait, "forever") == 0) {
        held->wait_ms = LEASE_FOREVER;
        return ARGS_GO;
    }
    if (hf_parse_u64(hf_bytes_text(held->wait), &held->wait_ms) == HF_OK &&
        held->wait_ms <= HELD_WAIT_MAX_MS)
        return ARGS_GO;
    return args_wrong(spec,
                      "--wait takes milliseconds from 0 to %u, or forever, "
                      "not '%s'",
                      HELD_WAIT_MAX_MS, held->wait);
}

int held_parse(struct held *held, const struct args_spec *spec, int argc,
               char **argv, struct args *args)
{
    held->lease.program = spec->name;
    int code = client_args(spec, argc, argv, &held->address, args);
    if (code == ARGS_GO)
        code = parse_wait(held, spec);
    if (code != ARGS_GO)
        return code;
    if (args->rest == NULL || args->rest[0] == NULL)
        return args_wrong(spec, "a command is needed behind --");
    if (held->lease.owner != NULL)
        return ARGS_GO;
    if (owner_make(held->owner) != HF_OK) {
        fprintf(stderr,
                "holdfast %s: the system gives no randomness for an "
                "owner\n",
                spec->name);
        return CLI_FAILED;
    }
    held->lease.owner = held->owner;
    return ARGS_GO;
}

void held_words(const struct held *held, struct words *request)
{
    words_option(request, "OWNER", held->lease.owner);
    words_amount(request, "TTL", held->lease.ttl_ms);
    if (held->wait_ms == LEASE_FOREVER)
        words_text(request, "FOREVER");
    else
        words_amount(request, "WAIT", held->wait_ms);
}

enum hf_status held_take(struct held *held, const struct words *request,
                         struct hf_bytes *error)
{
    /* version 3 has pushes, which tell of a loss before the next renewal */
    struct hf_bytes hello[] = {hf_bytes_text("HELLO"), hf_bytes_text("3")};
    struct lease *lease = &held->lease;
    struct hf_bytes reply;
    enum hf_status status =
        client_open(&lease->client, &held->address, 0, &lease->target);

    if (status == HF_OK)
        status = client_call(&lease->client, 2, hello,
                             client_now_ns() + CLIENT_REPLY_MS * HF_NS_PER_MS,
                             &reply);
    return status == HF_OK ? lease_take(lease, request, held->wait_ms, error)
                           : status;
}

int held_explain(const struct held *held, enum hf_status status,
                 struct hf_bytes error)
{
    char reason[CLIENT_REASON_MAX];

    if (status == HF_FAILED)
        return call_refused(held->lease.program, error);
    client_explain(&held->lease.client, &held->address, status, reason);
    fprintf(stderr, "holdfast %s: %s\n", held->lease.program, reason);
    return CLI_UNREACHABLE;
}

void held_give(struct held *held)
{
    if (lease_release(&held->lease) != HF_OK)
        fprintf(stderr,
                "holdfast %s: '%s' could not be given back; it ends by "
                "itself\n",
                held->lease.program, held->lease.name);
}

int held_run(struct held *held, const struct words *request, char **command)
{
    struct hf_bytes error = {0};
    enum hf_status status = held_take(held, request, &error);
    int code;

    if (status == HF_OK) {
        code = run_command(&held->lease, command, NULL);
        if (code != CLI_LOST)
            held_give(held);
    } else {
        code = held_explain(held, status, error);
    }
    client_close(&held->lease.client);
    return code;
}
