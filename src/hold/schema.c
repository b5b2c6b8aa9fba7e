/* schema.c - the kinds of records, and the operations: one row each.
 *
 * The kinds are numbers in the journal: a row may be added, and a number is
 * never used again.
 */
#include "hold/schema.h"

#include "hold/bundle.h"
#include "hold/expect.h"
#include "hold/locks.h"
#include "hold/places.h"
#include "hold/quota.h"
#include "hold/request.h"
#include "hold/waitlist.h"

#define OF(kind, field) \
    .index = offsetof(struct hold_engine, field), .bytes = sizeof(struct kind)
#define TOLD(on, name, text) .channel = on, .key = name, .note = text
#define IMAGE(letter)        .image = letter, .named = true
#define NUMBERS(...)         .numbers = {__VA_ARGS__}
#define TEXTS(...)           .texts = {__VA_ARGS__}
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
    [SUBJECT_SESSION] = {OF(session, sessions),
                         TOLD("hf:session:", "session", "name"), .image = 'S',
                         NUMBERS(N(session, id), N(session, ttl_ms),
                                 N(session, expires_us), N(session, kept),
                                 N(session, bound), N(session, ended)),
                         TEXTS(T(session, title)), .loaded = session_loaded},
    [SUBJECT_LOCK] = {OF(lock, locks), TOLD("hf:lock:", "name", "note"),
                      .is_over = lock_is_over, .walk = locks_walk},
    [SUBJECT_SET] = {OF(set, sets), .walk = sets_walk},
    [SUBJECT_WAITER] = {OF(waiter, waiters), .walk = waiters_walk},
    [SUBJECT_HOLDER] = {OF(holder, holders)},
    [SUBJECT_PRODUCT] = {OF(product, products),
                         TOLD("hf:stock:", "sku", "reason"), IMAGE('P'),
                         NUMBERS(N(product, total), N(product, reserved),
                                 N(product, sold), N(product, version),
                                 N(product, updated_us), N(product, low),
                                 N(product, ends_us)),
                         TEXTS(T(product, attributes)),
                         .before = {{5, 0}, {6, 1}}, .loaded = product_loaded},
    [SUBJECT_PLACES] = {OF(places, places)},
    [SUBJECT_QUOTA] = {OF(quota, quotas), IMAGE('N'),
                       NUMBERS(N(quota, most), N(quota, since)),
                       .loaded = quota_loaded},
    [SUBJECT_SHARE] = {OF(share, shares)},
    [SUBJECT_RESERVATION] =
        {OF(reservation, reservations), TOLD("hf:reservation:", "id", "reason"),
         .is_over = reservation_may_be_over, IMAGE('R'),
         NUMBERS(N(reservation, seq), N(reservation, created_us),
                 N(reservation, expires_us), N(reservation, ended_us),
                 N(reservation, status), N(reservation, extends),
                 N(reservation, class)),
         TEXTS(T(reservation, owner), T(reservation, reason),
               T(reservation, items)),
         .before = {{5, 3}}, .loaded = reservation_loaded,
         .lists = {LIST(ended)}, .is_listed = reservation_has_ended},
    [SUBJECT_BUYER] = {OF(buyer, buyers), .walk = buyers_walk},
    [SUBJECT_BUNDLE] = {OF(bundle, bundles), .walk = bundles_walk},
    [SUBJECT_EXPECT] = {OF(expect, expects), .walk = expects_walk},
    [SUBJECT_FENCE] = {OF(fence, fences), TOLD("hf:fence:", "resource", "note"),
                       IMAGE('F'), NUMBERS(N(fence, newest))},
    [SUBJECT_REQUEST] = {OF(request, requests), IMAGE('Q'),
                         NUMBERS(N(request, fingerprint), N(request, stored_us),
                                 N(request, code), LINK),
                         TEXTS(T(request, reply)), .link = request_link,
                         .loaded = request_loaded,
                         .lists = {LIST(done), LIST(refused)},
                         .is_listed = request_is_answered},
    [SUBJECT_CLASS] = {OF(class, classes), TOLD("hf:class:", "class", "note"),
                       IMAGE('C'),
                       NUMBERS(N(class, ttl_ms), N(class, grace_ms),
                               N(class, extends_max), N(class, life_ms),
                               N(class, number)),
                       .loaded = class_loaded},
};

#define LOCK_TTL_MS 30000u

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
#define PART          HOLD_BIT(ARG_PART)
#define BEST          HOLD_BIT(ARG_BEST)
#define PREORDER      HOLD_BIT(ARG_PREORDER)
#define CLASS         HOLD_BIT(ARG_CLASS)
#define PLACE         (HOLD_BIT(ARG_PLACE) | HOLD_BIT(ARG_SPLIT))
#define GROUP         HOLD_BIT(ARG_GROUP)
#define EXTENDS       HOLD_BIT(ARG_EXTENDS)
#define LIFE          HOLD_BIT(ARG_LIFE)
#define GRACE         HOLD_BIT(ARG_GRACE)
#define TITLE         HOLD_BIT(ARG_TITLE)
#define BIND          HOLD_BIT(ARG_BIND)
#define VALUE         HOLD_BIT(ARG_VALUE)
#define MEMBER        HOLD_BIT(ARG_MEMBER)
#define DONE          (HOLD_BIT(ARG_DONE) | HOLD_BIT(ARG_RESULT))
#define REF           HOLD_BIT(ARG_REF)
#define CHANGED       (HOLD_BIT(ARG_IF) | REASON | REF)
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
#define TAKES_LOCK    .takes_lock = true
#define GIVES_LOCK    .gives_lock = true
#define OF_SET        .of_set = true
#define FREES         .frees = true
#define BUNDLE        .ends_bundle = true

#define PRODUCT \
    "map: sku total available reserved sold version updated_ms low waiting"
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
                   DEFAULT(LOCK_TTL_MS), ON(LOCK), TAKES_LOCK,
                   DO(lock_check, lock_take), NEED(lock_need),
                   SETTLE(lock_settle_named), RETELL(lock_bound_safe)},
    [HOLD_UNLOCK] = {CLASS_WRITE, "UNLOCK", "lock",
                     "Gives a lock back, or one re-entry of it",
                     "map: remaining; -NOTHELD -STATE",
                     WORDS(WORD_NAME, WORD_TOKEN), OPTIONS(DONE | REQ),
                     ON(LOCK), GIVES_LOCK, FREES, DO(unlock_check, lock_give),
                     NEED(unlock_need), SETTLE(lock_settle_named)},
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
                        FREES, DO(downgrade_check, lock_downgrade),
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
                      DEFAULT(LOCK_TTL_MS), TAKES_LOCK,
                      DO(lockset_check, lockset_take), NEED(lockset_need),
                      RETELL(lock_bound_safe)},
    [HOLD_UNLOCKSET] = {CLASS_WRITE, "UNLOCKSET", "lock",
                        "Gives a set of locks back, or one re-entry of it",
                        "map: remaining; -NOTHELD", EXACT, WORDS(WORD_TOKEN),
                        OPTIONS(REQ), GIVES_LOCK, OF_SET, FREES,
                        DO(set_check, lockset_give)},
    [HOLD_RENEWSET] = {CLASS_WRITE, "RENEWSET", "lock",
                       "Sets how long a set of locks is held from now on",
                       "map: safe_ms; -LOST", EXACT, WORDS(WORD_TOKEN),
                       OPTIONS(TTL | REQ), NEEDED(TTL), OF_SET,
                       DO(set_check, lockset_renew), RETELL(lock_bound_safe)},
    [HOLD_ELECT] = {CLASS_WRITE, "ELECT", "election",
                    "Becomes leader, or waits for it: takes the lock of that "
                    "name. The token is the term",
                    "map: token safe_ms count waited_ms; -BUSY -TIMEOUT "
                    "-DEADLOCK -DONE -LOST -STATE",
                    WORDS(WORD_NAME),
                    OPTIONS(OWNER | VALUE | HOLD_BIT(ARG_SESSION) | TTL | WAIT |
                            HOLD_BIT(ARG_FOREVER) | REQ),
                    NEEDED(OWNER), DEFAULT(LOCK_TTL_MS), ON(LOCK), TAKES_LOCK,
                    DO(lock_check, lock_take), NEED(lock_need),
                    SETTLE(lock_settle_named), RETELL(lock_bound_safe)},
    [HOLD_RESIGN] = {CLASS_WRITE, "RESIGN", "election",
                     "Gives the leadership back, or one re-entry of it",
                     "map: remaining; -NOTHELD -STATE",
                     WORDS(WORD_NAME, WORD_TOKEN), OPTIONS(REQ), ON(LOCK),
                     GIVES_LOCK, FREES, DO(unlock_check, lock_give),
                     SETTLE(lock_settle_named)},
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
         "Accepts a token that is not older than the newest seen; one above "
         "the "
         "newest number that any change was given is -BADARG. No resource is "
         "named DEL",
         "OK; -STALE -BADARG", WORDS(WORD_RESOURCE, WORD_TOKEN), OPTIONS(REQ),
         ON(FENCE), DO(fence_check, fence_raise), NEED(fence_need)},
    [HOLD_FENCE_DEL] =
        {CLASS_WRITE, "FENCE DEL", "lock",
         "Forgets the newest token that a resource has seen: older ones are "
         "accepted again",
         "OK; -NOTFOUND", ADMIN, WORDS(WORD_RESOURCE), OPTIONS(REQ), ON(FENCE),
         DO(fence_del_check, fence_del)},

    [HOLD_STOCK_SET] = {CLASS_WRITE, "STOCK SET", "stock",
                        "Creates a product, or sets its total. IF: only if "
                        "that is its version (0: only if there is none)",
                        PRODUCT "; -SHORT -CONFLICT", EXACT,
                        WORDS(WORD_SKU, WORD_TOTAL), OPTIONS(CHANGED | REQ),
                        ON(PRODUCT), DO(stock_set_check, stock_set),
                        NEED(stock_set_need)},
    [HOLD_STOCK_ADD] = {CLASS_WRITE, "STOCK ADD", "stock",
                        "Changes a product's total by n, which may be negative",
                        PRODUCT "; -SHORT -NOTFOUND -CONFLICT", EXACT,
                        WORDS(WORD_SKU, WORD_CHANGE), OPTIONS(CHANGED | REQ),
                        ON(PRODUCT), DO(stock_add_check, stock_add)},
    [HOLD_STOCK_DEL] = {CLASS_WRITE, "STOCK DEL", "stock",
                        "Deletes a product of which nothing is reserved",
                        "OK; -STATE -NOTFOUND -CONFLICT", EXACT,
                        WORDS(WORD_SKU), OPTIONS(HOLD_BIT(ARG_IF) | REQ),
                        ON(PRODUCT), DO(stock_del_check, stock_del)},
    [HOLD_STOCK_LOW] = {CLASS_WRITE, "STOCK LOW", "stock",
                        "Sets a threshold: an event tells when no more than n "
                        "are available, and when there are more again. 0: none",
                        PRODUCT "; -NOTFOUND", EXACT, WORDS(WORD_SKU, WORD_LOW),
                        OPTIONS(REQ), ON(PRODUCT),
                        DO(stock_known_check, stock_low)},
    [HOLD_STOCK_ATTR] = {CLASS_WRITE, "STOCK ATTR", "stock",
                         "Sets an attribute of a product, or removes it: "
                         "without a value, or with an empty one",
                         PRODUCT "; -NOTFOUND -OVERLOADED", EXACT,
                         WORDS(WORD_SKU, WORD_ATTRIBUTE, WORD_VALUE),
                         OPTIONS(REQ), ON(PRODUCT),
                         DO(attribute_check, attribute_set),
                         NEED(attribute_need)},
    [HOLD_STOCK_LIMIT] =
        {CLASS_WRITE, "STOCK LIMIT", "stock",
         "Sets how many units one owner may have in reservations that have not "
         "ended; those made before are not counted. 0: any number",
         PRODUCT " limit; -NOTFOUND", EXACT, WORDS(WORD_SKU, WORD_LOW),
         OPTIONS(REQ), ON(PRODUCT), DO(stock_known_check, stock_limit),
         NEED(quota_set_need)},

    [HOLD_RESERVE] = {CLASS_WRITE, "RESERVE", "reservation",
                      "Sets units aside, of all items or of none; of an item "
                      "with MIN n as many as there are, n at least; with BEST "
                      "of those items of which there is enough; with WAIT "
                      "waits for them; with PLACE from sku@place, all from "
                      "one of the places or as SPLIT says; with PREORDER books "
                      "them from what STOCK EXPECT has announced",
                      RESERVED
                      ", with BEST failed (list of maps: sku "
                      "requested available, or requested has limit); while it "
                      "is booked: id status position expected_ms; -SHORT "
                      "-QUOTA -STATE -NOTFOUND -CONFLICT -BADARG -TIMEOUT",
                      EXACT, WORDS(WORD_NEW_ID),
                      OPTIONS(ITEM | BEST | TTL | CLASS | OWNER | GROUP | WAIT |
                              PLACE | PREORDER | HOLD_BIT(ARG_PRIORITY) | REQ),
                      NEEDED(ITEM), ON(RESERVATION), DO(reserve_check, reserve),
                      NEED(reserve_need), SETTLE(reservation_settle)},
    [HOLD_CONFIRM] = {CLASS_WRITE, "CONFIRM", "reservation",
                      "Sells what a reservation set aside; with ITEM so much "
                      "of it, and gives back the rest",
                      ENDED " -BADARG -SHORT", WORDS(WORD_ID),
                      OPTIONS(PART | REQ), ON(RESERVATION),
                      DO(ending_check, reservation_end), NEED(ending_need),
                      SETTLE(reservation_settle)},
    [HOLD_CANCEL] = {CLASS_WRITE, "CANCEL", "reservation",
                     "Gives back what a reservation set aside; with ITEM so "
                     "much of it, and the reservation goes on with the rest",
                     ENDED " -BADARG", WORDS(WORD_ID),
                     OPTIONS(PART | REASON | REQ), ON(RESERVATION),
                     DO(ending_check, reservation_end), NEED(ending_need),
                     SETTLE(reservation_settle)},
    [HOLD_EXTEND] = {CLASS_WRITE, "EXTEND", "reservation",
                     "Sets how long a reservation lasts from now on", ENDED,
                     WORDS(WORD_ID), OPTIONS(TTL | REQ), NEEDED(TTL),
                     ON(RESERVATION), DO(ending_check, reservation_extend),
                     NEED(ending_need), SETTLE(reservation_settle)},

    [HOLD_GROUP_CONFIRM] =
        {CLASS_WRITE, "GROUP CONFIRM", "reservation",
         "Confirms all reservations that were made with that GROUP, or none, "
         "if one of them waits or has expired; in their time of grace those "
         "that have expired are confirmed with the others, if all that they "
         "had is still free",
         "map: group status count; -STATE -EXPIRED -SHORT -NOTFOUND "
         "-OVERLOADED",
         EXACT, WORDS(WORD_GROUP), OPTIONS(REQ), ON(BUNDLE), BUNDLE,
         DO(bundle_end_check, bundle_end), NEED(bundle_end_need)},
    [HOLD_GROUP_CANCEL] =
        {CLASS_WRITE, "GROUP CANCEL", "reservation",
         "Cancels all reservations that were made with that GROUP, also those "
         "that wait by WAITLIST JOIN",
         "map: group status count; -EXPIRED -NOTFOUND -OVERLOADED", EXACT,
         WORDS(WORD_GROUP), OPTIONS(REASON | REQ), ON(BUNDLE), BUNDLE, FREES,
         DO(bundle_end_check, bundle_end), NEED(bundle_end_need)},

    [HOLD_WAITLIST_JOIN] =
        {CLASS_WRITE, "WAITLIST JOIN", "waitlist",
         "Waits for stock without a connection: when it is its turn, units are "
         "set aside as a reservation for TTL, told by the event offered",
         RESERVED "; while it waits: id status position; -QUOTA -NOTFOUND "
                  "-CONFLICT -STATE",
         EXACT, ALONE, WORDS(WORD_WANTED),
         OPTIONS(OWNER | GROUP | HOLD_BIT(ARG_ID) | TTL | HOLD_BIT(ARG_STAY) |
                 HOLD_BIT(ARG_PRIORITY) | REQ),
         NEEDED(OWNER), ON(RESERVATION), DO(reserve_check, reserve),
         NEED(reserve_need)},
    [HOLD_WAITLIST_LEAVE] = {CLASS_WRITE, "WAITLIST LEAVE", "waitlist",
                             "Ends a wait that WAITLIST JOIN began",
                             "OK; -STATE -NOTFOUND", EXACT, ALONE,
                             WORDS(WORD_QUEUE, WORD_ID), OPTIONS(REQ),
                             ON(RESERVATION),
                             DO(waitlist_leave_check, waitlist_leave)},

    [HOLD_EXPECT] =
        {CLASS_WRITE, "STOCK EXPECT", "preorder",
         "Announces that n units will arrive at a time, in ms since 1970, or "
         "changes what was announced with that REF; 0 withdraws it",
         "map: sku expected booked uncovered; -NOTFOUND -BADARG -OVERLOADED",
         EXACT, WORDS(WORD_SKU, WORD_LOW),
         OPTIONS(HOLD_BIT(ARG_ARRIVES) | REF | REQ), ON(PRODUCT),
         DO(expect_check, expect), NEED(expect_need)},
    [HOLD_ARRIVE] =
        {CLASS_WRITE, "STOCK ARRIVE", "preorder",
         "Adds n units to a product: those who booked get theirs, in order of "
         "booking. Ends what was announced with that REF",
         PRODUCT " announced served booked; -NOTFOUND -OVERLOADED", EXACT,
         WORDS(WORD_SKU, WORD_UNITS), OPTIONS(REASON | REF | REQ), ON(PRODUCT),
         FREES, DO(arrive_check, arrive)},

    [HOLD_CLASS_SET] =
        {CLASS_WRITE, "CLASS SET", "class",
         "Sets what counts for reservations with that CLASS; an option that is "
         "not given: TTL as the setting reserve-ttl-ms, no GRACE, any EXTENDS, "
         "any LIFE",
         "OK", WORDS(WORD_CLASS), OPTIONS(TTL | GRACE | EXTENDS | LIFE | REQ),
         ON(CLASS), DO(class_set_check, class_set), NEED(class_set_need)},
    [HOLD_CLASS_DEL] = {CLASS_WRITE, "CLASS DEL", "class",
                        "Deletes a class; for its reservations the settings "
                        "count from now on",
                        "OK; -NOTFOUND", WORDS(WORD_CLASS), OPTIONS(REQ),
                        ON(CLASS), DO(class_del_check, class_del)},

    [HOLD_KEY_SET] = {CLASS_WRITE, "SET", "redis", KEY, ON(LOCK), TAKES_LOCK,
                      FREES, DO(key_set_check, key_set), NEED(key_set_need),
                      SETTLE(lock_settle_named)},
    [HOLD_KEY_DEL] = {CLASS_WRITE, "DEL", "redis", KEY, ON(LOCK), FREES,
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
                   WORDS(WORD_NAME, WORD_TOKEN), ON(LOCK), RUN(lock_held),
                   NEED(key_need)},
    [HOLD_LEADER] = {CLASS_READ, "LEADER", "election",
                     "Tells who leads, and with which value",
                     "map: name owner token value expires_ms held_ms waiting; "
                     "-NOTFOUND",
                     WORDS(WORD_NAME), ON(LOCK), RUN(lock_leader)},
    [HOLD_EXPLAIN] = {CLASS_READ, "EXPLAIN", "lock",
                      "Tells what happened to a lock of late, newest first, "
                      "and why, as far as what happened does not say so; by is "
                      "the other holder, if there is one. It looks at the last "
                      "16,384 things that happened to any lock, and tells 32 "
                      "of them at most",
                      "list of maps: what seq age_ms owner token mode tree why "
                      "by",
                      ALONE, WORDS(WORD_NAME), ON(LOCK), RUN(lock_explain)},
    [HOLD_WAITGRAPH] =
        {CLASS_LISTING, "WAITGRAPH", "lock",
         "Lists who waits for whom, in pages; DOT: as text for Graphviz. An "
         "edge is by grant (the holder has it), queue (the holder waits, too, "
         "and comes first) or closed (by DELAY, for nobody). A wait has an "
         "edge to each that it waits for, up to 100 of each kind",
         "map: edges (list of maps: owner session name mode waited_ms note by "
         "holder tree) cursor (0: that was all); DOT: text",
         OPTIONS(PAGE | HOLD_BIT(ARG_DOT)), RUN(lock_waitgraph)},
    [HOLD_KEY_GET] = {CLASS_READ, "GET", KEY, WORDS(WORD_NAME), ON(LOCK),
                      RUN(key_get), NEED(key_need)},
    [HOLD_KEY_COUNT] = {CLASS_READ, "EXISTS", KEY, RUN(key_count),
                        NEED(key_need)},
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
                        " attributes (map), limit if there is one, if some is "
                        "to arrive expected booked; of several: list, null for "
                        "unknown; -NOTFOUND",
                        WORDS(WORD_SKUS), RUN(stock_get)},
    [HOLD_STOCK_LIST] = {CLASS_LISTING, "STOCK LIST", "stock",
                         "Lists products, in pages", "map: products " LISTED,
                         WORDS(WORD_PATTERN), OPTIONS(PAGE), RUN(stock_list)},
    [HOLD_STOCK_PLACES] =
        {CLASS_READ, "STOCK PLACES", "stock",
         "Shows a sku over all its places: the sums, and the places in pages",
         "map: sku total available reserved sold count places (list of maps: "
         "as STOCK SET, place) cursor (0: that was all); -NOTFOUND",
         WORDS(WORD_SKU), OPTIONS(PAGE), RUN(places_show)},
    [HOLD_EXPECTED] =
        {CLASS_READ, "STOCK EXPECTED", "preorder",
         "Lists what is to arrive of a product, and the bookings of it in "
         "order, these in pages",
         "map: sku expected booked uncovered arrivals (list of maps: ref "
         "quantity expected_ms late) bookings (list of maps: id owner quantity "
         "created_ms position expected_ms) cursor (0: that was all); -NOTFOUND",
         WORDS(WORD_SKU), OPTIONS(PAGE), RUN(expect_show)},
    [HOLD_WAITLIST_LIST] =
        {CLASS_READ, "WAITLIST LIST", "waitlist",
         "Lists who waits for a product, in the order of their turn, in pages",
         "map: waiters (list of maps: id owner quantity priority waited_ms "
         "position connected) cursor (0: that was all); -NOTFOUND",
         ALONE, WORDS(WORD_SKU), OPTIONS(PAGE), RUN(waitlist_show)},
    [HOLD_CLASS_LIST] = {CLASS_LISTING, "CLASS LIST", "class",
                         "Lists classes of reservations, in pages",
                         "map: classes " LISTED, OPTIONS(PAGE),
                         RUN(class_list)},
    [HOLD_GROUP_SHOW] =
        {CLASS_READ, "GROUP SHOW", "reservation",
         "Lists the reservations of a group, in the order in which they were "
         "made, in pages",
         "map: group count reservations (list of maps: id status expires_ms) "
         "cursor (0: that was all); -NOTFOUND",
         WORDS(WORD_GROUP), OPTIONS(PAGE), RUN(bundle_show)},
    [HOLD_RESERVATION] =
        {CLASS_READ, "RESERVATION", "reservation",
         "Shows a reservation, also for a while after it ended",
         RESERVED
         " owner created_ms ended_ms reason class extends, priority while it "
         "waits for stock, group while it is of one; -NOTFOUND",
         WORDS(WORD_ID), ON(RESERVATION), RUN(reservation_show)},
};
