/* check_together.c - groups of reservations: GROUP CONFIRM and GROUP CANCEL.
 *
 *   GROUP CONFIRM g      is, perhaps, a CONFIRM of every reservation that was
 *                        asked for with GROUP g
 *
 * Which ones were members is not always sure: one may have ended by itself. But
 * what was surely made before is not pending behind it.
 */
#include "history/bookings.h"

/* The id that a RESERVE or JOIN was for; empty: it is not known. */
static struct hf_bytes id_of(const struct call *call)
{
    struct hf_bytes id;
    bool named = call->verb == VERB_RESERVE &&
                 !(call->name.len == 1 && call->name.data[0] == '*');

    if (call->outcome == OUTCOME_DONE && check_text(call->reply, "id", &id))
        return id;
    if (named)
        return call->name;
    for (uint32_t i = 4; call->verb == VERB_JOIN && i + 1 < call->word_count;
         i += 2) {
        if (hf_bytes_is(call->words[i], "ID"))
            return call->words[i + 1];
    }
    return hf_bytes("", 0);
}

/* The call as one of that reservation alone. */
static const struct call *alone(struct check *c, const struct call *group,
                                struct hf_bytes id)
{
    struct hf_bytes *words = check_alloc(c, 2 * sizeof *words);
    struct call *call = check_alloc(c, sizeof *call);

    *call = *group;
    call->verb = group->verb == VERB_GROUP_CONFIRM ? VERB_CONFIRM : VERB_CANCEL;
    words[0] = hf_bytes_text(call->verb == VERB_CONFIRM ? "CONFIRM" : "CANCEL");
    words[1] = call->name = id;
    call->words = words;
    call->word_count = 2;
    call->terms.bundle = group->name;
    call->terms.together = group->outcome == OUTCOME_DONE && group->sure;
    call->outcome = OUTCOME_UNKNOWN;
    call->sure = false;
    return call;
}

void together_mention(struct check *c)
{
    for (size_t i = 0; i < c->count; i++) {
        const struct call *group = &c->calls[i];
        bool ends = group->verb == VERB_GROUP_CONFIRM ||
                    group->verb == VERB_GROUP_CANCEL;
        for (size_t k = 0; ends && group->may && k < c->count; k++) {
            const struct call *made = &c->calls[k];
            struct hf_bytes id = id_of(made);
            if (!hf_bytes_equal(made->terms.bundle, group->name) ||
                (made->verb != VERB_RESERVE && made->verb != VERB_JOIN) ||
                id.len == 0)
                continue;
            *(struct mention *)check_push(c, &c->mentions,
                                          sizeof(struct mention)) =
                (struct mention){.key = {id, {group->call_at}},
                                 .call = alone(c, group, id),
                                 .kind = MENTION_END,
                                 .status = BOOKING_NONE};
        }
    }
}

/* The one that surely made it a member of a group; NULL: none did, or nobody
 * knows which. */
static const struct mention *find_made(const struct booking_view *view)
{
    const struct mention *made = NULL;
    size_t lives = 0;

    for (size_t i = 0; i < view->count; i++) {
        const struct mention *m = &view->mentions[i];
        lives += m->kind == MENTION_RESERVE && m->call->may;
        if (m->kind == MENTION_RESERVE && m->call->may && mention_is_done(m) &&
            m->call->sure && m->call->terms.bundle.len > 0)
            made = m;
    }
    return lives > 1 ? NULL : made;
}

/* The first that surely ended its group. */
static const struct mention *find_ended(const struct booking_view *view,
                                        const struct mention *made)
{
    const struct mention *ended = NULL;

    for (size_t i = 0; made != NULL && i < view->count; i++) {
        const struct mention *m = &view->mentions[i];
        if (m->call->terms.together &&
            hf_bytes_equal(m->call->terms.bundle, made->call->terms.bundle) &&
            (ended == NULL || m->call->hi < ended->call->hi))
            ended = m;
    }
    return ended;
}

void together_judge(struct booking_view *view)
{
    const struct mention *made = find_made(view);
    const struct mention *ended = find_ended(view, made);

    if (ended == NULL || made->call->hi >= ended->call->first)
        return;
    for (size_t i = 0; i < view->count; i++) {
        const struct mention *m = &view->mentions[i];
        if (m->kind == MENTION_SEEN && m->status == BOOKING_PENDING &&
            m->call->first > ended->call->hi)
            check_found(view->check, "group", m->call->id, ended->call->id,
                        "reservation %.*s is pending, behind the end of its "
                        "group",
                        SHOW(view->id));
    }
}
