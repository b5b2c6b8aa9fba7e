/* tail.h - passes a command's output on and keeps its last lines.
 *
 *   command --pipe--> tail --> standard output
 *                      |
 *                      +--> the last lines, TAIL_MAX bytes at most
 *
 * It never waits for either side, so that a reader that stands still does not
 * keep a lock from being renewed: it reads the next piece when the last one is
 * written, and the command waits as it would for that reader.
 */
#ifndef CLI_TAIL_H
#define CLI_TAIL_H

#include <poll.h>

#include "base/bytes.h"
#include "hold/bounds.h"
#include "holdfast/status.h"

#define TAIL_MAX HOLD_NOTE_MAX

struct tail {
    int fd;                  /* the pipe's end; -1: closed */
    struct hf_buf unwritten; /* read, and not passed on yet */
    char kept[TAIL_MAX + 2]; /* the newest bytes, with the line breaks that
                                may stand before and behind the lines */
    size_t kept_count;
    int error; /* why it could not be passed on; 0: it could */
};

/* Makes the pipe; `*output` is the end for the command. HF_IO. */
enum hf_status tail_open(struct tail *tail, int *output);
/* What to wait for, and what to do when it has come. */
struct pollfd tail_poll(const struct tail *tail);
void tail_step(struct tail *tail);
/* The command has ended: reads what it left in the pipe. */
void tail_end(struct tail *tail);
/* Writes what was read and not passed on, waiting for it. */
void tail_flush(struct tail *tail);
/* Adds to what is kept; tail_step does it. */
void tail_keep(struct tail *tail, const char *data, size_t len);
/* The last whole lines that fit, without the last line break; the end of the
 * last line if that does not fit. */
struct hf_bytes tail_lines(const struct tail *tail);

#endif
