/* sale.c - one sale at a time. */
#include "sim/server/sale.h"

#include <string.h>

#include "sim/server/client.h"
#include "sim/server/make.h"
#include "sim/server/record.h"

#define UNITS    600u       /* more than two steps of the engine */
#define SPARE    20u        /* units that nobody reserves */
#define CARTS    60u        /* reservations in one turn */
#define AGAIN_NS (200 * MS) /* until somebody else tries to stock it */
#define QUIET_NS (25 * MS)  /* before the end nobody reserves any more */
#define HANG_NS  (12 * MS)  /* before the end the disk begins to hang */
#define OVER_NS  (400 * MS) /* behind the end */

static struct {
    struct dice dice;
    uint64_t count;      /* sales so far: part of the product's name */
    uint64_t stocked_ns; /* somebody has asked; 0: nobody */
    uint64_t end_ns;     /* 0: not stocked yet */
    uint64_t late_ns;    /* from the end until everybody comes */
    uint64_t carts;
    uint64_t came; /* who has come after the end, a bit for each */
    bool calm;     /* no fault strikes meanwhile */
    bool open;
} sale;

void sale_begin(void)
{
    memset(&sale, 0, sizeof sale);
}

void sale_open(void)
{
    if (sale.open)
        return;
    uint64_t count = sale.count + 1;
    memset(&sale, 0, sizeof sale);
    sale.count = count;
    sale.dice = dice_make(world_seed(), "sale", count, 0);
    sale.open = true;
    sale.calm = dice_hit(&sale.dice, 700);
    record_say("a sale begins");
}

bool sale_is_calm(void)
{
    return sale.open && sale.calm;
}

static void add_sku(struct words *out)
{
    words_add(out, "sale%llu", (unsigned long long)sale.count);
}

/* The disk hangs from shortly before the end until after it, and the write of
 * some client meets it. */
static void on_near(void *context, uint64_t number)
{
    (void)context;
    if (!sale.open || number != sale.count)
        return;
    struct words words = {0};
    words_add(&words, "STOCK");
    words_add(&words, "ADD");
    add_sku(&words);
    words_add(&words, "1");
    if (dice_hit(&sale.dice, 850) && clients_ask_one(&words))
        clients_stall(HANG_NS + sale.late_ns +
                      dice_scale(&sale.dice, 2 * MS, 100 * MS));
}

/* Everybody waits for the end. */
static void wait_for_end(void)
{
    clients_pause(sale.end_ns + sale.late_ns - world_now_ns());
}

static void on_quiet(void *context, uint64_t number)
{
    (void)context;
    if (sale.open && number == sale.count)
        wait_for_end();
}

static void on_over(void *context, uint64_t number)
{
    (void)context;
    if (number == sale.count)
        sale.open = false;
}

/* It is stocked: the end is set. */
static void set_end(void)
{
    uint64_t long_ns = dice_between(&sale.dice, 80 * MS, 400 * MS);

    sale.end_ns = world_now_ns() + long_ns;
    sale.late_ns = dice_between(&sale.dice, 1 * MS, 40 * MS);
    world_at(sale.end_ns - QUIET_NS, on_quiet, NULL, sale.count);
    world_at(sale.end_ns - HANG_NS, on_near, NULL, sale.count);
    world_at(sale.end_ns + OVER_NS, on_over, NULL, sale.count);
    record_say("the sale ends in %llu ms", (unsigned long long)(long_ns / MS));
}

void sale_learn(const struct words *words, struct hf_bytes reply)
{
    if (sale.open && sale.end_ns == 0 && words_is(words, 1, "SET") &&
        words_is(words, 3, "600") && reply.len > 0 && reply.data[0] != '-')
        set_end();
}

static bool make_stock(struct words *out)
{
    uint64_t now_ns = world_now_ns();

    if (sale.stocked_ns != 0 && now_ns < sale.stocked_ns + AGAIN_NS)
        return false;
    sale.stocked_ns = now_ns;
    words_add(out, "STOCK");
    words_add(out, "SET");
    add_sku(out);
    words_add(out, "%u", UNITS);
    return true;
}

static bool make_cart(struct words *out)
{
    uint64_t left_ms = (sale.end_ns - world_now_ns()) / MS;

    if (sale.carts >= UNITS - SPARE)
        return false;
    if (++sale.carts == UNITS - SPARE)
        wait_for_end();
    words_add(out, "RESERVE");
    words_add(out, "*");
    words_add(out, "ITEM");
    add_sku(out);
    words_add(out, "1");
    words_add(out, "TTL");
    words_add(out, "%llu", (unsigned long long)left_ms);
    return true;
}

static void make_late(struct dice *dice, uint64_t client, struct words *out)
{
    uint64_t what = dice_below(dice, 8);

    sale.came |= UINT64_C(1) << client;
    if (what < 5) {
        words_add(out, "RESERVE");
        words_add(out, "*");
        words_add(out, "ITEM");
        add_sku(out);
        words_add(out, "%llu",
                  (unsigned long long)dice_between(dice, 300, UNITS - SPARE));
        words_add(out, "TTL");
        words_add(out, "20");
        return;
    }
    words_add(out, "STOCK");
    words_add(out, what == 7 ? "ADD" : "GET");
    add_sku(out);
    if (what == 7)
        words_add(out, "-%llu", (unsigned long long)dice_between(dice, 1, 500));
}

bool sale_request(struct dice *dice, uint64_t client, uint64_t number,
                  struct words *out)
{
    uint64_t now_ns = world_now_ns();

    out->count = out->len = 0;
    if (!sale.open)
        return false;
    if (sale.end_ns == 0)
        return number == 0 && make_stock(out);
    if (now_ns + QUIET_NS < sale.end_ns)
        return number < CARTS && make_cart(out);
    if (now_ns < sale.end_ns || (sale.came >> client & 1) != 0)
        return false;
    make_late(dice, client, out);
    return true;
}
