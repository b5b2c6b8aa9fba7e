/* metrics.h - what the server counts and measures; figures.h has their names.
 *
 * Threads: the loop's.
 */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "hold/engine.h"
#include "holdfast/meter.h"

struct server;

/* How a wait for a lock, or for stock, ended. */
enum metrics_wait {
    METRICS_GRANTED,
    METRICS_TIMED_OUT,
    METRICS_LEFT, /* the client went, or asked anew under the same REQ */
    METRICS_ENDS
};

/* What LIMIT decided. */
enum metrics_decision { METRICS_ALLOWED, METRICS_DENIED, METRICS_DECISIONS };

/* Commands of the table, and one that stands for requests that name none. */
#define METRICS_COMMANDS_MAX 128u

/* Counts are plain numbers: only the loop counts, and reads. */
struct metrics {
    struct hf_meter *meter;
    struct metrics_series *series; /* those that the meter asks for */
    uint64_t connections;
    uint64_t connections_refused;
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint64_t errors[HOLD_ALL_CODES];
    uint64_t shares_refused; /* REQ beyond a client's share */
    uint64_t refusals;       /* told without the journal */
    uint64_t reserves_refused;
    uint64_t commits;
    uint64_t events[HOLD_EVENT_COUNT];
    uint64_t decisions[METRICS_DECISIONS];
    uint64_t commands[METRICS_COMMANDS_MAX]; /* in the table's order */
    struct hf_histogram *took_ns[METRICS_COMMANDS_MAX];
    uint16_t by_kind[HOLD_KINDS]; /* where a kind of command is in them */
    struct hf_window *acquire_ns; /* of locks: from request to grant */
    struct hf_histogram *wait_us[METRICS_ENDS];
    struct hf_histogram *stock_wait_us[METRICS_ENDS];
    struct hf_histogram *hold_us;
    struct hf_histogram *confirm_us; /* from reserve to confirm */
    struct hf_histogram *lag_us;     /* of what expired */
    struct hf_histogram *batch_records;
    struct hf_histogram *batch_bytes;
    struct hf_histogram *sync_ns;
};

/* HF_NOMEM; close in either case. */
enum hf_status metrics_open(struct metrics *metrics, struct server *server);
void metrics_close(struct metrics *metrics);

/* A request of the table's `index` came; table_count(): of no command. */
void metrics_command(struct metrics *metrics, size_t index);
/* It was answered, so long after it came. */
void metrics_took(struct metrics *metrics, size_t index, uint64_t took_ns);
/* An error was told, or a group was refused for it. */
void metrics_refused(struct metrics *metrics, enum hold_code code);
/* A command was answered by the engine. */
void metrics_answered(struct metrics *metrics, enum hold_kind kind,
                      enum hold_code code);
/* LIMIT decided. */
void metrics_decided(struct metrics *metrics, bool allowed);
/* What the engine told of one record. */
void metrics_events(struct metrics *metrics, const struct hold_out *out);
/* A wait for a lock, or for stock, ended. */
void metrics_waited(struct metrics *metrics, bool stock, enum metrics_wait end,
                    uint64_t waited_ns);
/* The journal has written a batch. */
void metrics_batch(struct metrics *metrics, uint64_t records, uint64_t bytes,
                   uint64_t sync_ns);

/* All series of one figure, for INFO. */
uint64_t metrics_sum(const uint64_t *counts, size_t count);

#endif
