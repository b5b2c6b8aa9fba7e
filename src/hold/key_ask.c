/* key_ask.c - questions about locks as keys of Redis. */
#include "hold/tree.h"

static enum hold_key_type type_of(const struct hold_engine *e,
                                  const struct lock *lock)
{
    return part_at(e, lock->grants.first)->mode == MODE_EXCLUSIVE ? KEY_STRING
                                                                  : KEY_ZSET;
}

/* Of a key that is not there. */
static void say_none(struct hold_engine *e, enum hold_say say)
{
    if (say == SAY_BOTH) {
        reply_list(&e->body, 2);
        reply_null(&e->body);
    }
    if (say == SAY_PTTL || say == SAY_TTL || say == SAY_BOTH)
        reply_number(&e->body, -2);
    else if (say == SAY_TYPE)
        reply_text(&e->body, hf_bytes_text("none"));
    else
        reply_null(&e->body);
}

void key_get(struct hold_engine *e, const struct hold_command *c)
{
    uint32_t lock = hf_index_find(&e->locks, c->name);
    enum hold_say say = hold_say(c);

    if (!key_is_held(e, lock)) {
        say_none(e, say);
        return;
    }
    uint32_t grant = lock_at(e, lock)->grants.first;
    bool is_string = type_of(e, lock_at(e, lock)) == KEY_STRING;
    int64_t rest = key_rest_ms(e, grant);
    if (say == SAY_TYPE) {
        reply_text(&e->body, hf_bytes_text(is_string ? "string" : "zset"));
    } else if (say == SAY_PTTL) {
        reply_number(&e->body, rest);
    } else if (say == SAY_TTL) {
        reply_number(&e->body, rest < 0 ? rest : (rest + 500) / 1000);
    } else if (!is_string) {
        key_refuse_type(e, lock);
    } else {
        bool both = say == SAY_PAIR || say == SAY_BOTH;
        if (both)
            reply_list(&e->body, 2);
        reply_text(&e->body, part_owner(e, part_at(e, grant)));
        if (both)
            reply_number(&e->body, rest);
    }
}

void key_count(struct hold_engine *e, const struct hold_command *c)
{
    int64_t count = 0;

    for (uint32_t i = 0; i < c->item_count; i++)
        count += key_is_held(e, hf_index_find(&e->locks, c->items[i].sku));
    reply_number(&e->body, c->item_count > 0 ? count : e->held);
}

/* Free numbers that are passed for the work of one name. */
#define FREE_PER_STEP 16

/* Is it one that is asked for? */
static bool is_listed(const struct hold_engine *e, const struct hold_command *c,
                      const struct lock *lock, uint64_t *steps)
{
    if (lock == NULL || lock->granted == 0 ||
        (c->amount != KEY_ANY && (int64_t)type_of(e, lock) != c->amount))
        return false;
    return c->name.len == 0 ||
           hf_bytes_match_steps(c->name, hf_index_name(&e->locks, lock), steps);
}

/* Writes names from the cursor on; returns where to go on, 0: that was all.
 */
static uint32_t list_names(struct hold_engine *e, const struct hold_command *c)
{
    uint64_t most = c->count > 0 && c->count <= HOLD_LIST_MAX
                        ? c->count
                        : HOLD_LIST_MAX + 1; /* is one too many */
    uint32_t top = hf_index_top(&e->locks);
    uint32_t number = c->cursor < top ? (uint32_t)c->cursor : top;
    uint32_t count = 0;
    uint64_t steps = 0;

    reply_list(&e->body, 0);
    size_t count_at = e->body.len - 4;
    for (number += number == 0;
         number < top && steps < HOLD_STEPS_MAX && count < most &&
         e->body.cap - e->body.len >= 2 * HOLD_NAME_MAX;
         number++) {
        const struct lock *lock = hf_index_used(&e->locks, number);
        steps += lock != NULL || number % FREE_PER_STEP == 0;
        if (!is_listed(e, c, lock, &steps))
            continue;
        reply_text(&e->body, hf_index_name(&e->locks, lock));
        count++;
    }
    e->out.work += steps;
    hf_put_u32(e->body.data + count_at, count);
    return number < top || count > HOLD_LIST_MAX ? number : 0;
}

/* The page follows its cursor, whose digits are known when it was written. */
void key_scan(struct hold_engine *e, const struct hold_command *c)
{
    struct hf_buf *body = &e->body;
    char digits[20] = "";

    if (hold_say(c) == SAY_ALL) {
        if (list_names(e, c) != 0) {
            body->len = 0;
            refuse_overload(e, "keys", HOLD_LIST_MAX);
        }
        return;
    }
    reply_list(body, 2);
    size_t head = body->len;
    reply_text(body, hf_bytes(digits, sizeof digits));
    size_t from = body->len;
    size_t len = hf_print_u64(digits, list_names(e, c));
    size_t page = body->len - from;
    body->len = head;
    reply_text(body, hf_bytes(digits, len));
    memmove(body->data + body->len, body->data + from, page);
    body->len += page;
}
