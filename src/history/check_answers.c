/* check_answers.c - nobody waits for ever, nor too short.
 *
 * A call on a connection that stays open is answered, and one that waits for a
 * lock or for stock is told so or otherwise when its time is over. It may be
 * behind others on its connection, so its time starts when they have been
 * answered.
 */
#include "history/check.h"

/* Two clocks may run apart by one in so many. */
#define APART 1000u

/* TIMEOUT is told when the time is over, or when the server stops, which it
 * says. What a REQ is told may be of another wait, which began with the first
 * call at the earliest. */
static void judge_early(struct check *c, const struct call *call)
{
    static const char stops[] = "the server stops";
    uint32_t told = check_told(call);
    uint64_t slack_us = CHECK_ROUNDED_US + call->wait_ms * US_PER_MS / APART;

    if ((call->verb != VERB_LOCK && call->verb != VERB_LOCKSET &&
         call->verb != VERB_RESERVE) ||
        !check_code(call, "TIMEOUT") || call->clashes ||
        check_next_start(c, call->first) != check_next_start(c, told) ||
        memmem(call->reply.data, call->reply.len, stops, sizeof stops - 1) !=
            NULL)
        return;
    uint64_t waited_us = check_us(c, told) - check_us(c, call->first);
    if (call->terms.forever)
        check_found(c, "early", call->id, 0,
                    "a wait without an end was ended after %llu ms",
                    (unsigned long long)(waited_us / US_PER_MS));
    else if (waited_us + slack_us < call->wait_ms * US_PER_MS)
        check_found(c, "early", call->id, 0,
                    "the wait of %llu ms was ended after %llu ms",
                    (unsigned long long)call->wait_ms,
                    (unsigned long long)(waited_us / US_PER_MS));
}

/* A wait ends in time, for a lock or for permits, also while the disk hangs. */
static void judge_wait(struct check *c, const struct call *call,
                       uint32_t closed)
{
    uint64_t within_us = c->opts.wait_within_us;
    uint32_t told = call->sent_at;

    if (within_us == 0 || call->wait_ms == 0 || !call->alone ||
        call->arrived_at == CHECK_NEVER)
        return;
    if (told == CHECK_NEVER)
        told = closed < call->run_end ? closed : call->run_end;
    within_us += call->wait_ms * US_PER_MS;
    uint64_t since_us = check_us(c, call->arrived_at);
    if (told < c->end && check_us(c, told) > since_us + within_us)
        check_found(
            c, "late", call->id, 0, "the wait was not ended after %llu ms",
            (unsigned long long)((check_us(c, told) - since_us) / US_PER_MS));
}

static void judge(struct check *c, const struct call *call, uint64_t since_us,
                  uint32_t closed)
{
    uint32_t told = check_told(call);
    uint64_t within_us = c->opts.answer_within_us + call->wait_ms * US_PER_MS;
    uint64_t until_us = check_us(c, c->end - 1);

    if (call->terms.forever)
        return;
    if (closed != CHECK_NEVER && closed < told)
        until_us = check_us(c, closed);
    if (call->run_end < told && check_us(c, call->run_end) < until_us)
        until_us = check_us(c, call->run_end);
    if (told != CHECK_NEVER) {
        if (call->wait_ms == 0)
            return;
        until_us = check_us(c, told);
    }
    if (until_us > since_us + within_us)
        check_found(c, told == CHECK_NEVER ? "unanswered" : "late", call->id, 0,
                    told == CHECK_NEVER ? "no answer came for %llu ms"
                                        : "the answer came after %llu ms only",
                    (unsigned long long)((until_us - since_us) / US_PER_MS));
}

/* All calls of one client, in the order of calling. */
static void judge_client(struct check *c, void *items, size_t count)
{
    const struct ref *refs = items;
    uint32_t closed =
        check_gone(c, ((const struct call *)refs[0].thing)->client, true);

    for (size_t i = 0; i < count; i++) {
        const struct call *call = refs[i].thing;
        const struct call *before = i > 0 ? refs[i - 1].thing : NULL;
        uint64_t since_us = call->call_us;
        if (call->arrived_at != CHECK_NEVER)
            since_us = check_us(c, call->arrived_at);
        if (before != NULL && before->answer_at == CHECK_NEVER)
            continue; /* it is behind one that was told of already */
        if (before != NULL && check_us(c, before->answer_at) > since_us)
            since_us = check_us(c, before->answer_at);
        judge(c, call, since_us, closed);
        judge_wait(c, call, closed);
    }
}

void check_answers(struct check *c)
{
    struct list refs = {0};

    for (size_t i = 0; i < c->count; i++) {
        const struct call *call = &c->calls[i];
        judge_early(c, call);
        if (c->opts.answer_within_us > 0)
            check_refer(
                c, &refs,
                hf_bytes((const char *)&call->client, sizeof call->client),
                call->call_at, call);
    }
    check_groups(c, &refs, sizeof(struct ref), judge_client);
}
