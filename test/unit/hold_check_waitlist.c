/* hold_check_waitlist.c - does hold_check() see what may be wrong with those
 * who wait for stock? See hold_check.c. */
#include "hold/state.h"
#include "support/engine.h"

TEST_ONE_THREAD;

#define BROKEN(expected)                                  \
    do {                                                  \
        char error_[256] = "";                            \
        CHECK_EQ(hold_check(engine, error_), HF_CORRUPT); \
        CHECK_TEXT(error_, strlen(error_), (expected));   \
    } while (0)

static struct product *the_product(const char *sku)
{
    return product_edit(engine,
                        hf_index_find(&engine->products, hf_bytes_text(sku)));
}

/* Two wait for apples, of which there are none, one of them for a pear, too. */
static void waited_for(void)
{
    engine_start();
    engine_set("apple", 0);
    engine_set("pear", 1);
    engine_do("RESERVE b ITEM apple 1 ITEM pear 1 WAIT 1000");
    engine_do("RESERVE c ITEM apple 1 WAIT 1000");
    CHECK_ENGINE();
}

static struct buyer *first_buyer(void)
{
    return buyer_edit(engine, engine->waitlist.first);
}

TEST(who_waits_for_stock_out_of_order_is_seen)
{
    static const char queue[] = "the queue of product apple is out of order";

    waited_for();
    first_buyer()->priority = 1; /* it stands before one with 0 */
    BROKEN(queue);
    waited_for();
    the_product("apple")->waiting = 3;
    BROKEN(queue);
    waited_for();
    the_product("apple")->queue.last = the_product("apple")->queue.first;
    BROKEN(queue);
    waited_for();
    the_product("apple")->is_listed = true;
    BROKEN(queue);
    waited_for();
    demand_edit(engine, first_buyer()->first)->quantity = 2;
    BROKEN("ticket 3 wants something else");
    waited_for();
    reservation_edit(engine, first_buyer()->reservation)->buyer = 0;
    BROKEN("ticket 3 has no reservation");
    waited_for();
    first_buyer()->deadline_us++;
    BROKEN("ticket 3 is not due at its deadline");
    waited_for();
    the_product("apple")->total = 1;
    BROKEN("ticket 3 waits for what is there");
    waited_for();
    engine->waited_answers++;
    BROKEN("the list of who waits for stock is wrong");
    waited_for();
    engine->waitlist.first = first_buyer()->listed.links.next;
    BROKEN("the sums over all locks are wrong");
}
