/* metrics.h - what the server counts and measures, in one registry.
 *
 * INFO and METRICS read it; docs/operations.md lists all of it. What other
 * parts count themselves (engine, journal, log) is asked for when it is read.
 *
 * Threads: the loop's.
 */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include <stdint.h>

#include "hold/engine.h"
#include "holdfast/meter.h"

struct server;

/* How a wait for a lock ended. */
enum metrics_wait {
    METRICS_GRANTED,
    METRICS_TIMED_OUT,
    METRICS_LEFT, /* the client went, or asked anew under the same REQ */
    METRICS_ENDS
};

/* Codes of errors that the engine does not have. */
enum metrics_code {
    CODE_ERR = HOLD_CODE_COUNT,
    CODE_NOPERM,
    CODE_NOPROTO,
    CODE_JOURNAL,
    CODE_COUNT
};

/* A command of the table; the last one stands for requests that name none. */
struct metrics_command {
    struct hf_counter *count;
    struct hf_histogram *took_ns;
};

struct metrics {
    struct hf_meter *meter;
    struct hf_counter *connections;
    struct hf_counter *connections_refused;
    struct hf_counter *errors[CODE_COUNT]; /* NULL for what is no error */
    struct hf_counter *shares_refused;     /* REQ beyond a client's share */
    struct hf_counter *refusals;           /* told without the journal */
    struct hf_counter *commits;
    struct hf_counter *events[HOLD_EVENT_COUNT];
    struct hf_counter *limits_allowed;
    struct hf_counter *limits_denied;
    struct metrics_command *commands; /* in the table's order, and one more */
    size_t command_count;
    uint16_t *by_kind;            /* where a kind of command is in it */
    struct hf_window *acquire_ns; /* of locks: from request to grant */
    struct hf_histogram *wait_us[METRICS_ENDS];
    struct hf_histogram *hold_us;
    struct hf_histogram *confirm_us; /* from reserve to confirm */
    struct hf_histogram *lag_us;     /* of what expired */
    struct hf_histogram *batch_records;
    struct hf_histogram *batch_bytes;
    struct hf_histogram *sync_ns;
    struct metrics_figure *figures; /* what is asked for when it is read */
};

/* HF_NOMEM; close in either case. */
enum hf_status metrics_open(struct metrics *metrics, struct server *server);
void metrics_close(struct metrics *metrics);

/* A request of the table's `index` came; table_count(): of no command. */
void metrics_command(struct metrics *metrics, size_t index);
/* It was answered, so long after it came. */
void metrics_took(struct metrics *metrics, size_t index, uint64_t took_ns);
/* The same for a question to the engine. */
void metrics_answered(struct metrics *metrics, enum hold_kind kind,
                      uint64_t took_ns);
/* An error was told: by its code, or by its text, which begins with it. */
void metrics_refused(struct metrics *metrics, enum hold_code code);
void metrics_failed(struct metrics *metrics, const char *text);
/* What the engine told of one record. */
void metrics_events(struct metrics *metrics, const struct hold_out *out);
/* A lock's wait ended. */
void metrics_waited(struct metrics *metrics, enum metrics_wait end,
                    uint64_t waited_ns);
/* The journal has written a batch. */
void metrics_batch(struct metrics *metrics, uint64_t records, uint64_t bytes,
                   uint64_t sync_ns);

/* Sums for INFO. */
uint64_t metrics_commands_total(const struct metrics *metrics);
uint64_t metrics_errors_total(const struct metrics *metrics);

/* metrics_figures.c: registers what is asked for. HF_NOMEM. */
enum hf_status metrics_add_figures(struct metrics *metrics,
                                   struct server *server);

#endif
