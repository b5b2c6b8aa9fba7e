/* making.h - what the files that make requests share. */
#ifndef SIM_SERVER_MAKING_H
#define SIM_SERVER_MAKING_H

#include "sim/server/make.h"

#define ULL(number) ((unsigned long long)(number))

/* What a request is made from. */
struct making {
    const struct mix *mix;
    struct dice *dice;
    const struct knows *knows;
    uint64_t client;
    struct words *out;
};

void add_name(struct making *m);
void add_owner(struct making *m);
void add_ms(struct making *m, const char *option, uint64_t most);
void add_pattern(struct making *m);
void add_sku(struct making *m);
void add_items(struct making *m);
/* STOCK EXPECT, ARRIVE or EXPECTED. */
void make_expect(struct making *m);
/* It waits for its stock. */
void add_queue(struct making *m);
/* A lock of which only groups may be the holders, or any. */
void add_group_name(struct making *m);
/* LIMIT of a key that groups take permits of. */
void add_group_limit(struct making *m);
/* Something that was told, as a rule to the client itself; NULL: nothing. */
const struct known *pick(struct making *m, const struct known *own,
                         size_t count, const struct known *all,
                         size_t all_count);

/* Up to MAKE_LOCKS_LAST. */
void make_lock(struct making *m, enum make_kind kind);
/* MAKE_RESERVE, and those that name a reservation. */
void make_reservation(struct making *m, enum make_kind kind);
/* From MAKE_LIMIT to MAKE_LIMIT_OTHER. */
void make_limit(struct making *m, enum make_kind kind);
void make_group(struct making *m, uint64_t turn);
void make_key(struct making *m);
/* ELECT, RESIGN, PROCLAIM or LEADER, perhaps with its REQ. */
void make_election(struct making *m, uint64_t turn);
/* What is asked seldom: EXPLAIN and so on. */
void make_seldom(struct making *m);
/* REQ, as the mix has it. */
void add_request(struct making *m, uint64_t turn);
/* MULTI, EXEC or DISCARD alone. */
void make_loose(struct making *m);

#endif
