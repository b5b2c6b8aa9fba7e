/* server.h - the daemon: one loop thread for connections, engine and commit.
 *
 *   conn.c    read, decode, find the command
 *               |
 *   submit.c    +--> hold_answer_now, hold_ask: answered now, without the log
 *               v
 *             the batch being gathered
 *               |        one commit per turn
 *   commit.c    +--> log
 *               v
 *   apply.c     hold_apply ----> answer
 *                                  |
 *   conn.c                         '--> write
 *
 * Connections hand requests in, commit hands answers out, and neither calls the
 * other: a turn of the loop (server_turn) calls one after the other. It reads
 * from every connection that has something to say, then commits all of it with
 * one write, applies it in order and answers, a large batch in parts. While
 * clients keep sending it reads once more before the commit. If the disk
 * outlasts a few milliseconds the commit goes on without the loop: the next
 * turns gather the next batch, answer reads, limits and refusals, and let waits
 * time out.
 *
 * Order: a connection's requests are answered in their order. One that has
 * something in a batch gets its later questions queued behind it.
 *
 * Threads: everything here runs on the loop thread. What need not, does not:
 *          the log has a writer, and `watch` is a task of the pool.
 */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/index.h"
#include "hold/engine.h"
#include "holdfast/clock.h"
#include "journal/log.h"
#include "resp/resp.h"
#include "server/alarms.h"
#include "server/audit.h"
#include "server/bind.h"
#include "server/config.h"
#include "server/entry.h"
#include "server/events.h"
#include "server/health.h"
#include "server/limit.h"
#include "server/lock_wait.h"
#include "server/metrics.h"
#include "server/push.h"
#include "server/report.h"
#include "server/script.h"
#include "server/share.h"
#include "server/subscribe.h"
#include "server/table.h"
#include "server/waits.h"
#include "server/watch.h"

struct conn;

/* Batches on their way at once, whatever the log takes. */
#define SERVER_FLIGHTS_MAX 8u

/* Answers at once whose time is noted together. */
#define SERVER_NOTED_MAX 256u

struct server {
    uv_loop_t loop;
    uv_tcp_t listener;
    uv_check_t turn_end;
    uv_idle_t again;      /* keeps the loop from sleeping when work is left */
    uv_timer_t due_timer; /* when something falls due, or a wait */
    uv_timer_t tend_timer;
    uv_poll_t log_wake;
    uv_signal_t term;
    uv_signal_t interrupt;
    struct config config;
    struct report report;
    struct watch watch;
    const struct hf_clock *clock;
    uint64_t epoch_us; /* engine time = epoch + monotonic time */
    struct hold_engine *engine;
    struct log *log;
    struct batch building;                    /* what is gathered */
    struct batch verdicts;                    /* goes before it: lock_wait.h */
    struct batch flights[SERVER_FLIGHTS_MAX]; /* being committed: a ring */
    size_t looked;     /* how much was gathered when the loop looked last */
    size_t last_count; /* requests of the batch before */
    uint32_t flight_first;
    uint32_t flight_count;
    bool news;            /* a commit may have ended */
    bool applied;         /* those that are parked may go on */
    bool lead_awaited;    /* some of them wait for the log to lead */
    bool applying;        /* a part of the first one has been applied */
    size_t apply_next;    /* the entry to be applied next */
    size_t apply_at;      /* where its record is in the log's batch */
    bool flooded;         /* more is due than was swept: see is_flooded() */
    uint64_t counted_ns;  /* by `heard_ns`, when that was looked for; 0: a batch
                           * was applied since */
    uint64_t turn_sweeps; /* of what is due, in this turn */
    uint64_t turn_sweeps_max;
    uint64_t turn_applied; /* steps of the engine, in this turn */
    uint64_t turn_applied_max;
    uint64_t heard_ns;  /* when the requests came that are being run */
    uint64_t answer_ns; /* the time as of the answers being given */
    bool failed;        /* the log has failed: writes are refused */
    bool unclean;       /* the end before this start was not a clean one */
    bool begun;         /* this start has written to the log */
    bool stopping;
    bool loop_open;
    uint64_t due_armed_us;
    struct waits waits;
    struct lock_waits lock_waits;
    struct binds binds;
    struct pushes pushes;
    struct shares shares;
    struct events events;
    struct audits audits;
    struct subscriptions subscriptions;
    uint64_t orphans;        /* holds that verdicts will give back */
    uint64_t turn;           /* of the loop */
    uint64_t turn_all;       /* work for all clients in this turn */
    uint64_t turn_all_max;   /* in any turn */
    uint64_t turn_steps;     /* of listings, in this turn */
    uint64_t turn_steps_max; /* in any turn */
    uint64_t turn_work_max;  /* of one connection in one turn */
    struct conn *conns;      /* all of them */
    struct conn *spare_conn; /* for a client that finds no memory */
    bool accept_owed;        /* a client waits for it */
    uint32_t conn_count;
    uint64_t conn_id;     /* the last one given */
    struct conn *parked;  /* until a batch has been applied */
    struct conn *dirty;   /* those with something to write or to go on with */
    struct call calls[2]; /* requests being run: this one and the next */
    struct hold_command command;
    struct script_memory scripts;
    struct hf_buf group;         /* the records of an EXEC being run */
    struct hf_bytes *group_args; /* of a LIMIT in it */
    char *read_buffer;
    char *line;         /* an inline request being run */
    uint64_t files_max; /* that clients may have open */
    uint64_t started_ns;
    uint64_t tend_count;
    uint64_t stop_tends; /* tending calls since the stop was asked for */
    struct limits limits;
    struct metrics metrics;
    struct health health;
    struct hf_alerts *alerts;
    bool alarms[ALARMS_MAX]; /* which hold now */
    uint32_t noted_count;    /* requests of this read, answered at once */
    uint16_t noted[SERVER_NOTED_MAX];
};

/* The loop waits for the disk so long, and then goes on without. */
#define SERVER_SLOW_NS 2000000u

/* Size of one read. */
#define SERVER_READ_BYTES (64u * 1024)

/* Longer than any inline request may be. */
#define SERVER_LINE_BYTES (RESP_INLINE_MAX + 16)

/* HF_OK, or an error whose text is in `error` (JOURNAL_ERROR_MAX bytes). */
enum hf_status server_open(struct server *server, const struct config *config,
                           char *error);
/* host:port, with brackets where the host has colons; returns the port. */
int server_format_address(const struct sockaddr_storage *address, char *out,
                          size_t len);
/* The address that it listens on, as host:port. */
void server_address(struct server *server, char *out, size_t len);
/* Runs until SIGTERM or SIGINT, then answers what was accepted. */
void server_run(struct server *server);
void server_close(struct server *server);

/* The settings that are not part of the state take effect. */
void server_apply_config(struct server *server);

/* One turn: what clients sent is run, committed, applied and answered, as far
 * as that goes now. From callbacks of the loop only, as their last step. */
void server_turn(struct server *server);
/* Something is left to do: the loop does not sleep before its next turn. */
void server_go_on(struct server *server);

/* Time for a record: never goes back, also over restarts. */
uint64_t server_now_us(const struct server *server);

/* submit.c */

/* False: the connection's command is not to be taken now; it is to be tried
 * again in the next turn, after the next batch, or when nothing of the
 * connection is pending. */
bool submit_admits(struct server *server, const struct conn *conn,
                   struct hold_command *command);
/* Tells a client that it has filled its share of the REQ ids. */
void submit_refuse_share(struct server *server, struct conn *conn);
/* True if the listings of this turn have used its budget. */
bool submit_is_spent(const struct server *server);
/* Takes a command of the connection on its way; the answer is in the
 * connection's output when it is known. */
void submit_command(struct server *server, struct conn *conn,
                    struct hold_command *command);
/* Has a question of a batch wait for the next one: the engine shows a hold that
 * a verdict will take back. */
void submit_ask_again(struct server *server, struct conn *conn,
                      struct hold_command *command, uint64_t came_ns);
/* Lets time pass, by a record of its own. */
void submit_tick(struct server *server);
/* Tells the engine of connections that are gone. */
void submit_left(struct server *server);

/* Of the batches being committed, the oldest is 0. */
static inline struct batch *server_flight(const struct server *server,
                                          uint32_t index)
{
    uint32_t at = (server->flight_first + index) % SERVER_FLIGHTS_MAX;

    return (struct batch *)&server->flights[at];
}

/* apply.c */

/* The oldest batch is durable, or has failed: applies a part of it and answers.
 * False: so much is due that the rest is left to the next turn. */
bool apply_batch(struct server *server, struct batch *batch);
/* Has the client of this LOCK, an entry of the batch that enters a hold again,
 * sent an UNLOCK of it not far behind? Each counts for one LOCK.
 * server->command is used. */
bool apply_finds_unlock(struct server *server, struct batch *batch,
                        const struct entry *lock, struct hf_bytes name,
                        uint64_t token);
/* The log has failed: nobody can be granted anything any more, so nobody waits;
 * nor for a batch, since there may be none. */
void apply_failure(struct server *server);

/* commit.c */

/* Ticks in one batch while more is due than one of them handles. */
#define COMMIT_TICKS_MAX 16

/* The log may have failed in the background, or lead again. */
void commit_tend(struct server *server);
/* Applies what has ended and answers it, or else commits what was gathered.
 * True: there are answers, which go out before anything else is begun. */
bool commit_round(struct server *server);
/* True if another round would find something to do. */
bool commit_has_work(struct server *server);
/* True if the loop should look at the sockets once more before it commits. */
bool commit_looks_again(struct server *server);
/* A commit under way may have ended. */
void commit_poll(struct server *server);
/* Time passed: those who wait are looked at, and the engine handles what is
 * due. */
void commit_due(struct server *server);
/* Sets the timer for what is due next. */
void commit_arm(struct server *server);
/* How long the oldest commit has been on its way; 0: none is. */
uint64_t commit_waiting_ns(const struct server *server);
/* True if nothing is gathered or on its way. */
bool commit_is_idle(const struct server *server);
/* True if the batch has enough: connections are read further after it. */
bool commit_is_full(const struct server *server);

/* server.c - callbacks of the loop */
void server_due(uv_timer_t *handle);
void server_tend(uv_timer_t *handle);
void server_turn_end(uv_check_t *handle);
void server_log(uv_poll_t *handle, int status, int events);
void server_signal(uv_signal_t *handle, int number);

/* Fills `out` with random bytes, or HF_IO. */
enum hf_status server_random(void *out, size_t bytes);

#endif
