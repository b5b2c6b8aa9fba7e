/* subscribe.h - pub/sub, as Redis has it.
 *
 *   channel, pattern --> its subscribers --> their connections
 *
 * What happens is published on the channels that it names (feed/event.h), as
 * one JSON object; a client may publish on all others. Nothing is kept: who
 * must miss nothing reads EVENTS.
 *
 * A subscriber that does not read is cut when it is owed `output-max-bytes`,
 * and so are the subscribers of a pattern that takes too long to compare:
 * alone, or in a turn of the loop that patterns have taken enough of. The last
 * that they are told is why: an error, or in RESP3 a push, cut CODE text.
 *
 * Threads: the loop's.
 */
#ifndef SERVER_SUBSCRIBE_H
#define SERVER_SUBSCRIBE_H

#include "base/index.h"
#include "hold/engine.h"
#include "server/table.h"

/* Of one client; of all clients, different patterns; the longest name. */
#define SUBSCRIPTIONS_MAX 1024u
#define PATTERNS_MAX      1024u
#define CHANNEL_MAX       1024u

struct subscription;

struct subscriptions {
    struct hf_texts texts;
    struct hf_index channels;
    struct hf_index patterns;
    struct hf_buf payload; /* of the event being told */
    uint64_t turn;         /* of the loop, to which belong: */
    uint64_t turn_steps;   /* what patterns and messages took */
    uint64_t copied;       /* the same of the bytes of messages, ever */
    size_t bytes;
    uint64_t count; /* of subscriptions */
    uint64_t published;
    uint64_t delivered;
    uint64_t cut;       /* subscribers */
    uint64_t steps;     /* of patterns, for the last text published */
    uint64_t steps_max; /* for any */
};

enum hf_status subscriptions_open(struct subscriptions *subscriptions);
void subscriptions_close(struct subscriptions *subscriptions);

command_fn subscribe_channels, subscribe_patterns, unsubscribe_channels,
    unsubscribe_patterns, publish_text, pubsub_channels, pubsub_numsub,
    pubsub_numpat;

/* What a call of the engine gave is told to those who have subscribed. */
void subscribe_events(struct server *server, const struct hold_out *out);
/* Somebody waits for the lock, under that ticket. */
void subscribe_wanted(struct server *server, struct hf_bytes name,
                      uint64_t ticket);
/* The connection goes. */
void subscribe_leave(struct server *server, struct conn *conn);
/* A client that has subscribed in RESP2 takes nothing but messages: true if the
 * command must be refused, which is done. */
bool subscribe_refuses(struct server *server, struct conn *conn,
                       const struct command *command);
/* Is the connection in that state? */
bool subscribe_has(const struct conn *conn);

#endif
