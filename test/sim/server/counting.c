/* counting.c - what the server has read and told, beside its figures. */
#include "sim/server/counting.h"

#include <stdio.h>

#include "server/lock_wait.h"
#include "server/server.h"
#include "server/table.h"

static struct {
    uint64_t read;
    uint64_t told; /* that are no errors: those may be about no request */
    uint64_t errors[HOLD_ALL_CODES]; /* that were told, by their code */
    bool other;                      /* something that is no request was read */
    bool in_answer;                  /* the engine answers one who waits */
    uint64_t counted;                /* waits, by that answer */
    bool twice;                      /* one answer, and two waits */
    char wrong[256];
} seen;

void counting_start(void)
{
    memset(&seen, 0, sizeof seen);
}

void counting_read(bool whole)
{
    seen.read += whole;
    seen.other |= !whole;
}

void counting_told(struct hf_bytes reply)
{
    if (reply.data[0] != '-') {
        seen.told++;
        return;
    }
    size_t len = 1;
    while (len < reply.len && reply.data[len] > ' ')
        len++;
    struct hf_bytes name = hf_bytes(reply.data + 1, len - 1);
    for (size_t code = 0; code < HOLD_ALL_CODES; code++) {
        if (hf_bytes_equal(
                name, hf_bytes_text(hold_code_name((enum hold_code)code)))) {
            seen.errors[code]++;
            return;
        }
    }
}

/* One answer ends one wait: whoever goes at that very moment has left, once. */
void __wrap_lock_wait_answered(struct server *server,
                               const struct hold_answer *given);
void __real_lock_wait_answered(struct server *server,
                               const struct hold_answer *given);

void __wrap_lock_wait_answered(struct server *server,
                               const struct hold_answer *given)
{
    seen.in_answer = true;
    seen.counted = 0;
    __real_lock_wait_answered(server, given);
    seen.in_answer = false;
    seen.twice = seen.twice || seen.counted > 1;
}

void __wrap_metrics_waited(struct metrics *metrics, bool stock,
                           enum metrics_wait end, uint64_t waited_ns);
void __real_metrics_waited(struct metrics *metrics, bool stock,
                           enum metrics_wait end, uint64_t waited_ns);

void __wrap_metrics_waited(struct metrics *metrics, bool stock,
                           enum metrics_wait end, uint64_t waited_ns)
{
    seen.counted += seen.in_answer;
    __real_metrics_waited(metrics, stock, end, waited_ns);
}

static uint64_t count_of(const struct hf_histogram *histogram)
{
    struct hf_histogram_stats stats;

    hf_histogram_stats(histogram, &stats);
    return stats.count;
}

static const char *wrong(const char *what, uint64_t counted, uint64_t expected)
{
    snprintf(seen.wrong, sizeof seen.wrong, "%s: %llu instead of %llu", what,
             (unsigned long long)counted, (unsigned long long)expected);
    return seen.wrong;
}

static const char *check_errors(const struct metrics *metrics)
{
    for (size_t code = 0; code < HOLD_ALL_CODES; code++) {
        if (metrics->errors[code] < seen.errors[code])
            return wrong(hold_code_name((enum hold_code)code),
                         metrics->errors[code], seen.errors[code]);
    }
    return NULL;
}

/* A wait that ends is that of one command, and one that times out is told so.
 */
static const char *check_waits(const struct metrics *metrics)
{
    uint64_t timed_out = count_of(metrics->wait_us[METRICS_TIMED_OUT]);

    if (seen.twice)
        return wrong("waits that one answer ended", 2, 1);
    if (timed_out > metrics->errors[HOLD_TIMED_OUT])
        return wrong("waits that timed out", timed_out,
                     metrics->errors[HOLD_TIMED_OUT]);
    return NULL;
}

const char *counting_check(const struct server *server)
{
    const struct metrics *metrics = &server->metrics;
    uint64_t commands = metrics_sum(metrics->commands, METRICS_COMMANDS_MAX);

    if (commands < seen.told)
        return wrong("commands, fewer than told", commands, seen.told);
    if (!seen.other && commands > seen.read)
        return wrong("commands, more than read", commands, seen.read);
    for (size_t i = 0; i < table_count(); i++) {
        /* those about keys are measured under the first of their kind */
        uint64_t took = count_of(metrics->took_ns[i]);
        if (table_at(i)->make == NULL && took > metrics->commands[i])
            return wrong(table_at(i)->name, took, metrics->commands[i]);
    }
    const char *error = check_errors(metrics);
    return error != NULL ? error : check_waits(metrics);
}
