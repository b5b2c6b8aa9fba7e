/* schema.c - the kinds of records, and the operations: one row each.
 *
 * The kinds are numbers in the journal: a row may be added, and a number is
 * never used again.
 */
#include "hold/schema.h"

#include "hold/locks.h"

#define OF(kind, field) \
    .index = offsetof(struct hold_engine, field), .bytes = sizeof(struct kind)
#define IMAGE(letter) .image = letter, .named = true
#define NUMBERS(...)  .numbers = {__VA_ARGS__}
#define TEXTS(...)    .texts = {__VA_ARGS__}
#define N(kind, field)                                                     \
    {                                                                      \
        offsetof(struct kind, field), sizeof(((struct kind *)NULL)->field) \
    }
#define T(kind, field) offsetof(struct kind, field)
#define LIST(field)    offsetof(struct hold_engine, field)
#define LINK \
    {        \
        0, 8 \
    }

const struct subject hold_subjects[SUBJECTS] = {
    [SUBJECT_SESSION] = {OF(session, sessions), .image = 'S',
                         NUMBERS(N(session, id), N(session, ttl_ms),
                                 N(session, expires_us), N(session, kept),
                                 N(session, bound), N(session, ended)),
                         TEXTS(T(session, title)), .loaded = session_loaded},
    [SUBJECT_LOCK] = {OF(lock, locks), .is_over = lock_is_over,
                      .walk = locks_walk},
    [SUBJECT_SET] = {OF(set, sets), .walk = sets_walk},
    [SUBJECT_WAITER] = {OF(waiter, waiters), .walk = waiters_walk},
    [SUBJECT_HOLDER] = {OF(holder, holders)},
    [SUBJECT_PRODUCT] = {OF(product, products), IMAGE('P'),
                         NUMBERS(N(product, total), N(product, reserved),
                                 N(product, sold), N(product, version),
                                 N(product, updated_us)),
                         .loaded = product_loaded},
    [SUBJECT_RESERVATION] =
        {OF(reservation, reservations), .is_over = reservation_is_over,
         IMAGE('R'),
         NUMBERS(N(reservation, seq), N(reservation, created_us),
                 N(reservation, expires_us), N(reservation, ended_us),
                 N(reservation, status)),
         TEXTS(T(reservation, owner), T(reservation, reason),
               T(reservation, items)),
         .loaded = reservation_loaded, .lists = {LIST(ended)},
         .is_listed = reservation_has_ended},
    [SUBJECT_FENCE] = {OF(fence, fences), IMAGE('F'),
                       NUMBERS(N(fence, newest))},
    [SUBJECT_REQUEST] = {OF(request, requests), IMAGE('Q'),
                         NUMBERS(N(request, fingerprint), N(request, stored_us),
                                 N(request, code), LINK),
                         TEXTS(T(request, reply)), .link = request_link,
                         .loaded = request_loaded,
                         .lists = {LIST(done), LIST(refused)},
                         .is_listed = request_is_answered},
};

#define LOCK_TTL_MS        30000u
#define RESERVATION_TTL_MS 600000u

/* Short for the columns. */
#define WORDS(...)    .words = {__VA_ARGS__}
#define OPTIONS(bits) .options = (bits)
#define NEEDED(bits)  .required = (bits)
#define DEFAULT(ms)   .ttl_ms = (ms)
#define OWNER         HOLD_BIT(ARG_OWNER)
#define REASON        HOLD_BIT(ARG_REASON)
#define REQ           HOLD_BIT(ARG_REQ)
#define WAIT          HOLD_BIT(ARG_WAIT)
#define TTL           HOLD_BIT(ARG_TTL)
#define PAGE          (HOLD_BIT(ARG_CURSOR) | HOLD_BIT(ARG_COUNT))
#define ITEM          HOLD_BIT(ARG_ITEM)
#define GRACE         HOLD_BIT(ARG_GRACE)
#define TITLE         HOLD_BIT(ARG_TITLE)
#define BIND          HOLD_BIT(ARG_BIND)
#define VALUE         HOLD_BIT(ARG_VALUE)
#define MEMBER        HOLD_BIT(ARG_MEMBER)
#define DONE          (HOLD_BIT(ARG_DONE) | HOLD_BIT(ARG_RESULT))
#define MODE          (HOLD_BIT(ARG_SHARED) | HOLD_BIT(ARG_PERMITS))
/* What LOCK and LOCKSET share. */
#define CLAIM                                                                \
    (OWNER | HOLD_BIT(ARG_SESSION) | TTL | HOLD_BIT(ARG_MAXHOLD) |           \
     HOLD_BIT(ARG_DELAY) | WAIT | HOLD_BIT(ARG_FOREVER) |                    \
     HOLD_BIT(ARG_BARGE) | HOLD_BIT(ARG_DEADLOCK) | HOLD_BIT(ARG_PRIORITY) | \
     HOLD_BIT(ARG_NOTE) | HOLD_BIT(ARG_TREE) | REQ)
#define ADMIN         .admin = true
#define EXACT         .exact = true
#define ALONE         .alone = true
#define KEY           .key = true
#define ON(what)      .subject = &hold_subjects[SUBJECT_##what]
#define DO(test, act) .check = test, .change = act
#define NEED(fn)      .need = fn
#define RETELL(fn)    .retell = fn
#define SETTLE(fn)    .settle = fn
#define RUN(fn)       .run = fn

#define PRODUCT  "map: sku total available reserved sold version updated_ms"
#define RESERVED "map: id status expires_ms items"
#define ENDED    RESERVED "; -STATE -EXPIRED -NOTFOUND"
#define LISTED   "(list of maps, perhaps empty) cursor (0: that was all)"

const struct hold_operation hold_operations[HOLD_KINDS] = {
    [HOLD_TICK] = {CLASS_INTERNAL, "TICK", RUN(run_tick)},
    [HOLD_RESTART] = {CLASS_INTERNAL, "RESTART", WORDS(WORD_SKIP),
                      RUN(run_restart)},
    [HOLD_ABANDON] = {CLASS_INTERNAL, "ABANDON", RUN(run_end_early)},
    [HOLD_BOUNDS] = {CLASS_INTERNAL, "BOUNDS", RUN(run_bounds)},
    [HOLD_FLUSH] = {CLASS_INTERNAL, "FLUSHALL", "server",
                    "Deletes all holds and all stock; tokens go on", "OK",
                    ADMIN, RUN(run_flush)},
    [HOLD_TIMEOUT] = {CLASS_INTERNAL, "TIMEOUT", RUN(run_end_early)},

    [HOLD_LOCK] = {CLASS_WRITE, "LOCK", "lock",
                   "Takes a lock, waits in its queue, or re-enters it",
                   "map: token safe_ms count waited_ms, if SHARED fence; -BUSY "
                   "-TIMEOUT -DEADLOCK -DONE -LOST -STATE",
                   WORDS(WORD_NAME), OPTIONS(CLAIM | MODE), NEEDED(OWNER),
                   DEFAULT(LOCK_TTL_MS), ON(LOCK), DO(lock_check, lock_take),
                   NEED(lock_need), SETTLE(lock_settle_named),
                   RETELL(lock_bound_safe)},
    [HOLD_UNLOCK] = {CLASS_WRITE, "UNLOCK", "lock",
                     "Gives a lock back, or one re-entry of it",
                     "map: remaining; -NOTHELD -STATE",
                     WORDS(WORD_NAME, WORD_TOKEN), OPTIONS(DONE | REQ),
                     ON(LOCK), DO(unlock_check, lock_give), NEED(unlock_need),
                     SETTLE(lock_settle_named)},
    [HOLD_RENEW] = {CLASS_WRITE, "RENEW", "lock",
                    "Sets how long a lock is held from now on",
                    "map: safe_ms; -LOST -STATE", WORDS(WORD_NAME, WORD_TOKEN),
                    OPTIONS(TTL | REQ), NEEDED(TTL), ON(LOCK),
                    DO(renew_check, lock_renew), SETTLE(lock_settle_named),
                    RETELL(lock_bound_safe)},
    [HOLD_DOWNGRADE] = {CLASS_WRITE, "DOWNGRADE", "lock",
                        "Makes an exclusive lock a shared one",
                        "map: token safe_ms fence; -LOST -STATE",
                        WORDS(WORD_NAME, WORD_TOKEN), OPTIONS(REQ), ON(LOCK),
                        DO(downgrade_check, lock_downgrade),
                        SETTLE(lock_settle_named), RETELL(lock_bound_safe)},
    [HOLD_REVOKE] = {CLASS_WRITE, "REVOKE", "lock",
                     "Takes a lock from its holder, at once or after GRACE",
                     "OK; -NOTHELD", ADMIN, WORDS(WORD_NAME, WORD_TOKEN),
                     OPTIONS(GRACE | REQ), ON(LOCK),
                     DO(revoke_check, lock_revoke), SETTLE(lock_settle_named)},
    [HOLD_LOCKSET] = {CLASS_WRITE, "LOCKSET", "lock",
                      "Takes several locks as one, all or none",
                      "map: token safe_ms count waited_ms; -BUSY -TIMEOUT "
                      "-DEADLOCK -DONE -LOST -STATE",
                      EXACT, OPTIONS(CLAIM | MEMBER), NEEDED(OWNER | MEMBER),
                      DEFAULT(LOCK_TTL_MS), DO(lockset_check, lockset_take),
                      NEED(lockset_need), RETELL(lock_bound_safe)},
    [HOLD_UNLOCKSET] = {CLASS_WRITE, "UNLOCKSET", "lock",
                        "Gives a set of locks back, or one re-entry of it",
                        "map: remaining; -NOTHELD", EXACT, WORDS(WORD_TOKEN),
                        OPTIONS(REQ), DO(set_check, lockset_give)},
    [HOLD_RENEWSET] = {CLASS_WRITE, "RENEWSET", "lock",
                       "Sets how long a set of locks is held from now on",
                       "map: safe_ms; -LOST", EXACT, WORDS(WORD_TOKEN),
                       OPTIONS(TTL | REQ), NEEDED(TTL),
                       DO(set_check, lockset_renew), RETELL(lock_bound_safe)},
    [HOLD_ELECT] = {CLASS_WRITE, "ELECT", "election",
                    "Becomes leader, or waits for it: takes the lock of that "
                    "name. The token is the term",
                    "map: token safe_ms count waited_ms; -BUSY -TIMEOUT "
                    "-DEADLOCK -DONE -LOST -STATE",
                    WORDS(WORD_NAME),
                    OPTIONS(OWNER | VALUE | HOLD_BIT(ARG_SESSION) | TTL | WAIT |
                            HOLD_BIT(ARG_FOREVER) | REQ),
                    NEEDED(OWNER), DEFAULT(LOCK_TTL_MS), ON(LOCK),
                    DO(lock_check, lock_take), NEED(lock_need),
                    SETTLE(lock_settle_named), RETELL(lock_bound_safe)},
    [HOLD_RESIGN] = {CLASS_WRITE, "RESIGN", "election",
                     "Gives the leadership back, or one re-entry of it",
                     "map: remaining; -NOTHELD -STATE",
                     WORDS(WORD_NAME, WORD_TOKEN), OPTIONS(REQ), ON(LOCK),
                     DO(unlock_check, lock_give), SETTLE(lock_settle_named)},
    [HOLD_PROCLAIM] = {CLASS_WRITE, "PROCLAIM", "election",
                       "Changes the value that the leader shows",
                       "OK; -LOST -STATE", WORDS(WORD_NAME, WORD_TOKEN),
                       OPTIONS(VALUE | REQ), NEEDED(VALUE), ON(LOCK),
                       DO(renew_check, lock_proclaim), NEED(proclaim_need),
                       SETTLE(lock_settle_named)},
    [HOLD_SESSION_OPEN] =
        {CLASS_WRITE, "SESSION OPEN", "session",
         "Opens a session, which ends TTL after it was last kept; with BIND, "
         "TTL after its connection",
         "map: session ttl_ms bound", ALONE, OPTIONS(TTL | TITLE | BIND | REQ),
         NEEDED(TTL), DO(session_open_check, session_open), NEED(session_need)},
    [HOLD_SESSION_KEEP] = {CLASS_WRITE, "SESSION KEEP", "session",
                           "Keeps a session, and all that it holds",
                           "map: session ttl_ms bound; -LOST", ALONE,
                           WORDS(WORD_SESSION),
                           DO(session_check, session_keep)},
    [HOLD_SESSION_CLOSE] = {CLASS_WRITE, "SESSION CLOSE", "session",
                            "Ends a session, all that it holds and waits for",
                            "OK; -LOST", ALONE, WORDS(WORD_SESSION),
                            OPTIONS(REQ), DO(session_check, session_close)},
    [HOLD_SESSION_LEFT] = {CLASS_INTERNAL, "SESSION LEFT", WORDS(WORD_SESSION),
                           RUN(run_session_left)},
    [HOLD_FENCE] =
        {CLASS_WRITE, "FENCE", "lock",
         "Accepts a token that is not older than the newest seen; one that was "
         "never given is -BADARG. No resource is named DEL",
         "OK; -STALE -BADARG", WORDS(WORD_RESOURCE, WORD_TOKEN), OPTIONS(REQ),
         ON(FENCE), DO(fence_check, fence_raise), NEED(fence_need)},
    [HOLD_FENCE_DEL] =
        {CLASS_WRITE, "FENCE DEL", "lock",
         "Forgets the newest token that a resource has seen: older ones are "
         "accepted again",
         "OK; -NOTFOUND", ADMIN, WORDS(WORD_RESOURCE), OPTIONS(REQ), ON(FENCE),
         DO(fence_del_check, fence_del)},

    [HOLD_STOCK_SET] = {CLASS_WRITE, "STOCK SET", "stock",
                        "Creates a product, or sets its total",
                        PRODUCT "; -SHORT", EXACT, WORDS(WORD_SKU, WORD_TOTAL),
                        OPTIONS(REQ), ON(PRODUCT),
                        DO(stock_set_check, stock_set), NEED(stock_set_need)},
    [HOLD_STOCK_ADD] = {CLASS_WRITE, "STOCK ADD", "stock",
                        "Changes a product's total by n, which may be negative",
                        PRODUCT "; -SHORT -NOTFOUND", EXACT,
                        WORDS(WORD_SKU, WORD_CHANGE), OPTIONS(REASON | REQ),
                        ON(PRODUCT), DO(stock_add_check, stock_add)},
    [HOLD_STOCK_DEL] = {CLASS_WRITE, "STOCK DEL", "stock",
                        "Deletes a product of which nothing is reserved",
                        "OK; -STATE -NOTFOUND", EXACT, WORDS(WORD_SKU),
                        OPTIONS(REQ), ON(PRODUCT),
                        DO(stock_del_check, stock_del)},

    [HOLD_RESERVE] = {CLASS_WRITE, "RESERVE", "reservation",
                      "Sets units aside, of all items or of none",
                      RESERVED "; -SHORT -NOTFOUND -CONFLICT", EXACT,
                      WORDS(WORD_NEW_ID), OPTIONS(ITEM | TTL | OWNER | REQ),
                      NEEDED(ITEM), DEFAULT(RESERVATION_TTL_MS),
                      ON(RESERVATION), DO(reserve_check, reserve),
                      NEED(reserve_need), SETTLE(reservation_settle)},
    [HOLD_CONFIRM] = {CLASS_WRITE, "CONFIRM", "reservation",
                      "Sells what a reservation set aside", ENDED,
                      WORDS(WORD_ID), OPTIONS(REQ), ON(RESERVATION),
                      DO(ending_check, reservation_end), NEED(ending_need),
                      SETTLE(reservation_settle)},
    [HOLD_CANCEL] = {CLASS_WRITE, "CANCEL", "reservation",
                     "Gives back what a reservation set aside", ENDED,
                     WORDS(WORD_ID), OPTIONS(REASON | REQ), ON(RESERVATION),
                     DO(ending_check, reservation_end), NEED(ending_need),
                     SETTLE(reservation_settle)},
    [HOLD_EXTEND] = {CLASS_WRITE, "EXTEND", "reservation",
                     "Sets how long a reservation lasts from now on", ENDED,
                     WORDS(WORD_ID), OPTIONS(TTL | REQ), NEEDED(TTL),
                     ON(RESERVATION), DO(ending_check, reservation_extend),
                     NEED(ending_need), SETTLE(reservation_settle)},

    [HOLD_KEY_SET] = {CLASS_WRITE, "SET", "redis", KEY, ON(LOCK),
                      DO(key_set_check, key_set), NEED(key_set_need),
                      SETTLE(lock_settle_named)},
    [HOLD_KEY_DEL] = {CLASS_WRITE, "DEL", "redis", KEY, ON(LOCK),
                      DO(key_del_check, key_del), NEED(key_need),
                      SETTLE(lock_settle_named)},
    [HOLD_KEY_EXPIRE] = {CLASS_WRITE, "EXPIRE", "redis", KEY, ON(LOCK),
                         DO(key_expire_check, key_expire), NEED(key_need),
                         SETTLE(lock_settle_named)},
    [HOLD_GROUP] = {CLASS_WRITE, "EXEC", "group",
                    "Carries out what was queued since MULTI as one step: all "
                    "of it, or nothing if one command is refused",
                    "list: the reply of each; -EXECABORT", EXACT, ALONE,
                    OPTIONS(REQ), DO(group_check, group_run), NEED(group_need)},
    [HOLD_SAID] = {CLASS_INTERNAL, "SAID", RUN(run_said)},

    [HOLD_LOCK_INFO] =
        {CLASS_READ, "LOCKINFO", "lock",
         "Tells who holds a lock, who waits for it, and for how long",
         "map: name owner token expires_ms count waiting held_ms mode session "
         "names note tree holders waiters; -NOTFOUND",
         WORDS(WORD_NAME), ON(LOCK), RUN(lock_info)},
    [HOLD_LOCK_LIST] = {CLASS_LISTING, "LOCKS", "lock",
                        "Lists held locks, in pages", "map: locks " LISTED,
                        WORDS(WORD_PATTERN), OPTIONS(PAGE), RUN(lock_list)},
    [HOLD_HELD] = {CLASS_READ, "HELD", "lock",
                   "Tells whether a lock is held with this token", "OK; -LOST",
                   WORDS(WORD_NAME, WORD_TOKEN), ON(LOCK), RUN(lock_held)},
    [HOLD_LEADER] = {CLASS_READ, "LEADER", "election",
                     "Tells who leads, and with which value",
                     "map: name owner token value expires_ms held_ms waiting; "
                     "-NOTFOUND",
                     WORDS(WORD_NAME), ON(LOCK), RUN(lock_leader)},
    [HOLD_EXPLAIN] = {CLASS_READ, "EXPLAIN", "lock",
                      "Tells what happened to a lock of late, newest first",
                      "list of maps: what seq age_ms owner token mode tree",
                      ALONE, WORDS(WORD_NAME), ON(LOCK), RUN(lock_explain)},
    [HOLD_WAITGRAPH] =
        {CLASS_LISTING, "WAITGRAPH", "lock",
         "Lists who waits for whom, in pages; DOT: as text for Graphviz. An "
         "edge is by grant (the holder has it), queue (the holder waits, too, "
         "and comes first) or closed (by DELAY, for nobody)",
         "map: edges (list of maps: owner session name mode waited_ms note by "
         "holder tree) cursor (0: that was all); DOT: text",
         OPTIONS(PAGE | HOLD_BIT(ARG_DOT)), RUN(lock_waitgraph)},
    [HOLD_KEY_GET] = {CLASS_READ, "GET", KEY, WORDS(WORD_NAME), ON(LOCK),
                      RUN(key_get)},
    [HOLD_KEY_COUNT] = {CLASS_READ, "EXISTS", KEY, RUN(key_count)},
    [HOLD_KEY_SCAN] = {CLASS_LISTING, "SCAN", KEY, WORDS(WORD_PATTERN),
                       RUN(key_scan)},
    [HOLD_SESSION_INFO] = {CLASS_READ, "SESSION INFO", "session",
                           "Shows a session",
                           "map: session name ttl_ms expires_ms bound locks "
                           "waits; -NOTFOUND",
                           WORDS(WORD_SESSION), RUN(session_info)},
    [HOLD_SESSION_LIST] = {CLASS_LISTING, "SESSION LIST", "session",
                           "Lists sessions, in pages", "map: sessions " LISTED,
                           OPTIONS(PAGE), RUN(session_list)},
    [HOLD_STOCK_GET] = {CLASS_READ, "STOCK GET", "stock",
                        "Shows one product, or a list of several",
                        PRODUCT
                        "; of several: list, null for unknown; -NOTFOUND",
                        WORDS(WORD_SKUS), RUN(stock_get)},
    [HOLD_STOCK_LIST] = {CLASS_LISTING, "STOCK LIST", "stock",
                         "Lists products, in pages", "map: products " LISTED,
                         WORDS(WORD_PATTERN), OPTIONS(PAGE), RUN(stock_list)},
    [HOLD_RESERVATION] =
        {CLASS_READ, "RESERVATION", "reservation",
         "Shows a reservation, also for a while after it ended",
         RESERVED " owner created_ms ended_ms reason; -NOTFOUND",
         WORDS(WORD_ID), ON(RESERVATION), RUN(reservation_show)},
};
