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
/* Something that was told, as a rule to the client itself; NULL: nothing. */
const struct known *pick(struct making *m, const struct known *own,
                         size_t count, const struct known *all,
                         size_t all_count);

/* Up to MAKE_LOCKS_LAST. */
void make_lock(struct making *m, enum make_kind kind);

#endif
