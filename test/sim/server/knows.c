/* knows.c - what a client keeps of what it was told. */
#include <string.h>

#include "resp/resp.h"
#include "sim/server/make.h"

struct knows knows_all;

static void keep_known(struct known *list, size_t *count, struct hf_bytes name,
                       uint64_t number)
{
    struct known known = {.number = number};

    if (name.len == 0 || name.len >= sizeof known.name)
        return;
    memcpy(known.name, name.data, name.len);
    if (*count == KNOWN_MAX) {
        memmove(list, list + 1, (KNOWN_MAX - 1) * sizeof *list);
        --*count;
    }
    list[(*count)++] = known;
}

void knows_keep(struct known *list, size_t *count, struct hf_bytes name)
{
    keep_known(list, count, name, 0);
}

static void drop_known(struct known *list, size_t *count, struct hf_bytes name)
{
    for (size_t i = 0; i < *count; i++) {
        if (strlen(list[i].name) == name.len &&
            memcmp(list[i].name, name.data, name.len) == 0) {
            list[i] = list[--*count];
            return;
        }
    }
}

static void drop_number(struct known *list, size_t *count,
                        struct hf_bytes number)
{
    uint64_t wanted;

    for (size_t i = 0; hf_parse_u64(number, &wanted) == HF_OK && i < *count;
         i++) {
        if (list[i].number == wanted)
            list[i--] = list[--*count];
    }
}

/* The version of a product that a reply shows. */
static void learn_version(struct hf_bytes reply)
{
    struct resp_value sku;
    struct resp_value version;

    if (resp_field(reply, "sku", &sku) == HF_OK && sku.text.len == 2 &&
        resp_field(reply, "version", &version) == HF_OK)
        knows_all.versions[(unsigned char)sku.text.data[1] % KNOWN_SKUS] =
            (uint64_t)version.number;
}

/* A reservation with one of its items. */
static void keep_reservation(struct knows *knows, struct hf_bytes id,
                             struct hf_bytes reply)
{
    struct resp_value value;
    size_t at = 0;

    if (id.len == 0 || id.len >= KNOWN_TEXT_MAX)
        return;
    keep_known(knows->ids, &knows->id_count, id, 0);
    if (resp_find(reply, "items", &at) != HF_OK ||
        resp_read(reply, &at, &value) != HF_OK)
        return;
    struct known *known = &knows->ids[knows->id_count - 1];
    while (at < reply.len && (reply.data[at] == '*' || reply.data[at] == '%')) {
        size_t from = at;
        if (resp_skip(reply, &at) != HF_OK)
            return;
        struct hf_bytes item = hf_bytes(reply.data + from, at - from);
        if (resp_field(item, "sku", &value) != HF_OK ||
            value.text.len >= sizeof known->sku)
            return;
        memcpy(known->sku, value.text.data, value.text.len);
        known->sku[value.text.len] = '\0';
        if (resp_field(item, "quantity", &value) == HF_OK)
            known->number = (uint64_t)value.number;
    }
}

static void learn(struct knows *knows, const struct words *words,
                  struct hf_bytes reply)
{
    struct hf_bytes name = hf_bytes(words->text + words->at[1], words->lens[1]);
    struct resp_value value;

    if ((words_is(words, 0, "LOCK") || words_is(words, 0, "ELECT")) &&
        resp_field(reply, "token", &value) == HF_OK) {
        uint64_t token = (uint64_t)value.number;
        keep_known(knows->locks, &knows->lock_count, name, token);
        if (token > knows->token_max)
            knows->token_max = token;
    } else if (words_is(words, 0, "LOCKSET") &&
               resp_field(reply, "token", &value) == HF_OK) {
        keep_known(knows->sets, &knows->set_count, hf_bytes("set", 3),
                   (uint64_t)value.number);
    } else if (words_is(words, 0, "UNLOCKSET") &&
               resp_field(reply, "remaining", &value) == HF_OK &&
               value.number == 0) {
        drop_number(knows->sets, &knows->set_count, name);
    } else if (words_is(words, 1, "OPEN") &&
               resp_field(reply, "session", &value) == HF_OK) {
        keep_known(knows->sessions, &knows->session_count, hf_bytes("s", 1),
                   (uint64_t)value.number);
    } else if (words_is(words, 1, "CLOSE") && reply.data[0] == '+') {
        drop_number(knows->sessions, &knows->session_count,
                    hf_bytes(words->text + words->at[2], words->lens[2]));
    } else if ((words_is(words, 0, "UNLOCK") || words_is(words, 0, "RESIGN")) &&
               resp_field(reply, "remaining", &value) == HF_OK &&
               value.number == 0) {
        drop_known(knows->locks, &knows->lock_count, name);
    } else if ((words_is(words, 0, "RESERVE") || words_is(words, 1, "JOIN")) &&
               resp_field(reply, "id", &value) == HF_OK) {
        keep_reservation(knows, value.text, reply);
    } else if (words_is(words, 0, "LIMIT") &&
               resp_field(reply, "hold", &value) == HF_OK) {
        keep_known(knows->holds, &knows->hold_count, name,
                   (uint64_t)value.number);
    }
}

/* What has ended is used no more, by this client. */
static void unlearn(struct knows *knows, const struct words *words,
                    struct hf_bytes reply)
{
    struct hf_bytes session;
    struct hf_bytes name = hf_bytes(words->text + words->at[1], words->lens[1]);
    static const char lost[] = "-LOST session ";

    if (reply.len > sizeof lost && memcmp(reply.data, lost, 14) == 0) {
        const char *end = memchr(reply.data + 14, ' ', reply.len - 14);
        session = hf_bytes(reply.data + 14,
                           end == NULL ? 0 : (size_t)(end - reply.data) - 14);
        drop_number(knows->sessions, &knows->session_count, session);
    } else if (memcmp(reply.data, "-LOST", 5) == 0 ||
               memcmp(reply.data, "-NOTH", 5) == 0) {
        drop_number(knows->sets, &knows->set_count, name);
        drop_known(knows->locks, &knows->lock_count, name);
    }
}

/* What EXEC was told, one member after the other. */
static void learn_group(struct knows *knows, const struct words *words,
                        struct hf_bytes reply)
{
    struct resp_value value;
    struct words member;
    size_t at = 0;

    if (resp_read(reply, &at, &value) != HF_OK || value.kind != RESP_ARRAY)
        return;
    for (size_t i = 2; i < words->count && at < reply.len; i++) {
        size_t from = at;
        i += words_until(words, i, &member);
        if (resp_skip(reply, &at) != HF_OK)
            return;
        knows_learn(knows, &member, hf_bytes(reply.data + from, at - from));
    }
}

void knows_learn(struct knows *knows, const struct words *words,
                 struct hf_bytes reply)
{
    if (words->count < 2 || reply.len < 5)
        return;
    if (words_is(words, 0, "MULTI")) {
        learn_group(knows, words, reply);
        return;
    }
    if (reply.data[0] == '-') {
        unlearn(knows, words, reply);
        return;
    }
    if (words_is(words, 0, "STOCK"))
        learn_version(reply);
    learn(knows, words, reply);
    learn(&knows_all, words, reply);
}
