/* check_steps.c - a group is one step: whole or not at all, and nothing happens
 * in the middle of it.
 *
 *   seen       a call that shows one of its changes: it was done by then
 *   unseen     one that shows that another is not there: it was not, then
 *
 * A group that was seen before it was not, or by one call both, is torn.
 * Numbers that others were given do not lie between those of one group; on one
 * connection they grow in the order of the calls.
 */
#include "history/bookings.h"

/* What a call shows of a group. */
struct sight {
    struct key key; /* by the group, then by the call */
    const struct group *group;
    const struct call *by; /* EXEC, if it is a member itself */
    bool seen;
};

void check_seen(struct check *c, const struct call *member,
                const struct call *by, bool seen)
{
    const struct group *group = member->group;

    if (group == NULL || group == by->group || group->count < 2 ||
        (!seen && check_repeats(by)))
        return;
    if (by->group != NULL)
        by = by->group->exec;
    struct sight *sight = check_push(c, &c->sights, sizeof *sight);
    *sight =
        (struct sight){.key = {.name = hf_bytes((const char *)&group->exec->id,
                                                sizeof group->exec->id),
                               .by = {by->id, seen}},
                       .group = group,
                       .by = by,
                       .seen = seen};
}

/* All that was seen of one group. */
static void judge_whole(struct check *c, void *items, size_t count)
{
    const struct sight *sights = items;
    const struct call *seen = NULL; /* the first to show it */
    const struct call *unseen =
        NULL; /* the last to show that it is not there */
    const struct call *both = NULL;

    for (size_t i = 0; i < count; i++) {
        const struct sight *s = &sights[i];
        if (i > 0 && s[-1].by == s->by && s[-1].seen != s->seen)
            both = s->by;
        if (s->seen && (seen == NULL || s->by->hi < seen->hi))
            seen = s->by;
        if (!s->seen && (unseen == NULL || s->by->lo > unseen->lo))
            unseen = s->by;
    }
    if (both == NULL &&
        (seen == NULL || unseen == NULL || seen->hi >= unseen->lo))
        return;
    if (both != NULL)
        seen = unseen = both;
    check_found(c, "whole", unseen->id, sights[0].group->exec->id,
                "call #%llu shows a part of the group, and call #%llu that "
                "another was not there",
                (unsigned long long)seen->id, (unsigned long long)unseen->id);
}

/* ---- Numbers. ---- */

struct given {
    struct key key; /* by the number */
    const struct call *call;
};

/* The number that the call was given, of the counter that all share. */
static bool read_given(const struct call *call, uint64_t *out)
{
    bool lock = call->verb == VERB_LOCK || call->verb == VERB_LOCKSET;
    bool stock = call->verb == VERB_STOCK_SET || call->verb == VERB_STOCK_ADD ||
                 call->verb == VERB_STOCK_LOW ||
                 call->verb == VERB_STOCK_ATTR ||
                 call->verb == VERB_STOCK_LIMIT;
    int64_t number;
    int64_t count = 1;

    if (!call->sure || (!lock && !stock) ||
        !resp_field_number(call->reply, lock ? "token" : "version", &number) ||
        (lock && !resp_field_number(call->reply, "count", &count)))
        return false;
    *out = (uint64_t)number;
    return count == 1; /* else it is told again */
}

/* All that one connection was given, in the order of calling. */
static void judge_order(struct check *c, void *items, size_t count)
{
    const struct ref *refs = items;
    const struct call *last = NULL;
    uint64_t highest = 0;
    uint64_t number;

    for (size_t i = 0; i < count; i++) {
        const struct call *call = refs[i].thing;
        if (!read_given(call, &number) || check_repeats(call))
            continue;
        if (last != NULL && number <= highest)
            check_found(c, "order", call->id, last->id,
                        "%llu was given after %llu on one connection",
                        (unsigned long long)number,
                        (unsigned long long)highest);
        last = call;
        highest = number;
    }
}

/* From each number to the next of the same group there is no other's. */
static void judge_middle(struct check *c, const struct list *all)
{
    const struct given *given = all->data;

    for (size_t i = 0; i < all->count; i++) {
        const struct group *group = given[i].call->group;
        size_t last = i;
        for (size_t j = i + 1;
             group != NULL && j < all->count && j - i <= group->count; j++) {
            if (given[j].call->group == group)
                last = j;
        }
        for (size_t j = i + 1; j < last; j++) {
            if (given[j].call->group != group &&
                given[j].key.by[0] > given[i].key.by[0] &&
                given[j].key.by[0] < given[last].key.by[0]) {
                check_found(c, "step", given[j].call->id, given[i].call->id,
                            "%llu was given in the middle of a group",
                            (unsigned long long)given[j].key.by[0]);
                return;
            }
        }
    }
}

/* ---- What one member says, and the next. ---- */

#define KNOWN_MAX 64u

/* A product, a reservation or a hold, as the members so far have left it. */
struct known {
    enum { KNOWN_PRODUCT, KNOWN_STATUS, KNOWN_HOLD } kind;
    struct hf_bytes name;
    struct hf_bytes status; /* of a reservation */
    int64_t total;
    int64_t reserved;
    int64_t sold;
    int64_t token; /* of a hold */
    int64_t count; /* how often it is held */
};

struct knows {
    struct check *check;
    struct known all[KNOWN_MAX];
    size_t count;
};

static struct known *find(struct knows *knows, int kind, struct hf_bytes name)
{
    for (size_t i = 0; i < knows->count; i++) {
        if ((int)knows->all[i].kind == kind &&
            hf_bytes_equal(knows->all[i].name, name))
            return &knows->all[i];
    }
    return NULL;
}

static void forget_products(struct knows *knows)
{
    for (size_t i = knows->count; i-- > 0;) {
        if (knows->all[i].kind == KNOWN_PRODUCT)
            knows->all[i] = knows->all[--knows->count];
    }
}

static void keep(struct knows *knows, const struct known *known)
{
    struct known *place = find(knows, (int)known->kind, known->name);

    if (place == NULL && knows->count < KNOWN_MAX)
        place = &knows->all[knows->count++];
    if (place != NULL)
        *place = *known;
}

static void contradict(struct knows *knows, const struct call *call,
                       struct hf_bytes name)
{
    check_found(knows->check, "step", call->id, call->group->exec->id,
                "what a group says of %.*s is not what it did before",
                SHOW(name));
}

/* A product that is shown, right after the call. */
static void take_product(struct knows *knows, const struct call *call,
                         struct hf_bytes map)
{
    struct known now = {.kind = KNOWN_PRODUCT};
    const struct known *before;
    int64_t total;

    if (!check_text(map, "sku", &now.name) ||
        !resp_field_number(map, "total", &now.total) ||
        !resp_field_number(map, "reserved", &now.reserved) ||
        !resp_field_number(map, "sold", &now.sold))
        return;
    before = find(knows, KNOWN_PRODUCT, now.name);
    if (before != NULL && !check_is_arrival(call)) {
        total = call->verb == VERB_STOCK_SET   ? call->amount
                : call->verb == VERB_STOCK_ADD ? before->total + call->amount
                                               : before->total;
        if (now.total != total || now.reserved != before->reserved ||
            now.sold != before->sold)
            contradict(knows, call, now.name);
    }
    keep(knows, &now);
}

static void take_products(struct knows *knows, const struct call *call)
{
    struct reply_list list;
    struct hf_bytes entry;

    if (call->word_count == 3) {
        take_product(knows, call, call->reply);
        return;
    }
    if (!check_list(call->reply, NULL, &list))
        return;
    for (uint32_t i = 2; check_list_next(&list, &entry); i++) {
        if (entry.data[0] == '*' || entry.data[0] == '%')
            take_product(knows, call, entry);
        else if (i < call->word_count &&
                 find(knows, KNOWN_PRODUCT, call->words[i]) != NULL)
            contradict(knows, call, call->words[i]);
    }
}

/* RESERVE, CONFIRM and CANCEL move units; not one that was made before. What is
 * given back with some of its items is not shown. */
static void move_units(struct knows *knows, const struct call *call)
{
    struct reply_list list;
    struct hf_bytes entry;
    struct hf_bytes sku;
    int64_t quantity;

    bool again = call->verb == VERB_RESERVE && !hf_bytes_is(call->name, "*");
    bool part = call->verb != VERB_RESERVE && check_has_items(call);
    bool late = call->verb == VERB_CONFIRM && knows->check->grace_us > 0;

    if (again || part || late || !check_list(call->reply, "items", &list)) {
        forget_products(knows);
        return;
    }
    while (check_list_next(&list, &entry)) {
        if (!check_text(entry, "sku", &sku) ||
            !resp_field_number(entry, "quantity", &quantity))
            continue;
        struct known *product = find(knows, KNOWN_PRODUCT, sku);
        if (product == NULL)
            continue;
        product->reserved += call->verb == VERB_RESERVE ? quantity : -quantity;
        product->sold += call->verb == VERB_CONFIRM ? quantity : 0;
    }
}

static void take_reservation(struct knows *knows, const struct call *call)
{
    bool ends = call->verb == VERB_CONFIRM || call->verb == VERB_CANCEL;
    struct known now = {.kind = KNOWN_STATUS};

    if (!check_text(call->reply, "id", &now.name) ||
        !check_text(call->reply, "status", &now.status))
        return;
    const struct known *before = find(knows, KNOWN_STATUS, now.name);
    if (before != NULL && !ends && call->verb != VERB_RESERVE &&
        !hf_bytes_equal(before->status, now.status))
        contradict(knows, call, now.name);
    if (ends || call->verb == VERB_RESERVE)
        move_units(knows, call);
    keep(knows, &now);
}

static void take_lock(struct knows *knows, const struct call *call)
{
    struct known now = {.kind = KNOWN_HOLD, .name = call->name};

    if (!resp_field_number(call->reply, "token", &now.token) ||
        !resp_field_number(call->reply, "count", &now.count))
        return;
    const struct known *before = find(knows, KNOWN_HOLD, now.name);
    if (before != NULL && before->token == now.token &&
        now.count != before->count + 1)
        contradict(knows, call, now.name);
    keep(knows, &now);
}

/* UNLOCK, RENEW and HELD of what an earlier member took or gave back. */
static void take_held(struct knows *knows, const struct call *call)
{
    struct known now = {
        .kind = KNOWN_HOLD, .name = call->name, .token = (int64_t)call->token};
    const struct known *before = find(knows, KNOWN_HOLD, now.name);
    bool same = before != NULL && before->token == now.token;

    if (same && before->count == 0)
        contradict(knows, call, now.name);
    if (call->verb != VERB_UNLOCK ||
        !resp_field_number(call->reply, "remaining", &now.count))
        return;
    if (same && now.count != before->count - 1)
        contradict(knows, call, now.name);
    keep(knows, &now);
}

static void take_shown(struct knows *knows, const struct call *call)
{
    const struct known *hold = find(knows, KNOWN_HOLD, call->name);
    struct reply_list list;
    struct hf_bytes entry;
    int64_t token;
    bool shown = false;

    if (hold == NULL || !check_list(call->reply, "holders", &list))
        return;
    while (check_list_next(&list, &entry))
        shown = shown || (resp_field_number(entry, "token", &token) &&
                          token == hold->token);
    if (shown != (hold->count > 0))
        contradict(knows, call, call->name);
}

static void take_member(struct knows *knows, const struct call *call)
{
    struct known *product;

    switch (call->verb) {
    case VERB_STOCK_SET:
    case VERB_STOCK_ADD:
    case VERB_STOCK_LOW:
    case VERB_STOCK_ATTR:
    case VERB_STOCK_LIMIT:
        take_product(knows, call, call->reply);
        break;
    case VERB_STOCK_GET:
        take_products(knows, call);
        break;
    case VERB_STOCK_DEL:
        product = find(knows, KNOWN_PRODUCT, call->name);
        if (product != NULL)
            *product = knows->all[--knows->count];
        break;
    case VERB_RESERVE:
    case VERB_CONFIRM:
    case VERB_CANCEL:
    case VERB_EXTEND:
    case VERB_RESERVATION:
        take_reservation(knows, call);
        break;
    case VERB_LOCK:
        take_lock(knows, call);
        break;
    case VERB_GROUP_CONFIRM: /* of how many, and of which? */
    case VERB_GROUP_CANCEL:
        knows->count = 0;
        break;
    case VERB_UNLOCK:
    case VERB_RENEW:
    case VERB_HELD:
    case VERB_PROCLAIM:
        take_held(knows, call);
        break;
    case VERB_LOCKINFO:
        take_shown(knows, call);
        break;
    default:
        break;
    }
}

/* ---- All groups. ---- */

void check_steps(struct check *c)
{
    struct group *const *groups = c->groups.data;
    struct list given = {0};
    struct list refs = {0};
    uint64_t number;

    for (size_t i = 0; i < c->groups.count; i++) {
        struct knows *knows = check_alloc(c, sizeof *knows);
        knows->check = c;
        for (uint32_t j = 0; j < groups[i]->count; j++) {
            if (groups[i]->members[j]->outcome == OUTCOME_DONE)
                take_member(knows, groups[i]->members[j]);
        }
    }
    for (size_t i = 0; i < c->count; i++) {
        const struct call *call = &c->calls[i];
        if (!read_given(call, &number))
            continue;
        *(struct given *)check_push(c, &given, sizeof(struct given)) =
            (struct given){.key.by = {number}, .call = call};
        check_refer(c, &refs,
                    hf_bytes((const char *)&call->client, sizeof call->client),
                    call->call_at, call);
    }
    check_sort(&given, sizeof(struct given));
    judge_middle(c, &given);
    check_groups(c, &refs, sizeof(struct ref), judge_order);
    check_groups(c, &c->sights, sizeof(struct sight), judge_whole);
}
