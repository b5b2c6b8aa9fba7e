/* simulate_group.c - what is random about groups. */
#include "hold/group.h"
#include "sim/engine/simulate_parts.h"

/* One of a group: mostly a write that is likely to succeed, or a question. */
static void make_member(struct sim *sim, struct sim_command *out)
{
    static const enum hold_kind likely[] = {
        HOLD_LOCK,      HOLD_LOCK,    HOLD_STOCK_SET,  HOLD_STOCK_ADD,
        HOLD_STOCK_SET, HOLD_RESERVE, HOLD_UNLOCK,     HOLD_RENEW,
        HOLD_KEY_SET,   HOLD_KEY_DEL, HOLD_KEY_EXPIRE, HOLD_KEY_SET};
    struct hold_command *c = &out->command;
    char said[64];
    struct hf_buf answer = {said, 0, sizeof said};

    do {
        memset(c, 0, offsetof(struct hold_command, items));
        c->kind = sim_chance(sim, 3)    ? HOLD_SAID
                  : sim_chance(sim, 5)  ? sim_pick_ask(sim)
                  : sim_chance(sim, 40) ? sim_pick_kind(sim)
                                        : likely[sim_below(sim, 12)];
    } while (!hold_may_group(c->kind));
    if (c->kind == HOLD_SAID) {
        reply_map(&answer, 1);
        reply_field_number(&answer, FIELD_ALLOWED, (int64_t)sim->step);
        c->token = 1 + sim_below(sim, 3);
        memcpy(out->id, said, answer.len);
        c->note = hf_bytes(out->id, answer.len);
    } else {
        sim_fill(sim, out);
    }
    c->told = false;
    hold_group_plain(c);
}

void sim_make_group(struct sim *sim, struct sim_command *out)
{
    static struct sim_command member;
    uint64_t count = 1 + sim_below(sim, sim_chance(sim, 70) ? 4 : 14);
    size_t len = 0;

    for (uint64_t i = 0; i < count; i++) {
        make_member(sim, &member);
        if (len + HOLD_GROUP_HEAD + hold_record_bound(&member.command) >
            sizeof out->group)
            count = i;
        else {
            size_t bytes = hold_encode(&member.command,
                                       out->group + len + HOLD_GROUP_HEAD);
            hf_put_u32(out->group + len, (uint32_t)bytes);
            len += HOLD_GROUP_HEAD + bytes;
        }
    }
    out->command.count = count;
    out->command.group = hf_bytes(out->group, len);
}
