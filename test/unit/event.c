/* event.c - tests of events as bytes, and of the channels that they name. */
#include "feed/event.h"

#include "hold/subject.h"
#include "support/test.h"

TEST_ONE_THREAD;

/* Texts that follow each other, as the engine has them. */
static struct hold_event make(enum hold_event_kind kind, char *texts,
                              const char *name, const char *owner,
                              const char *note, struct hf_bytes items)
{
    struct hold_event event = {.seq = 7,
                               .token = 8,
                               .age_us = 9,
                               .total = 10,
                               .available = 11,
                               .kind = kind};
    char *at = texts;

    event.name = hf_bytes(at, strlen(name));
    at = stpcpy(at, name);
    event.owner = hf_bytes(at, strlen(owner));
    at = stpcpy(at, owner);
    event.note = hf_bytes(at, strlen(note));
    at = stpcpy(at, note);
    event.items = hf_bytes(at, items.len);
    memcpy(at, items.data, items.len);
    return event;
}

static bool same(struct hf_bytes a, const char *b)
{
    return hf_bytes_equal(a, hf_bytes_text(b));
}

static struct hf_bytes two_items(char *out)
{
    struct hold_command c = {.kind = HOLD_RESERVE};

    CHECK_EQ(hold_add_item(&c, hf_bytes_text("ink"), 2), HF_OK);
    CHECK_EQ(hold_add_item(&c, hf_bytes_text("pen"), 3), HF_OK);
    return hf_bytes(out, (size_t)(hold_put_items(out, &c) - out));
}

TEST(what_is_encoded_is_decoded)
{
    char texts[256], bytes[512], items[64];
    struct hold_event found;
    uint64_t now_us = 0;
    struct hold_event event =
        make(EVENT_CANCELLED, texts, "r1", "bob", "too dear", two_items(items));

    event.mode = 2;
    event.total = 0; /* a reservation has none, but a group */
    event.group = hf_bytes(
        memcpy(texts + (event.items.data - texts) + event.items.len, "trip", 4),
        4);
    size_t len = event_encode(&event, 12, bytes);
    CHECK_EQ(len, event_bytes(&event));
    CHECK_EQ(event_seq(bytes), 7);
    CHECK_EQ(event_decode(hf_bytes(bytes, len), &found, &now_us), len);
    CHECK_EQ(now_us, 12);
    CHECK_EQ(found.seq, 7);
    CHECK_EQ(found.token, 8);
    CHECK_EQ(found.age_us, 9);
    CHECK_EQ(found.total, 0);
    CHECK_EQ(found.available, 11);
    CHECK_EQ(found.kind, EVENT_CANCELLED);
    CHECK_EQ(found.mode, 2);
    CHECK(same(found.name, "r1"));
    CHECK(same(found.owner, "bob"));
    CHECK(same(found.note, "too dear"));
    CHECK(hf_bytes_equal(found.items, event.items));
    CHECK(same(found.group, "trip"));
    event = make(EVENT_STOCK_CHANGED, texts, "pen", "", "", hf_bytes("", 0));
    len = event_encode(&event, 12, bytes);
    CHECK_EQ(event_decode(hf_bytes(bytes, len), &found, &now_us), len);
    CHECK_EQ(found.total, 10);
}

TEST(what_is_no_event_is_not_decoded)
{
    char texts[64], bytes[512];
    struct hold_event found;
    uint64_t now_us;
    struct hold_event event =
        make(EVENT_LOCK_GRANTED, texts, "a", "me", "", hf_bytes("", 0));
    size_t len = event_encode(&event, 1, bytes);

    for (size_t i = 0; i < len; i++)
        CHECK_EQ(event_decode(hf_bytes(bytes, i), &found, &now_us), 0);
    bytes[4] = HOLD_EVENT_COUNT;
    CHECK_EQ(event_decode(hf_bytes(bytes, len), &found, &now_us), 0);
    bytes[4] = EVENT_LOCK_GRANTED;
    bytes[5] = 3;
    CHECK_EQ(event_decode(hf_bytes(bytes, len), &found, &now_us), 0);
    bytes[5] = 0;
    bytes[6]++; /* a name that is longer than what there is */
    CHECK_EQ(event_decode(hf_bytes(bytes, len), &found, &now_us), 0);
}

static void check_channels(const struct hold_event *event,
                           const char *const *expected)
{
    struct event_channels channels = {.event = event};
    char name[EVENT_CHANNEL_MAX];

    for (; *expected != NULL; expected++)
        CHECK(same(event_channel(&channels, name), *expected));
    CHECK_EQ(event_channel(&channels, name).len, 0);
}

TEST(an_event_names_its_channels)
{
    static const struct {
        enum hold_event_kind kind;
        uint8_t mode;
        const char *channels[5];
    } rows[] = {
        {EVENT_LOCK_GRANTED, 0, {"hf:lock:x", "hf:election:x"}},
        {EVENT_LOCK_GRANTED, 1, {"hf:lock:x"}},
        {EVENT_LOCK_RELEASED, 1, {"hf:lock:x"}},
        {EVENT_LOCK_DOWNGRADED, 1, {"hf:lock:x", "hf:election:x"}},
        {EVENT_LEADER_PROCLAIMED, 0, {"hf:lock:x", "hf:election:x"}},
        {EVENT_SESSION_OPENED, 0, {"hf:session:x"}},
        {EVENT_FENCE_RAISED, 0, {"hf:fence:x"}},
        {EVENT_STOCK_CHANGED, 0, {"hf:stock:x"}},
        {EVENT_FLUSHED, 0, {"hf:all"}},
    };
    static const char *const reserved[] = {"hf:reservation:r1", "hf:stock:ink",
                                           "hf:stock:pen", NULL};
    char texts[256], items[64];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hold_event event =
            make(rows[i].kind, texts, "x", "", "", hf_bytes("", 0));
        event.mode = rows[i].mode;
        check_channels(&event, rows[i].channels);
    }
    struct hold_event event =
        make(EVENT_RESERVED, texts, "r1", "bob", "", two_items(items));
    check_channels(&event, reserved);
}

TEST(a_pattern_matches_any_of_the_channels)
{
    char texts[256], items[64];
    uint64_t steps = 0;
    struct hold_event event =
        make(EVENT_RESERVED, texts, "r1", "bob", "", two_items(items));

    CHECK(event_matches(&event, hf_bytes_text("hf:stock:p*"), &steps));
    CHECK(event_matches(&event, hf_bytes_text("hf:reservation:r1"), &steps));
    CHECK(event_matches(&event, hf_bytes_text("*"), &steps));
    CHECK(!event_matches(&event, hf_bytes_text("hf:stock:q*"), &steps));
    CHECK(!event_matches(&event, hf_bytes_text("hf:lock:r1"), &steps));
    CHECK(steps > 0);
}

/* A kind of record that is new may not have been thought of. */
TEST(what_events_are_about_has_a_channel_and_names_for_its_fields)
{
    for (unsigned i = 0; i < HOLD_EVENT_COUNT; i++) {
        enum hold_subject of = hold_event_subject((enum hold_event_kind)i);
        if (of == SUBJECT_ALL)
            continue;
        const struct subject *subject = &hold_subjects[of];
        if (subject->channel == NULL || subject->key == NULL ||
            subject->note == NULL)
            test_fail(__FILE__, __LINE__, "%s: no TOLD() in its subject's row",
                      hold_event_name((enum hold_event_kind)i));
        size_t len = strlen(subject->channel);
        CHECK(len <= EVENT_CHANNEL_MAX - HOLD_NAME_MAX);
        CHECK(memcmp(subject->channel, EVENT_CHANNEL_PREFIX,
                     strlen(EVENT_CHANNEL_PREFIX)) == 0);
        CHECK_EQ(subject->channel[len - 1], ':');
    }
}
