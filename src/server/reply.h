/* reply.h - what the engine says, as a reply: values as they are, refusals as
 * a code and a sentence with the facts.
 *
 * Threads: the loop's.
 */
#ifndef SERVER_REPLY_H
#define SERVER_REPLY_H

#include "hold/reply.h"
#include "resp/reply.h"

/* The fields' keys; reply_init() comes first, once. */
extern struct reply_field reply_fields[HOLD_FIELD_COUNT];
void reply_init(void);

struct hold_numbers;

/* The times left are told as `age_ms` shorter. */
void reply_write(struct reply *reply, enum hold_code code, struct hf_bytes body,
                 uint64_t age_ms);

/* The four numbers of a product, of a map. */
void reply_put_numbers(struct reply *reply, const struct hold_numbers *numbers);

/* One field of a map. */
static inline void reply_put_field(struct reply *reply, enum hold_field field,
                                   int64_t number)
{
    reply->codec->field_number(reply, &reply_fields[field], number);
}

static inline void reply_put_field_text(struct reply *reply,
                                        enum hold_field field, const char *text)
{
    reply->codec->field(reply, &reply_fields[field]);
    reply_put_text(reply, text);
}

#endif
