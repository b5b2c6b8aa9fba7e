/* check_past.c - what a product was at a number, as often as it is told.
 *
 * The version of a product is the number of its last change. So whoever is
 * shown it with that version, by any command and at any time, is shown the same
 * numbers; and what it was at a number has the newest version up to there.
 */
#include "history/check.h"

/* A product as it was shown: by name and version. */
struct shown {
    struct key key;
    const struct call *call;
    int64_t numbers[4]; /* total available reserved sold */
};

static void add(struct check *c, struct list *list, const struct call *call,
                struct hf_bytes map)
{
    static const char *const fields[] = {"total", "available", "reserved",
                                         "sold"};
    struct shown shown = {.call = call};
    int64_t version;

    if (!check_text(map, "sku", &shown.key.name) ||
        !resp_field_number(map, "version", &version))
        return; /* null: older than what is kept */
    for (size_t i = 0; i < 4; i++) {
        if (!resp_field_number(map, fields[i], &shown.numbers[i]))
            return;
    }
    shown.key.by[0] = (uint64_t)version;
    *(struct shown *)check_push(c, list, sizeof shown) = shown;
    if (call->verb != VERB_STOCK_AT)
        return;
    if (shown.key.by[0] > call->token ||
        shown.numbers[0] !=
            shown.numbers[1] + shown.numbers[2] + shown.numbers[3])
        check_found(c, "past", call->id, 0,
                    "product %.*s at %llu: version %lld, total %lld, "
                    "available %lld, reserved %lld, sold %lld",
                    SHOW(shown.key.name), (unsigned long long)call->token,
                    (long long)version, (long long)shown.numbers[0],
                    (long long)shown.numbers[1], (long long)shown.numbers[2],
                    (long long)shown.numbers[3]);
}

/* All of one product, by version. */
static void judge(struct check *c, void *items, size_t count)
{
    const struct shown *all = items;

    for (size_t i = 1; i < count; i++) {
        const struct shown *a = &all[i - 1];
        const struct shown *b = &all[i];
        bool past =
            a->call->verb == VERB_STOCK_AT || b->call->verb == VERB_STOCK_AT;
        if (past && a->key.by[0] == b->key.by[0] &&
            memcmp(a->numbers, b->numbers, sizeof a->numbers) != 0)
            check_found(c, "past", b->call->id, a->call->id,
                        "product %.*s has other numbers with the same version "
                        "%llu",
                        SHOW(a->key.name), (unsigned long long)a->key.by[0]);
    }
    for (size_t i = 0; i < count; i++) { /* what was told before is known */
        const struct call *at = all[i].call;
        size_t next = i + 1;
        while (next < count && all[next].key.by[0] == all[i].key.by[0])
            next++;
        if (at->verb == VERB_STOCK_AT && next < count &&
            all[next].key.by[0] <= at->token &&
            check_told(all[next].call) < at->lo)
            check_found(c, "past", at->id, all[next].call->id,
                        "product %.*s at %llu is shown with version %llu, it "
                        "had version %llu",
                        SHOW(all[i].key.name), (unsigned long long)at->token,
                        (unsigned long long)all[i].key.by[0],
                        (unsigned long long)all[next].key.by[0]);
    }
}

/* There was none: then nothing was told of it with that version. */
static void judge_absent(struct check *c, const struct list *list,
                         const struct call *call)
{
    const struct shown *all = list->data;

    for (size_t i = 0; i < list->count; i++) {
        if (all[i].key.by[0] == call->token &&
            hf_bytes_equal(all[i].key.name, call->name))
            check_found(c, "past", call->id, all[i].call->id,
                        "there was no product %.*s at %llu, which is its "
                        "version",
                        SHOW(call->name), (unsigned long long)call->token);
    }
}

void check_past(struct check *c)
{
    struct list list = {0};

    for (size_t i = 0; i < c->count; i++) {
        const struct call *call = &c->calls[i];
        bool stock =
            call->verb == VERB_STOCK_SET || call->verb == VERB_STOCK_ADD ||
            call->verb == VERB_STOCK_GET || call->verb == VERB_STOCK_AT;
        if (stock && call->outcome == OUTCOME_DONE)
            add(c, &list, call, call->reply);
    }
    check_groups(c, &list, sizeof(struct shown), judge);
    for (size_t i = 0; i < c->count; i++) {
        if (c->calls[i].verb == VERB_STOCK_AT &&
            check_code(&c->calls[i], "NOTFOUND"))
            judge_absent(c, &list, &c->calls[i]);
    }
}
