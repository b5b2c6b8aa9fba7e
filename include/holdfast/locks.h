/* locks.h - named locks for the threads of one process.
 *
 *   "Database"    held by thread-1            queue: thread-3, thread-2
 *   "Network"     held by thread-2, thread-4  (shared)
 *   "jobs"        3 of 8 permits held
 *
 * The lock manager of the Holdfast daemon without the daemon: the same engine
 * decides, and who has to wait sleeps. A lock is a name. It exists while it is
 * held or waited for, and costs nothing before and after.
 *
 *   mode        exclusive; shared with others who share; or counting: some
 *               permits of a number that the first holder fixes
 *   owner       the calling thread, or a name that the request gives. An owner
 *               may acquire again what it holds in the same mode; as many
 *               releases give it back
 *   sets        several names at once, all or none, in any order: no partial
 *               hold, so that threads which take all they need in one set
 *               cannot deadlock
 *   order       first come, first served, after priorities (0 comes first).
 *               Readers and writers take turns: a waiting writer stops later
 *               readers, and readers who waited go before the next writer
 *   waiting     a try (HF_NOW), until a deadline, or for ever (HF_FOREVER).
 *               Exactly those are woken who now hold what they asked for
 *   tokens      every grant has a number, which grows. It proves a hold, and
 *               serves as a fence: what a lock protects can refuse an older one
 *
 * Deadlocks, by the manager's `policy`:
 *
 *   DETECT      a request that would close a cycle is refused at once with
 *               HF_DEADLOCK, and the answer tells the cycle. Nobody is refused
 *               without one. (For owners that ask for nothing else while they
 *               wait, as threads do.)
 *   WAITDIE     who is younger than one it would have to wait for is refused
 *   WOUNDWAIT   who is older takes: the younger holder is told, and loses the
 *               lock after a grace time. It must look whether it still holds
 *   NONE        wait; a deadline is the only way out
 *
 * The age that WAITDIE and WOUNDWAIT go by is that of the request's session, so
 * that it survives retries. A thread that names no session uses one of its own.
 *
 * Threads: every call but open and close may overlap every other. One mutex
 *          guards the manager, held for less than a microsecond by most calls.
 *          A thread's hold may be released by another that has its token. What
 *          a thread holds when it ends stays held.
 * Memory:  some hundred bytes for a name that is held; a megabyte of address
 *          space for a manager, of which little is used. Names and texts are
 *          copied.
 * Time:    by `clock`; deadlines are absolute, by its now_ns. Without a TTL, as
 *          by default, no hold ends by itself.
 *
 *   linearizable  order  wakes                  lock-free  allocates
 *   yes           FIFO   exactly who now holds  no         now and then
 *
 * Example:
 *
 *   struct hf_locks *locks;
 *   struct hf_locks_answer answer;
 *   struct hf_locks_request read = {.mode = HF_LOCKS_SHARED};
 *   const struct hf_locks_item both[] = {{.name = "Net"}, {.name = "Data"}};
 *   uint64_t soon_ns = hf_clock_after_ms(NULL, 1000);
 *
 *   assert(hf_locks_open(&locks, NULL) == HF_OK);
 *   // one name, by this thread, for as long as it takes
 *   assert(hf_locks_acquire(locks, "Data", NULL, HF_FOREVER, NULL) == HF_OK);
 *   assert(hf_locks_holds(locks, "Data", 0));
 *   assert(hf_locks_release(locks, "Data", 0) == HF_OK);
 *   // shared, if it can be had within a second
 *   assert(hf_locks_acquire(locks, "Data", &read, soon_ns, NULL) == HF_OK);
 *   assert(hf_locks_release(locks, "Data", 0) == HF_OK);
 *   // all or none; a set is released by its token
 *   assert(hf_locks_acquire_set(locks, both, 2, NULL, HF_NOW, &answer) == 0);
 *   assert(hf_locks_release_set(locks, answer.token) == HF_OK);
 *   hf_locks_close(locks);
 */
#ifndef HOLDFAST_LOCKS_H
#define HOLDFAST_LOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/backoff.h"
#include "holdfast/clock.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_LOCKS_NAME_MAX      512u /* bytes of a name */
#define HF_LOCKS_OWNER_MAX     256u
#define HF_LOCKS_NOTE_MAX      256u
#define HF_LOCKS_SET_MAX       64u /* names of a set */
#define HF_LOCKS_PRIORITY_MAX  3u
#define HF_LOCKS_PERMITS_MAX   INT32_MAX
#define HF_LOCKS_COUNTED_NAMES 1024u /* the default of counted_names */

struct hf_locks;

enum hf_locks_mode {
    HF_LOCKS_EXCLUSIVE,
    HF_LOCKS_SHARED,
    HF_LOCKS_COUNTING,
};

enum hf_locks_policy {
    HF_LOCKS_DETECT,
    HF_LOCKS_WAITDIE,
    HF_LOCKS_WOUNDWAIT,
    HF_LOCKS_NONE,
};

enum hf_locks_event {
    HF_LOCKS_WOUNDED, /* it is lost after the grace time: release it */
    HF_LOCKS_EXPIRED, /* it is lost: its time, or its grace time, is over */
    HF_LOCKS_LOST,    /* it is lost: its session was closed */
};

/* What an observer is told; valid during the call. */
struct hf_locks_note {
    enum hf_locks_event event;
    const char *name; /* of a set that is wounded: its first */
    uint64_t token;
    enum hf_locks_mode mode;
};

struct hf_locks_opts {
    const char *name; /* for hf_inspect() */
    enum hf_locks_policy policy;
    uint32_t names_max;     /* held or waited for at once; 0: 10,000,000 */
    uint32_t waiters_max;   /* of one name; 0: 10,000, which is the most */
    uint32_t holders_max;   /* of one name; 0: 1,000; at most 10,000 */
    uint64_t grace_ns;      /* of WOUNDWAIT; 0: 1 s */
    uint32_t counted_names; /* so many names have figures of their own: the
                             * first that were acquired; 0: 1024 */
    /* Told when a hold is lost, or about to be. Inside the manager: it must be
     * quick and must not call it. NULL: nobody is. */
    void (*observe)(void *context, const struct hf_locks_note *note);
    void *context;
    const struct hf_clock *clock; /* NULL: the system's */
};

/* What a request may say; zeroed: exclusive, by the calling thread. */
struct hf_locks_request {
    enum hf_locks_mode mode; /* of one name; in a set each name has its own */
    uint32_t permits;        /* counting: so many ... */
    uint32_t of;             /* ... of so many */
    const char *owner;       /* NULL: the calling thread, as "thread-N" */
    uint64_t session;        /* owners of different sessions are different;
                              * 0: none, or the thread's where ages count */
    const char *note;        /* told to others: why. NULL: none */
    uint32_t priority;       /* 0 first, at most HF_LOCKS_PRIORITY_MAX */
    bool barge;              /* may pass those who wait, if it is free; not
                              * where ages count */
    bool tree;               /* and all names below, as a/b is below a; not
                              * with permits */
    uint64_t ttl_ns;         /* lost after this time unless renewed, rounded up
                              * to a millisecond; 0: never */
    /* Tries again after HF_TIMEOUT and HF_DEADLOCK, until the deadline or as
     * often as the backoff says: waits for `patience_ns` (0: not at all), and
     * leaves the queue meanwhile. A deadlock goes away only if somebody in it
     * gives way: whoever retries should hold nothing. NULL: does not. */
    const struct hf_backoff_opts *retry;
    uint64_t patience_ns;
};

struct hf_locks_item {
    const char *name;
    bool shared;
};

/* One who waits, and for what; the next in the list is whom it waits for, and
 * the last waits for the first. */
struct hf_locks_link {
    const char *owner;
    const char *name;
    enum hf_locks_mode mode;
    uint64_t session;
    uint64_t since_ns; /* how long it has waited, in whole milliseconds */
    const char *note;  /* "" if it gave none */
};

/* How a request ended. */
struct hf_locks_answer {
    uint64_t token;     /* of the grant, or of the set */
    uint64_t fence;     /* the token; of shared ones that of the first reader */
    uint32_t count;     /* how often the owner holds it now; 0: refused */
    uint32_t waiting;   /* HF_TIMEOUT: others in the queue (of a set: of the
                         * name that was busy, or its first) */
    uint32_t position;  /* HF_TIMEOUT: its place there was, or would be; first
                         * is 1; counted up to 1000 */
    uint32_t attempts;  /* requests that were made: with `retry` perhaps more
                         * than one */
    uint64_t waited_ns; /* in the queue */
    /* HF_DEADLOCK: the cycle, from the request on; where ages decide, the
     * older one alone. `length` may be more than is told (64). */
    uint32_t length;
    uint32_t link_count;
    struct hf_locks_link *links; /* until hf_locks_answer_free() */
};

/* One who holds a name, or waits for it. */
struct hf_locks_holder {
    const char *owner;
    uint64_t session;
    uint64_t token; /* 0: it waits */
    enum hf_locks_mode mode;
    uint32_t permits;
    uint32_t count;
    uint64_t since_ns; /* held or waited so long, in whole milliseconds */
    const char *note;
};

struct hf_locks_stats {
    uint64_t acquired;  /* grants, re-entries included */
    uint64_t contended; /* of them, those that had to wait */
    uint64_t timeouts;  /* requests that were too late, failed tries included */
    uint64_t deadlocks; /* requests that were refused as such */
    uint64_t
        waited_ns; /* in all, by those that got it and those that did not */
    uint64_t waited_max_ns;
    uint64_t waited_p99_ns; /* of all names; HF_INSPECT_NONE without a wait, and
                             * of one name */
    uint32_t held;          /* now: names; of one name holders, counted up to
                             * 100 */
    uint32_t waiting;       /* now */
};

/* HF_INVALID: locks is NULL, or an option is beyond its bound; HF_NOMEM. */
enum hf_status hf_locks_open(struct hf_locks **locks,
                             const struct hf_locks_opts *opts);
/* Nobody gets anything any more: those who wait leave with HF_CLOSED, but for
 * one whom the leaving of others lets through. What is held can still be
 * released. From any thread, any number of times. */
void hf_locks_shutdown(struct hf_locks *locks);
/* Frees; what is held is forgotten. Nobody may be inside a call. NULL is
 * allowed. */
void hf_locks_close(struct hf_locks *locks);

/* Takes a lock, waits in its queue, or re-enters it. A NULL request is a zeroed
 * one; `answer` may be NULL, and is written whatever happens but HF_INVALID.
 *   HF_OK        it is held
 *   HF_TIMEOUT   the deadline came first
 *   HF_DEADLOCK  see above; free the answer
 *   HF_EXISTS    the owner holds it, in another mode or in a set: it would wait
 *                for itself. Or it is counted, of another number
 *   HF_NOTFOUND  the session is not open
 *   HF_FULL      names_max, waiters_max or holders_max is reached, or a cycle
 *                was sought for too long (100,000 steps)
 *   HF_CLOSED, HF_NOMEM
 *   HF_INVALID   a name, owner or note is empty or too long (of a note: too
 *                long), mode and permits do not fit, the priority is beyond
 *                its bound, the retry is none, or ages count and the request
 *                has an owner but no session
 */
enum hf_status hf_locks_acquire(struct hf_locks *locks, const char *name,
                                const struct hf_locks_request *request,
                                uint64_t deadline_ns,
                                struct hf_locks_answer *answer);
/* The same for `count` names, all or none; of the request the mode is
 * exclusive. The same set again is a re-entry; HF_EXISTS: the owner holds some
 * of the names otherwise. HF_INVALID also: no names, a name twice, or more than
 * HF_LOCKS_SET_MAX. */
enum hf_status
hf_locks_acquire_set(struct hf_locks *locks, const struct hf_locks_item *items,
                     size_t count, const struct hf_locks_request *request,
                     uint64_t deadline_ns, struct hf_locks_answer *answer);
/* After HF_DEADLOCK; harmless else, and twice. */
void hf_locks_answer_free(struct hf_locks_answer *answer);

/* Gives a lock back, or one re-entry of it. Token 0: as the calling thread
 * holds it (without a session of its own choice). HF_NOTFOUND: it is not held,
 * or was lost; HF_EXISTS: as one of a set. */
enum hf_status hf_locks_release(struct hf_locks *locks, const char *name,
                                uint64_t token);
enum hf_status hf_locks_release_set(struct hf_locks *locks, uint64_t token);
/* An exclusive lock becomes a shared one, without a gap; of a shared one
 * nothing changes. Results as of release; HF_EXISTS also if it is counted. */
enum hf_status hf_locks_downgrade(struct hf_locks *locks, const char *name,
                                  uint64_t token);
/* The hold lasts for ttl_ns from now on; not 0. Results as of release. */
enum hf_status hf_locks_renew(struct hf_locks *locks, const char *name,
                              uint64_t token, uint64_t ttl_ns);
enum hf_status hf_locks_renew_set(struct hf_locks *locks, uint64_t token,
                                  uint64_t ttl_ns);

/* Is the name held with this token (of a set: the set's)? Token 0: by the
 * calling thread, in any mode. */
bool hf_locks_holds(struct hf_locks *locks, const char *name, uint64_t token);

/* A session has an age, and ends all that it holds and waits for when it is
 * closed: a piece of work that is given up in one step. `note` may be NULL.
 * HF_FULL: a million are open. */
enum hf_status hf_locks_session_open(struct hf_locks *locks, const char *note,
                                     uint64_t *session);
/* Its waits end with HF_NOTFOUND, as does the call if it is not open. */
enum hf_status hf_locks_session_close(struct hf_locks *locks, uint64_t session);

/* Calls `visit` for those who hold a name, in the order of their grants, then
 * for those who wait, in the order of their turn; 100 of each at most, outside
 * the manager. HF_NOTFOUND: nobody does; HF_NOMEM: nobody was visited. */
enum hf_status hf_locks_holders(
    struct hf_locks *locks, const char *name,
    void (*visit)(void *context, const struct hf_locks_holder *holder),
    void *context);

enum hf_locks_form {
    HF_LOCKS_TEXT, /* a line for each: who -> whom: what for, how long */
    HF_LOCKS_DOT,  /* for Graphviz */
};
/* Who waits for whom: for each name that somebody waits for, those who hold it
 * and those before it in the queue, back to the nearest that is not shared; 100
 * of each at most. Into `out`, cut at `cap` and always terminated if cap > 0
 * (of DOT 64 KB at most). Returns the length it has uncut; 0 if nobody waits
 * (of TEXT), or without memory. */
size_t hf_locks_graph(struct hf_locks *locks, enum hf_locks_form form,
                      char *out, size_t cap);

/* Of a name, since it was first counted; NULL: of all. HF_NOTFOUND: it has no
 * figures. */
enum hf_status hf_locks_stats(struct hf_locks *locks, const char *name,
                              struct hf_locks_stats *out);

#ifdef __cplusplus
}
#endif

#endif
