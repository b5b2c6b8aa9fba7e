/* schema.c - the kinds of records, and the operations: one row each.
 *
 * The kinds are numbers in the journal: a row may be added, and a number is
 * never used again.
 */
#include "hold/schema.h"

#include "hold/state.h"

#define OF(kind, field) \
    .index = offsetof(struct hold_engine, field), .bytes = sizeof(struct kind)
#define ENDS(kind)    .is_over = kind##_is_over, .expire = kind##_expire
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
    [SUBJECT_LOCK] = {OF(lock, locks), ENDS(lock), IMAGE('L'),
                      NUMBERS(N(lock, token), N(lock, expires_us),
                              N(lock, acquired_us), N(lock, count)),
                      TEXTS(T(lock, owner)), .loaded = lock_loaded,
                      .members = &hold_subjects[SUBJECT_WAITER],
                      .member_list = offsetof(struct lock, queue)},
    [SUBJECT_WAITER] = {OF(waiter, waiters), .image = 'W',
                        .expire = waiter_time_out,
                        NUMBERS(LINK, N(waiter, ticket), N(waiter, deadline_us),
                                N(waiter, queued_us), N(waiter, ttl_ms)),
                        TEXTS(T(waiter, owner)), .link = waiter_link,
                        .loaded = waiter_loaded, .is_member = true},
    [SUBJECT_PRODUCT] = {OF(product, products), IMAGE('P'),
                         NUMBERS(N(product, total), N(product, reserved),
                                 N(product, sold), N(product, version),
                                 N(product, updated_us)),
                         .loaded = product_loaded},
    [SUBJECT_RESERVATION] =
        {OF(reservation, reservations), ENDS(reservation), IMAGE('R'),
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
#define ADMIN         .admin = true
#define EXACT         .exact = true
#define ON(what)      .subject = &hold_subjects[SUBJECT_##what]
#define DO(test, act) .check = test, .change = act
#define NEED(fn)      .need = fn
#define RETELL(fn)    .retell = fn
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
                   "map: token safe_ms count waited_ms; -BUSY -TIMEOUT",
                   WORDS(WORD_NAME), OPTIONS(OWNER | TTL | WAIT | REQ),
                   NEEDED(OWNER), DEFAULT(LOCK_TTL_MS), ON(LOCK),
                   DO(lock_check, lock_take), NEED(lock_need),
                   RETELL(lock_bound_safe)},
    [HOLD_UNLOCK] = {CLASS_WRITE, "UNLOCK", "lock",
                     "Gives a lock back, or one re-entry of it",
                     "map: remaining; -NOTHELD", WORDS(WORD_NAME, WORD_TOKEN),
                     OPTIONS(REQ), ON(LOCK), DO(unlock_check, lock_give)},
    [HOLD_RENEW] = {CLASS_WRITE, "RENEW", "lock",
                    "Sets how long a lock is held from now on",
                    "map: safe_ms; -LOST", WORDS(WORD_NAME, WORD_TOKEN),
                    OPTIONS(TTL | REQ), NEEDED(TTL), ON(LOCK),
                    DO(renew_check, lock_renew), RETELL(lock_bound_safe)},
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
                      NEED(reserve_need)},
    [HOLD_CONFIRM] = {CLASS_WRITE, "CONFIRM", "reservation",
                      "Sells what a reservation set aside", ENDED,
                      WORDS(WORD_ID), OPTIONS(REQ), ON(RESERVATION),
                      DO(ending_check, reservation_end), NEED(ending_need)},
    [HOLD_CANCEL] = {CLASS_WRITE, "CANCEL", "reservation",
                     "Gives back what a reservation set aside", ENDED,
                     WORDS(WORD_ID), OPTIONS(REASON | REQ), ON(RESERVATION),
                     DO(ending_check, reservation_end), NEED(ending_need)},
    [HOLD_EXTEND] = {CLASS_WRITE, "EXTEND", "reservation",
                     "Sets how long a reservation lasts from now on", ENDED,
                     WORDS(WORD_ID), OPTIONS(TTL | REQ), NEEDED(TTL),
                     ON(RESERVATION), DO(ending_check, reservation_extend),
                     NEED(ending_need)},

    [HOLD_LOCK_INFO] =
        {CLASS_READ, "LOCKINFO", "lock",
         "Tells who holds a lock, for how long, and how many wait",
         "map: name owner token expires_ms count waiting held_ms; -NOTFOUND",
         WORDS(WORD_NAME), ON(LOCK), RUN(lock_info)},
    [HOLD_LOCK_LIST] = {CLASS_LISTING, "LOCKS", "lock",
                        "Lists held locks, in pages", "map: locks " LISTED,
                        WORDS(WORD_PATTERN), OPTIONS(PAGE), RUN(lock_list)},
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
