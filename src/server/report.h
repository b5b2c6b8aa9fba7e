/* report.h - what the server tells its log, one function for each event.
 *
 * Every line is an event with fields. What a client can bring about as often as
 * it likes, or a bad disk does again and again, passes a gate first: a few
 * lines at once, then one in a while, with the number of those `hidden`
 * meanwhile.
 *
 * Never in a line: what clients send as arguments (names of locks, owners,
 * passwords to come). A client's own name is, escaped by the log.
 *
 * Threads: the loop's; `log` itself may be used from any.
 * Time:    the server's clock.
 */
#ifndef SERVER_REPORT_H
#define SERVER_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/log.h"
#include "holdfast/rate.h"
#include "journal/log.h"

struct config;
struct conn;

struct report_gate {
    struct hf_rate rate;
    uint64_t hidden; /* since the last line */
};

struct report {
    struct hf_log *log;
    const struct hf_clock *clock;
    struct report_gate refused;
    struct report_gate closed;
    struct report_gate denied;
    struct report_gate memory;
    struct report_gate behind;
    struct report_gate requests;
    struct report_gate shares;
    struct report_gate slow;
    uint64_t slow_told_ns; /* when the disk was first told slow; 0: it is not */
    uint64_t slow_last_ns; /* when it last was */
    uint64_t slow_max_ns;  /* the longest commit since it was told */
    uint64_t slow_commits; /* how many since then */
    uint64_t requests_refused; /* those that were told */
    uint64_t snapshot_starts;  /* likewise */
    uint64_t snapshot_count;
    uint64_t snapshot_failures;
    bool failed;      /* the journal's failure was told */
    bool debug;       /* connections are told, too */
    uint64_t stop_ns; /* when the stop began */
};

/* HF_OK, or an error whose text is in `error` (JOURNAL_ERROR_MAX bytes). */
enum hf_status report_open(struct report *report, const struct config *config,
                           const struct hf_clock *clock, char *error);
/* The same with a log that is there already, which report_close() closes. */
void report_init(struct report *report, struct hf_log *log,
                 const struct hf_clock *clock);
void report_set_level(struct report *report, enum hf_log_level level);
/* Writes what was logged. A disk that does not take it delays this for two
 * seconds, not more; then the log is left as it is. */
void report_close(struct report *report);
/* The same before an exit that does not wait for anything. */
void report_flush(struct report *report);

/* ---- Start and stop. ---- */

void report_recovered(struct report *report, const struct config *config,
                      const struct log_stats *stats, uint64_t took_ns);
void report_started(struct report *report, const struct config *config,
                    const char *address);
void report_start_failed(struct report *report, const struct config *config,
                         const char *why);
/* Asked to stop by this signal; `clients` are connected. */
void report_stopping(struct report *report, int signal, uint64_t clients);
/* Asked twice. */
void report_stop_forced(struct report *report);
void report_stopped(struct report *report);

/* ---- The disk. ---- */

/* A commit has outlasted its turn: it is `waited_ns` old. `ended`: and it has
 * come to its end. */
void report_slow(struct report *report, uint64_t waited_ns, bool ended);
/* Time passed: is the disk well again? */
void report_tend_disk(struct report *report);
/* What became of snapshots, as these figures tell. */
void report_snapshots(struct report *report, const struct log *kept);
/* Once, if the journal has failed. */
void report_feed(struct report *report, const char *why);
void report_journal(struct report *report, const struct log *kept);

/* ---- Clients. ---- */

void report_opened(struct report *report, const struct conn *conn);
void report_closed(struct report *report, const struct conn *conn);
/* Not let in. */
void report_refused(struct report *report, const struct conn *conn,
                    uint64_t clients);
/* About to be closed for what it did; `detail` may be NULL. */
void report_misbehaved(struct report *report, const struct conn *conn,
                       const char *why, const char *detail);
/* A request was refused for want of memory, or because the disk is too far
 * behind; `conn` may be NULL. */
void report_no_memory(struct report *report, const struct conn *conn,
                      uint64_t engine_bytes);
void report_behind(struct report *report, const struct conn *conn);
/* A REQ was refused: the table is full, or `conn` has filled its share. */
void report_requests_full(struct report *report, const struct conn *conn);

/* A rule over the figures holds, or does not any more. */
void report_alarm(struct report *report, const char *rule, bool holds);

/* ---- Those who run it. ---- */

void report_config(struct report *report, const struct conn *conn,
                   const char *name, const char *from, const char *to);
void report_admin(struct report *report, const struct conn *conn,
                  const char *command);
/* An admin command from another machine. */
void report_denied(struct report *report, const struct conn *conn,
                   const char *command);

#endif
