/* hold_plain.c - tests of the bytes of a LOCK and an UNLOCK without options,
 * which are written and read in a way of their own, and of other records with
 * little in them. */
#include "base/little.h"
#include "hold/schema.h"
#include "support/test.h"

#define NOW_US 1700000000000000u

static char record[HOLD_RECORD_MAX];
static char other[HOLD_RECORD_MAX];
static struct hold_command command;
static struct hold_command decoded;

static size_t encode(enum hold_kind kind, struct hf_bytes name)
{
    hold_command_clear(&command);
    command.now_us = NOW_US;
    command.kind = kind;
    command.name = name;
    if (kind == HOLD_LOCK) {
        command.owner = hf_bytes_text("ann");
        command.ttl_ms = 30000;
    } else {
        command.token = 7;
    }
    return hold_encode(&command, record);
}

static enum hf_status decode(size_t len)
{
    return hold_decode(hf_bytes(record, len), &decoded);
}

static const enum hold_kind kinds[] = {HOLD_LOCK, HOLD_UNLOCK};

TEST(a_plain_record_comes_back_as_it_was)
{
    for (int i = 0; i < 2; i++) {
        size_t len = encode(kinds[i], hf_bytes_text("door"));
        memset(&decoded, 'x', sizeof decoded);
        CHECK_EQ(decode(len), HF_OK);
        CHECK_EQ(decoded.kind, kinds[i]);
        CHECK_EQ(decoded.now_us, NOW_US);
        CHECK(hf_bytes_equal(decoded.name, command.name));
        CHECK(hf_bytes_equal(decoded.owner, command.owner));
        CHECK_EQ(decoded.ttl_ms, command.ttl_ms);
        CHECK_EQ(decoded.token, command.token);
        CHECK_EQ(decoded.wait_ms + decoded.session + decoded.flags +
                     decoded.permits + decoded.item_count + decoded.told,
                 0);
        CHECK_EQ(hold_encode(&decoded, other), len);
        CHECK(memcmp(record, other, len) == 0);
    }
}

TEST(a_plain_record_that_is_cut_or_longer_is_refused)
{
    for (int i = 0; i < 2; i++) {
        size_t len = encode(kinds[i], hf_bytes_text("door"));
        for (size_t cut = 0; cut < len; cut++)
            CHECK_EQ(decode(cut), HF_CORRUPT);
        record[len] = 0;
        CHECK_EQ(decode(len + 1), HF_CORRUPT);
    }
}

TEST(a_plain_record_with_a_flipped_bit_is_refused_or_another_good_one)
{
    for (int i = 0; i < 2; i++) {
        size_t len = encode(kinds[i], hf_bytes_text("door"));
        for (size_t bit = 0; bit < len * 8; bit++) {
            record[bit / 8] = (char)(record[bit / 8] ^ 1 << bit % 8);
            if (decode(len) == HF_OK) {
                CHECK_EQ(hold_encode(&decoded, other), len);
                CHECK(memcmp(record, other, len) == 0);
            }
            record[bit / 8] = (char)(record[bit / 8] ^ 1 << bit % 8);
        }
    }
}

TEST(a_plain_record_is_within_its_bounds)
{
    static char text[HOLD_NAME_MAX + 1];
    memset(text, 'x', sizeof text);
    for (int i = 0; i < 2; i++) {
        size_t len = encode(kinds[i], hf_bytes(text, HOLD_NAME_MAX));
        CHECK_EQ(decode(len), HF_OK);
        hf_put_u64(record, UINT64_MAX / 4);
        CHECK_EQ(decode(len), HF_OK);
        hf_put_u64(record, UINT64_MAX / 4 + 1);
        CHECK_EQ(decode(len), HF_CORRUPT);
        hf_put_u64(record, NOW_US);
        hf_put_u64(record + len - 8, 0); /* TTL or token */
        CHECK_EQ(decode(len), HF_CORRUPT);
        hf_put_u64(record + len - 8, HOLD_TTL_MAX_MS + 1);
        CHECK_EQ(decode(len), i == 0 ? HF_CORRUPT : HF_OK);

        /* the name is one byte too long, or empty */
        len = encode(kinds[i], hf_bytes(text, HOLD_NAME_MAX));
        memmove(record + 15, record + 14, len - 14);
        hf_put_u16(record + 12, HOLD_NAME_MAX + 1);
        CHECK_EQ(decode(len + 1), HF_CORRUPT);
        len = encode(kinds[i], hf_bytes(text, 1));
        memmove(record + 14, record + 15, len - 15);
        hf_put_u16(record + 12, 0);
        CHECK_EQ(decode(len - 1), HF_CORRUPT);
    }
}

/* Writing passes by several at once that are seldom there. */
TEST(an_argument_that_is_there_alone_is_in_the_record)
{
    for (unsigned bit = 0; bit < HOLD_RECORD_ARGS; bit++) {
        const uint64_t one = 1;
        uint64_t mask = HOLD_BIT(bit);
        command = (struct hold_command){.kind = HOLD_TICK};
        char *place = (char *)&command + hold_args[bit].place;
        if (hold_args[bit].type == TYPE_TEXT) {
            *(struct hf_bytes *)place = hf_bytes_text("x");
        } else if (hold_args[bit].place ==
                   offsetof(struct hold_command, items)) {
            CHECK_EQ(hold_add_item(&command, hf_bytes_text("x"), 1), HF_OK);
            command.mins = bit == ARG_MINS;
            command.owners = bit == ARG_OWNERS;
            command.items[HOLD_SET_MAX].sku = hf_bytes_text("x");
            mask |= HOLD_BIT(ARG_ITEM);
        } else {
            memcpy(place, &one, sizeof one);
        }
        CHECK(hold_encode(&command, record) > 12);
        CHECK_EQ(hf_get_u32(record + 8) >> 8, mask);
    }
}
