/* hearing.h - are subscribers told what the feed has, in order and once?
 *
 * A subscriber has one subscription at a time. What the server writes to it is
 * held against the events that the engine told (feeding.h): each event names
 * channels, and each channel that the subscription is about is one message.
 *
 *   asked for ......... confirmed ------------------> ended, or cut
 *     |    may be told      |   all, in their order     |
 *
 * Before an answer stands what was told when its request was read.
 */
#ifndef SIM_SERVER_HEARING_H
#define SIM_SERVER_HEARING_H

#include "sim/server/make.h"

struct hearing {
    char topic[KNOWN_TEXT_MAX]; /* a channel, or a pattern */
    bool pattern;
    bool on;
    bool begun;    /* it was told something */
    bool cut;      /* and told why */
    uint64_t sure; /* behind this it is told everything */
    uint64_t seq;  /* the last that it was told; */
    uint32_t next; /* which of its channels comes next */
};

/* What to compare with, and whether messages may be missing: where memory is
 * refused, they are. */
void hearing_begin(const struct mix *mix);
/* What no server may tell; NULL: nothing. */
const char *hearing_wrong(void);

/* What a subscriber sends, in its turns. */
void make_hearing(const struct mix *mix, struct dice *dice,
                  const struct hearing *hearing, struct words *out);

/* Is it a message, or another push, and not an answer? */
bool hearing_is_push(struct hf_bytes reply);
/* The server writes a push. */
void hearing_push(struct hearing *hearing, struct hf_bytes push);
/* It writes the answer to `words`, which it read when the newest event was
 * `read`. */
void hearing_answer(struct hearing *hearing, const struct words *words,
                    struct hf_bytes reply, uint64_t read);

#endif
