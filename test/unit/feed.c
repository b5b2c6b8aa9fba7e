/* feed.c - tests of the feed of events: what is added is read, once, in order,
 * from memory and from files, also after a restart or a crash. */
#include "support/feeding.h"

TEST(what_is_added_is_there_at_once)
{
    start();
    CHECK_EQ(read_all(0).count, 0);
    for (uint64_t i = 1; i <= 100; i++)
        add(i, 0);
    CHECK_EQ(read_all(0).count, 100);
    CHECK_EQ(read_all(99).count, 1);
    CHECK_EQ(read_all(100).count, 0);
    CHECK_EQ(read_all(500).count, 0);
    CHECK_EQ(read_all(0).reads, 0);
    stop(false);
}

TEST(numbers_may_have_holes)
{
    start();
    add(5, 0);
    take(NULL, 9);
    add(10, 0);
    struct feed_page page;
    CHECK_EQ(feed_look(feed, 0, &page), HF_OK);
    CHECK_EQ(page.gap, 0);
    CHECK_EQ(page.up_to, 10);
    CHECK_EQ(feed_look(feed, 9, &page), HF_OK);
    CHECK_EQ(page.up_to, 10);
    take(NULL, 20);
    CHECK_EQ(feed_look(feed, 10, &page), HF_OK);
    CHECK_EQ(page.up_to, 20);
    stop(true);
    open_feed(20); /* that nothing was told is known after a restart, too */
    CHECK_EQ(feed_look(feed, 0, &page), HF_PENDING);
    CHECK_EQ(feed_look(feed, 20, &page), HF_OK);
    CHECK_EQ(page.gap, 0);
    take(NULL, 25);
    add(26, 0);
    CHECK_EQ(feed_look(feed, 20, &page), HF_OK);
    CHECK_EQ(page.gap, 0);
    CHECK_EQ(page.up_to, 26);
    stop(false);
}

/* What is short is copied in pieces. */
TEST(texts_of_any_length_are_told_as_they_are)
{
    struct feed_page page;
    struct hold_event told;
    char texts[200];
    uint64_t now_us;
    size_t at = 0;

    start();
    for (size_t i = 0; i < sizeof texts; i++)
        texts[i] = (char)('!' + i % 89);
    for (size_t len = 0; len < 100; len++) {
        struct hold_event event = {.seq = len + 1,
                                   .kind = EVENT_LOCK_RELEASED,
                                   .mode = 2,
                                   .token = 77 + len,
                                   .age_us = 1000 * len,
                                   .name = hf_bytes(texts, len / 3),
                                   .owner =
                                       hf_bytes(texts + len / 3, len - len / 3),
                                   .note = hf_bytes(texts + len, len % 2)};
        take(&event, len + 1);
    }
    CHECK_EQ(feed_look(feed, 0, &page), HF_OK);
    for (size_t len = 0; len < 100; len++) {
        size_t bytes =
            event_decode(hf_bytes(page.events.data + at, page.events.len - at),
                         &told, &now_us);
        CHECK_EQ(bytes, EVENT_HEAD_BYTES + len + len % 2);
        at += bytes;
        CHECK_EQ(told.seq, len + 1);
        CHECK_EQ(told.token, 77 + len);
        CHECK_EQ(told.age_us, 1000 * len);
        CHECK_EQ(told.mode, 2);
        CHECK_EQ(now_us, (len + 1) * 1000000);
        CHECK_EQ(told.name.len, len / 3);
        CHECK_EQ(told.note.len, len % 2);
        CHECK(memcmp(told.name.data, texts, len + len % 2) == 0);
    }
    CHECK_EQ(at, page.events.len);
    stop(false);
}

/* Of a chunk all events are written, then numbers come that have none, then an
 * event for which the chunk has no room. */
TEST(a_hole_at_the_end_of_a_chunk_is_no_gap)
{
    start();
    for (uint64_t i = 1; i <= 12; i++)
        add(i, 20000);
    write_all();
    take(NULL, 15);
    add(16, 30000);
    hole.first = 13;
    hole.next = 16;
    CHECK_EQ(feed->next - feed->first, 2);
    struct found found = read_all(0);
    CHECK_EQ(found.count, 13);
    CHECK_EQ(found.gaps, 0);
    stop(true);
    open_feed(16);
    found = read_all(0);
    CHECK_EQ(found.count, 13);
    CHECK_EQ(found.gaps, 0);
    hole.first = 0;
    stop(false);
}

TEST(what_is_not_in_memory_any_more_is_read_from_files)
{
    uint64_t bytes;

    start();
    for (uint64_t i = 1; i <= 2000; i++) {
        add(i, 20000); /* 40 MB: memory has 4 */
        if (i % 100 == 0)
            write_all();
    }
    CHECK(feed->next - feed->first <= FEED_CHUNKS_KEPT + 1);
    CHECK(count_files(&bytes) > 3);
    struct found found = read_all(0);
    CHECK_EQ(found.count, 2000);
    CHECK_EQ(found.gaps, 0);
    CHECK(found.reads > 100);
    found = read_all(777);
    CHECK_EQ(found.count, 1223);
    CHECK_EQ(found.gaps, 0);
    stop(false);
}

TEST(a_restart_goes_on_in_the_same_file)
{
    uint64_t bytes;

    start();
    for (uint64_t i = 1; i <= 10; i++)
        add(i, 100);
    stop(true);
    for (int run = 0; run < 5; run++) {
        uint64_t from = 10 + (uint64_t)run * 10;
        open_feed(from);
        CHECK_EQ(read_all(0).count, from);
        for (uint64_t i = 1; i <= 10; i++)
            add(from + i, 100);
        struct found found = read_all(0);
        CHECK_EQ(found.count, from + 10);
        CHECK_EQ(found.gaps, 0);
        stop(true);
    }
    open_feed(60);
    CHECK_EQ(count_files(&bytes), 1);
    CHECK_EQ(read_all(0).count, 60);
    stop(false);
}

TEST(a_replay_gives_what_the_files_lack_and_nothing_twice)
{
    char error[FEED_ERROR_MAX];

    start();
    for (uint64_t i = 1; i <= 50; i++)
        add(i, 0);
    write_all();
    for (uint64_t i = 51; i <= 80; i++)
        add(i, 0);
    stop(false); /* as by a crash: the last 30 are not written */
    const struct feed_opts opts = {.dir = test_folder(),
                                   .io = &disk,
                                   .keep_bytes = keep_bytes,
                                   .keep_ms = keep_ms,
                                   .wake = wake};
    CHECK_EQ(feed_open(&feed, &opts, error), HF_OK);
    feed_begin(feed, 30); /* a snapshot */
    for (uint64_t i = 31; i <= 90; i++)
        add(i, 0);
    feed_start(feed, 90);
    struct found found = read_all(0);
    CHECK_EQ(found.count, 90);
    CHECK_EQ(found.gaps, 0);
    stop(true);
    open_feed(90);
    CHECK_EQ(read_all(0).count, 90);
    stop(false);
}

TEST(a_snapshot_above_what_the_files_have_is_a_gap)
{
    char error[FEED_ERROR_MAX];

    start();
    for (uint64_t i = 1; i <= 50; i++)
        add(i, 0);
    stop(true);
    const struct feed_opts opts = {.dir = test_folder(),
                                   .io = &disk,
                                   .keep_bytes = keep_bytes,
                                   .keep_ms = keep_ms,
                                   .wake = wake};
    CHECK_EQ(feed_open(&feed, &opts, error), HF_OK);
    feed_begin(feed, 60);
    add(61, 0);
    feed_start(feed, 61);
    struct found found = read_all(0);
    CHECK_EQ(found.count, 51);
    CHECK_EQ(found.gap, 60);
    CHECK_EQ(found.gaps, 1);
    stop(true);
    open_feed(61);
    found = read_all(0);
    CHECK_EQ(found.count, 51);
    CHECK_EQ(found.gap, 60);
    CHECK_EQ(read_all(50).gap, 60);
    CHECK_EQ(read_all(60).gaps, 0);
    stop(false);
}

TEST(events_of_what_the_journal_lost_are_gone)
{
    start();
    for (uint64_t i = 1; i <= 50; i++)
        add(i, 0);
    stop(true);
    open_feed(40); /* the journal ends there */
    CHECK_EQ(read_all(0).count, 40);
    take(NULL, 99);
    for (uint64_t i = 100; i <= 110; i++)
        add(i, 0);
    write_all();
    struct feed_page page;
    CHECK_EQ(feed_look(feed, 40, &page), HF_OK);
    CHECK_EQ(page.gap, 0);
    CHECK_EQ(event_seq(page.events.data), 100);
    stop(true);
    open_feed(110);
    struct feed_read *read;
    CHECK(feed_read_start(feed, 0, &page) != NULL);
    CHECK_EQ(hf_event_until(&woken, try_read, &read, NULL, HF_FOREVER), HF_OK);
    size_t count = 0;
    for (size_t at = 0; at < read->page.events.len; count++) {
        uint64_t seq = event_seq(read->page.events.data + at);
        CHECK(seq <= 40 || seq >= 100); /* 41 to 50 never happened */
        at += hf_get_u32(read->page.events.data + at);
    }
    CHECK_EQ(count, 51);
    CHECK_EQ(read->page.gap, 0);
    feed_read_free(read);
    stop(false);
}

/* Also if the next crash comes before anything new was written. */
TEST(what_the_journal_lost_does_not_come_back)
{
    start();
    for (uint64_t i = 1; i <= 50; i++)
        add(i, 0);
    stop(true);
    open_feed(40);
    take(NULL, 45); /* other things happened, and are not written */
    stop(false);
    open_feed(45);
    CHECK_EQ(read_all(0).count, 40);
    stop(false);
}

/* Nor if the file that says so cannot be made: what it costs is a gap. */
TEST(what_the_journal_lost_does_not_come_back_from_a_full_disk)
{
    for (int i = 0; i < 2; i++) { /* nor be written over */
        start();
        for (uint64_t seq = 1; seq <= 50; seq++) {
            add(seq, 0);
            if (seq % 10 == 0)
                write_all(); /* a block each */
        }
        stop(true);
        fail(i == 0 ? FAIL_CREATE : FAIL_CREATE | FAIL_WRITE);
        open_feed(35);
        uint64_t kept = i == 0 ? 30 : 0;
        CHECK_EQ(read_all(0).count, kept);
        stop(false);
        fail(0);
        open_feed(1000); /* numbers are skipped after a crash */
        struct found found = read_all(0);
        CHECK_EQ(found.count, kept);
        add(1001, 0);
        write_all();
        found = read_all(0);
        CHECK_EQ(found.count, kept + 1);
        CHECK_EQ(found.last, 1001);
        CHECK(found.gaps > 0);
        stop(false);
    }
}

TEST(all_is_gone_if_the_journal_is_new)
{
    start();
    for (uint64_t i = 1; i <= 50; i++)
        add(i, 0);
    stop(true);
    open_feed(0);
    CHECK_EQ(read_all(0).count, 0);
    add(1, 0);
    CHECK_EQ(read_all(0).count, 1);
    stop(true);
    open_feed(1);
    CHECK_EQ(read_all(0).count, 1);
    stop(false);
}

TEST(a_block_without_events_is_followed_by_others)
{
    start();
    take(NULL, 3);
    write_all(); /* somebody settles, and nothing was told */
    add(4, 0);
    write_all();
    add(5, 0);
    stop(true);
    open_feed(5);
    struct found found = read_all(3);
    CHECK_EQ(found.count, 2);
    CHECK_EQ(found.gaps, 0);
    stop(false);
}

/* ---- Retention. ---- */

TEST(the_oldest_files_go_by_size_and_the_gap_is_told)
{
    uint64_t bytes;

    start();
    stop(true);
    keep_bytes = 4u << 20;
    open_feed(0);
    for (uint64_t i = 1; i <= 1000; i++) {
        add(i, 20000);
        if (i % 10 == 0)
            write_all();
    }
    CHECK(count_files(&bytes) > 2);
    CHECK(bytes <= (4u << 20) + (1u << 20));
    struct found found = read_all(0);
    CHECK_EQ(found.gaps, 1);
    CHECK(found.gap > 500);
    CHECK_EQ(found.count, 1000 - found.gap);
    CHECK_EQ(read_all(found.gap).gaps, 0);
    struct feed_stats stats;
    feed_stats(feed, &stats);
    CHECK_EQ(stats.first, found.gap);
    CHECK_EQ(stats.last, 1000);
    CHECK_EQ(stats.lost, 0);
    stop(true);
    open_feed(1000);
    struct found again = read_all(0);
    CHECK_EQ(again.gap, found.gap);
    CHECK_EQ(again.count, found.count);
    stop(false);
}

TEST(the_oldest_files_go_by_age)
{
    uint64_t bytes;

    start();
    stop(true);
    keep_ms = 300000; /* an event a second */
    open_feed(0);
    for (uint64_t i = 1; i <= 1000; i++) {
        add(i, 30000);
        if (i % 10 == 0)
            write_all();
    }
    CHECK(count_files(&bytes) > 1);
    struct found found = read_all(0);
    CHECK_EQ(found.gaps, 1);
    CHECK(found.gap > 100 && found.gap <= 700);
    stop(false);
}

/* Of 3,000 events every 300th is about one product or reservation, in one way
 * or another. */
static void add_about(uint64_t seq)
{
    static char texts[64];
    static const enum hold_event_kind kinds[] = {
        EVENT_STOCK_CHANGED, EVENT_RESERVED, EVENT_FLUSHED, EVENT_RESERVED,
        EVENT_LOCK_GRANTED};
    static const char *const names[] = {"apple", "r1", "", "apple", "apple"};
    static const char *const skus[] = {"", "apple", "", "pear", ""};
    size_t which = seq / 300 % 5;
    struct hold_event event = {
        .seq = seq, .kind = kinds[which], .age_us = HOLD_NO_AGE};
    size_t name = strlen(names[which]);
    size_t sku = strlen(skus[which]);

    memcpy(texts, names[which], name);
    event.name = hf_bytes(texts, name);
    event.owner = event.note = event.items = hf_bytes(texts + name, 0);
    if (sku > 0) {
        hf_put_u16(texts + name, (uint16_t)sku);
        memcpy(texts + name + 2, skus[which], sku);
        hf_put_u64(texts + name + 2 + sku, 1);
        event.items.len = 2 + sku + 8;
    }
    take(&event, seq);
}

/* The numbers of the events that searches find, as text. */
static const char *search(enum hold_subject subject, const char *name,
                          uint64_t up_to, uint64_t *searches)
{
    static char text[400];
    struct event_about about = {subject, hf_bytes_text(name)};
    uint64_t after = 0;
    size_t len = 0;

    text[0] = '\0';
    for (*searches = 0; after < up_to; ++*searches) {
        struct feed_read *read = NULL;
        struct hold_event event;
        uint64_t now_us;
        CHECK(feed_search_start(feed, after, &about, &about) != NULL);
        CHECK_EQ(hf_event_until(&woken, try_read, &read, NULL, HF_FOREVER),
                 HF_OK);
        CHECK(read->page.up_to > after);
        CHECK_EQ(read->page.gap, 0);
        CHECK(read->searched < FEED_SEARCH_BYTES + FEED_CHUNK_BYTES);
        for (size_t at = 0; at < read->page.events.len;) {
            size_t bytes = event_decode(hf_bytes(read->page.events.data + at,
                                                 read->page.events.len - at),
                                        &event, &now_us);
            CHECK(bytes > 0);
            at += bytes;
            if (event.seq > after)
                len += (size_t)snprintf(text + len, sizeof text - len, "%llu ",
                                        (unsigned long long)event.seq);
        }
        after = read->page.up_to;
        feed_read_free(read);
    }
    return text;
}

#define EXPECT_FOUND(subject, name, expected)                      \
    do {                                                           \
        const char *found_ = search(subject, name, 3000, &reads_); \
        CHECK_TEXT(found_, strlen(found_), expected);              \
    } while (0)

TEST(a_search_finds_what_is_about_one_and_looks_at_a_part_at_a_time)
{
    uint64_t reads_;

    start();
    for (uint64_t i = 1; i <= 3000; i++) {
        if (i % 300 == 0)
            add_about(i);
        else
            add(i, 10000);
        if (i % 100 == 0)
            write_all();
    }
    write_all();
    EXPECT_FOUND(SUBJECT_PRODUCT, "apple", "300 600 1500 1800 2100 3000 ");
    CHECK(reads_ >= 10 && reads_ < 40); /* of 30 MB */
    EXPECT_FOUND(SUBJECT_PRODUCT, "pear", "600 900 2100 2400 ");
    EXPECT_FOUND(SUBJECT_RESERVATION, "r1", "300 600 1800 2100 ");
    EXPECT_FOUND(SUBJECT_RESERVATION, "apple", "600 900 2100 2400 ");
    EXPECT_FOUND(SUBJECT_PRODUCT, "none", "600 2100 ");
    stop(false);
}

/* An event whose end is missing, or whose lengths do not add up, is none. */
TEST(an_event_that_is_not_whole_is_none)
{
    static const char texts[] = "dooranniron";
    const struct hold_event event = {.seq = 7,
                                     .kind = EVENT_LOCK_GRANTED,
                                     .name = hf_bytes(texts, 4),
                                     .owner = hf_bytes(texts + 4, 3),
                                     .note = hf_bytes(texts + 7, 4)};
    char bytes[EVENT_HEAD_BYTES + sizeof texts];
    struct hold_event out;
    uint64_t now_us;
    size_t len = event_encode(&event, 9, bytes);

    CHECK_EQ(event_decode(hf_bytes(bytes, len), &out, &now_us), len);
    CHECK_EQ(now_us, 9);
    CHECK(hf_bytes_equal(out.owner, event.owner));
    for (size_t cut = 0; cut < len; cut++)
        CHECK_EQ(event_decode(hf_bytes(bytes, cut), &out, &now_us), 0);
    for (size_t at = 6; at <= 12; at += 2) { /* the lengths of its texts */
        bytes[at]++;
        CHECK_EQ(event_decode(hf_bytes(bytes, len), &out, &now_us), 0);
        bytes[at]--;
    }
    CHECK_EQ(event_decode(hf_bytes(bytes, len), &out, &now_us), len);
}
