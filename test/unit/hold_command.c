/* hold_command.c - tests of a command's form as bytes. */
#include "hold/command.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/little.h"
#include "base/random.h"
#include "hold/schema.h"
#include "support/test.h"

static char long_text[HOLD_NAME_MAX + 1];
static char record[HOLD_RECORD_MAX];
static struct hold_command command;
static struct hold_command decoded;

static struct hf_bytes text_of(size_t len)
{
    memset(long_text, 'x', sizeof long_text);
    return hf_bytes(long_text, len);
}

/* Everything that can be set, as large as it may be. */
static void fill(void)
{
    static char skus[HOLD_ITEMS_MAX][HOLD_SKU_MAX];

    command = (struct hold_command){
        .now_us = UINT64_MAX / 4,
        .kind = HOLD_CONFIRM,
        .name = text_of(HOLD_ID_MAX),
        .owner = text_of(HOLD_OWNER_MAX),
        .reason = text_of(HOLD_REASON_MAX),
        .request = text_of(HOLD_ID_MAX),
        .token = UINT64_MAX,
        .ttl_ms = HOLD_TTL_MAX_MS,
        .wait_ms = HOLD_TTL_MAX_MS,
        .amount = INT64_MIN,
        .cursor = UINT64_MAX,
        .count = UINT64_MAX,
        .flags = HOLD_LOCK_FLAGS & ~(HOLD_FOREVER | HOLD_SHARED | HOLD_TREE),
        .session = UINT64_MAX,
        .permits = HOLD_PERMITS_MAX | (uint64_t)HOLD_PERMITS_MAX << 32,
        .maxhold_ms = HOLD_TTL_MAX_MS,
        .delay_ms = HOLD_TTL_MAX_MS,
        .done_ms = HOLD_TTL_MAX_MS,
        .grace_ms = HOLD_TTL_MAX_MS,
        .note = text_of(HOLD_NOTE_MAX),
    };
    for (unsigned i = 0; i < HOLD_ITEMS_MAX; i++) {
        memset(skus[i], 'y', HOLD_SKU_MAX);
        skus[i][0] = (char)(255 - i); /* added from the last to the first */
        CHECK_EQ(hold_add_item(&command, hf_bytes(skus[i], HOLD_SKU_MAX),
                               (uint64_t)INT64_MAX),
                 HF_OK);
    }
}

static bool same_command(void)
{
    bool same =
        command.now_us == decoded.now_us && command.kind == decoded.kind &&
        hf_bytes_equal(command.name, decoded.name) &&
        hf_bytes_equal(command.owner, decoded.owner) &&
        hf_bytes_equal(command.reason, decoded.reason) &&
        hf_bytes_equal(command.request, decoded.request) &&
        command.token == decoded.token && command.ttl_ms == decoded.ttl_ms &&
        command.wait_ms == decoded.wait_ms &&
        command.amount == decoded.amount && command.cursor == decoded.cursor &&
        command.count == decoded.count && command.flags == decoded.flags &&
        command.session == decoded.session &&
        command.permits == decoded.permits &&
        command.maxhold_ms == decoded.maxhold_ms &&
        command.delay_ms == decoded.delay_ms &&
        command.done_ms == decoded.done_ms &&
        command.grace_ms == decoded.grace_ms &&
        hf_bytes_equal(command.note, decoded.note) &&
        command.item_count == decoded.item_count;

    for (uint32_t i = 0; same && i < command.item_count; i++)
        same = hf_bytes_equal(command.items[i].sku, decoded.items[i].sku) &&
               command.items[i].quantity == decoded.items[i].quantity;
    return same;
}

TEST(the_largest_command_comes_back_as_it_was)
{
    fill();
    size_t len = hold_encode(&command, record);
    CHECK(len <= hold_record_bound(&command));
    CHECK(len <= HOLD_RECORD_MAX);
    CHECK_EQ(hold_decode(hf_bytes(record, len), &decoded), HF_OK);
    CHECK(same_command());
}

TEST(a_record_has_the_documented_bytes)
{
    command = (struct hold_command){.now_us = 0x0102030405060708,
                                    .kind = HOLD_UNLOCK,
                                    .name = hf_bytes_text("door"),
                                    .token = 9};
    static const char expected[] = "\x08\x07\x06\x05\x04\x03\x02\x01"
                                   "\x0b\x11\x00\x00"
                                   "\x04\x00"
                                   "door"
                                   "\x09\x00\x00\x00\x00\x00\x00";
    CHECK_EQ(hold_encode(&command, record), sizeof expected);
    CHECK(memcmp(record, expected, sizeof expected) == 0);
    command = (struct hold_command){.kind = HOLD_TICK};
    CHECK_EQ(hold_encode(&command, record), 12);
}

static enum hf_status round_trip(void)
{
    size_t len = hold_encode(&command, record);
    return hold_decode(hf_bytes(record, len), &decoded);
}

TEST(fields_outside_their_bounds_are_no_record)
{
    uint64_t *const strict[] = {&command.now_us,   &command.ttl_ms,
                                &command.wait_ms,  &command.maxhold_ms,
                                &command.delay_ms, &command.done_ms,
                                &command.grace_ms};

    for (size_t i = 0; i < sizeof strict / sizeof strict[0]; i++) {
        fill();
        CHECK_EQ(round_trip(), HF_OK);
        ++*strict[i];
        CHECK_EQ(round_trip(), HF_CORRUPT);
    }
    fill();
    command.flags = HOLD_FLAGS_ALL + 1;
    CHECK_EQ(round_trip(), HF_CORRUPT);
    fill();
    command.name = text_of(HOLD_ID_MAX + 1); /* of a reservation */
    CHECK_EQ(round_trip(), HF_CORRUPT);
    fill();
    command.items[3].quantity = 0;
    CHECK_EQ(round_trip(), HF_CORRUPT);
    fill();
    command.items[3].quantity = (uint64_t)INT64_MAX + 1;
    CHECK_EQ(round_trip(), HF_CORRUPT);
    fill();
    command.items[3] = command.items[4]; /* twice */
    CHECK_EQ(round_trip(), HF_CORRUPT);
    fill();
    struct hold_item swap = command.items[3];
    command.items[3] = command.items[4]; /* not in order */
    command.items[4] = swap;
    CHECK_EQ(round_trip(), HF_CORRUPT);
}

TEST(every_operation_has_what_its_class_calls_for)
{
    for (unsigned kind = 0; kind < HOLD_KINDS; kind++) {
        const struct hold_operation *operation = &hold_operations[kind];
        bool write = operation->class == CLASS_WRITE;
        if (operation->class == CLASS_NONE) {
            command = (struct hold_command){.kind = (enum hold_kind)kind};
            CHECK_EQ(round_trip(), HF_CORRUPT);
            continue;
        }
        CHECK(operation->name != NULL);
        CHECK((operation->summary != NULL) == (operation->reply != NULL));
        CHECK(operation->summary == NULL || operation->group != NULL);
        CHECK((operation->check != NULL) == write);
        CHECK((operation->change != NULL) == write);
        CHECK((operation->run == NULL) == write);
        CHECK((operation->required & ~operation->options) == 0);
        for (unsigned bit = 0; bit < HOLD_ARGS; bit++)
            CHECK((operation->options & HOLD_BIT(bit)) == 0 ||
                  hold_args[bit].value != NULL);
    }
}

TEST(what_a_kind_needs_must_be_there)
{
    static const enum hold_kind named[] = {
        HOLD_LOCK,      HOLD_UNLOCK,    HOLD_RENEW,     HOLD_FENCE,
        HOLD_STOCK_SET, HOLD_STOCK_ADD, HOLD_STOCK_DEL, HOLD_CONFIRM,
        HOLD_CANCEL,    HOLD_EXTEND,    HOLD_LOCK_INFO, HOLD_RESERVATION,
        HOLD_FENCE_DEL, HOLD_DOWNGRADE, HOLD_REVOKE,    HOLD_HELD};

    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        fill();
        command.kind = named[i];
        command.amount = 1;
        CHECK_EQ(round_trip(), HF_OK);
        command.name.len = 0;
        CHECK_EQ(round_trip(), HF_CORRUPT);
    }
    fill();
    command.kind = HOLD_RESERVE;
    command.note.len = 0; /* it comes from no places */
    command.ttl_ms = 0;   /* of its class, or as the setting says */
    CHECK_EQ(round_trip(), HF_OK);
    command.kind = HOLD_EXTEND;
    CHECK_EQ(round_trip(), HF_CORRUPT);
    command.kind = HOLD_RENEW;
    CHECK_EQ(round_trip(), HF_CORRUPT);
    command.kind = HOLD_SESSION_OPEN;
    CHECK_EQ(round_trip(), HF_CORRUPT);
    command.kind = HOLD_RENEWSET;
    CHECK_EQ(round_trip(), HF_CORRUPT);
    command.kind = HOLD_LOCK; /* it ends with its session */
    CHECK_EQ(round_trip(), HF_OK);
    command.session = 0;
    command.flags = 0;
    CHECK_EQ(round_trip(), HF_CORRUPT);
    fill();
    command.kind = HOLD_LOCK;
    command.owner.len = 0;
    CHECK_EQ(round_trip(), HF_CORRUPT);
    fill();
    command.kind = HOLD_RESERVE;
    command.note.len = 0;
    CHECK_EQ(round_trip(), HF_OK);
    command.item_count = 0;
    CHECK_EQ(round_trip(), HF_CORRUPT);
    fill();
    command.kind = HOLD_STOCK_SET; /* amount is negative */
    CHECK_EQ(round_trip(), HF_CORRUPT);
    command.kind = HOLD_RESTART;
    CHECK_EQ(round_trip(), HF_CORRUPT);
}

TEST(only_a_lock_is_told_and_its_record_differs_in_one_bit)
{
    static char plain[HOLD_RECORD_MAX];

    command = (struct hold_command){.kind = HOLD_LOCK,
                                    .name = hf_bytes_text("door"),
                                    .owner = hf_bytes_text("ann"),
                                    .ttl_ms = 5};
    size_t len = hold_encode(&command, plain);
    command.told = true;
    CHECK_EQ(hold_encode(&command, record), len);
    CHECK_EQ(round_trip(), HF_OK);
    CHECK(decoded.told && same_command());
    CHECK_EQ((unsigned char)record[11], 0x80);
    hold_record_tell(plain);
    CHECK(memcmp(record, plain, len) == 0);
    hold_record_untell(record);
    hold_record_untell(plain);
    CHECK(memcmp(record, plain, len) == 0);
    CHECK_EQ(hold_decode(hf_bytes(record, len), &decoded), HF_OK);
    CHECK(!decoded.told);
    command.kind = HOLD_UNLOCK;
    CHECK_EQ(round_trip(), HF_CORRUPT);
}

/* Decodes the first `len` bytes of the record where nothing behind them may be
 * read. */
static enum hf_status decode_guarded(size_t len)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *space = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(space != MAP_FAILED && len <= page);
    CHECK_EQ(mprotect(space + page, page, PROT_NONE), 0);
    memcpy(space + page - len, record, len);
    enum hf_status status =
        hold_decode(hf_bytes(space + page - len, len), &decoded);
    munmap(space, 2 * page);
    return status;
}

TEST(every_truncation_is_refused)
{
    fill();
    command.item_count = 3;
    size_t len = hold_encode(&command, record);
    for (size_t cut = 0; cut < len; cut++)
        CHECK_EQ(decode_guarded(cut), HF_CORRUPT);
    CHECK_EQ(decode_guarded(len), HF_OK);
    record[len] = 0; /* one byte too many */
    CHECK_EQ(hold_decode(hf_bytes(record, len + 1), &decoded), HF_CORRUPT);
}

/* Text arguments of a command, each of one byte, but for that of the argument
 * `odd`; with ARG_ITEM that is the name of an item. Returns the record's
 * length.
 */
static size_t put_record(enum hold_kind kind, unsigned odd, size_t odd_len)
{
    static const unsigned order[] = {ARG_NAME, ARG_OWNER, ARG_REASON, ARG_REQ,
                                     ARG_TTL,  ARG_ITEM,  ARG_NOTE};
    uint32_t mask = 0;
    char *at = record + 12;

    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        size_t len = order[i] == odd ? odd_len : 1;
        mask |= (uint32_t)HOLD_BIT(order[i]);
        if (order[i] == ARG_ITEM) {
            hf_put_u16(at, 1);
            at += 2;
        }
        if (order[i] != ARG_TTL) {
            hf_put_u16(at, (uint16_t)len);
            memset(at + 2, 'x', len);
            at += 2 + len;
        }
        if (order[i] == ARG_TTL || order[i] == ARG_ITEM) {
            hf_put_u64(at, 1);
            at += 8;
        }
    }
    hf_put_u64(record, 5);
    hf_put_u32(record + 8, (uint32_t)kind | mask << 8);
    return (size_t)(at - record);
}

/* A text that is not there is left out: one form only. */
TEST(a_text_that_is_empty_or_too_long_is_refused)
{
    static const struct {
        enum hold_kind kind;
        unsigned arg;
        size_t max;
    } texts[] = {{HOLD_LOCK, ARG_NAME, HOLD_NAME_MAX},
                 {HOLD_LOCK, ARG_OWNER, HOLD_OWNER_MAX},
                 {HOLD_LOCK, ARG_REASON, HOLD_REASON_MAX},
                 {HOLD_LOCK, ARG_REQ, HOLD_ID_MAX},
                 {HOLD_LOCK, ARG_NOTE, HOLD_NOTE_MAX},
                 {HOLD_LOCKSET, ARG_ITEM, HOLD_NAME_MAX},
                 {HOLD_CONFIRM, ARG_ITEM, HOLD_SKU_MAX}};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const size_t lengths[] = {0, 1, 2, texts[i].max, texts[i].max + 1};
        for (size_t k = 0; k < 5; k++) {
            size_t len = put_record(texts[i].kind, texts[i].arg, lengths[k]);
            CHECK_EQ(hold_decode(hf_bytes(record, len), &decoded),
                     k == 0 || k == 4 ? HF_CORRUPT : HF_OK);
        }
    }
}

/* A flipped bit gives no record, or another one that has just one form. */
TEST(every_flipped_bit_is_refused_or_another_good_record)
{
    static char again[HOLD_RECORD_MAX];

    fill();
    command.item_count = 3;
    size_t len = hold_encode(&command, record);
    for (size_t bit = 0; bit < len * 8; bit++) {
        record[bit / 8] = (char)(record[bit / 8] ^ 1 << bit % 8);
        if (hold_decode(hf_bytes(record, len), &decoded) == HF_OK) {
            CHECK_EQ(hold_encode(&decoded, again), len);
            CHECK(memcmp(again, record, len) == 0);
        }
        record[bit / 8] = (char)(record[bit / 8] ^ 1 << bit % 8);
    }
}

TEST(random_bytes_are_refused_or_have_one_form)
{
    static char again[HOLD_RECORD_MAX];
    struct hf_random random;
    char bytes[80];

    hf_random_init(&random, test_seed());
    for (int round = 0; round < 300000; round++) {
        size_t len = hf_random_below(&random, sizeof bytes + 1);
        for (size_t i = 0; i < len; i++)
            bytes[i] = (char)hf_random_below(&random, i < 14 ? 40 : 256);
        if (len > 12) { /* a likely head */
            bytes[7] = 0;
            bytes[8] = (char)(1 + hf_random_below(&random, HOLD_KINDS));
            bytes[11] = (char)hf_random_below(&random, 2);
        }
        if (hold_decode(hf_bytes(bytes, len), &decoded) != HF_OK)
            continue;
        CHECK_EQ(hold_encode(&decoded, again), len);
        CHECK(memcmp(again, bytes, len) == 0);
    }
}

TEST(items_are_sorted_merged_and_bounded)
{
    static char skus[HOLD_ITEMS_MAX + 1][4];

    command = (struct hold_command){.kind = HOLD_RESERVE};
    CHECK_EQ(hold_add_item(&command, hf_bytes_text("pear"), 1), HF_OK);
    CHECK_EQ(hold_add_item(&command, hf_bytes_text("apple"), 2), HF_OK);
    CHECK_EQ(hold_add_item(&command, hf_bytes_text("app"), 3), HF_OK);
    CHECK_EQ(hold_add_item(&command, hf_bytes_text("pear"), 4), HF_OK);
    CHECK_EQ(command.item_count, 3);
    CHECK_TEXT(command.items[0].sku.data, command.items[0].sku.len, "app");
    CHECK_TEXT(command.items[1].sku.data, command.items[1].sku.len, "apple");
    CHECK_EQ(command.items[2].quantity, 5);
    CHECK_EQ(
        hold_add_item(&command, hf_bytes_text("pear"), (uint64_t)INT64_MAX),
        HF_INVALID);
    CHECK_EQ(hold_add_item(&command, hf_bytes_text("plum"), UINT64_MAX),
             HF_INVALID);
    CHECK_EQ(command.items[2].quantity, 5);
    command.item_count = 0;
    for (unsigned i = 0; i <= HOLD_ITEMS_MAX; i++) {
        snprintf(skus[i], sizeof skus[i], "%03x", i & 0xfff);
        CHECK_EQ(hold_add_item(&command, hf_bytes(skus[i], 3), 1),
                 i < HOLD_ITEMS_MAX ? HF_OK : HF_FULL);
    }
    CHECK_EQ(hold_add_item(&command, hf_bytes(skus[7], 3), 1), HF_OK);
}

/* One item, or several of the same product that add up to it. */
TEST(the_most_units_of_a_product_may_be_asked_for_and_not_one_more)
{
    const uint64_t most = (uint64_t)HOLD_STOCK_MAX;
    struct hf_bytes sku = hf_bytes_text("pear");

    command = (struct hold_command){.kind = HOLD_RESERVE, .ttl_ms = 1};
    CHECK_EQ(hold_add_item(&command, sku, most + 1), HF_INVALID);
    CHECK_EQ(hold_add_item(&command, sku, most - 1), HF_OK);
    CHECK_EQ(hold_add_item(&command, sku, 2), HF_INVALID);
    CHECK_EQ(hold_add_item(&command, sku, UINT64_MAX), HF_INVALID);
    CHECK_EQ(hold_add_item(&command, sku, 1), HF_OK);
    CHECK_EQ(command.item_count, 1);
    CHECK(command.items[0].quantity == most);
    CHECK_EQ(round_trip(), HF_OK);
    CHECK(same_command());
    command.item_count = 0;
    CHECK_EQ(hold_add_item(&command, sku, most), HF_OK);
    CHECK_EQ(round_trip(), HF_OK);
    command.items[0].quantity++;
    CHECK_EQ(round_trip(), HF_CORRUPT);
}

/* Whoever wrote the record: there is no room for one item more. */
TEST(a_record_with_more_items_than_there_may_be_is_refused)
{
    static char longer[HOLD_RECORD_MAX + 64];
    static char skus[HOLD_ITEMS_MAX][3];

    command = (struct hold_command){.kind = HOLD_RESERVE, .ttl_ms = 1};
    for (unsigned i = 0; i < HOLD_ITEMS_MAX; i++) {
        memcpy(skus[i], (char[]){'a', (char)(1 + i / 100), (char)(1 + i % 100)},
               3);
        CHECK_EQ(hold_add_item(&command, hf_bytes(skus[i], 3), 1), HF_OK);
    }
    size_t len = hold_encode(&command, longer);
    CHECK_EQ(hold_decode(hf_bytes(longer, len), &decoded), HF_OK);
    /* per item 2 + 3 + 8 bytes at the end, their number before them */
    char *number = longer + len - (size_t)HOLD_ITEMS_MAX * 13 - 2;
    CHECK_EQ(hf_get_u16(number), HOLD_ITEMS_MAX);
    memcpy(longer + len, longer + len - 13, 13);
    longer[len + 2] = 'b'; /* the last in order */
    hf_put_u16(number, HOLD_ITEMS_MAX + 1);
    CHECK_EQ(hold_decode(hf_bytes(longer, len + 13), &decoded), HF_CORRUPT);
    CHECK_EQ(decoded.item_count, 0);
}

static struct hold_command a_set(unsigned names)
{
    static char text[HOLD_SET_MAX + 1][HOLD_NAME_MAX];
    struct hold_command c = {
        .kind = HOLD_LOCKSET, .owner = hf_bytes_text("ann"), .ttl_ms = 5};

    for (unsigned i = names; i-- > 0;) { /* added from the last to the first */
        memset(text[i], 'n', HOLD_NAME_MAX);
        text[i][0] = (char)(1 + i);
        CHECK_EQ(
            hold_add_name(&c, hf_bytes(text[i], HOLD_NAME_MAX), i % 2 != 0),
            i == 0 && names > HOLD_SET_MAX ? HF_FULL : HF_OK);
    }
    return c;
}

TEST(the_largest_set_comes_back_as_it_was)
{
    command = a_set(HOLD_SET_MAX);
    size_t len = hold_encode(&command, record);
    CHECK(len <= hold_record_bound(&command));
    CHECK_EQ(hold_decode(hf_bytes(record, len), &decoded), HF_OK);
    CHECK(same_command());
    CHECK_EQ(decoded.items[0].quantity, HOLD_PART_EXCLUSIVE);
    CHECK_EQ(decoded.items[1].quantity, HOLD_PART_SHARED);
    command = a_set(HOLD_SET_MAX + 1);
    CHECK_EQ(command.item_count, HOLD_SET_MAX);
}

TEST(the_names_of_a_set_are_sorted_and_come_once)
{
    command = (struct hold_command){.kind = HOLD_LOCKSET};
    CHECK_EQ(hold_add_name(&command, hf_bytes_text("b"), false), HF_OK);
    CHECK_EQ(hold_add_name(&command, hf_bytes_text("a"), true), HF_OK);
    CHECK_EQ(hold_add_name(&command, hf_bytes_text("c"), false), HF_OK);
    CHECK_EQ(hold_add_name(&command, hf_bytes_text("a"), false), HF_INVALID);
    CHECK_EQ(command.item_count, 3);
    CHECK_TEXT(command.items[0].sku.data, 1, "a");
    CHECK_EQ(command.items[0].quantity, HOLD_PART_SHARED);
    CHECK_TEXT(command.items[2].sku.data, 1, "c");
}

TEST(a_record_of_a_set_that_could_not_be_made_is_refused)
{
    command = a_set(3);
    CHECK_EQ(round_trip(), HF_OK);
    struct hold_item swap = command.items[0];
    command.items[0] = command.items[1]; /* twice */
    CHECK_EQ(round_trip(), HF_CORRUPT);
    command.items[1] = swap; /* not in order */
    CHECK_EQ(round_trip(), HF_CORRUPT);
    for (uint64_t mode = 0; mode < 5; mode++) {
        command = a_set(3);
        command.items[1].quantity = mode;
        CHECK_EQ(round_trip(),
                 mode == HOLD_PART_EXCLUSIVE || mode == HOLD_PART_SHARED
                     ? HF_OK
                     : HF_CORRUPT);
    }
    command = a_set(0);
    CHECK_EQ(round_trip(), HF_CORRUPT);
    command = a_set(HOLD_SET_MAX);
    command.items[HOLD_SET_MAX] = (struct hold_item){
        .sku = hf_bytes_text("z"), .quantity = HOLD_PART_SHARED};
    command.item_count++;
    CHECK_EQ(round_trip(), HF_CORRUPT);
    command = a_set(3);
    command.ttl_ms = 0;
    CHECK_EQ(round_trip(), HF_CORRUPT);
    command.session = 1;
    CHECK_EQ(round_trip(), HF_OK);
    command.owner.len = 0;
    CHECK_EQ(round_trip(), HF_CORRUPT);
}

static uint64_t of(uint64_t permits, uint64_t max)
{
    return permits | max << 32;
}

TEST(what_does_not_go_together_is_told_and_is_no_record)
{
    static const struct hold_command good = {.kind = HOLD_LOCK,
                                             .name = {"door", 4},
                                             .owner = {"ann", 3},
                                             .ttl_ms = 5};
    const uint64_t most = HOLD_PERMITS_MAX;
    const struct {
        enum hold_wrong wrong;
        uint64_t wait_ms, flags, session, permits;
    } rows[] = {
        {HOLD_RIGHT, 5, 0, 0, 0},
        {HOLD_RIGHT, 0, HOLD_FOREVER | HOLD_SHARED | HOLD_BARGE, 0, 0},
        {WRONG_TWO_WAITS, 5, HOLD_FOREVER, 0, 0},
        {HOLD_RIGHT, 0, 0, 0, of(1, 1)},
        {WRONG_TWO_MODES, 0, HOLD_SHARED, 0, of(1, 1)},
        {HOLD_RIGHT, 0, HOLD_TREE | HOLD_SHARED, 0, 0},
        {WRONG_TREE, 0, HOLD_TREE, 0, of(1, 1)},
        {HOLD_RIGHT, 0, 0, 0, of(most, most)},
        {WRONG_PERMITS_OF, 0, 0, 0, of(2, 1)},
        {WRONG_PERMITS_OF, 0, 0, 0, of(0, 1)},
        {WRONG_PERMITS_OF, 0, 0, 0, of(1, 0)},
        {WRONG_PERMITS_OF, 0, 0, 0, of(1, most + 1)},
        {HOLD_RIGHT, 0, POLICY_NONE << HOLD_POLICY_SHIFT, 0, 0},
        {WRONG_NO_SESSION, 5, POLICY_WAITDIE << HOLD_POLICY_SHIFT, 0, 0},
        {WRONG_NO_SESSION, 5, POLICY_WOUNDWAIT << HOLD_POLICY_SHIFT, 0, 0},
        {HOLD_RIGHT, 5, POLICY_WAITDIE << HOLD_POLICY_SHIFT, 1, 0},
        {HOLD_RIGHT, 5, POLICY_WOUNDWAIT << HOLD_POLICY_SHIFT, 1, 0},
        {HOLD_RIGHT, 5, (uint64_t)HOLD_PRIORITY_MAX << HOLD_PRIORITY_SHIFT, 0,
         0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        command = good;
        command.wait_ms = rows[i].wait_ms;
        command.flags = rows[i].flags;
        command.session = rows[i].session;
        command.permits = rows[i].permits;
        CHECK_EQ(hold_find_wrong(&command), rows[i].wrong);
        CHECK_EQ(round_trip(),
                 rows[i].wrong == HOLD_RIGHT ? HF_OK : HF_CORRUPT);
        CHECK(rows[i].wrong != HOLD_RIGHT || same_command());
    }
    command = good;
    command.kind = HOLD_UNLOCK;
    command.note = hf_bytes_text("result");
    CHECK_EQ(hold_find_wrong(&command), WRONG_RESULT);
    CHECK_EQ(round_trip(), HF_CORRUPT);
    command.done_ms = 1;
    CHECK_EQ(round_trip(), HF_OK);
}

TEST(policy_and_priority_are_read_from_the_flags)
{
    for (unsigned i = 0; i < 16; i++) {
        command.flags = (i & 3) << HOLD_POLICY_SHIFT |
                        (uint64_t)(i >> 2) << HOLD_PRIORITY_SHIFT | HOLD_SHARED;
        CHECK_EQ(hold_policy(&command), i & 3);
        CHECK_EQ(hold_priority(&command), i >> 2);
    }
}
