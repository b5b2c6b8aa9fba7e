/* told.h - histories of clients, written by hand.
 *
 *   struct told t;
 *   told_begin(&t);                        an empty server is started
 *   told(&t, 1, "LOCK a OWNER x", "token 7 safe_ms 1000 count 1 waited_ms 0");
 *   uint64_t id = told_ask(&t, 2, "LOCK a OWNER y WAIT 500");
 *   told_wait(&t, 500);
 *   told_answer(&t, 2, id, "-TIMEOUT waited 500 ms for the lock");
 *   TOLD_GOOD(&t);  or  TOLD_BAD(&t, "exclusion");
 *
 * Each event is a millisecond after the one before. A reply is an error (-),
 * a simple text (+), a number (:), `null`, or the fields and values of a map;
 * [sku a quantity 1 | sku b quantity 2] is a list of maps, in which simple
 * texts and lists may stand, too.
 */
#ifndef TEST_SUPPORT_TOLD_H
#define TEST_SUPPORT_TOLD_H

#include "history/history.h"

struct told {
    struct history *history;
    struct history_opts opts;
    uint64_t now_us;
    uint64_t id; /* the last one */
};

/* A server without anything in it, and nobody else asks it. */
void told_begin(struct told *told);
/* A server about which nothing is known. */
void told_begin_open(struct told *told);
void told_wait(struct told *told, uint64_t ms);

uint64_t told_ask(struct told *told, uint32_t client, const char *words);
void told_answer(struct told *told, uint32_t client, uint64_t id,
                 const char *reply);
void told_mark(struct told *told, uint32_t client, uint64_t id,
               enum history_event event);
/* Asks and is answered at once; its id. */
uint64_t told(struct told *told, uint32_t client, const char *words,
              const char *reply);

/* Checks, and frees the history. `rule` NULL: there is no violation; else at
 * least one, and all are of that rule. */
void told_check(struct told *told, const char *file, int line,
                const char *rule);
#define TOLD_GOOD(told)      told_check(told, __FILE__, __LINE__, NULL)
#define TOLD_BAD(told, rule) told_check(told, __FILE__, __LINE__, rule)

#endif
