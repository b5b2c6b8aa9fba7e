/* check_deadlocks.c - a deadlock that is told can have been one.
 *
 *   'a' would wait for 'x' (exclusive, 0 ms), behind 'b', who waits for 'y'
 *   (shared, 7 ms), behind 'a'
 *
 * Each that is named can have waited for what is said, and the next one can
 * have held it, or have waited for it, or a related name if there are trees.
 * Not checked: that they stop each other, that there was no deadlock where none
 * is told, and who is older.
 */
#include "history/locks.h"

/* Walks the sentence. */
struct reader {
    struct hf_bytes left;
};

/* The text up to the next `behind`, which is passed. */
static bool read_to(struct reader *r, const char *behind, struct hf_bytes *out)
{
    const char *end = memmem(r->left.data, r->left.len, behind, strlen(behind));

    if (end == NULL)
        return false;
    *out = hf_bytes(r->left.data, (size_t)(end - r->left.data));
    end += strlen(behind);
    r->left.len -= (size_t)(end - r->left.data);
    r->left.data = end;
    return true;
}

/* As it is: not shortened, nor cleaned. */
static bool is_plain(struct hf_bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] <= ' ' || text.data[i] == '\'' ||
            text.data[i] == '?' || text.data[i] == '.')
            return false;
    }
    return text.len > 0;
}

/* May the owner have held the name, or waited for it, during the call? */
static bool may_be_there(const struct check *c, const struct call *call,
                         struct hf_bytes name, struct hf_bytes owner,
                         bool waits)
{
    const struct presence *all = c->presences.data;

    for (size_t i = 0; i < c->presences.count; i++) {
        if (all[i].lo <= call->hi && all[i].hi >= call->lo &&
            (all[i].waits || !waits) &&
            (hf_bytes_equal(all[i].key.name, name) ||
             (!waits && trees_relate(c, all[i].key.name, name))) &&
            (all[i].owner.data == NULL || hf_bytes_equal(all[i].owner, owner)))
            return true;
    }
    return false;
}

static void judge_part(struct check *c, const struct call *call,
                       struct hf_bytes name, struct hf_bytes owner, bool waits)
{
    if (is_plain(name) && is_plain(owner) &&
        !may_be_there(c, call, name, owner, waits))
        check_found(c, "deadlock", call->id, 0, "%.*s cannot have %s %.*s",
                    SHOW(owner), waits ? "waited for" : "held or wanted",
                    SHOW(name));
}

static void judge(struct check *c, const struct call *call)
{
    struct reader r = {call->reply};
    struct hf_bytes owner;
    struct hf_bytes name;
    struct hf_bytes skipped;

    if (!read_to(&r, "would be a deadlock: '", &skipped))
        return; /* told again, and without the cycle */
    if (memmem(r.left.data, r.left.len, "', who is older, ", 17) != NULL) {
        if (read_to(&r, "', who is older, has or wants '", &owner) &&
            read_to(&r, "' (", &name))
            judge_part(c, call, name, owner, false);
        return;
    }
    bool first = true;
    while (read_to(&r, first ? "' would wait for '" : "', who waits for '",
                   &owner) &&
           read_to(&r, "' (", &name)) {
        if (!first)
            judge_part(c, call, name, owner, true);
        else if (!hf_bytes_equal(owner, call->owner))
            check_found(c, "deadlock", call->id, 0,
                        "the first is not the one who is told");
        first = false;
        if (!read_to(&r, "), behind '", &skipped))
            return;
        struct reader ahead = r;
        if (read_to(&ahead, "'", &owner))
            judge_part(c, call, name, owner, false);
    }
}

void check_deadlocks(struct check *c)
{
    for (size_t i = 0; i < c->count && c->closed; i++) {
        if (check_code(&c->calls[i], "DEADLOCK"))
            judge(c, &c->calls[i]);
    }
}
