/* hold_check.c - does hold_check() see each thing that may be wrong?
 *
 * The other tests and the simulations trust it to speak up, so here every
 * invariant is broken by hand, one at a time, and it must say which.
 */
#include "base/memory.h"
#include "hold/state.h"
#include "support/engine.h"

TEST_ONE_THREAD;

#define BROKEN(expected)                                  \
    do {                                                  \
        char error_[256] = "";                            \
        CHECK_EQ(hold_check(engine, error_), HF_CORRUPT); \
        CHECK_TEXT(error_, strlen(error_), (expected));   \
    } while (0)

static uint32_t find(const struct hf_index *index, const char *name)
{
    uint32_t number = hf_index_find(index, hf_bytes_text(name));

    CHECK(number != 0);
    return number;
}

static struct lock *the_lock(const char *name)
{
    return lock_at(engine, find(&engine->locks, name));
}

static struct product *the_product(const char *sku)
{
    return product_at(engine, find(&engine->products, sku));
}

static struct reservation *the_reservation(const char *id)
{
    return reservation_at(engine, find(&engine->reservations, id));
}

static struct request *the_request(const char *id)
{
    return request_at(engine, find(&engine->requests, id));
}

/* In the queue at the door: the first is bob, ticket 2, then eve, ticket 3. */
static struct waiter *the_waiter(unsigned place)
{
    uint32_t number = the_lock("door")->queue.first;

    while (place-- > 0)
        number = waiter_at(engine, number)->listed.next;
    return waiter_at(engine, number);
}

/* A held door with a queue of two, and a gate. */
static void locked(void)
{
    engine_start();
    engine_lock("door", "ann", 5000, 0);
    engine_lock("door", "bob", 100, 900);
    engine_request = "wait";
    engine_lock("door", "eve", 100, 800);
    engine_request = NULL;
    engine_lock("gate", "ann", 6000, 0);
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

TEST(a_queue_that_is_not_linked_is_seen)
{
    locked();
    the_waiter(1)->lock = find(&engine->locks, "gate");
    BROKEN("waiter 3 is not linked to its lock");
    locked();
    the_waiter(1)->listed.prev = 0;
    BROKEN("waiter 3 is not linked to its lock");
    locked();
    the_waiter(0)->listed.prev = the_lock("door")->queue.last;
    BROKEN("waiter 2 is not linked to its lock");
}

TEST(a_waiter_that_is_not_due_is_seen)
{
    locked();
    the_waiter(0)->due = 0;
    BROKEN("waiter 2 is not due at its deadline");
    locked();
    the_waiter(0)->due = the_waiter(1)->due;
    BROKEN("waiter 2 is not due at its deadline");
    locked();
    the_waiter(0)->due = engine->due.count + 1;
    BROKEN("waiter 2 is not due at its deadline");
    locked();
    the_waiter(1)->deadline_us++;
    BROKEN("waiter 3 is not due at its deadline");
    locked(); /* the entry is another kind's of the same number and time */
    struct hf_heap_entry *entry = &engine->due.entries[the_waiter(0)->due];
    entry->ref = (entry->ref & DUE_NUMBER) | (uint32_t)DUE_RESERVATION
                                                 << DUE_SHIFT;
    BROKEN("waiter 2 is not due at its deadline");
}

/* The entry behind the last one may still look right. */
TEST(a_heap_that_ends_too_early_is_seen)
{
    engine_start();
    engine_lock("door", "ann", 5000, 0);
    engine->due.count = 0;
    BROKEN("lock door is not due at its expiry");
}

TEST(a_waiter_that_is_not_found_is_seen)
{
    locked();
    the_waiter(0)->ticket = 77;
    BROKEN("waiter 77 is not found by its ticket");
}

TEST(a_queue_of_another_length_is_seen)
{
    locked();
    the_lock("door")->waiting = 1;
    BROKEN("a queue counts 1 waiters and has 2");
    locked();
    the_lock("door")->waiting = 3;
    BROKEN("a queue counts 3 waiters and has 2");
    locked();
    the_lock("door")->queue.last = the_lock("door")->queue.first;
    BROKEN("a queue counts 2 waiters and has 2");
    locked(); /* it need not end */
    the_lock("door")->waiting = 0;
    BROKEN("a queue counts 0 waiters and has 1");
    locked();
    the_lock("door")->queue.first = 0;
    the_lock("door")->queue.last = 0;
    the_lock("door")->waiting = 0;
    BROKEN("2 waiters, of which 0 are in a queue");
}

TEST(a_lock_that_is_not_in_order_is_seen)
{
    locked();
    the_lock("gate")->named.hash ^= 1u << 31;
    BROKEN("lock gate is not found by its name");
    locked();
    the_lock("gate")->token = 0;
    BROKEN("lock gate has token 0, count 1");
    locked();
    the_lock("gate")->token = hold_seq(engine);
    CHECK_ENGINE();
    the_lock("gate")->token = hold_seq(engine) + 1;
    BROKEN("lock gate has token 5, count 1");
    locked();
    the_lock("gate")->count = 0;
    BROKEN("lock gate has token 4, count 0");
    locked();
    the_lock("gate")->expires_us--;
    BROKEN("lock gate is not due at its expiry");
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
    the_reservation("gone")->listed.next = open;
    BROKEN("the list of ended reservations is wrong");
    stocked();
    the_reservation("sold")->ended_us = the_reservation("gone")->ended_us;
    CHECK_ENGINE();
    the_reservation("sold")->ended_us++;
    BROKEN("the list of ended reservations is wrong");
    stocked(); /* a list without an end */
    the_reservation("gone")->listed.next = find(&engine->reservations, "gone");
    BROKEN("3 reservations, but 1 pending and 4 ended");
    stocked();
    the_reservation("sold")->listed.next = 0;
    BROKEN("3 reservations, but 1 pending and 1 ended");
    engine->pending++; /* the sum is right again */
    BROKEN("3 reservations, but 1 pending and 1 ended");
    stocked();
    engine->pending--;
    BROKEN("3 reservations, but 1 pending and 2 ended");
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
    the_request("done2")->listed.next = find(&engine->requests, "wait");
    the_request("wait")->stored_us = the_request("done2")->stored_us;
    CHECK_EQ(the_request("wait")->code, HOLD_OK);
    BROKEN(wrong);
}

TEST(requests_that_are_counted_wrongly_are_seen)
{
    asked();
    the_waiter(0)->request = find(&engine->requests, "no1");
    BROKEN("a request and its waiter disagree");
    asked();
    the_request("done1")->listed.next = 0;
    BROKEN("5 requests, 1 waiting, 1 done, 2 of 2 refused");
    asked();
    the_request("no1")->listed.next = 0;
    BROKEN("5 requests, 1 waiting, 2 done, 1 of 2 refused");
    engine->refused_count = 1;
    BROKEN("5 requests, 1 waiting, 2 done, 1 of 1 refused");
    asked();
    engine->refused_count = 3;
    BROKEN("5 requests, 1 waiting, 2 done, 2 of 3 refused");
    asked(); /* a list without an end */
    the_request("done2")->listed.next = find(&engine->requests, "done2");
    BROKEN("5 requests, 1 waiting, 6 done, 2 of 2 refused");
    asked();
    the_request("no2")->listed.next = find(&engine->requests, "no2");
    BROKEN("5 requests, 1 waiting, 2 done, 6 of 2 refused");
}

TEST(what_is_due_and_nobodys_is_seen)
{
    struct hf_heap_entry late = {.when = UINT64_MAX};

    locked();
    CHECK_EQ(hf_heap_add(&engine->due, late), HF_OK);
    BROKEN("5 things are due, expected 4");
}

/* Six locks, one second apart: 1 is above 2 to 5, 2 is above 6. */
TEST(a_heap_that_is_not_in_order_is_seen)
{
    static const char *const names[] = {"1", "2", "3", "4", "5", "6"};

    for (unsigned low = 1; low < 6; low++) {
        engine_start();
        for (unsigned i = 0; i < 6; i++)
            engine_lock(names[i], "ann", 1000 + 1000 * i, 0);
        struct lock *above = the_lock(names[low == 5 ? 1 : 0]);
        struct lock *below = the_lock(names[low]);
        CHECK_EQ(below->due, low + 1);
        below->expires_us = above->expires_us;
        engine->due.entries[below->due].when = below->expires_us;
        CHECK_ENGINE();
        below->expires_us--;
        engine->due.entries[below->due].when--;
        char expected[64];
        snprintf(expected, sizeof expected, "the heap is out of order at %u",
                 low + 1);
        BROKEN(expected);
    }
}
