/* history.h - what clients asked a server and were told, and whether it can be.
 *
 * A history is a list of events on one clock, as the clients saw them. The
 * checker knows nothing of the server: it asks whether any server that keeps
 * the promises could have given these answers.
 *
 *   client 1  |call LOCK a ...... answer token 7|       |call UNLOCK ..|
 *   client 2      |call LOCK a WAIT ........................ answer token 9|
 *             <-- may be held --><-- surely held, by 7 --><-- may be ...
 *
 * A call takes effect once, somewhere between its call and its answer; without
 * an answer, or with one that says so (JOURNAL), at any later time or never.
 * What follows from every choice is sure, what follows from one is possible;
 * only what is not even possible is a violation. So there are no false alarms.
 *
 * The file has one line per event, in the order in which things happened:
 *
 *   holdfast history 1
 *   TIME CLIENT open             a connection; CLIENT is its number, 0 is the
 *                                harness
 *   TIME CLIENT call ID WORD...  a request; ID is unique in the file
 *   TIME CLIENT arrived ID       its last byte reached the server   (optional)
 *   TIME CLIENT sent ID          the server handed over the reply   (optional)
 *   TIME CLIENT answer ID BYTES  the reply, as RESP
 *   TIME CLIENT closed           the client saw, or made, the connection's end
 *   TIME CLIENT gone             the server was told of the end     (optional)
 *   TIME 0 start | crash | stop  the harness started the server; the server is
 *                                dead, killed or stopped cleanly
 *   TIME 0 date                  the machine's date was set
 *   TIME 0 failed                a write of the journal failed, and its batch
 *                                is on disk all the same            (optional)
 *
 * TIME is in microseconds and never goes back. Bytes outside 0x21..0x7e and
 * '%' are written %XX, the empty word as a lone '%'. Events at the same TIME
 * happened in the order of their lines.
 *
 * A group is the calls of one client from MULTI to EXEC, or DISCARD, each with
 * its own answer: OK, QUEUED and so on, and the list that EXEC gives.
 *
 * A history whose first event is `start` is of a server that was empty and had
 * no other clients; then what a read shows must come from the history. Of any
 * other it is only checked that what was promised was kept.
 *
 * Threads: one at a time; several recorders share a lock, and read the clock
 *          while they have it.
 * Memory:  a history copies what it is given. One that history_open() made
 *          keeps nothing: each event goes to its file.
 * Time:    the caller passes it, from one clock that does not jump.
 */
#ifndef HISTORY_HISTORY_H
#define HISTORY_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/bytes.h"
#include "holdfast/status.h"

#define HISTORY_ERROR_MAX  512 /* bytes of an `error` text */
#define HISTORY_REPORT_MAX 32  /* violations that a report keeps */

struct history;

enum history_event {
    HISTORY_OPEN,
    HISTORY_CALL,
    HISTORY_ARRIVED,
    HISTORY_SENT,
    HISTORY_ANSWER,
    HISTORY_CLOSED,
    HISTORY_GONE,
    HISTORY_START,
    HISTORY_CRASH,
    HISTORY_STOP,
    HISTORY_DATE,
    HISTORY_FAILED,
};

/* NULL without memory. */
struct history *history_new(void);
void history_free(struct history *history);

/* Recording. HF_NOMEM; HF_INVALID: the time goes back, or an id does not fit;
 * HF_FULL: 2^32 events; HF_IO: the file of history_open() could not be
 * written. `id` is not 0. */
enum hf_status history_call(struct history *history, uint64_t time_us,
                            uint32_t client, uint64_t id,
                            const struct hf_bytes *words, size_t count);
enum hf_status history_answer(struct history *history, uint64_t time_us,
                              uint32_t client, uint64_t id,
                              struct hf_bytes reply);
/* Any event but a call and an answer; `id` for ARRIVED and SENT, else 0. */
enum hf_status history_mark(struct history *history, uint64_t time_us,
                            uint32_t client, uint64_t id,
                            enum history_event event);

/* Files. `error` gets a sentence of at most HISTORY_ERROR_MAX bytes, with the
 * line's number where there is one. HF_NOMEM, HF_IO; HF_CORRUPT: not a
 * history. */
enum hf_status history_load(struct history **out, const char *path,
                            char *error);
/* A history that goes to a file as it is recorded, for long runs. Only
 * recording and history_close() work on it. */
enum hf_status history_open(struct history **out, const char *path,
                            char *error);
/* Ends the file and frees the history, also when it fails. */
enum hf_status history_close(struct history *history, char *error);

/* 0 means: as the server's default, or not checked. */
struct history_opts {
    uint64_t request_keep_us;  /* how long a REQ is remembered */
    uint64_t ended_keep_us;    /* how long an ended reservation is shown */
    uint64_t answer_within_us; /* not 0: at the end every call of a live
                                  connection must be answered, and a waiting
                                  one within WAIT and this */
    uint64_t wait_within_us;   /* not 0: a LOCK with WAIT that was read when
                                  nothing was before it is answered within
                                  WAIT and this, whatever the disk does */
    uint64_t made_slack_us;    /* how long before it is sent a reply, and the
                                  times in it, may have been made */
    uint64_t start_slack_us;   /* how far the server's date may be off when it
                                  starts; 0: a second */
    bool requests_full;        /* the table of REQ may have been full: a
                                  refusal may be forgotten early */
    bool ended_full;           /* the same of ended reservations */
    bool failed_doubted;       /* what a server tells after it said JOURNAL, up
                                  to its end, is not held against it */
};

struct history_report {
    /* so that "checked nothing" shows */
    uint64_t calls, answers, grants, reads, reservations;
    uint64_t violations; /* all of them */
    size_t count;        /* those kept in `found` */
    struct {
        char rule[32];
        char text[400];
        uint64_t id;    /* the call that shows it */
        uint64_t other; /* the call that contradicts it; 0: none */
    } found[HISTORY_REPORT_MAX];
};

/* HF_NOMEM. Violations are no failure: they are in the report. */
enum hf_status history_check(const struct history *history,
                             const struct history_opts *opts,
                             struct history_report *out);
/* Prints the events that concern the violation found[n] (the same lock,
 * product, reservation or request): the short story. */
void history_story(const struct history *history,
                   const struct history_report *report, size_t n, FILE *out);

#endif
