/* call.h - one request, one printed answer: what the plain commands share. */
#ifndef CLI_CALL_H
#define CLI_CALL_H

#include "cli/args.h"
#include "cli/client.h"

struct call {
    const char *name; /* of the subcommand, for messages */
    struct client_address address;
    bool json;
    uint64_t wait_ms; /* how long the server may wait before it answers */
    struct client client;
};

/* Rows for a table of options. */
#define CALL_OPTIONS(call)            \
    CLIENT_OPTIONS(&(call)->address), \
        ARGS_FLAG("json", "print one JSON object", (call)->json)

/* How long an answer may take: what the server was asked to wait, and as long
 * again as any answer may take. */
uint64_t call_patience_ns(const struct call *call);

/* Connects, if it is not connected, and calls; says nothing. */
enum hf_status call_try(struct call *call, size_t count,
                        const struct hf_bytes *args, struct hf_bytes *reply);
/* Tells why that did not work, or what was refused; CLI_DONE: neither. */
int call_judge(const struct call *call, enum hf_status status,
               struct hf_bytes reply);
/* Both. CLI_DONE: `*reply` is the answer, valid until
 * call_close. Otherwise the server's sentence or the reason is on stderr, and
 * the result is the exit code. */
int call_send(struct call *call, size_t count, const struct hf_bytes *args,
              struct hf_bytes *reply);
/* Prints the sentence with which the server refused `name`, a subcommand; its
 * exit code. */
int call_refused(const char *name, struct hf_bytes sentence);
/* Prints an answer as the options ask; CLI_DONE or CLI_FAILED. */
int call_print(const struct call *call, struct hf_bytes reply);
void call_close(struct call *call);

#endif
