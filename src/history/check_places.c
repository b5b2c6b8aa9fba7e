/* check_places.c - products at several places: sku@place.
 *
 *   RESERVE r ITEM pen 3 PLACE a PLACE b SPLIT MOST
 *   RESERVE r ITEM pen@a 3 ITEM pen@b 3 SPLIT MOST     as it is judged
 *
 * Of each of these items some, or nothing, and of all that are of one sku
 * together as much as was asked for. Only its answer tells which.
 */
#include "history/check.h"

/* How many values follow an option, in a RESERVE. */
static size_t values_of(struct hf_bytes option)
{
    return hf_bytes_is(option, "BEST") || hf_bytes_is(option, "PREORDER") ? 0
           : hf_bytes_is(option, "ITEM")                                  ? 2
                                                                          : 1;
}

/* The next option of that name, from `*at` on, which moves behind it; NULL:
 * none. Its first value is returned. */
static const struct hf_bytes *next_of(const struct call *call, size_t *at,
                                      const char *name)
{
    while (*at < call->word_count) {
        const struct hf_bytes *option = &call->words[*at];
        size_t values = values_of(*option);
        *at += 1 + values;
        if (hf_bytes_is(*option, name) && *at <= call->word_count)
            return option + 1;
    }
    return NULL;
}

static size_t count_of(const struct call *call, const char *name)
{
    size_t count = 0;

    for (size_t at = 2; next_of(call, &at, name) != NULL;)
        count++;
    return count;
}

static struct hf_bytes join(struct check *c, struct hf_bytes sku,
                            struct hf_bytes place)
{
    char *name = check_alloc(c, sku.len + 1 + place.len);

    memcpy(name, sku.data, sku.len);
    name[sku.len] = '@';
    memcpy(name + sku.len + 1, place.data, place.len);
    return hf_bytes(name, sku.len + 1 + place.len);
}

void places_expand(struct check *c, struct call *call)
{
    size_t places = count_of(call, "PLACE");
    const struct hf_bytes *item;
    const struct hf_bytes *place;
    size_t at = 2;
    uint32_t count = 0;

    if (places == 0)
        return;
    const struct hf_bytes *split = next_of(call, &at, "SPLIT");
    call->terms.placed = true;
    call->terms.split = split != NULL && !hf_bytes_is(*split, "NONE");
    struct hf_bytes *words = check_alloc(
        c, (call->word_count + 3 * places * count_of(call, "ITEM")) *
               sizeof *words);
    words[count++] = call->words[0];
    words[count++] = call->words[1];
    for (size_t i = 2; (item = next_of(call, &i, "ITEM")) != NULL;) {
        for (size_t k = 2; (place = next_of(call, &k, "PLACE")) != NULL;) {
            words[count++] = item[-1];
            words[count++] = join(c, item[0], *place);
            words[count++] = item[1];
        }
    }
    for (size_t i = 2; i < call->word_count;) {
        size_t len = 1 + values_of(call->words[i]);
        bool known = hf_bytes_is(call->words[i], "ITEM") ||
                     hf_bytes_is(call->words[i], "PLACE");
        for (; len > 0 && i < call->word_count; len--, i++) {
            if (!known)
                words[count++] = call->words[i];
        }
    }
    call->words = words;
    call->word_count = count;
}

/* Parts a name at its last '@', or leaves it whole. */
static struct hf_bytes sku_of(struct hf_bytes name, struct hf_bytes *place)
{
    size_t len = name.len;

    while (len > 0 && name.data[len - 1] != '@')
        len--;
    *place = hf_bytes(name.data + len, name.len - len);
    return len == 0 ? name : hf_bytes(name.data, len - 1);
}

/* How much the reply shows of a sku at all places; -1: it cannot be. */
static int64_t shown_of(const struct call *reserve, struct hf_bytes sku)
{
    struct hf_bytes first = {"", 0};
    struct hf_bytes place;
    struct hf_bytes name;
    struct hf_bytes entry;
    struct reply_list list;
    int64_t quantity;
    int64_t sum = 0;

    if (!check_list(reserve->reply, "items", &list))
        return -1;
    while (check_list_next(&list, &entry)) {
        if (!check_text(entry, "sku", &name) ||
            !resp_field_number(entry, "quantity", &quantity))
            return -1;
        struct hf_bytes one = sku_of(name, &place);
        if (first.len == 0)
            first = place;
        if (!reserve->terms.split && !hf_bytes_equal(first, place))
            return -1;
        if (hf_bytes_equal(one, sku) &&
            __builtin_add_overflow(sum, quantity, &sum))
            return -1;
    }
    return sum;
}

bool places_add_up(const struct call *reserve)
{
    struct hf_bytes name;
    struct hf_bytes place;
    int64_t quantity;

    for (size_t at = 0; check_item(reserve, &at, &name, &quantity);) {
        struct hf_bytes other;
        int64_t asked = 0;
        int64_t units;
        for (size_t i = 0; check_item(reserve, &i, &other, &units);)
            asked += hf_bytes_equal(name, other) ? units : 0;
        if (shown_of(reserve, sku_of(name, &place)) != asked)
            return false;
    }
    return true;
}

void places_judge_sums(struct check *c, const struct call *call)
{
    static const char *const fields[] = {"total", "available", "reserved",
                                         "sold"};
    struct reply_list list;
    struct hf_bytes entry;
    int64_t told;
    int64_t one;

    if (call->word_count != 3 ||
        !resp_field_number(call->reply, "cursor", &told) || told != 0)
        return; /* not all of them */
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        int64_t sum = 0;
        if (!check_list(call->reply, "places", &list) ||
            !resp_field_number(call->reply, fields[i], &told))
            return;
        while (check_list_next(&list, &entry)) {
            if (!resp_field_number(entry, fields[i], &one) ||
                __builtin_add_overflow(sum, one, &sum))
                sum = INT64_MAX;
        }
        if (sum != told)
            check_found(c, "sum", call->id, 0,
                        "%s of %.*s is %lld over all places, not %lld",
                        fields[i], SHOW(call->name), (long long)sum,
                        (long long)told);
    }
}
