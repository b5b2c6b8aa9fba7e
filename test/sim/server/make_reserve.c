/* make_reserve.c - draws requests about reservations. */
#include "sim/server/making.h"
#include "sim/server/world.h"

/* Names of reservations come into use and go out of it: one that was forgotten
 * and is used again would stand for two. */
static void add_named_id(struct making *m)
{
    words_add(m->out, "r%llu",
              ULL(make_epoch * m->mix->ids + dice_below(m->dice, m->mix->ids)));
}

/* The known one, or NULL. */
static const struct known *add_id(struct making *m)
{
    const struct known *known = pick(m, m->knows->ids, m->knows->id_count,
                                     knows_all.ids, knows_all.id_count);

    if (known == NULL || dice_hit(m->dice, 300)) {
        add_named_id(m);
        return NULL;
    }
    words_add(m->out, "%s", known->name);
    return known;
}

/* CONFIRM and CANCEL of some items: of one that it has, as a rule. */
static void add_part(struct making *m, const struct known *known)
{
    if (known == NULL || known->sku[0] == '\0' || dice_hit(m->dice, 100)) {
        add_items(m);
        return;
    }
    uint64_t more = dice_hit(m->dice, 100);
    words_add(m->out, "ITEM");
    words_add(m->out, "%s", known->sku);
    words_add(m->out, "%llu",
              ULL(dice_between(m->dice, 1, known->number + more)));
}

/* Items of which less will do, now and then; or what there is. */
static void add_wanted(struct making *m)
{
    uint64_t count = dice_scale(m->dice, 1, 3);
    bool loose = dice_hit(m->dice, 200);

    for (uint64_t i = 0; i < count; i++) {
        uint64_t units = dice_scale(m->dice, 1, m->mix->stock / 2 + 1);
        words_add(m->out, "ITEM");
        add_sku(m);
        words_add(m->out, "%llu", ULL(units));
        if (loose && dice_hit(m->dice, 500)) {
            words_add(m->out, "MIN");
            words_add(m->out, "%llu", ULL(dice_between(m->dice, 1, units)));
        }
    }
    if (dice_hit(m->dice, 150))
        words_add(m->out, "BEST");
}

/* From some of the places, each once; sometimes of a sku that has none. */
static void add_placed(struct making *m)
{
    static const char *const splits[] = {"NONE", "FEWEST", "ORDER", "MOST"};
    uint64_t first = dice_below(m->dice, 3);
    uint64_t count = dice_between(m->dice, 1, 3);

    words_add(m->out, "ITEM");
    words_add(m->out, dice_hit(m->dice, 20) ? "t" : "s");
    words_add(m->out, "%llu",
              ULL(dice_scale(m->dice, 1, m->mix->stock * 2 + 1)));
    for (uint64_t i = 0; i < count; i++) {
        words_add(m->out, "PLACE");
        words_add(m->out, "p%llu", ULL((first + i) % 3));
    }
    if (dice_hit(m->dice, 700)) {
        words_add(m->out, "SPLIT");
        words_add(m->out, "%s", splits[dice_below(m->dice, 4)]);
    }
}

void add_queue(struct making *m)
{
    add_ms(m, "WAIT", m->mix->wait_ms);
    if (dice_hit(m->dice, 200)) {
        words_add(m->out, "PRIORITY");
        words_add(m->out, "%llu", ULL(dice_below(m->dice, 4)));
    }
}

/* A group of reservations. */
static void add_bundle(struct making *m)
{
    words_add(m->out, "g%llu", ULL(dice_below(m->dice, 4)));
}

/* Units of one product, which may be booked. */
static void add_booked(struct making *m)
{
    words_add(m->out, "ITEM");
    add_sku(m);
    words_add(m->out, "%llu",
              ULL(dice_scale(m->dice, 1, m->mix->stock / 2 + 1)));
    words_add(m->out, "PREORDER");
}

void make_expect(struct making *m)
{
    uint64_t kind = dice_below(m->dice, 10);

    words_add(m->out, "STOCK");
    words_add(m->out, kind < 5 ? "EXPECT" : kind < 8 ? "ARRIVE" : "EXPECTED");
    add_sku(m);
    if (kind >= 8)
        return;
    bool ends = kind < 5 && dice_hit(m->dice, 100);
    words_add(m->out, "%llu",
              ULL(ends ? 0 : dice_scale(m->dice, 1, m->mix->stock)));
    if (kind < 5 && dice_hit(m->dice, 900)) {
        words_add(m->out, "AT");
        words_add(m->out, "%llu",
                  ULL(world_wall_us() / 1000 +
                      dice_scale(m->dice, 1, m->mix->ttl_ms * 3)));
    }
    if (dice_hit(m->dice, 700)) {
        words_add(m->out, "REF");
        words_add(m->out, "po%llu", ULL(dice_below(m->dice, 3)));
    }
}

/* A wait that needs no connection begins, ends or is looked at. */
static void make_waitlist(struct making *m)
{
    words_add(m->out, "WAITLIST");
    if (dice_hit(m->dice, 200)) {
        words_add(m->out, "LIST");
        add_sku(m);
        return;
    }
    bool joins = dice_hit(m->dice, 750);
    words_add(m->out, joins ? "JOIN" : "LEAVE");
    add_sku(m);
    if (!joins) {
        (void)add_id(m);
        return;
    }
    words_add(m->out, "%llu",
              ULL(dice_scale(m->dice, 1, m->mix->stock / 2 + 1)));
    add_owner(m);
    if (m->mix->bundles > 0 && dice_hit(m->dice, 300)) {
        words_add(m->out, "GROUP");
        add_bundle(m);
    }
    if (dice_hit(m->dice, 600)) {
        words_add(m->out, "ID");
        words_add(m->out, "j%llx", ULL(dice_below(m->dice, 1ull << 40)));
    }
    add_ms(m, "TTL", m->mix->ttl_ms);
    if (dice_hit(m->dice, 800))
        add_queue(m);
}

static void make_class(struct making *m)
{
    bool set = !dice_hit(m->dice, 100);

    words_add(m->out, "CLASS");
    words_add(m->out, set ? "SET" : "DEL");
    words_add(m->out, "c%llu", ULL(dice_below(m->dice, 2)));
    if (set && dice_hit(m->dice, 700))
        add_ms(m, "TTL", m->mix->ttl_ms);
    if (set && dice_hit(m->dice, 600))
        add_ms(m, "GRACE", m->mix->ttl_ms);
    if (set && dice_hit(m->dice, 300)) {
        words_add(m->out, "EXTENDS");
        words_add(m->out, "%llu", ULL(dice_between(m->dice, 1, 3)));
    }
    if (set && dice_hit(m->dice, 300))
        add_ms(m, "LIFE", m->mix->ttl_ms * 2);
}

static void make_bundle(struct making *m)
{
    static const char *const verbs[] = {"CONFIRM", "CONFIRM", "CANCEL", "SHOW"};
    uint64_t i = dice_below(m->dice, 4);

    words_add(m->out, "GROUP");
    words_add(m->out, "%s", verbs[i]);
    add_bundle(m);
    if (i == 2 && dice_hit(m->dice, 300)) {
        words_add(m->out, "REASON");
        words_add(m->out, "rain");
    }
}

void make_reservation(struct making *m, enum make_kind kind)
{
    static const char *const verbs[] = {
        [MAKE_RESERVE] = "RESERVE",         [MAKE_CONFIRM] = "CONFIRM",
        [MAKE_CANCEL] = "CANCEL",           [MAKE_EXTEND] = "EXTEND",
        [MAKE_RESERVATION] = "RESERVATION",
    };

    if (kind == MAKE_RESERVE && m->mix->joins > 0 &&
        dice_hit(m->dice, m->mix->joins)) {
        make_waitlist(m);
        return;
    }
    if (kind == MAKE_RESERVE && dice_hit(m->dice, m->mix->classes)) {
        make_class(m);
        return;
    }
    bool ends = kind == MAKE_CONFIRM || kind == MAKE_CANCEL;
    if (m->mix->bundles > 0 && ends && dice_hit(m->dice, m->mix->bundles)) {
        make_bundle(m);
        return;
    }
    words_add(m->out, "%s", verbs[kind]);
    if (kind != MAKE_RESERVE) {
        const struct known *known = add_id(m);
        if (kind == MAKE_EXTEND)
            add_ms(m, "TTL", m->mix->ttl_ms);
        if ((kind == MAKE_CONFIRM || kind == MAKE_CANCEL) &&
            dice_hit(m->dice, 350))
            add_part(m, known);
        return;
    }
    bool waits = m->mix->queue > 0 && dice_hit(m->dice, m->mix->queue);
    if (dice_hit(m->dice, 600))
        words_add(m->out, "*");
    else if (waits && !dice_hit(m->dice, 100))
        words_add(m->out, "w%llx", ULL(dice_below(m->dice, 1ull << 40)));
    else
        add_named_id(m);
    bool books =
        !waits && m->mix->books > 0 && dice_hit(m->dice, m->mix->books);
    if (waits)
        add_items(m);
    else if (books)
        add_booked(m);
    else if (dice_hit(m->dice, m->mix->places))
        add_placed(m);
    else
        add_wanted(m);
    bool classed = m->mix->classes > 0 && dice_hit(m->dice, 300);
    if (classed) {
        words_add(m->out, "CLASS");
        words_add(m->out, "c%llu", ULL(dice_below(m->dice, 2)));
    }
    if (!dice_hit(m->dice, classed ? 500 : 30))
        add_ms(m, "TTL", m->mix->ttl_ms);
    if (waits)
        add_queue(m);
    if (m->mix->bundles > 0 && !waits && !books && dice_hit(m->dice, 400)) {
        words_add(m->out, "GROUP");
        add_bundle(m);
    }
    if (dice_hit(m->dice, m->mix->quotas > 0 ? 850 : 300))
        add_owner(m);
}
