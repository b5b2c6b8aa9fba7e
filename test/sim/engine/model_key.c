/* model_key.c - locks as keys of Redis, in the model. */
#include <assert.h>

#include "sim/engine/model_lock.h"

/* What a command finds at one name, in the order in which it is decided. */
enum finding { RIGHT, NONE, OTHER, LATE, WRONG, BUSY };

static uint32_t count_of(const struct hold_command *c)
{
    return c->item_count > 0 ? c->item_count : 1;
}

/* What is told instead, if the client named one twice. */
static uint64_t told_of(const struct hold_command *c)
{
    return c->count > 0 ? c->count : count_of(c);
}

static uint32_t name_of(struct model *model, const struct hold_command *c,
                        uint32_t i)
{
    return model_name(model, c->item_count > 0 ? c->items[i].sku : c->name);
}

enum hold_key_type model_key_type(struct model *model, uint32_t name)
{
    struct model_grant *grant = model_oldest_grant(model, name);

    if (grant == NULL)
        return KEY_ANY;
    return model_want_of(&grant->claim, name)->mode == MODEL_EXCLUSIVE
               ? KEY_STRING
               : KEY_ZSET;
}

/* The grant of that name and holder without a session. */
static struct model_grant *find_member(struct model *model, uint32_t name,
                                       struct hf_bytes holder)
{
    for (size_t i = 0; i < model->grant_count; i++) {
        struct model_grant *grant = &model->grants[i];
        if (model_want_of(&grant->claim, name) != NULL &&
            grant->claim.session == 0 && model_is(&grant->claim.owner, holder))
            return grant;
    }
    return NULL;
}

static struct model_grant *
find_meant(struct model *model, const struct hold_command *c, uint32_t name)
{
    if (c->permits == 0)
        return model_oldest_grant(model, name);
    return find_member(model, name,
                       c->kind == HOLD_KEY_SET ? c->owner : c->reason);
}

static int64_t rest_ms(const struct model *model,
                       const struct model_grant *grant, uint64_t now_us)
{
    if (grant == NULL)
        return -2;
    const struct model_session *session =
        model_find_session(model, grant->claim.session);
    uint64_t end_us = grant->expires_us;
    if (session != NULL && session->expires_us < end_us)
        end_us = session->expires_us;
    if (end_us == UINT64_MAX)
        return -1;
    return (int64_t)((end_us - now_us + 999) / 1000);
}

/* Replies. */

static void refuse_type(struct model *model, uint32_t name)
{
    const struct model_grant *grant = model_oldest_grant(model, name);
    enum model_mode mode = model_want_of(&grant->claim, name)->mode;
    struct hf_buf *out = model_reply(model, HOLD_WRONGTYPE);

    reply_map(out, 2);
    reply_field_text(out, FIELD_NAME, model_name_bytes(model, name));
    reply_field_text(out, FIELD_MODE, hf_bytes_text(model_mode_name(mode)));
}

static void say(struct model *model, const struct hold_command *c,
                enum finding found, uint64_t count,
                const struct model_grant *grant)
{
    struct hf_buf *out = model_reply(model, HOLD_OK);
    bool right = found == RIGHT;

    switch (hold_say(c)) {
    case SAY_COUNT:
        reply_number(out, right ? (int64_t)count : 0);
        break;
    case SAY_VALUE:
        if (grant == NULL)
            reply_null(out);
        else
            reply_text(out, model_bytes(&grant->claim.owner));
        break;
    case SAY_WHICH:
        reply_number(out, right ? 1 : found == NONE ? -1 : 0);
        break;
    case SAY_ONE_MINUS:
        reply_number(out, right ? 1 : -1);
        break;
    case SAY_REST:
        reply_list(out, 2);
        reply_number(out, right ? 1 : found == LATE ? 0 : -1);
        reply_number(out, rest_ms(model, grant, model->now_us));
        break;
    case SAY_ONE_NULL:
        right ? reply_number(out, 1) : reply_null(out);
        break;
    case SAY_FIRST:
        assert(right);
        reply_list(out, 2);
        reply_number(out, 1);
        reply_number(out, (int64_t)count);
        break;
    case SAY_OK_ZERO:
        right ? reply_ok(out) : reply_number(out, 0);
        break;
    default:
        right ? reply_ok(out) : reply_null(out);
        break;
    }
}

/* SET. */

/* The request as if it could wait, for one of its names. */
static struct model_wait wait_for(struct model *model,
                                  const struct hold_command *c, uint32_t i)
{
    static struct hold_command one;

    one = *c;
    if (c->item_count > 0)
        one.name = c->items[i].sku;
    one.owner = hold_owner_at(c, i);
    one.item_count = 0;
    one.note = hf_bytes("", 0);
    return (struct model_wait){.claim = model_claim(model, &one),
                               .order = UINT64_MAX,
                               .queued_us = model->now_us};
}

/* Does somebody else hold or close a related name against it? */
static bool is_related_taken(struct model *model, const struct model_wait *wait)
{
    const struct model_want *want = &wait->claim.wants[0];
    uint32_t places[MODEL_MAX + 1];
    size_t count = model_places(model, want->name, false, NULL, places);

    for (size_t i = 1; i < count; i++) {
        if (model_closed_until(model, want->name, places[i]) > model->now_us)
            return true;
        for (size_t j = 0; j < model->grant_count; j++) {
            if (model_conflicts(model, &wait->claim, want, places[i],
                                &model->grants[j], 0))
                return true;
        }
    }
    return false;
}

/* Is it told so that it did not get the name? The null of GET says that it
 * did. */
static bool is_null(const struct hold_command *c)
{
    return (c->flags & HOLD_NX) != 0 && hold_say(c) != SAY_VALUE;
}

/* Is its end, which nothing moves any more, before that time? */
static bool ends_before(const struct model *model, const struct hold_command *c,
                        const struct model_grant *grant)
{
    uint64_t end_us =
        c->ttl_ms == 0 ? UINT64_MAX : model->now_us + c->ttl_ms * 1000;

    return grant->sealed &&
           ((c->flags & HOLD_ADDED) != 0 || end_us > grant->expires_us);
}

/* What SET finds at a key or lock that is held. */
static enum finding find_held(struct model *model, const struct hold_command *c,
                              const struct model_wait *wait,
                              const struct model_grant *grant)
{
    bool string =
        model_key_type(model, wait->claim.wants[0].name) == KEY_STRING;
    bool same = model_is(&grant->claim.owner, c->owner);

    if ((c->flags & HOLD_NX) != 0 &&
        !((c->flags & HOLD_OWN) != 0 && string && same && grant->claim.key &&
          !ends_before(model, c, grant)))
        return OTHER;
    if (!string)
        return WRONG;
    if ((c->flags & HOLD_NX) == 0 && (c->flags & HOLD_EQUAL) != 0 &&
        !model_is(&grant->claim.owner, c->reason))
        return OTHER;
    if (!grant->claim.key)
        return WRONG;
    if (!is_related_taken(model, wait))
        return RIGHT;
    return is_null(c) ? OTHER : BUSY;
}

/* Permits of a semaphore that are taken again: as many must be free. */
static enum finding find_own(struct model *model, const struct hold_command *c,
                             const struct model_want *want,
                             const struct model_grant *own)
{
    const struct model_want *has = model_want_of(&own->claim, want->name);
    uint64_t used = model_used_permits(model, want->name);
    bool fits = has->of == want->of && used + want->permits <= want->of;

    return own->claim.key && has->permits == want->permits &&
                   ((c->flags & HOLD_OWN) != 0 || fits) &&
                   !ends_before(model, c, own)
               ? RIGHT
               : OTHER;
}

static enum finding find_to_set(struct model *model,
                                const struct hold_command *c,
                                const struct model_wait *wait, uint32_t *place)
{
    const struct model_want *want = &wait->claim.wants[0];
    const struct model_grant *oldest = model_oldest_grant(model, want->name);
    const struct model_grant *own =
        c->permits == 0 ? NULL : find_meant(model, c, want->name);
    uint64_t left_us;

    *place = want->name;
    if (own != NULL)
        return find_own(model, c, want, own);
    if (oldest != NULL && c->permits == 0)
        return find_held(model, c, wait, oldest);
    if ((c->flags & (HOLD_XX | HOLD_EQUAL)) != 0)
        return NONE;
    if (!model_is_done(model, want->name, &left_us) &&
        model_is_free(model, wait, want, true, true, place))
        return RIGHT;
    return is_null(c) ? OTHER : BUSY;
}

static void refuse_set(struct model *model, const struct hold_command *c,
                       enum finding found, const struct model_wait *wait,
                       uint32_t place)
{
    const struct model_want *want = &wait->claim.wants[0];
    const struct model_grant *oldest = model_oldest_grant(model, want->name);
    uint64_t left_us;

    if (found == BUSY && model_is_done(model, want->name, &left_us))
        model_write_done(model, model_reply(model, HOLD_DONE), want->name);
    else if (found == BUSY)
        model_refuse_busy(model, wait, want, place);
    else if (found == WRONG || (hold_say(c) == SAY_VALUE &&
                                model_key_type(model, want->name) == KEY_ZSET))
        refuse_type(model, want->name);
    else
        say(model, c, found, 0, oldest);
}

static bool exceeds(struct model *model, const struct hold_command *c)
{
    uint64_t names = model_names_in_use(model);
    bool full = false;

    for (uint32_t i = 0; i < count_of(c) && !full; i++) {
        uint32_t name = name_of(model, c, i);
        bool used = model_is_in_use(model, name);
        names += !used;
        if (!used && names > model->bounds.locks_max) {
            model_overloaded(model, "locks-max", model->bounds.locks_max);
            return true;
        }
        if (used && c->permits != 0 && find_meant(model, c, name) == NULL &&
            model_count_grants(model, name) >= model->bounds.holders_max) {
            model_overloaded(model, "holders-max", model->bounds.holders_max);
            return true;
        }
        struct model_wait wait = wait_for(model, c, i);
        full = model_exceeds_tree(model, &wait.claim);
        model_claim_free(&wait.claim);
    }
    return full;
}

static void renew(struct model *model, struct model_grant *grant,
                  uint64_t ttl_ms)
{
    model_grant_event(model, grant, 0, EVENT_LOCK_RENEWED, 0);
    model_set_end(model, grant, ttl_ms, false);
    model->figures[FIGURE_KEY_RENEWED]++;
}

static void set_one(struct model *model, const struct hold_command *c,
                    uint32_t i)
{
    struct model_wait wait = wait_for(model, c, i);
    struct model_grant *old = find_meant(model, c, wait.claim.wants[0].name);
    uint64_t end_us = UINT64_MAX;

    if (old != NULL && (c->permits != 0 || (c->flags & HOLD_OWN) != 0)) {
        renew(model, old, c->ttl_ms);
        model_claim_free(&wait.claim);
        return;
    }
    if ((c->flags & HOLD_KEEPTTL) != 0 && old != NULL)
        end_us = old->expires_us;
    if ((c->flags & HOLD_AT) != 0)
        end_us = c->ttl_ms * 1000;
    if (old != NULL) {
        model_end_grant(model, old, EVENT_LOCK_LOST, "replaced", 0);
        model->figures[FIGURE_KEY_REPLACED]++;
    }
    if (end_us <= model->now_us) {
        model_claim_free(&wait.claim);
        model->figures[FIGURE_KEY_OVER]++;
        return;
    }
    struct model_grant *new = model_take(model, &wait.claim);
    if ((c->flags & (HOLD_AT | HOLD_KEEPTTL)) != 0)
        new->expires_us = end_us;
    model->figures[FIGURE_KEY]++;
}

/* The item that the client named so early, 0 the first. */
static uint32_t item_named(const struct hold_command *c, uint64_t turn)
{
    uint32_t i = 0;

    if (!c->owners)
        return (uint32_t)turn;
    while (i < c->item_count && c->items[i].quantity != turn + 1)
        i++;
    return i;
}

static void refuse_first(struct model *model, const struct hold_command *c,
                         uint32_t i, uint64_t turn)
{
    struct hf_buf *out = model_reply(model, HOLD_OK);

    reply_list(out, 3);
    reply_number(out, 0);
    reply_number(out, (int64_t)turn + 1);
    reply_text(out, c->item_count > 0 ? c->items[i].sku : c->name);
    model->figures[FIGURE_KEY_FIRST]++;
}

static void set(struct model *model, const struct hold_command *c)
{
    for (uint64_t turn = 0; turn < told_of(c); turn++) {
        uint32_t i = item_named(c, turn);
        if (i >= count_of(c))
            continue; /* it was named before */
        struct model_wait wait = wait_for(model, c, i);
        uint32_t place;
        enum finding found = find_to_set(model, c, &wait, &place);
        if (found != RIGHT && hold_say(c) == SAY_FIRST)
            refuse_first(model, c, i, turn);
        else if (found != RIGHT)
            refuse_set(model, c, found, &wait, place);
        model_claim_free(&wait.claim);
        if (found != RIGHT)
            return;
    }
    if (exceeds(model, c))
        return;
    model->figures[FIGURE_KEY_EACH] += c->owners;
    say(model, c, RIGHT, told_of(c),
        find_meant(model, c, name_of(model, c, 0)));
    for (uint32_t i = 0; i < count_of(c); i++)
        set_one(model, c, i);
    model_serve(model);
}

/* DEL and EXPIRE. */

static enum finding find_at(struct model *model, const struct hold_command *c,
                            uint32_t name)
{
    struct model_grant *oldest = model_oldest_grant(model, name);
    struct model_grant *meant = find_meant(model, c, name);

    if (oldest == NULL)
        return NONE;
    if (model_want_of(&oldest->claim, name)->mode !=
        (c->permits != 0 ? MODEL_COUNTING : MODEL_EXCLUSIVE))
        return WRONG;
    if (meant == NULL)
        return NONE;
    if (rest_ms(model, meant, model->now_us) < (int64_t)c->grace_ms &&
        c->grace_ms > 0)
        return LATE;
    if ((c->flags & HOLD_EQUAL) != 0 &&
        !model_is(&meant->claim.owner, c->reason))
        return OTHER;
    return meant->claim.key ? RIGHT : WRONG;
}

static void del(struct model *model, const struct hold_command *c)
{
    enum finding found = NONE;
    uint64_t count = 0;

    for (uint32_t i = 0; i < count_of(c); i++) {
        found = find_at(model, c, name_of(model, c, i));
        if (found == WRONG) {
            refuse_type(model, name_of(model, c, i));
            return;
        }
        count += found == RIGHT;
    }
    struct model_grant *first = find_meant(model, c, name_of(model, c, 0));
    if (c->permits != 0 && count > 0)
        count = first->claim.wants[0].permits;
    say(model, c, count > 0 ? RIGHT : found, count, first);
    for (uint32_t i = 0; i < count_of(c); i++) {
        uint32_t name = name_of(model, c, i);
        if (find_at(model, c, name) != RIGHT)
            continue;
        model_end_grant(model, find_meant(model, c, name), EVENT_LOCK_RELEASED,
                        "deleted", 0);
        model->figures[FIGURE_KEY_DELETED]++;
    }
    model_serve(model);
}

static void expire(struct model *model, const struct hold_command *c)
{
    for (uint32_t i = 0; i < count_of(c); i++) {
        uint32_t name = name_of(model, c, i);
        struct model_grant *grant = find_meant(model, c, name);
        enum finding found = find_at(model, c, name);
        if (found == RIGHT && (c->ttl_ms == 0 || (c->flags & HOLD_XX) != 0) &&
            rest_ms(model, grant, model->now_us) < 0)
            found = NONE;
        else if (found == RIGHT && ends_before(model, c, grant))
            found = OTHER;
        if (found == WRONG)
            refuse_type(model, name);
        else if (found != RIGHT)
            say(model, c, found, 0, grant);
        if (found != RIGHT)
            return;
    }
    say(model, c, RIGHT, told_of(c),
        find_meant(model, c, name_of(model, c, 0)));
    for (uint32_t i = 0; i < count_of(c); i++) {
        struct model_grant *grant = find_meant(model, c, name_of(model, c, i));
        uint64_t ttl_ms = c->ttl_ms;
        if ((c->flags & HOLD_ADDED) != 0)
            ttl_ms += (uint64_t)rest_ms(model, grant, model->now_us);
        renew(model, grant,
              ttl_ms > HOLD_TTL_MAX_MS ? HOLD_TTL_MAX_MS : ttl_ms);
    }
}

static void key_command(struct model *model, const struct hold_command *c)
{
    if (c->kind == HOLD_KEY_SET)
        set(model, c);
    else if (c->kind == HOLD_KEY_DEL)
        del(model, c);
    else
        expire(model, c);
}

/* Questions. */

static void get(struct model *model, const struct hold_command *c,
                uint64_t now_us)
{
    uint32_t name = model_name(model, c->name);
    const struct model_grant *grant = model_oldest_grant(model, name);
    enum hold_key_type type = model_key_type(model, name);
    int64_t rest = rest_ms(model, grant, now_us);
    struct hf_buf *out = model_reply(model, HOLD_OK);

    if (hold_say(c) == SAY_PTTL) {
        reply_number(out, rest);
    } else if (hold_say(c) == SAY_TTL) {
        reply_number(out, rest < 0 ? rest : (rest + 500) / 1000);
    } else if (hold_say(c) == SAY_TYPE) {
        reply_text(out, hf_bytes_text(type == KEY_ANY      ? "none"
                                      : type == KEY_STRING ? "string"
                                                           : "zset"));
    } else if (grant == NULL && hold_say(c) == SAY_BOTH) {
        reply_list(out, 2);
        reply_null(out);
        reply_number(out, -2);
    } else if (grant == NULL) {
        reply_null(out);
    } else if (type == KEY_ZSET) {
        refuse_type(model, name);
    } else {
        bool both = hold_say(c) == SAY_PAIR || hold_say(c) == SAY_BOTH;
        if (both)
            reply_list(out, 2);
        reply_text(out, model_bytes(&grant->claim.owner));
        if (both)
            reply_number(out, rest);
    }
}

void model_key_ask(struct model *model, const struct hold_command *c,
                   uint64_t now_us)
{
    int64_t count = 0;

    if (c->kind == HOLD_KEY_GET) {
        get(model, c, now_us);
        return;
    }
    assert(c->kind == HOLD_KEY_COUNT);
    for (uint32_t i = 0; i < c->item_count; i++)
        count += model_oldest_grant(model, name_of(model, c, i)) != NULL;
    if (c->item_count == 0)
        count = (int64_t)model_names_held(model);
    reply_number(model_reply(model, HOLD_OK), count);
}

static void clear(struct model *model)
{
    (void)model; /* they are locks */
}

MODEL_PART("redis", key_command, clear);
