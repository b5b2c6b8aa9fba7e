/* make.h - the words of one request, drawn from a client's own dice.
 *
 * A client knows what it was told: the locks it holds, the reservations and
 * holds of limits it made. Most requests use that, so that they mean
 * something; some use what others were told, or nothing that ever was.
 */
#ifndef SIM_SERVER_MAKE_H
#define SIM_SERVER_MAKE_H

#include "base/bytes.h"
#include "sim/server/mix.h"

#define WORDS_MAX      96
#define WORDS_TEXT_MAX 2000
#define KNOWN_MAX      8
#define KNOWN_SKUS     3u
#define KNOWN_TEXT_MAX 48

struct words {
    size_t count;
    size_t len;
    uint16_t at[WORDS_MAX];
    uint16_t lens[WORDS_MAX];
    char text[WORDS_TEXT_MAX];
};

/* Something a reply told: a lock with its token, a reservation, a hold. */
struct known {
    char name[KNOWN_TEXT_MAX];
    uint64_t number;          /* of a reservation: units of its last item */
    char sku[KNOWN_TEXT_MAX]; /* of a reservation: that item */
};

struct knows {
    struct known locks[KNOWN_MAX];
    size_t lock_count;
    struct known sets[KNOWN_MAX];
    size_t set_count;
    struct known sessions[KNOWN_MAX];
    size_t session_count;
    struct known ids[KNOWN_MAX];
    size_t id_count;
    struct known holds[KNOWN_MAX];
    size_t hold_count;
    uint64_t token_max;            /* the newest that anybody was told */
    uint64_t versions[KNOWN_SKUS]; /* of products, by number */
};

/* What all clients were told. */
extern struct knows knows_all;
/* Which names of reservations are in use. */
extern uint64_t make_epoch;

void words_add(struct words *words, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
size_t words_list(const struct words *words, struct hf_bytes *out);
/* Is it the word at `i`? */
bool words_is(const struct words *words, size_t i, const char *text);
bool words_has(const struct words *words, const char *word);
/* The command of a group that begins at `i`; returns how many words it has. */
size_t words_until(const struct words *words, size_t i, struct words *out);
/* Is it a command that MULTI queues? */
bool words_may_group(const struct words *words);

/* The request of the client's turn; or a group, in which ';' stands before each
 * command but the first. */
void make_request(const struct mix *mix, struct dice *dice,
                  const struct knows *knows, uint64_t client, uint64_t turn,
                  struct words *out);
/* There is something to sell from the beginning. */
void make_first(const struct mix *mix, uint64_t sku, struct words *out);
/* A LOCK whose client will not wait for the answer, and what it may send behind
 * it. `followed`: as a rule of a lock that is free, so that it is granted while
 * its client goes. */
void make_parting(const struct mix *mix, struct dice *dice, bool followed,
                  struct words *out, struct words *behind);
/* Such a LOCK of what the client has, and an UNLOCK; false: it has nothing, or
 * does not want to. */
bool make_reentry(struct dice *dice, const struct knows *knows, uint64_t client,
                  struct words *out, struct words *behind);
/* One of many of the same kind, sent at once: 0 listings, 1 reservations, 2
 * long ones. */
void make_bulk(const struct mix *mix, uint64_t style, struct words *out);
/* KEEP of a session that the client knows; false: of none. */
bool make_keep(const struct knows *knows, struct words *out);
/* Remembers a name, and forgets the oldest if there are too many. */
void knows_keep(struct known *list, size_t *count, struct hf_bytes name);
/* Learns from a reply; of a group from that of its EXEC. */
void knows_learn(struct knows *knows, const struct words *words,
                 struct hf_bytes reply);

#endif
