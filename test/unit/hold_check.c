/* hold_check.c - does hold_check() see each thing that may be wrong?
 *
 * The other tests and the simulations trust it to speak up, so here every
 * invariant is broken by hand, one at a time, and it must say which.
 */
#include "base/memory.h"
#include "hold/part.h"
#include "support/engine.h"

TEST_ONE_THREAD;

static uint32_t find(const struct hf_index *index, const char *name)
{
    uint32_t number = hf_index_find(index, hf_bytes_text(name));

    CHECK(number != 0);
    return number;
}

static struct lock *the_lock(const char *name)
{
    return lock_edit(engine, find(&engine->locks, name));
}

static struct product *the_product(const char *sku)
{
    return product_edit(engine, find(&engine->products, sku));
}

static struct reservation *the_reservation(const char *id)
{
    return reservation_edit(engine, find(&engine->reservations, id));
}

static struct request *the_request(const char *id)
{
    return request_edit(engine, find(&engine->requests, id));
}

/* The single grant or the set that holds a lock, and who waits for it. */
static struct part *the_grant(const char *name)
{
    return part_edit(engine, the_lock(name)->grants.first);
}

static struct part *the_wait(const char *name, unsigned place)
{
    uint32_t number = the_lock(name)->queue.first;

    while (place-- > 0)
        number = part_edit(engine, number)->place.next;
    return part_edit(engine, number);
}

static struct waiter *the_waiter(const char *name, unsigned place)
{
    return waiter_edit(engine, the_wait(name, place)->group);
}

static struct set *the_set(void)
{
    return set_edit(engine, the_grant("a")->group);
}

static struct session *the_session(void)
{
    return session_edit(engine, session_find(engine, 1));
}

static struct mark *the_mark(void)
{
    return mark_edit(engine, the_lock("lid")->mark);
}

/* All there is: session 1 with a set, a permit and two waits, behind each other
 * at a held door; readers; a name that is closed. */
static void locked(void)
{
    engine_start();
    engine_do("SESSION OPEN TTL 9000");                              /* 1 */
    engine_do("LOCK door OWNER ann TTL 5000");                       /* 2 */
    engine_do("LOCKSET OWNER bob SESSION 1 NAME a NAME b TTL 4000"); /* 3, 4 */
    engine_do("LOCK pool OWNER bob SESSION 1 PERMITS 2 OF 5");       /* 5 */
    engine_do("LOCK pool OWNER eve PERMITS 1 OF 5 TTL 6000");        /* 6 */
    engine_do("LOCK hall OWNER eve SHARED TTL 5000");                /* 7 */
    engine_do("LOCK hall OWNER kim SHARED TTL 5000");                /* 8 */
    engine_do("LOCK lid OWNER ann DELAY 3000");                      /* 9 */
    engine_do("REVOKE lid 9");                                       /* 11 */
    engine_do("LOCK door OWNER bob SESSION 1 WAIT 900");             /* 12 */
    engine_do("LOCK door OWNER bob SESSION 1 WAIT 800 PRIORITY 1");  /* 13 */
    engine_do("LOCKSET OWNER zoe NAME door NAME hall FOREVER PRIORITY 2");
    CHECK_ENGINE();
}

/* Two products, one pending reservation, two that ended one after the other. */
static void stocked(void)
{
    engine_start();
    engine_set("apple", 10);
    engine_set("pear", 5);
    engine_reserve("open", "apple 4 pear 2", 1000);
    engine_reserve("sold", "apple 3", 2000);
    engine_reserve("gone", "pear 1", 2000);
    engine_now_us++;
    engine_confirm("sold");
    engine_now_us++;
    engine_cancel("gone", "no");
    CHECK_ENGINE();
}

/* Two requests that succeeded, two that were refused, and one that waits. */
static void asked(void)
{
    static const char *const ids[] = {"done1", "no1", "done2", "no2", "wait"};

    engine_start();
    for (unsigned i = 0; i < 5; i++) {
        engine_now_us++;
        engine_request = ids[i];
        engine_lock(i == 2 ? "gate" : "door", i == 0 ? "ann" : "bob", 500,
                    i == 4 ? 100 : 0);
    }
    engine_request = NULL;
    CHECK_EQ(the_request("no2")->code, HOLD_BUSY);
    CHECK(the_request("wait")->waiter != 0);
    CHECK_ENGINE();
}

TEST(without_memory_it_says_so)
{
    char error[256] = "old";

    locked();
    hf_memory_fail_after(0);
    enum hf_status status = hold_check(engine, error);
    hf_memory_fail_never();
    CHECK_EQ(status, HF_NOMEM);
    CHECK_TEXT(error, strlen(error), "");
}

TEST(grants_that_are_not_in_order_are_seen)
{
    static const char wrong[] = "the grants of hall are not in order";

    locked();
    the_grant("hall")->lock = find(&engine->locks, "door");
    BROKEN(wrong);
    locked();
    the_grant("hall")->waits = true;
    the_grant("hall")->group = the_wait("hall", 0)->group;
    BROKEN(wrong);
    locked();
    the_grant("hall")->place.prev = the_lock("hall")->grants.last;
    BROKEN(wrong);
    locked();
    the_grant("hall")->token = 8; /* twice the same */
    BROKEN(wrong);
    locked(); /* a list without an end */
    part_edit(engine, the_lock("hall")->grants.last)->place.next =
        the_lock("hall")->grants.first;
    BROKEN(wrong);
    locked();
    the_lock("hall")->grants.last = the_lock("hall")->grants.first;
    BROKEN("lock hall counts 2 grants and has 2");
    locked();
    the_lock("hall")->granted = 3;
    BROKEN("lock hall counts 3 grants and has 2");
}

TEST(grants_that_do_not_go_together_are_seen)
{
    locked();
    the_grant("hall")->mode = MODE_EXCLUSIVE;
    BROKEN("lock hall was granted twice");
    part_edit(engine, the_lock("hall")->grants.last)->mode = MODE_EXCLUSIVE;
    BROKEN("lock hall was granted twice");
    locked();
    the_grant("pool")->permits = 4;
    BROKEN("lock pool has 5 of 5 permits out");
    locked();
    the_lock("pool")->used = 2;
    BROKEN("lock pool has 3 of 5 permits out");
    locked();
    the_lock("pool")->max = 2;
    BROKEN("lock pool has 3 of 2 permits out");
}

TEST(a_single_grant_that_is_not_in_order_is_seen)
{
    locked();
    the_grant("door")->token = hold_seq(engine);
    CHECK_ENGINE();
    the_grant("door")->token = hold_seq(engine) + 1;
    BROKEN("lock door has token 15, count 1");
    locked();
    the_grant("door")->count = 0;
    BROKEN("lock door has token 2, count 0");
    locked();
    the_grant("door")->due = 0;
    BROKEN("lock door is not among what is due");
    locked();
    the_grant("door")->due = engine->due.top | HF_AGENDA_IN_RUN;
    BROKEN("lock door is not among what is due");
    locked();
    the_grant("door")->due = the_grant("hall")->due;
    BROKEN("lock door is not among what is due");
    locked(); /* the entry is another kind's of the same number and time */
    struct hf_heap_entry *entry =
        &engine->due.nodes[the_grant("door")->due & ~HF_AGENDA_IN_RUN].entry;
    entry->ref = (entry->ref & DUE_NUMBER) | (uint32_t)DUE_RESERVATION
                                                 << DUE_SHIFT;
    BROKEN("lock door is not among what is due");
}

TEST(a_queue_that_is_not_in_order_is_seen)
{
    locked();
    the_wait("door", 1)->lock = find(&engine->locks, "hall");
    BROKEN("a part is not linked to its lock");
    locked();
    the_wait("door", 1)->place.prev = 0;
    BROKEN("a part is not linked to its lock");
    locked();
    the_wait("door", 1)->waits = false;
    BROKEN("a part is not linked to its lock");
    locked();
    the_waiter("door", 0)->flags |= 3u << HOLD_PRIORITY_SHIFT;
    BROKEN("a queue is not in order");
    locked();
    the_waiter("door", 1)->flags &= ~(3u << HOLD_PRIORITY_SHIFT);
    CHECK_ENGINE(); /* by age, now */
    the_waiter("door", 1)->age = the_waiter("door", 0)->age;
    CHECK_ENGINE(); /* by order */
    the_waiter("door", 1)->age--;
    BROKEN("a queue is not in order");
}

TEST(a_queue_of_another_length_is_seen)
{
    locked();
    the_lock("door")->waiting = 2;
    BROKEN("a queue counts 2 waiters and has 3, of several 1, 1");
    locked();
    the_lock("door")->waiting = 4;
    BROKEN("a queue counts 4 waiters and has 3, of several 1, 1");
    locked();
    the_lock("door")->queue.last = the_lock("door")->queue.first;
    BROKEN("a queue counts 3 waiters and has 3, of several 1, 1");
    locked();
    the_lock("door")->several = 0;
    BROKEN("a queue counts 3 waiters and has 3, of several 0, 1");
    locked(); /* it need not end */
    the_lock("door")->waiting = 0;
    BROKEN("a queue counts 0 waiters and has 1, of several 1, 0");
}

TEST(a_lock_that_is_not_in_order_is_seen)
{
    locked();
    the_lock("hall")->named.hash ^= 1u << 31;
    BROKEN("lock hall is not found by its name");
    locked();
    the_lock("door")->is_listed = true;
    BROKEN("lock door is idle, but kept");
    locked();
    CHECK(hf_index_add(&engine->locks, hf_bytes_text("idle")) != 0);
    BROKEN("lock idle is idle, but kept");
}

TEST(a_mark_that_is_not_in_order_is_seen)
{
    locked();
    the_mark()->lock = find(&engine->locks, "hall");
    BROKEN("a mark is not in order");
    locked();
    the_mark()->closed_us++;
    BROKEN("a mark is not in order");
    locked();
    the_mark()->done_us = the_mark()->closed_us - 1;
    BROKEN("a mark is not in order");
    the_mark()->done_us = the_mark()->closed_us;
    CHECK_ENGINE();
}

TEST(sums_that_are_wrong_are_seen)
{
    static const char wrong[] = "the sums over all locks are wrong";

    locked();
    CHECK(hf_slab_take(&engine->parts) != 0);
    BROKEN(wrong);
    locked();
    CHECK(hf_slab_take(&engine->marks) != 0);
    BROKEN(wrong);
    locked();
    engine->waited_parts++;
    BROKEN(wrong);
    locked();
    engine->waited_bytes--;
    BROKEN(wrong);
    locked();
    engine->held++;
    BROKEN(wrong);
    locked();
    engine->serve.first = find(&engine->locks, "door");
    BROKEN(wrong);
    locked(); /* a queue that is nobody's */
    the_lock("door")->queue = (struct list){0, 0};
    the_lock("door")->waiting = 0;
    the_lock("door")->several = 0;
    the_lock("door")->writer = 0;
    BROKEN(wrong);
    locked();
    the_lock("door")->writer = 0;
    BROKEN("a queue has other writers or readers");
    locked();
    the_lock("door")->readers++;
    BROKEN("a queue has other writers or readers");
}

TEST(a_waiter_that_is_not_in_order_is_seen)
{
    locked();
    the_waiter("door", 0)->ticket = 77;
    BROKEN("waiter 77 is not in order");
    locked();
    the_waiter("door", 0)->deadline_us++;
    BROKEN("waiter 12 is not in order");
    locked();
    the_waiter("door", 2)->due = the_waiter("door", 0)->due;
    BROKEN("waiter 14 is not in order");
    locked();
    the_waiter("door", 0)->first = the_waiter("door", 1)->first;
    BROKEN("waiter 12 has another's part");
    locked();
    the_waiter("door", 0)->first = the_lock("hall")->grants.first;
    BROKEN("waiter 12 has another's part");
    locked(); /* a chain without an end */
    the_wait("hall", 0)->more = the_waiter("door", 2)->first;
    BROKEN("waiter 14 has another's part");
}

TEST(a_holder_without_its_waiters_is_seen)
{
    locked();
    the_waiter("door", 0)->holder++;
    BROKEN("3 waiters, of which 2 have a holder");
    locked();
    holder_edit(engine, the_waiter("door", 0)->holder)->waiters.first = 0;
    BROKEN("3 waiters, of which 1 have a holder");
    locked(); /* not in order, or without an end */
    the_waiter("door", 1)->peers.next = the_wait("door", 0)->group;
    CHECK_ENGINE(); /* where it would begin anew, it ends */
    the_waiter("door", 1)->order = the_waiter("door", 0)->order;
    BROKEN("3 waiters, of which 2 have a holder");
}

TEST(a_set_that_is_not_in_order_is_seen)
{
    static const char wrong[] = "set 3 is not in order";

    locked();
    the_set()->names = 3;
    BROKEN(wrong);
    locked();
    the_grant("a")->more = 0;
    BROKEN(wrong);
    locked();
    the_grant("b")->more = the_set()->first;
    BROKEN(wrong);
    locked();
    the_set()->count = 0;
    BROKEN(wrong);
    locked();
    the_set()->expires_us++;
    BROKEN(wrong);
    locked();
    the_set()->named.hash ^= 1u << 31;
    BROKEN(wrong);
    locked();
    the_set()->first = the_lock("door")->grants.first;
    BROKEN(wrong);
}

TEST(a_session_that_is_not_in_order_is_seen)
{
    static const char wrong[] = "session 1 is not in order";

    locked();
    the_session()->grants++;
    BROKEN(wrong);
    locked();
    the_session()->waits--;
    BROKEN(wrong);
    locked();
    the_session()->expires_us--;
    BROKEN(wrong);
    locked();
    the_session()->named.hash ^= 1u << 31;
    BROKEN(wrong);
    locked();
    the_session()->parts.first = 0;
    BROKEN(wrong);
    locked();
    the_set()->claim.session = 0;
    BROKEN(wrong);
    locked(); /* the oldest comes first */
    the_grant("pool")->token = 1;
    BROKEN(wrong);
}

TEST(a_pending_reservation_that_is_not_in_order_is_seen)
{
    stocked();
    the_reservation("open")->expires_us++;
    BROKEN("reservation open is not due at its expiry");
    stocked();
    hf_index_remove(&engine->products, find(&engine->products, "pear"));
    BROKEN("reservation open has an unknown product");
}

TEST(ended_reservations_that_are_not_in_order_are_seen)
{
    stocked();
    the_reservation("sold")->status = RESERVATION_PENDING;
    BROKEN("reservation sold is not due at its expiry");
    stocked(); /* the pending one stands among them */
    uint32_t open = find(&engine->reservations, "open");
    the_reservation("gone")->listed.links.next = open;
    BROKEN("the list of ended reservations is wrong");
    stocked();
    the_reservation("sold")->ended_us = the_reservation("gone")->ended_us;
    CHECK_ENGINE();
    the_reservation("sold")->ended_us++;
    BROKEN("the list of ended reservations is wrong");
    stocked(); /* a list without an end */
    the_reservation("gone")->listed.links.next =
        find(&engine->reservations, "gone");
    BROKEN("3 reservations, but 1 pending, 4 ended, 0 booked and 0 waiting");
    stocked();
    the_reservation("sold")->listed.links.next = 0;
    BROKEN("3 reservations, but 1 pending, 1 ended, 0 booked and 0 waiting");
    engine->pending++; /* the sum is right again */
    BROKEN("3 reservations, but 1 pending, 1 ended, 0 booked and 0 waiting");
    stocked();
    engine->pending--;
    BROKEN("3 reservations, but 1 pending, 2 ended, 0 booked and 0 waiting");
}

TEST(a_product_that_is_oversold_is_seen)
{
    stocked();
    the_product("apple")->total = 7;
    CHECK_ENGINE();
    the_product("apple")->total = 6;
    BROKEN("product apple is oversold: total 6, reserved 4, sold 3");
    the_product("apple")->total = 3;
    BROKEN("product apple is oversold: total 3, reserved 4, sold 3");
    stocked();
    the_product("apple")->sold = 7;
    BROKEN("product apple is oversold: total 10, reserved 4, sold 7");
}

TEST(a_product_that_is_not_in_order_is_seen)
{
    stocked();
    the_product("pear")->reserved = 3;
    BROKEN("product pear counts 3 reserved, its reservations hold 2");
    the_product("pear")->reserved = 1;
    BROKEN("product pear counts 1 reserved, its reservations hold 2");
    stocked();
    the_product("pear")->version = hold_seq(engine);
    CHECK_ENGINE();
    the_product("pear")->version++;
    BROKEN("product pear is not in order");
    engine_start();
    engine_set("pear", 5);
    the_product("pear")->named.hash ^= 1u << 31;
    BROKEN("product pear is not in order");
}

TEST(answered_requests_that_are_not_in_order_are_seen)
{
    static const char wrong[] = "the list of answered requests is wrong";

    asked();
    the_request("done1")->code = HOLD_BUSY;
    BROKEN(wrong);
    asked();
    the_request("no2")->code = HOLD_OK;
    BROKEN(wrong);
    asked();
    the_request("done1")->stored_us = the_request("done2")->stored_us;
    CHECK_ENGINE();
    the_request("done1")->stored_us++;
    BROKEN(wrong);
    asked();
    the_request("no2")->stored_us = the_request("no1")->stored_us - 1;
    BROKEN(wrong);
    asked(); /* one that waits stands among them */
    the_request("done2")->listed.links.next = find(&engine->requests, "wait");
    the_request("wait")->stored_us = the_request("done2")->stored_us;
    CHECK_EQ(the_request("wait")->code, HOLD_OK);
    BROKEN(wrong);
}

TEST(requests_that_are_counted_wrongly_are_seen)
{
    asked();
    the_waiter("door", 0)->request = find(&engine->requests, "no1");
    BROKEN("a request and its waiter disagree");
    asked();
    the_request("done1")->listed.links.next = 0;
    BROKEN("5 requests, 1 waiting, 1 done, 2 of 2 refused");
    asked();
    the_request("no1")->listed.links.next = 0;
    BROKEN("5 requests, 1 waiting, 2 done, 1 of 2 refused");
    engine->refused_count = 1;
    BROKEN("5 requests, 1 waiting, 2 done, 1 of 1 refused");
    asked();
    engine->refused_count = 3;
    BROKEN("5 requests, 1 waiting, 2 done, 2 of 3 refused");
    asked(); /* a list without an end */
    the_request("done2")->listed.links.next = find(&engine->requests, "done2");
    BROKEN("5 requests, 1 waiting, 6 done, 2 of 2 refused");
    asked();
    the_request("no2")->listed.links.next = find(&engine->requests, "no2");
    BROKEN("5 requests, 1 waiting, 2 done, 6 of 2 refused");
}

TEST(what_is_due_and_nobodys_is_seen)
{
    struct hf_heap_entry late = {.when = UINT64_MAX};

    locked();
    CHECK_EQ(hf_heap_add(&engine->due.heap, late), HF_OK);
    BROKEN("12 things are due, expected 11");
    locked();
    engine->due.used++;
    BROKEN("12 things are due, expected 11");
}
