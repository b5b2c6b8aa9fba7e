/* hold_key_record.c - tests of commands about keys as records. */
#include "base/little.h"
#include "hold/schema.h"
#include "support/test.h"

TEST_ONE_THREAD;

static enum hf_status round_trip(const struct hold_command *command)
{
    static struct hold_command decoded;
    static char record[HOLD_RECORD_MAX];

    return hold_decode(hf_bytes(record, hold_encode(command, record)),
                       &decoded);
}

TEST(keys_have_a_name_or_several_and_flags_of_their_own)
{
    static const enum hold_kind kinds[] = {HOLD_KEY_SET, HOLD_KEY_DEL,
                                           HOLD_KEY_EXPIRE};

    struct hold_command command;

    for (size_t i = 0; i < 3; i++) {
        command = (struct hold_command){
            .kind = kinds[i], .name = hf_bytes_text("door"), .flags = HOLD_NX};
        CHECK_EQ(round_trip(&command), HF_OK);
        CHECK_EQ(hold_add_name(&command, hf_bytes_text("b"), false), HF_OK);
        CHECK_EQ(round_trip(&command), HF_CORRUPT); /* one or several */
        command.name.len = 0;
        CHECK_EQ(round_trip(&command), HF_OK);
        command.permits = 1 | UINT64_C(1) << 32;
        CHECK_EQ(round_trip(&command), HF_CORRUPT);
        command.permits = 0;
        command.flags = HOLD_XX; /* several are set if all are free */
        CHECK_EQ(round_trip(&command), i == 0 ? HF_CORRUPT : HF_OK);
        command.flags = HOLD_NX | HOLD_SHARED;
        CHECK_EQ(round_trip(&command), HF_CORRUPT);
        command.flags = HOLD_NX | (uint64_t)SAY_ALL << HOLD_SAY_SHIFT;
        CHECK_EQ(round_trip(&command), HF_OK);
        command.flags = HOLD_NX | (uint64_t)SAYS << HOLD_SAY_SHIFT;
        CHECK_EQ(round_trip(&command), HF_CORRUPT);
        command.flags = HOLD_NX;
        command.items[0].quantity = HOLD_PART_SHARED + 1;
        CHECK_EQ(round_trip(&command), HF_CORRUPT);
        command.item_count = 0;
        CHECK_EQ(round_trip(&command), HF_CORRUPT); /* none */
    }
    command = (struct hold_command){.kind = HOLD_LOCK,
                                    .name = hf_bytes_text("door"),
                                    .owner = hf_bytes_text("ann"),
                                    .ttl_ms = 5,
                                    .flags = HOLD_NX};
    CHECK_EQ(round_trip(&command), HF_CORRUPT);
    command.flags = 0x10000; /* never one of a record */
    CHECK_EQ(round_trip(&command), HF_CORRUPT);
    command = (struct hold_command){.kind = HOLD_KEY_GET,
                                    .name = hf_bytes_text("door"),
                                    .flags = (uint64_t)SAYS << HOLD_SAY_SHIFT};
    CHECK_EQ(round_trip(&command), HF_CORRUPT);
}

/* Those that clients send most are read on a way of their own. */
TEST(a_usual_record_of_a_key_has_the_same_rules)
{
    static const uint64_t wrong[] = {
        HOLD_SHARED,
        HOLD_BEST,
        (uint64_t)SAYS << HOLD_SAY_SHIFT,
        (uint64_t)SAY_FIRST << HOLD_SAY_SHIFT, /* of several keys */
        0x10000,
    };
    struct hold_command usual[] = {
        {.kind = HOLD_KEY_SET,
         .name = hf_bytes_text("door"),
         .owner = hf_bytes_text("ann"),
         .ttl_ms = HOLD_TTL_MAX_MS,
         .flags = HOLD_NX},
        {.kind = HOLD_KEY_DEL,
         .name = hf_bytes_text("door"),
         .reason = hf_bytes_text("ann"),
         .flags = HOLD_EQUAL},
    };

    for (size_t i = 0; i < 2; i++) {
        struct hold_command *command = &usual[i];
        uint64_t flags = command->flags;
        CHECK_EQ(round_trip(command), HF_OK);
        for (size_t j = 0; j < sizeof wrong / sizeof wrong[0]; j++) {
            command->flags = HOLD_XX | wrong[j];
            CHECK_EQ(round_trip(command), HF_CORRUPT);
        }
        command->flags = flags;
        command->kind = i == 0 ? HOLD_KEY_DEL : HOLD_KEY_SET;
        CHECK_EQ(round_trip(command), HF_OK);
    }
    usual[0].kind = HOLD_KEY_SET;
    usual[0].ttl_ms++;
    CHECK_EQ(round_trip(&usual[0]), HF_CORRUPT);
}

/* Of a SET with NX alone: which of the client's keys was not free. Several have
 * a value each, which may be empty. */
TEST(keys_may_have_a_value_each)
{
    const uint64_t first = (uint64_t)SAY_FIRST << HOLD_SAY_SHIFT;
    struct hold_command command = {.kind = HOLD_KEY_SET,
                                   .name = hf_bytes_text("door"),
                                   .owner = hf_bytes_text("ann"),
                                   .flags = HOLD_NX | first,
                                   .ttl_ms = 5};

    CHECK_EQ(round_trip(&command), HF_OK);
    command.flags = HOLD_NX | HOLD_OWN | first;
    CHECK_EQ(round_trip(&command), HF_CORRUPT);
    command.flags = HOLD_NX | first;
    command.permits = 1 | UINT64_C(1) << 32;
    CHECK_EQ(round_trip(&command), HF_CORRUPT);
    command.permits = 0;
    command.kind = HOLD_KEY_DEL;
    CHECK_EQ(round_trip(&command), HF_CORRUPT);
    command.kind = HOLD_KEY_SET;
    command.name.len = command.owner.len = 0;
    CHECK_EQ(hold_add_name(&command, hf_bytes_text("b"), false), HF_OK);
    CHECK_EQ(hold_add_name(&command, hf_bytes_text("a"), false), HF_OK);
    CHECK_EQ(round_trip(&command), HF_CORRUPT); /* no values */
    command.owners = true;
    *hold_own_owner(&command, 0) = hf_bytes_text("");
    *hold_own_owner(&command, 1) = hf_bytes_text("ann");
    command.items[0].quantity = 2;
    CHECK_EQ(round_trip(&command), HF_OK);
    command.owner = hf_bytes_text("bob");
    CHECK_EQ(round_trip(&command), HF_CORRUPT);
    command.owner.len = 0;
    command.items[0].quantity = 0;
    CHECK_EQ(round_trip(&command), HF_CORRUPT);
    command.items[0].quantity = 3; /* of two keys */
    CHECK_EQ(round_trip(&command), HF_CORRUPT);
    command.count = 3;
    CHECK_EQ(round_trip(&command), HF_OK);
    command.flags = HOLD_NX;
    CHECK_EQ(round_trip(&command), HF_CORRUPT);
    command.flags = 0;
    command.kind = HOLD_LOCKSET;
    command.owner = hf_bytes_text("bob");
    command.count = 0;
    command.items[0].quantity = HOLD_PART_EXCLUSIVE;
    CHECK_EQ(round_trip(&command), HF_CORRUPT); /* no keys */
}

static bool same_keys(const struct hold_command *a,
                      const struct hold_command *b)
{
    bool same = a->owners == b->owners && a->item_count == b->item_count;

    for (uint32_t i = 0; same && i < a->item_count; i++)
        same = hf_bytes_equal(a->items[i].sku, b->items[i].sku) &&
               a->items[i].quantity == b->items[i].quantity &&
               hf_bytes_equal(hold_owner_at(a, i), hold_owner_at(b, i));
    return same;
}

/* The owners are bit 11, and come before the items. */
TEST(the_most_keys_with_a_value_each_come_back_as_they_were)
{
    static char names[HOLD_SET_MAX][HOLD_NAME_MAX];
    static char record[HOLD_RECORD_MAX];
    static struct hold_command command;
    static struct hold_command decoded;

    command = (struct hold_command){.kind = HOLD_KEY_SET,
                                    .flags = HOLD_NX | (uint64_t)SAY_FIRST
                                                           << HOLD_SAY_SHIFT,
                                    .ttl_ms = 5,
                                    .owners = true};
    memset(names, 'n', sizeof names);
    for (uint32_t i = 0; i < HOLD_SET_MAX; i++) {
        names[i][0] = (char)(1 + i);
        (void)hold_add_name(&command, hf_bytes(names[i], HOLD_NAME_MAX), false);
        command.items[i].quantity = HOLD_SET_MAX - i;
        *hold_own_owner(&command, i) =
            hf_bytes(names[i], i == 1 ? 0 : HOLD_OWNER_MAX);
    }
    size_t len = hold_encode(&command, record);
    CHECK(len <= hold_record_bound(&command) && len <= HOLD_RECORD_MAX);
    CHECK_EQ(hold_decode(hf_bytes(record, len), &decoded), HF_OK);
    CHECK(same_keys(&command, &decoded));
    CHECK(hf_get_u32(record + 8) >> (8 + ARG_OWNERS) & 1);
    CHECK_EQ(ARG_OWNERS, 11);
    char *owners = record + 12 + 8; /* behind the time */
    for (uint16_t count = HOLD_SET_MAX - 1; count <= HOLD_SET_MAX + 1;
         count++) {
        hf_put_u16(owners, count);
        CHECK_EQ(hold_decode(hf_bytes(record, len), &decoded),
                 count == HOLD_SET_MAX ? HF_OK : HF_CORRUPT);
    }
    hf_put_u16(owners, HOLD_SET_MAX);
    hf_put_u16(owners + 2, HOLD_OWNER_MAX + 1);
    CHECK_EQ(hold_decode(hf_bytes(record, len), &decoded), HF_CORRUPT);
    command.item_count = 2;
    command.count = HOLD_SET_MAX;
    len = hold_encode(&command, record);
    for (size_t end = 0; end < len; end++)
        CHECK_EQ(hold_decode(hf_bytes(record, end), &decoded), HF_CORRUPT);
    CHECK_EQ(hold_decode(hf_bytes(record, len), &decoded), HF_OK);
    CHECK(same_keys(&command, &decoded));
    /* a value less than there are keys: the second one, which is empty */
    size_t less = 12 + 8 + 2 + 2 + HOLD_OWNER_MAX;
    memmove(record + less, record + less + 2, len - less - 2);
    hf_put_u16(owners, 1);
    CHECK_EQ(hold_decode(hf_bytes(record, len - 2), &decoded), HF_CORRUPT);
    len = hold_encode(&command, record);
    /* without the items, which stand before the flags */
    size_t items = 2 + 2 * (2 + HOLD_NAME_MAX + 8);
    memmove(record + len - 8 - items, record + len - 8, 8);
    hf_put_u32(record + 8, hf_get_u32(record + 8) & ~(1u << 8 << ARG_ITEM));
    CHECK_EQ(hold_decode(hf_bytes(record, len - items), &decoded), HF_CORRUPT);
}

/* There is no room for them: nothing is written behind the command. */
TEST(more_values_than_keys_that_there_may_be_are_not_read)
{
    static struct {
        struct hold_command command;
        char behind[HOLD_ITEMS_MAX * sizeof(struct hold_item)];
    } decoded;
    static char record[12 + 2 + HOLD_ITEMS_MAX * 2];

    hf_put_u32(record + 8, HOLD_KEY_SET | 1u << 8 << ARG_OWNERS);
    hf_put_u16(record + 12, HOLD_ITEMS_MAX);
    CHECK_EQ(hold_decode(hf_bytes(record, sizeof record), &decoded.command),
             HF_CORRUPT);
    for (size_t i = 0; i < sizeof decoded.behind; i++)
        CHECK_EQ(decoded.behind[i], 0);
    CHECK_EQ(decoded.command.item_count, 0);
}
