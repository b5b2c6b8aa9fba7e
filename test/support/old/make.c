/* make.c - makes records.h with an engine of an earlier build; see make.sh.
 *
 * Commands by chance: three owners wait for three locks, time passes in leaps,
 * and REQ ids come again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/old/seen.h"

enum { RECORDS = 260, IMAGE_AFTER = 130, TOKENS = 16, LINE = 36 };

static uint64_t chance = 88172645463325252u;
static uint64_t now_us = 1000000;
static struct hold_engine *engine;
static struct hold_command command;
static struct {
    uint64_t token;
    char name[8];
} tokens[TOKENS];
static uint64_t tickets[TOKENS];
static unsigned token_count;
static unsigned ticket_count;
static char name[8];
static char owner[8];
static char request[8];
static char items[3][8];

static uint64_t below(uint64_t n)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (chance >> 11) % n;
}

static struct hf_bytes text(char out[8], char first, uint64_t number)
{
    snprintf(out, 8, "%c%u", first, (unsigned)number);
    return hf_bytes(out, strlen(out));
}

static void put_hex(const void *data, size_t len)
{
    const unsigned char *bytes = data;

    for (size_t i = 0; i < len; i++)
        printf("%s%02x%s", i % LINE == 0 ? "    \"" : "", bytes[i],
               i == len - 1           ? "\";\n"
               : i % LINE == LINE - 1 ? "\"\n"
                                      : "");
}

static void pick_lock(struct hold_command *c)
{
    c->kind = HOLD_LOCK;
    c->name = text(name, 'l', below(2));
    c->owner = text(owner, 'o', below(3));
    c->ttl_ms = 1 + below(60);
    c->wait_ms = below(5) == 0 ? 0 : 1 + below(120);
    if (below(3) == 0)
        c->request = text(request, 'r', below(20));
    c->told = c->wait_ms > 0 && below(20) == 0;
}

static void pick_held(struct hold_command *c)
{
    static const enum hold_kind kinds[] = {HOLD_UNLOCK,  HOLD_UNLOCK,
                                           HOLD_UNLOCK,  HOLD_RENEW,
                                           HOLD_ABANDON, HOLD_TIMEOUT};
    unsigned i = (unsigned)below(TOKENS);

    c->kind = kinds[below(6)];
    c->name = hf_bytes(tokens[i].name, strlen(tokens[i].name));
    c->token = tokens[i].token;
    if (c->kind == HOLD_RENEW)
        c->ttl_ms = 1 + below(60);
    if (c->name.len == 0) {
        c->name = text(name, 'l', below(3));
        c->token = 1;
    }
    if ((c->kind == HOLD_ABANDON || c->kind == HOLD_TIMEOUT) && below(2)) {
        c->name = hf_bytes("", 0);
        c->token = tickets[below(TOKENS)] | 1;
    }
}

static void pick_stock(struct hold_command *c)
{
    static const enum hold_kind kinds[] = {HOLD_STOCK_SET, HOLD_FENCE,
                                           HOLD_RESERVE,   HOLD_RESERVE,
                                           HOLD_CONFIRM,   HOLD_CANCEL};

    c->kind = kinds[below(6)];
    c->name = text(name, 's', below(2));
    if (c->kind == HOLD_STOCK_SET)
        c->amount = (int64_t)(1 + below(50));
    if (c->kind == HOLD_FENCE)
        c->token = 1 + below(50);
    if (c->kind >= HOLD_RESERVE)
        c->name = text(name, 'i', below(8));
    if (c->kind == HOLD_RESERVE) {
        c->owner = text(owner, 'o', below(3));
        c->ttl_ms = 1 + below(100);
        for (unsigned i = 0; i < 2; i++)
            hold_add_item(c, text(items[i], 's', below(2)), 1 + below(3));
    }
    if (c->kind != HOLD_FENCE && below(3) == 0)
        c->request = text(request, 'r', below(20));
}

static void pick(struct hold_command *c, unsigned i)
{
    uint64_t kind = below(100);

    memset(c, 0, sizeof *c);
    now_us += below(8) == 0 ? below(100000) : below(2000);
    c->now_us = now_us;
    if (i == 0 || kind == 0)
        c->kind = HOLD_RESTART;
    else if (kind < 65)
        pick_lock(c);
    else if (kind < 85)
        pick_held(c);
    else if (kind < 97)
        pick_stock(c);
    else
        c->kind = HOLD_TICK;
}

static void note(uint64_t token, struct hf_bytes of)
{
    memset(tokens[token_count % TOKENS].name, 0, 8);
    memcpy(tokens[token_count % TOKENS].name, of.data, of.len);
    tokens[token_count++ % TOKENS].token = token;
}

static uint32_t apply(struct hf_bytes record)
{
    const struct hold_out *out;

    if (hold_prepare(engine, &command) != HF_OK)
        abort();
    do
        out = hold_apply(engine, record);
    while (out->code == HOLD_AGAIN);
    if (out->code == HOLD_WAITING)
        tickets[ticket_count++ % TOKENS] = out->ticket;
    for (size_t i = 0; i < out->event_count; i++) {
        if (out->events[i].kind == EVENT_LOCK_GRANTED)
            note(out->events[i].seq, out->events[i].name);
    }
    return seen_after(engine, out->code);
}

static enum hf_status print_image(void *context, const void *data, size_t len)
{
    (void)context;
    printf("\n/* An image of format 1, after so many of them. */\n"
           "#define OLD_IMAGE_AFTER %du\n"
           "static const char old_image[] =\n",
           IMAGE_AFTER);
    put_hex(data, len);
    return HF_OK;
}

int main(void)
{
    static char records[RECORDS * (2 + 400)];
    static char record[HOLD_RECORD_MAX];
    static uint32_t seen[RECORDS];
    size_t len = 0;

    engine = hold_new((struct hf_hash_seed){{1, 2}});
    printf("/* records.h - a journal of an earlier build; made by make.sh, not "
           "by hand.\n"
           " *\n * All of it in hexadecimal digits.\n */\n"
           "#ifndef TEST_SUPPORT_OLD_RECORDS_H\n"
           "#define TEST_SUPPORT_OLD_RECORDS_H\n");
    for (unsigned i = 0; i < RECORDS; i++) {
        if (i == IMAGE_AFTER && hold_save(engine, print_image, NULL) != HF_OK)
            abort();
        pick(&command, i);
        size_t bytes = hold_encode(&command, record);
        records[len++] = (char)(bytes & 0xff);
        records[len++] = (char)(bytes >> 8);
        memcpy(records + len, record, bytes);
        len += bytes;
        seen[i] = apply(hf_bytes(record, bytes));
    }
    printf("\n/* Records, the length of each before it: 2 bytes. */\n"
           "#define OLD_RECORDS %du\n"
           "static const char old_records[] =\n",
           RECORDS);
    put_hex(records, len);
    printf("\n/* What seen_after() gave for each: 4 bytes. */\n"
           "static const char old_seen[] =\n");
    put_hex(seen, sizeof seen);
    printf("\n#endif\n");
    hold_free(engine);
    return 0;
}
