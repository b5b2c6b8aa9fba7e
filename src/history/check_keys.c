/* check_keys.c - a key that NX took is not taken again before it ends.
 *
 *   SET k a NX PX 900   |.... OK|
 *   SET k b NX PX 900               |.... must be null|
 *   SETNX k b                       |.... must be 0|
 *
 * unless its time may be over, or a call in between may have ended it. Names
 * with a '/' are not judged: a TREE above may have a say.
 */
#include "history/check.h"

static bool is_reply(const struct call *call, const char *reply)
{
    return hf_bytes_equal(call->reply, hf_bytes_text(reply));
}

static bool is_setnx(const struct call *call)
{
    return call->word_count == 3 && hf_bytes_is(call->words[0], "SETNX");
}

/* Does it only take what nobody has? */
static bool is_nx(const struct call *call)
{
    return is_setnx(call) ||
           (call->word_count >= 4 && hf_bytes_is(call->words[0], "SET") &&
            hf_bytes_is(call->words[3], "NX"));
}

/* Did it surely take the name, until a time that is known? */
static bool takes(const struct call *call)
{
    const char *taken = is_setnx(call) ? ":1\r\n" : "+OK\r\n";

    return call->verb == VERB_KEY && is_nx(call) && call->sure &&
           call->group == NULL && is_reply(call, taken);
}

/* May it have ended a key? */
static bool ends(const struct call *call)
{
    return !is_nx(call) && call->outcome != OUTCOME_REFUSED &&
           !is_reply(call, ":0\r\n");
}

/* Up to which position it surely has the key, if nobody ends it. */
static uint32_t kept_until(const struct check *c, const struct call *call)
{
    uint64_t ms;

    if (call->word_count == (is_setnx(call) ? 3 : 4))
        return c->end;
    if (call->word_count != 6 || !hf_bytes_is(call->words[4], "PX") ||
        hf_parse_u64(call->words[5], &ms) != HF_OK ||
        ms * US_PER_MS <= CHECK_ROUNDED_US)
        return 0;
    return check_until(
        c, call->lo, check_us(c, call->lo) + ms * US_PER_MS - CHECK_ROUNDED_US);
}

static void judge_two(struct check *c, const struct call *had,
                      const struct call *got)
{
    if (had->hi < got->lo && got->hi < kept_until(c, had) &&
        !check_flushed(c, had->lo, got->hi))
        check_found(c, "key", got->id, had->id,
                    "key %.*s was taken, though another one has it",
                    SHOW(got->words[1]));
}

/* All calls with that word, by `lo`. */
static void judge(struct check *c, void *items, size_t count)
{
    const struct ref *refs = items;
    const struct call *had = NULL;
    uint32_t ended = 0; /* the last position where somebody may have */

    if (memchr(refs[0].key.name.data, '/', refs[0].key.name.len) != NULL)
        return;
    for (size_t i = 0; i < count; i++) {
        const struct call *call = refs[i].thing;
        if (!takes(call)) {
            ended = ends(call) && call->hi > ended ? call->hi : ended;
            continue;
        }
        uint32_t until = ended;
        for (size_t j = i + 1; j < count && until == ended; j++) {
            const struct call *next = refs[j].thing;
            if (next->lo > call->hi)
                break;
            if (ends(next))
                until = call->hi; /* it may come first */
        }
        if (had != NULL && until < had->lo)
            judge_two(c, had, call);
        had = call;
    }
}

void check_keys(struct check *c)
{
    struct list refs = {0};

    for (size_t i = 0; i < c->count && c->keys; i++) {
        const struct call *call = &c->calls[i];
        uint32_t names = takes(call) ? 2 : call->word_count;
        if (call->verb != VERB_KEY && call->verb != VERB_LOCK &&
            call->verb != VERB_LOCKSET && call->verb != VERB_UNLOCK &&
            call->verb != VERB_RENEW && call->verb != VERB_REVOKE)
            continue;
        for (uint32_t n = 1; n < names; n++)
            check_refer(c, &refs, call->words[n], call->lo, call);
    }
    check_groups(c, &refs, sizeof(struct ref), judge);
}
