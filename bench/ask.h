/* ask.h - a client of a server, for the programs that load one.
 *
 * Requests are words with one space between them. Whatever goes wrong ends the
 * program; a measurement of failures is of no use.
 *
 * Threads: one client, one thread.
 */
#ifndef BENCH_ASK_H
#define BENCH_ASK_H

#include <time.h>

#include "cli/client.h"
#include "drive.h"
#include "resp/resp.h"

#define ASK_WORDS_MAX 16u
#define ASK_NS_PER_S  ((uint64_t)1000000000)
#define ASK_NS_PER_MS ((uint64_t)1000000)
#define ASK_WAIT_NS   (60 * ASK_NS_PER_S) /* for an answer */

static inline void ask_must(enum hf_status status, const char *what)
{
    if (status != HF_OK)
        drive_fail(what, hf_status_text(status));
}

static inline void ask_connect(struct client *client, uint64_t port)
{
    struct client_address address = {.host = "127.0.0.1", .port = port};
    struct client_target target;
    char reason[CLIENT_REASON_MAX];
    enum hf_status status = client_open(
        client, &address, client_now_ns() + 5 * ASK_NS_PER_S, &target);
    if (status != HF_OK) {
        client_explain(client, &address, status, reason);
        drive_fail("connect", reason);
    }
}

/* Queues a request; ask_flush() or ask_next() sends it. */
static inline void ask_send(struct client *client, const char *words)
{
    struct hf_bytes args[ASK_WORDS_MAX];
    char text[200];
    char *rest = text;
    size_t count = 0;
    snprintf(text, sizeof text, "%s", words);
    for (char *word;
         (word = strsep(&rest, " ")) != NULL && count < ASK_WORDS_MAX;)
        args[count++] = hf_bytes_text(word);
    ask_must(client_send(client, count, args), "send");
}

/* The next reply, which must not be an error. */
static inline struct hf_bytes ask_next(struct client *client)
{
    struct hf_bytes reply;
    ask_must(client_receive(client, client_now_ns() + ASK_WAIT_NS, &reply),
             "receive");
    if (reply.data[0] == '-') {
        fprintf(stderr, "%.*s", (int)reply.len, reply.data);
        drive_fail("refused", "a command that must succeed");
    }
    return reply;
}

static inline void ask_flush(struct client *client)
{
    ask_must(client_step(client), "send");
}

/* The reply, which may be an error. */
static inline struct hf_bytes ask(struct client *client, const char *words)
{
    struct hf_bytes reply;
    ask_send(client, words);
    ask_flush(client);
    ask_must(client_receive(client, client_now_ns() + ASK_WAIT_NS, &reply),
             words);
    return reply;
}

/* The number in a field of a reply. */
static inline uint64_t ask_field(struct hf_bytes reply, const char *field)
{
    int64_t number;
    if (!resp_field_number(reply, field, &number) || number < 0)
        drive_fail(field, "is not in the reply");
    return (uint64_t)number;
}

/* A line of INFO or METRICS: the number behind the name, which must be there.
 */
static inline double ask_figure(struct client *client, const char *words,
                                const char *name)
{
    struct hf_bytes reply = ask(client, words);
    size_t len = strlen(name);
    const char *end = reply.data + reply.len;
    for (const char *at = reply.data; at != NULL && at + len < end;
         at = memchr(at, '\n', (size_t)(end - at)), at += at != NULL) {
        if (memcmp(at, name, len) == 0 && (at[len] == ':' || at[len] == ' '))
            return strtod(at + len + 1, NULL);
    }
    drive_fail(name, "is not among the figures");
    return 0;
}

static inline void ask_sleep_until(uint64_t due_ns)
{
    uint64_t now_ns = client_now_ns();
    if (due_ns > now_ns)
        nanosleep(
            &(struct timespec){
                .tv_sec = (time_t)((due_ns - now_ns) / ASK_NS_PER_S),
                .tv_nsec = (long)((due_ns - now_ns) % ASK_NS_PER_S)},
            NULL);
}

#endif
