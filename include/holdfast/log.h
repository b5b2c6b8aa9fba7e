/* log.h - lines for people and machines, written by a thread of its own.
 *
 * Whoever logs puts a finished line into a buffer of its own thread and goes
 * on: no lock, no disk. One thread collects the lines of all buffers in the
 * order of their times and writes them:
 *
 *   thread 1   [line line line] \
 *   thread 2   [line]            >-- writer --> file, rotated by size
 *   thread 3   [line line]      /
 *
 * A disk that stalls stops the writer and nobody else. When a thread's buffer
 * is full, its lines are dropped and counted, and a line says so as soon as
 * the disk takes lines again ("12 lines dropped"); or the thread waits, if
 * asked to.
 *
 * Lines of one thread keep their order. Lines of different threads are ordered
 * by time as far as the writer sees them together.
 *
 * text   2026-11-15T23:20:01.123456Z info  listening on port 7420
 * JSON   {"time":"2026-11-15T23:20:01.123456Z","level":"info",
 *         "message":"listening on port 7420"}            (in one line)
 *
 * In text, control bytes become spaces. In JSON they are escaped, and what is
 * not UTF-8 becomes the sign for that (U+FFFD).
 *
 * An event is a message with fields, for machines to find:
 *
 * text   2026-11-15T23:20:01.123456Z info  client closed id=7 name="a b"
 * JSON   {"time":"...","level":"info","message":"client closed","id":7,
 *         "name":"a b"}                                  (in one line)
 *
 * A field's value may come from a stranger: in text it is quoted where it is
 * not plain, with \n, \xNN and the like for what could forge a line or drive
 * a terminal.
 *
 * Crash: with `crash`, a fatal signal (SIGSEGV, SIGBUS, SIGFPE, SIGILL,
 * SIGABRT) writes what the buffers hold, then goes where it would have gone.
 * Lines that were being written may appear twice. Not with a sink, which is
 * the user's code, and not in a child of fork(), which has no writer: a child
 * opens a log of its own.
 *
 * Threads: every call but open and close from any thread, not from signal
 *          handlers.
 * Memory:  one buffer for each thread that logs, made at its first line, and
 *          used again by a later thread when it has ended.
 * Time:    the wall clock of `clock`, for the lines; its monotonic one for
 *          deadlines.
 *
 *   order         lock-free       allocates           loses
 *   per thread    write (DROP)    a thread's first    only what it counts
 *
 * Example:
 *
 *   struct hf_log *log;
 *   assert(hf_log_open(&log, &(struct hf_log_opts){.fd = 1}) == HF_OK);
 *   hf_log_write(log, HF_LOG_INFO, "listening on port %d", 7420);
 *   struct hf_log_field fields[] = {hf_log_number("id", 7),
 *                                   hf_log_text("name", "a b")};
 *   hf_log_event(log, HF_LOG_INFO, "client closed", fields, 2);
 *   hf_log_close(log);
 */
#ifndef HOLDFAST_LOG_H
#define HOLDFAST_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "holdfast/clock.h"
#include "holdfast/inspect.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_LOG_LINE_MAX        4096u /* bytes; longer lines are cut */
#define HF_LOG_BUFFER_DEFAULT  (256u << 10)
#define HF_LOG_BUFFER_MAX      (64u << 20)
#define HF_LOG_ROTATE_KEEP_MAX 1000u
#define HF_LOG_CRASH_MAX       8u /* logs with `crash` at a time */

struct hf_log;

enum hf_log_level {
    HF_LOG_DEBUG,
    HF_LOG_INFO,
    HF_LOG_WARN,
    HF_LOG_ERROR,
};

enum hf_log_form { HF_LOG_TEXT, HF_LOG_JSON };

enum hf_log_overflow {
    HF_LOG_DROP, /* and count */
    HF_LOG_WAIT, /* until the writer has made room */
};

struct hf_log_opts {
    const char *name;        /* for hf_inspect() */
    const char *path;        /* appended to; NULL: `fd` */
    int fd;                  /* without a path; 0 means 2, the standard error */
    enum hf_log_level level; /* lines below it are not written */
    enum hf_log_form form;
    enum hf_log_overflow overflow;
    /* Of each thread, rounded up to a power of two; 0: the default. */
    uint32_t buffer_bytes;
    /* So long at most a line waits for the writer to look; 0: 5 ms. Errors, and
     * buffers that are half full, do not wait. */
    uint64_t delay_ns;
    uint64_t rotate_bytes; /* no file gets larger than this; 0: they do */
    uint32_t rotate_keep;  /* path.1 .. path.N are kept; 0: 5 */
    bool crash;            /* write the buffers when a fatal signal comes */
    /* Writes whole lines in place of the file; returns 0, or an error's number.
     * Called by the writer only; must not log here itself. */
    int (*sink)(void *context, const void *data, size_t len);
    void *context;
    const struct hf_clock *clock; /* NULL: the system's */
};

/* One fact of an event. The name is the caller's own word: letters, digits and
 * underscores; other bytes of it become underscores. */
struct hf_log_field {
    const char *name;
    const char *text; /* NULL: the number counts */
    size_t len;       /* of the text */
    uint64_t number;
};

static inline struct hf_log_field hf_log_bytes(const char *name,
                                               const char *data, size_t len)
{
    struct hf_log_field field = {name, data, len, 0};
    return field;
}

static inline struct hf_log_field hf_log_text(const char *name,
                                              const char *text)
{
    return hf_log_bytes(name, text, text == NULL ? 0 : strlen(text));
}

static inline struct hf_log_field hf_log_number(const char *name,
                                                uint64_t number)
{
    struct hf_log_field field = {name, NULL, 0, number};
    return field;
}

struct hf_log_stats {
    uint64_t written; /* lines that the file or sink has */
    uint64_t dropped; /* lines that found their buffer full, or no memory */
    uint64_t failed;  /* lines that could not be written */
    uint64_t cut;     /* lines that were longer than HF_LOG_LINE_MAX */
    uint64_t rotated;
    uint64_t waiting_bytes; /* in buffers, or being written */
    uint64_t oldest_ns;     /* of what is being written; HF_INSPECT_NONE */
    uint64_t wait_p99_ns;   /* from log to file; HF_INSPECT_NONE: none yet */
};

/* HF_INVALID, HF_NOMEM; HF_IO: the file cannot be opened; HF_FULL: there are
 * HF_LOG_CRASH_MAX logs with `crash`. */
enum hf_status hf_log_open(struct hf_log **log, const struct hf_log_opts *opts);
/* Writes all that was logged before, and frees. Nobody may be inside a call.
 * NULL is allowed. */
void hf_log_close(struct hf_log *log);

/* One line, as printf. */
void hf_log_write(struct hf_log *log, enum hf_log_level level,
                  const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* One line with fields, `count` of them. A value for which the line has no room
 * is cut, the fields behind it are left out, and the line counts as cut. */
void hf_log_event(struct hf_log *log, enum hf_log_level level,
                  const char *message, const struct hf_log_field *fields,
                  size_t count);
void hf_log_set_level(struct hf_log *log, enum hf_log_level level);
/* Waits until all that was logged before this call, by this thread and by
 * those that it knows to have logged, is in the file. HF_TIMEOUT; HF_IO: lines
 * could not be written since the last flush that said so. */
enum hf_status hf_log_flush(struct hf_log *log, uint64_t deadline_ns);

void hf_log_stats(struct hf_log *log, struct hf_log_stats *out);

#ifdef __cplusplus
}
#endif

#endif
