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

static void learn(struct knows *knows, const struct words *words,
                  struct hf_bytes reply)
{
    struct hf_bytes name = hf_bytes(words->text + words->at[1], words->lens[1]);
    struct resp_value value;

    if (words_is(words, 0, "LOCK") &&
        resp_field(reply, "token", &value) == HF_OK) {
        uint64_t token = (uint64_t)value.number;
        keep_known(knows->locks, &knows->lock_count, name, token);
        if (token > knows->token_max)
            knows->token_max = token;
    } else if (words_is(words, 0, "UNLOCK") &&
               resp_field(reply, "remaining", &value) == HF_OK &&
               value.number == 0) {
        drop_known(knows->locks, &knows->lock_count, name);
    } else if (words_is(words, 0, "RESERVE") &&
               resp_field(reply, "id", &value) == HF_OK) {
        keep_known(knows->ids, &knows->id_count, value.text, 0);
    } else if (words_is(words, 0, "LIMIT") &&
               resp_field(reply, "hold", &value) == HF_OK) {
        keep_known(knows->holds, &knows->hold_count, name,
                   (uint64_t)value.number);
    }
}

void knows_learn(struct knows *knows, const struct words *words,
                 struct hf_bytes reply)
{
    if (words->count < 2 || reply.len == 0 || reply.data[0] == '-')
        return;
    learn(knows, words, reply);
    learn(&knows_all, words, reply);
}
