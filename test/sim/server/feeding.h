/* feeding.h - is every event in the feed, once, whatever happens?
 *
 * All that the engine tells is noted on its way to the feed, by the server at
 * work and by replays, which must tell the same again. After a clean stop the
 * files are opened and read: they have what was noted, no more and no less, but
 * for gaps that they tell of, and there is none without a cause.
 */
#ifndef SIM_SERVER_FEEDING_H
#define SIM_SERVER_FEEDING_H

#include <stdbool.h>
#include <stdint.h>

#include "feed/feed.h"

void feeding_begin(void);
void feeding_end(void);
/* What was acknowledged may be lost. */
void feeding_lose(void);
/* After a stop: judges what is in the folder, if it was a clean one, of files
 * that were kept up to so many bytes; 0: it was not. What is wrong; NULL:
 * nothing. */
const char *feeding_check(const char *dir, uint64_t keep_bytes);

/* All that was told so far is up to this number. */
uint64_t feeding_up_to(void);
/* The first event from that number on; false: there is none yet. */
bool feeding_find(uint64_t seq, struct hold_event *out);
/* Has nothing been lost so far? */
bool feeding_is_sure(void);
/* What a question is about: one product or reservation, or, without its name,
 * channels like `match` (empty: all). */
struct feeding_ask {
    struct event_about about;
    struct hf_bytes match;
};
/* The number of the first event above that number that is asked for;
 * UINT64_MAX: there was none. */
uint64_t feeding_next(uint64_t after, const struct feeding_ask *ask);

#endif
