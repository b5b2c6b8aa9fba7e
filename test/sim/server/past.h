/* past.h - questions about the past, and answers that can be judged at once.
 *
 * A history that was told must have the events of the engine about that product
 * or reservation, and EVENTS those of the channels that are asked for, all of
 * them and no others, between its two numbers; feeding.h knows them. An audit
 * must not find anything. What STOCK AT tells is judged with the rest of the
 * history of a run.
 */
#ifndef SIM_SERVER_PAST_H
#define SIM_SERVER_PAST_H

#include "sim/server/making.h"

void past_begin(void);
/* One of them. */
void make_past(struct making *m);
/* EVENTS, with or without WAIT. */
void make_events(struct making *m);
/* An answer to any request; not of a group. */
void past_answer(const struct words *words, struct hf_bytes reply);
/* What is wrong; NULL: nothing. */
const char *past_wrong(void);

#endif
