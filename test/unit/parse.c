/* parse.c - tests of arguments to commands: what is behind the last argument
 * of a request is never looked at.
 *
 * A server decodes every request into the same array, so what stands there is
 * left over from a longer one before.
 */
#include <stdio.h>
#include <string.h>

#include "hold/command.h"
#include "resp/resp.h"
#include "server/table.h"
#include "support/test.h"

#define WORDS 16

/* Each with all that it takes. */
static const char *const requests[] = {
    "LOCK gate OWNER me TTL 1000 WAIT 5 REQ one",
    "UNLOCK gate 7 REQ one",
    "RENEW gate 7 TTL 1000 REQ one",
    "LOCKS a* CURSOR 3 COUNT 5",
    "LOCKINFO gate",
    "FENCE disk 7 REQ one",
    "STOCK SET bolt 5 IF 0 REASON new REF po REQ one",
    "STOCK ADD bolt -5 IF 7 REASON theft REF po REQ one",
    "STOCK GET bolt nut cog",
    "STOCK LIST a* CURSOR 3 COUNT 5",
    "STOCK DEL bolt IF 7 REQ one",
    "RESERVE cart ITEM bolt 5 ITEM nut 6 TTL 1000 OWNER me REQ one",
    "CONFIRM cart REQ one",
    "CANCEL cart REASON late REQ one",
    "EXTEND cart TTL 1000 REQ one",
    "RESERVATION cart",
};

static size_t split(char *text, struct hf_bytes *words)
{
    size_t count = 0;

    for (char *word; (word = strsep(&text, " ")) != NULL; count++) {
        CHECK(count < WORDS);
        words[count] = hf_bytes_text(word);
    }
    return count;
}

struct result {
    enum hf_status status;
    char error[PARSE_ERROR_MAX];
    size_t len;
    char record[HOLD_RECORD_MAX];
};

static void parse(const struct hf_bytes *words, size_t count,
                  struct result *out)
{
    static struct hold_command command;
    size_t named;
    const struct command *found = table_find(words, count, &named);

    memset(out, 0, sizeof *out);
    out->status = HF_NOTFOUND;
    if (found == NULL)
        return;
    out->status = parse_command(found, words + named, count - named, &command,
                                out->error);
    if (out->status == HF_OK && hold_kind_is_write(command.kind))
        out->len = hold_encode(&command, out->record);
}

/* What is told of `count` words when these and those stand behind them. */
static void compare(const struct hf_bytes *words, size_t count,
                    struct hf_bytes behind)
{
    static struct result stale;
    static struct result clean;
    struct hf_bytes other[WORDS];

    for (size_t i = 0; i < WORDS; i++)
        other[i] = i < count ? words[i] : behind;
    parse(words, count, &stale);
    parse(other, count, &clean);
    if (stale.status != clean.status || stale.len != clean.len ||
        strcmp(stale.error, clean.error) != 0 ||
        memcmp(stale.record, clean.record, stale.len) != 0)
        test_fail(__FILE__, __LINE__,
                  "%.*s %.*s, %zu words: what is behind them counts (%.*s)",
                  (int)words[0].len, words[0].data, (int)words[1].len,
                  words[1].data, count, (int)behind.len, behind.data);
}

TEST(no_part_of_a_request_depends_on_what_is_behind_it)
{
    table_init();
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        char text[256];
        struct hf_bytes words[WORDS];
        struct result whole;
        for (size_t w = 0; w < WORDS; w++)
            words[w] = hf_bytes_text("9");
        snprintf(text, sizeof text, "%s", requests[i]);
        size_t full = split(text, words);
        parse(words, full, &whole);
        if (whole.status != HF_OK)
            test_fail(__FILE__, __LINE__, "%s: %s", requests[i], whole.error);
        for (size_t count = 2; count <= full; count++) {
            compare(words, count, hf_bytes("\xff\x00 poison", 9));
            compare(words, count, hf_bytes_text("8"));
            compare(words, count, hf_bytes_text("ITEM"));
            compare(words, count, hf_bytes("", 0));
        }
    }
}

/* One command is used for all requests. */
static const struct hold_command *parse_over(char *text)
{
    static struct hold_command command;
    struct hf_bytes words[WORDS];
    char error[PARSE_ERROR_MAX];
    size_t named;

    table_init();
    memset(&command, 0xff, sizeof command);
    size_t count = split(text, words);
    const struct command *found = table_find(words, count, &named);
    CHECK(found != NULL);
    CHECK_EQ(
        parse_command(found, words + named, count - named, &command, error),
        HF_OK);
    return &command;
}

TEST(nothing_is_left_of_the_command_before)
{
    const struct hold_command *command = parse_over((char[]){"LOCKINFO gate"});
    CHECK_EQ(command->kind, HOLD_LOCK_INFO);
    CHECK_TEXT(command->name.data, command->name.len, "gate");
    CHECK(command->owner.len == 0 && command->reason.len == 0);
    CHECK_EQ(command->request.len, 0);
    CHECK(command->token == 0 && command->ttl_ms == 0 && command->wait_ms == 0);
    CHECK_EQ(command->amount, 0);
    CHECK(command->cursor == 0 && command->count == 0);
    CHECK(!command->told && command->item_count == 0);
    command = parse_over((char[]){"STOCK GET bolt nut"});
    CHECK_EQ(command->item_count, 2);
    CHECK(command->items[0].quantity == 0 && command->items[1].quantity == 0);
}

TEST(an_item_without_a_quantity_is_an_error_whatever_came_before)
{
    char text[] = "RESERVE b ITEM bolt 5 TTL 1000";
    struct hf_bytes words[WORDS];
    struct result result;

    table_init();
    CHECK_EQ(split(text, words), 7);
    parse(words, 4, &result);
    CHECK_EQ(result.status, HF_INVALID);
    CHECK(strstr(result.error, "wrong number of arguments") != NULL);
    parse(words, 6, &result); /* a TTL without its value */
    CHECK_EQ(result.status, HF_INVALID);
    parse(words, 5, &result);
    CHECK_EQ(result.status, HF_OK);
}

/* An optional word may be the name of an option of another command. */
TEST(a_pattern_may_be_called_as_an_option)
{
    static const struct {
        const char *text;
        const char *pattern;
        uint64_t cursor;
    } cases[] = {
        {"STOCK LIST ttl", "ttl", 0},
        {"STOCK LIST item COUNT 3", "item", 0},
        {"LOCKS req CURSOR 5", "req", 5},
        {"LOCKS cursor 5", "", 5},
    };
    static struct hold_command command;
    char error[PARSE_ERROR_MAX];

    table_init();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hf_bytes words[WORDS];
        char text[64];
        size_t named;
        snprintf(text, sizeof text, "%s", cases[i].text);
        size_t count = split(text, words);
        const struct command *found = table_find(words, count, &named);
        CHECK(found != NULL);
        CHECK_EQ(
            parse_command(found, words + named, count - named, &command, error),
            HF_OK);
        CHECK(hf_bytes_equal(command.name, hf_bytes_text(cases[i].pattern)));
        CHECK_EQ(command.cursor, cases[i].cursor);
    }
}

/* As many keys as a request can have, all the same or all different. */
TEST(no_command_takes_more_keys_than_there_is_room_for)
{
    static const char *const names[] = {"EXISTS", "DEL", "UNLINK"};
    static struct {
        struct hold_command command;
        char behind[RESP_ARGS_MAX * sizeof(struct hold_item)];
    } at;
    static struct hf_bytes words[RESP_ARGS_MAX];
    static char keys[RESP_ARGS_MAX][8];
    char error[PARSE_ERROR_MAX];
    size_t named;

    table_init();
    for (size_t i = 0; i < 2 * sizeof names / sizeof *names; i++) {
        words[0] = hf_bytes_text(names[i / 2]);
        bool differ = i % 2 != 0;
        bool counts = i / 2 == 0;
        for (size_t count = 2; count <= RESP_ARGS_MAX; count++) {
            snprintf(keys[count - 1], sizeof keys[0], "%zu",
                     differ ? count : 0);
            words[count - 1] = hf_bytes_text(keys[count - 1]);
            bool fits = count - 1 <= HOLD_SET_MAX || (!differ && !counts);
            enum hf_status status =
                parse_command(table_find(words, count, &named), words + 1,
                              count - 1, &at.command, error);
            CHECK_EQ(status, fits ? HF_OK : HF_INVALID);
            CHECK(at.command.item_count <= HOLD_SET_MAX);
            if (fits && counts)
                CHECK_EQ(at.command.item_count, count - 1);
        }
    }
    for (size_t i = 0; i < sizeof at.behind; i++)
        CHECK_EQ(at.behind[i], 0);
}

/* Is the word, of a request that is good otherwise, known? */
static bool is_known(const struct hf_bytes *words, size_t count, size_t which,
                     struct hf_bytes word)
{
    static struct result result;
    struct hf_bytes other[WORDS];

    memcpy(other, words, count * sizeof *words);
    other[which] = word;
    parse(other, count, &result);
    return result.status == HF_OK;
}

/* Each byte of the word is changed into each other one; it is cut by one and
 * made longer by one. */
static void check_name(const struct hf_bytes *words, size_t count, size_t which)
{
    struct hf_bytes word = words[which];
    char text[32];

    CHECK(word.len + 1 < sizeof text);
    for (size_t i = 0; i <= word.len; i++) {
        for (int c = 0; c < 256; c++) {
            memcpy(text, word.data, word.len);
            text[i] = (char)c;
            bool added = i == word.len;
            bool same = !added && (c | 0x20) == (word.data[i] | 0x20) &&
                        (word.data[i] >= 'A' || c == word.data[i]);
            struct hf_bytes other = hf_bytes(text, word.len + added);
            if (is_known(words, count, which, other) != same)
                test_fail(__FILE__, __LINE__, "%.*s with %d at %zu",
                          (int)word.len, word.data, c, i);
        }
    }
    CHECK(!is_known(words, count, which, hf_bytes(word.data, word.len - 1)));
    CHECK(!is_known(words, count, which, hf_bytes("", 0)));
}

TEST(commands_and_options_are_known_by_their_letters_in_both_cases)
{
    static const struct {
        const char *request;
        size_t words[5]; /* 0 is always one */
    } cases[] = {
        {"LOCK gate OWNER me TTL 1000 DEADLOCK NONE PRIORITY 1", {2, 4, 6, 8}},
        {"LOCK gate OWNER me WAIT 5 REQ one PERMITS 1 OF 2", {2, 4, 6, 8}},
        {"LOCK gate OWNER me SHARED FOREVER BARGE", {2, 4, 5, 6}},
        {"UNLOCK gate 7 DONE 5 RESULT ok", {3, 5}},
        {"RESERVE cart ITEM bolt 5", {2}},
        {"CONFIRM cart REQ one", {2}},
        {"RESERVATION cart", {0}},
        {"STOCK SET bolt 5", {0}},
        {"FENCE disk 7", {0}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hf_bytes words[WORDS];
        char text[128];
        snprintf(text, sizeof text, "%s", cases[i].request);
        size_t count = split(text, words);
        CHECK(is_known(words, count, 0, words[0]));
        check_name(words, count, 0);
        for (size_t j = 0; cases[i].words[j] != 0; j++)
            check_name(words, count, cases[i].words[j]);
    }
}
