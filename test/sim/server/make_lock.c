/* make_lock.c - draws requests about locks and sessions. */
#include "sim/server/making.h"

#define NEVER_GIVEN (UINT64_C(1) << 31) /* from the newest told on */

/* A lock with its token, as a rule its own. Nobody guesses one that was given
 * and not told: such a hold may be on its way back. */
static void add_held(struct making *m)
{
    const struct known *known = pick(m, m->knows->locks, m->knows->lock_count,
                                     knows_all.locks, knows_all.lock_count);

    if (known == NULL || dice_hit(m->dice, 30)) {
        bool told = known != NULL && dice_hit(m->dice, 700);
        add_name(m);
        words_add(
            m->out, "%llu",
            ULL(told ? known->number : knows_all.token_max + NEVER_GIVEN));
        return;
    }
    words_add(m->out, "%s", known->name);
    words_add(m->out, "%llu", ULL(known->number));
}

static void add_known(struct making *m, const struct known *known)
{
    words_add(
        m->out, "%llu",
        ULL(known != NULL ? known->number : knows_all.token_max + NEVER_GIVEN));
}

/* A session, as a rule its own; 0 is the one that is bound here. */
static void add_session(struct making *m)
{
    const struct known *known =
        pick(m, m->knows->sessions, m->knows->session_count, knows_all.sessions,
             knows_all.session_count);

    if (known == NULL || !dice_hit(m->dice, m->mix->sessions))
        return;
    words_add(m->out, "SESSION");
    if (dice_hit(m->dice, m->mix->bind / 8))
        words_add(m->out, "0");
    else
        add_known(m, known);
}

/* What LOCK and LOCKSET share. */
static void add_terms(struct making *m)
{
    static const char *const policies[] = {"DETECT", "NONE", "WAITDIE",
                                           "WOUNDWAIT"};

    add_session(m);
    bool session = words_has(m->out, "SESSION");
    if (!dice_hit(m->dice, session ? 700 : 100))
        add_ms(m, "TTL", m->mix->ttl_ms);
    if (dice_hit(m->dice, m->mix->terms))
        add_ms(m, "MAXHOLD", 2 * m->mix->ttl_ms);
    if (dice_hit(m->dice, m->mix->terms))
        add_ms(m, "DELAY", m->mix->ttl_ms / 4 + 10);
    if (dice_hit(m->dice, m->mix->terms)) {
        words_add(m->out, "NOTE");
        words_add(m->out, "n%llu", ULL(dice_below(m->dice, 100)));
    }
    if (m->mix->trees > 0 && !words_has(m->out, "PERMITS") &&
        dice_hit(m->dice, m->mix->trees))
        words_add(m->out, "TREE");
    if (dice_hit(m->dice, m->mix->barge))
        words_add(m->out, "BARGE");
    if (dice_hit(m->dice, m->mix->priority)) {
        words_add(m->out, "PRIORITY");
        words_add(m->out, "%llu", ULL(dice_below(m->dice, 4)));
    }
    if (dice_hit(m->dice, m->mix->policy)) {
        words_add(m->out, "DEADLOCK");
        words_add(m->out, "%s", policies[dice_below(m->dice, session ? 4 : 2)]);
    }
}

static void add_wait(struct making *m)
{
    if (dice_hit(m->dice, m->mix->forever))
        words_add(m->out, "FOREVER");
    else
        add_ms(m, "WAIT", m->mix->wait_ms);
}

/* Of a name there are always as many permits. */
static void add_mode(struct making *m, uint64_t name)
{
    uint64_t max = 1 + name % 4;

    if (dice_hit(m->dice, m->mix->permits)) {
        words_add(m->out, "PERMITS");
        words_add(m->out, "%llu", ULL(dice_between(m->dice, 1, max)));
        words_add(m->out, "OF");
        words_add(m->out, "%llu", ULL(dice_hit(m->dice, 20) ? max + 1 : max));
    } else if (dice_hit(m->dice, m->mix->shared)) {
        words_add(m->out, "SHARED");
    }
}

static void make_take(struct making *m, bool waits)
{
    words_add(m->out, "LOCK");
    add_name(m);
    uint64_t name = (uint64_t)m->out->text[m->out->at[1]];
    if (dice_hit(m->dice, 200)) { /* one that nobody else is */
        words_add(m->out, "OWNER");
        words_add(m->out, "u%llu", ULL(dice_below(m->dice, 1u << 30)));
    } else {
        add_owner(m);
    }
    add_mode(m, name);
    add_terms(m);
    if (waits)
        add_wait(m);
}

static void make_set(struct making *m)
{
    uint64_t first = dice_below(m->dice, m->mix->names);
    uint64_t count = dice_between(m->dice, 1, 3);

    words_add(m->out, "LOCKSET");
    add_owner(m);
    for (uint64_t i = 0; i < count && i < m->mix->names; i++) {
        words_add(m->out, "NAME");
        words_add(m->out, "%s", mix_name(m->mix, (first + i) % m->mix->names));
        if (dice_hit(m->dice, m->mix->shared))
            words_add(m->out, "SHARED");
    }
    add_terms(m);
    if (dice_hit(m->dice, 600))
        add_wait(m);
}

static void make_release(struct making *m)
{
    words_add(m->out, "UNLOCK");
    add_held(m);
    if (!dice_hit(m->dice, m->mix->done))
        return;
    add_ms(m, "DONE", m->mix->ttl_ms);
    if (dice_hit(m->dice, 500)) {
        words_add(m->out, "RESULT");
        words_add(m->out, "r%llu", ULL(dice_below(m->dice, 100)));
    }
}

bool make_keep(const struct knows *knows, struct words *out)
{
    out->count = out->len = 0;
    if (knows->session_count == 0)
        return false;
    words_add(out, "SESSION");
    words_add(out, "KEEP");
    words_add(out, "%llu",
              ULL(knows->sessions[knows->session_count - 1].number));
    return true;
}

static void make_session(struct making *m, enum make_kind kind)
{
    static const char *const verbs[] = {
        [MAKE_SESSION_OPEN] = "OPEN",   [MAKE_SESSION_KEEP] = "KEEP",
        [MAKE_SESSION_CLOSE] = "CLOSE", [MAKE_SESSION_INFO] = "INFO",
        [MAKE_SESSION_LIST] = "LIST",
    };

    words_add(m->out, "SESSION");
    words_add(m->out, "%s", verbs[kind]);
    if (kind == MAKE_SESSION_OPEN) {
        words_add(m->out, "TTL");
        words_add(m->out, "%llu",
                  ULL(dice_scale(m->dice, 10, 10 * m->mix->ttl_ms)));
        if (dice_hit(m->dice, m->mix->bind))
            words_add(m->out, "BIND");
    } else if (kind != MAKE_SESSION_LIST) {
        add_known(m, pick(m, m->knows->sessions, m->knows->session_count,
                          knows_all.sessions, knows_all.session_count));
    }
}

/* About a lock that is held, or one of a set that is. */
static void make_held(struct making *m, const char *verb)
{
    const struct known *set = pick(m, m->knows->sets, m->knows->set_count,
                                   knows_all.sets, knows_all.set_count);

    words_add(m->out, "%s", verb);
    if (set == NULL || !dice_hit(m->dice, 200)) {
        add_held(m);
        return;
    }
    add_name(m);
    add_known(m, set);
}

static void make_of_set(struct making *m, enum make_kind kind)
{
    words_add(m->out, kind == MAKE_UNLOCKSET ? "UNLOCKSET" : "RENEWSET");
    add_known(m, pick(m, m->knows->sets, m->knows->set_count, knows_all.sets,
                      knows_all.set_count));
    if (kind == MAKE_RENEWSET)
        add_ms(m, "TTL", m->mix->ttl_ms);
}

static void make_other_lock(struct making *m, enum make_kind kind)
{
    switch (kind) {
    case MAKE_LOCKINFO:
        words_add(m->out, "LOCKINFO");
        if (m->mix->groups > 0)
            add_group_name(m);
        else
            add_name(m);
        break;
    case MAKE_LOCKS:
        words_add(m->out, "LOCKS");
        add_pattern(m);
        break;
    case MAKE_FENCE:
        words_add(m->out, "FENCE");
        words_add(m->out, "f%llu", ULL(dice_below(m->dice, 2)));
        words_add(m->out, "%llu",
                  ULL(1 + dice_below(m->dice, knows_all.token_max + 2)));
        break;
    default:
        make_session(m, kind);
        break;
    }
}

void make_election(struct making *m, uint64_t turn)
{
    uint64_t kind = dice_below(m->dice, 10);

    if (kind < 3) {
        words_add(m->out, "LEADER");
        add_name(m);
        return;
    }
    words_add(m->out, kind < 6 ? "ELECT" : kind < 8 ? "PROCLAIM" : "RESIGN");
    if (kind >= 6) {
        add_held(m);
    } else {
        add_name(m);
        add_owner(m);
        add_session(m);
        add_ms(m, "TTL", m->mix->ttl_ms);
        if (dice_hit(m->dice, 600))
            add_wait(m);
    }
    if (kind < 8 && (kind >= 6 || dice_hit(m->dice, 700))) {
        words_add(m->out, "VALUE");
        words_add(m->out, "v%llu", ULL(dice_below(m->dice, 1u << 20)));
    }
    add_request(m, turn);
}

void make_seldom(struct making *m)
{
    switch (dice_below(m->dice, 6)) {
    case 0:
        words_add(m->out, "FENCE");
        words_add(m->out, "DEL");
        words_add(m->out, "f%llu", ULL(dice_below(m->dice, 2)));
        break;
    case 1:
        words_add(m->out, "EXPLAIN");
        add_name(m);
        break;
    case 2:
        words_add(m->out, "WAITGRAPH");
        if (dice_hit(m->dice, 300))
            words_add(m->out, "DOT");
        break;
    case 3:
        words_add(m->out, "CLASS");
        words_add(m->out, "LIST");
        break;
    default:
        words_add(m->out, "PUBLISH");
        words_add(m->out, dice_hit(m->dice, 900) ? "news" : "hf:lock:a");
        words_add(m->out, "x%llu", ULL(dice_below(m->dice, 1000)));
        break;
    }
}

void make_lock(struct making *m, enum make_kind kind)
{
    switch (kind) {
    case MAKE_LOCK:
    case MAKE_LOCK_WAIT:
        make_take(m, kind == MAKE_LOCK_WAIT);
        break;
    case MAKE_UNLOCK:
        make_release(m);
        break;
    case MAKE_RENEW:
        make_held(m, "RENEW");
        add_ms(m, "TTL", m->mix->ttl_ms);
        break;
    case MAKE_DOWNGRADE:
        make_held(m, "DOWNGRADE");
        break;
    case MAKE_HELD:
        make_held(m, "HELD");
        break;
    case MAKE_REVOKE:
        make_held(m, "REVOKE");
        if (dice_hit(m->dice, 500))
            add_ms(m, "GRACE", m->mix->ttl_ms);
        break;
    case MAKE_LOCKSET:
        make_set(m);
        break;
    case MAKE_UNLOCKSET:
    case MAKE_RENEWSET:
        make_of_set(m, kind);
        break;
    default:
        make_other_lock(m, kind);
        break;
    }
}
