/* make_limit.c - requests for permits. */
#include "sim/server/making.h"

/* One permit, which may be given back at any time: those who want it wait, as
 * a rule until their time is over. */
static void make_limit_scarce(struct making *m)
{
    words_add(m->out, "LIMIT");
    if (dice_hit(m->dice, 200)) {
        const char *rule[] = {"DEFINE", "scarce", "RATE",      "1",
                              "PER",    "20000",  "ALGORITHM", "LEASES"};
        for (size_t i = 0; i < sizeof rule / sizeof rule[0]; i++)
            words_add(m->out, "%s", rule[i]);
        return;
    }
    words_add(m->out, "w");
    words_add(m->out, "POLICY");
    words_add(m->out, "scarce");
    words_add(m->out, "WAIT");
    words_add(m->out, "%llu", ULL(dice_between(m->dice, 300, 3000)));
}

/* What a hold of that key takes: whoever settles it knows by the name whether
 * it is above or below. */
static uint64_t held_cost(const char *key)
{
    return 1 + 2 * (uint64_t)(key[1] - '0');
}

static void settle(struct making *m, const struct known *hold)
{
    uint64_t held = held_cost(hold->name);
    uint64_t cost = 0;

    switch (dice_below(m->dice, 5)) {
    case 0:
        break;
    case 1:
        cost = held;
        break;
    case 2:
        cost = dice_below(m->dice, held);
        break;
    default:
        cost = held + dice_between(m->dice, 1, 12);
        break;
    }
    words_add(m->out, "LIMIT");
    words_add(m->out, "SETTLE");
    words_add(m->out, "%llu", ULL(hold->number));
    words_add(m->out, "COST");
    words_add(m->out, "%llu", ULL(cost));
}

/* Keys of which permits are held, settled, taken and looked at. */
static void make_limit_held(struct making *m)
{
    char key[] = {'h', (char)('0' + dice_below(m->dice, m->mix->keys)), '\0'};
    const struct known *hold = pick(m, m->knows->holds, m->knows->hold_count,
                                    knows_all.holds, knows_all.hold_count);
    uint64_t what = dice_below(m->dice, 10);

    if (what < 4 && hold != NULL && hold->name[0] == 'h') {
        settle(m, hold);
        return;
    }
    words_add(m->out, "LIMIT");
    words_add(m->out, "%s", key);
    words_add(m->out, "RATE");
    words_add(m->out, "10");
    words_add(m->out, "PER");
    words_add(m->out, "%llu", ULL(m->mix->held_per_ms));
    words_add(m->out, "BURST");
    words_add(m->out, "40");
    if (what < 8) {
        words_add(m->out, "COST");
        words_add(m->out, "%llu", ULL(held_cost(key)));
        add_ms(m, "HOLD", m->mix->ttl_ms);
    } else if (what == 8) {
        words_add(m->out, "PEEK");
    }
}

static void make_limit_own(struct making *m)
{
    uint64_t key = dice_below(m->dice, m->mix->keys);

    if (m->mix->held > 0 && dice_hit(m->dice, m->mix->held)) {
        make_limit_held(m);
        return;
    }

    if (m->mix->groups > 0 && dice_hit(m->dice, 500)) {
        add_group_limit(m);
        if (dice_hit(m->dice, 300))
            words_add(m->out, "PEEK");
        return;
    }
    if (dice_hit(m->dice, 250)) {
        make_limit_scarce(m);
        return;
    }
    words_add(m->out, "LIMIT");
    words_add(m->out, "k%llu", ULL(key));
    words_add(m->out, "RATE");
    words_add(m->out, "%llu", ULL(5 * (key + 1)));
    words_add(m->out, "PER");
    words_add(m->out, "1000");
    if (dice_hit(m->dice, 200)) {
        words_add(m->out, "COST");
        words_add(m->out, "%llu", ULL(dice_between(m->dice, 1, 5)));
    }
    if (dice_hit(m->dice, 300))
        add_ms(m, "WAIT", m->mix->wait_ms);
}

static void make_limit_policy(struct making *m)
{
    words_add(m->out, "LIMIT");
    words_add(m->out, "j%llu", ULL(dice_below(m->dice, m->mix->keys)));
    words_add(m->out, "POLICY");
    words_add(m->out, dice_hit(m->dice, 200) ? "p0,p1" : "p%llu",
              ULL(dice_below(m->dice, 3)));
    if (dice_hit(m->dice, 300)) {
        words_add(m->out, "COST");
        words_add(m->out, "%llu", ULL(dice_between(m->dice, 1, 6)));
    }
    switch (dice_below(m->dice, 6)) {
    case 0:
        add_ms(m, "HOLD", m->mix->ttl_ms);
        break;
    case 1:
        words_add(m->out, "PEEK");
        break;
    case 2:
        words_add(m->out, "HEADERS");
        break;
    case 3:
        words_add(m->out, "PRIORITY");
        words_add(m->out, "%llu", ULL(dice_below(m->dice, 4)));
        break;
    default:
        break;
    }
    if (dice_hit(m->dice, 300))
        add_ms(m, "WAIT", m->mix->wait_ms);
}

static void make_limit_admin(struct making *m)
{
    static const char *const kinds[] = {"BUCKET",  "GCRA", "FIXED",
                                        "SLIDING", "LOG",  "LEASES"};
    const struct known *hold = pick(m, m->knows->holds, m->knows->hold_count,
                                    knows_all.holds, knows_all.hold_count);
    uint64_t what = dice_below(m->dice, 8);

    words_add(m->out, "LIMIT");
    if (what < 3) {
        words_add(m->out, "DEFINE");
        words_add(m->out, "p%llu", ULL(dice_below(m->dice, 3)));
        words_add(m->out, "RATE");
        words_add(m->out, "%llu", ULL(dice_between(m->dice, 1, 20)));
        words_add(m->out, "PER");
        words_add(m->out, "1000");
        words_add(m->out, "ALGORITHM");
        words_add(m->out, "%s", kinds[dice_below(m->dice, 6)]);
    } else if (what < 6 && hold != NULL) {
        words_add(m->out, "SETTLE");
        words_add(m->out, "%llu", ULL(hold->number));
        words_add(m->out, "COST");
        words_add(m->out, "%llu", ULL(dice_below(m->dice, 8)));
    } else if (what == 6) {
        words_add(m->out, "DROP");
        words_add(m->out, "p%llu", ULL(dice_below(m->dice, 3)));
    } else {
        words_add(m->out, dice_hit(m->dice, 500) ? "TOP" : "POLICIES");
    }
}

static void make_limit_other(struct making *m)
{
    bool cell = dice_hit(m->dice, 500);

    words_add(m->out, cell ? "CL.THROTTLE" : "GCRA");
    words_add(m->out, "c%llu", ULL(dice_below(m->dice, m->mix->keys)));
    words_add(m->out, "5");
    words_add(m->out, "10");
    words_add(m->out, "1");
}

void make_limit(struct making *m, enum make_kind kind)
{
    if (kind == MAKE_LIMIT)
        make_limit_own(m);
    else if (kind == MAKE_LIMIT_POLICY)
        make_limit_policy(m);
    else if (kind == MAKE_LIMIT_ADMIN)
        make_limit_admin(m);
    else
        make_limit_other(m);
}
