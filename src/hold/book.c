/* book.c - adds up what events tell of stock. */
#include "hold/book.h"

#include <assert.h>
#include <stdarg.h>

#include "base/memory.h"
#include "hold/state.h"

struct entry { /* of a product */
    struct hf_named named;
    uint64_t total;
    uint64_t reserved;
    uint64_t sold;
    bool touched; /* it is to be compared */
};

struct held { /* by a pending reservation */
    struct hf_named named;
    struct hf_text items;
};

struct hold_book {
    size_t account;
    struct hf_texts texts;
    struct hf_index products;
    struct hf_index pending;
    struct hf_buf touched; /* numbers of products */
    struct hf_buf rest;    /* scratch: the items of a reservation */
    char only[HOLD_SKU_MAX];
    size_t only_len;
    uint64_t steps;
    char wrong[HOLD_BOOK_ERROR_MAX];
};

__attribute__((format(printf, 2, 3))) static enum hf_status
wrong(struct hold_book *book, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(book->wrong, sizeof book->wrong, format, args);
    va_end(args);
    return HF_CORRUPT;
}

struct hold_book *hold_book_new(struct hf_hash_seed seed, struct hf_bytes only)
{
    struct hold_book *book = hf_alloc_zeroed(sizeof *book);

    assert(only.len <= HOLD_SKU_MAX);
    if (book == NULL)
        return NULL;
    hf_texts_init(&book->texts, &book->account);
    book->only_len = only.len;
    if (only.len > 0)
        memcpy(book->only, only.data, only.len);
    if (hf_index_init(&book->products, sizeof(struct entry), &book->texts, seed,
                      &book->account) != HF_OK ||
        hf_index_init(&book->pending, sizeof(struct held), &book->texts, seed,
                      &book->account) != HF_OK) {
        hold_book_free(book);
        return NULL;
    }
    return book;
}

void hold_book_free(struct hold_book *book)
{
    if (book == NULL)
        return;
    hf_index_destroy(&book->products);
    hf_index_destroy(&book->pending);
    hf_texts_destroy(&book->texts);
    hf_buf_destroy(&book->touched);
    hf_buf_destroy(&book->rest);
    hf_free(book);
}

uint64_t hold_book_steps(const struct hold_book *book)
{
    return book->steps;
}

const char *hold_book_wrong(const struct hold_book *book)
{
    return book->wrong;
}

/* ---- What the engine has, and what an event does. ---- */

struct hold_numbers hold_numbers(const struct hold_engine *engine,
                                 struct hf_bytes sku)
{
    uint32_t number = hf_index_find(&engine->products, sku);

    if (number == 0)
        return (struct hold_numbers){.exists = false};
    const struct product *p = product_at(engine, number);
    return (struct hold_numbers){true,    p->total,   p->reserved,
                                 p->sold, p->version, p->updated_us};
}

/* What happens to each unit of the items. */
struct flow {
    int8_t reserved;
    int8_t sold;
    bool ends; /* the reservation */
};

static struct flow flow_of(enum hold_event_kind kind)
{
    switch (kind) {
    case EVENT_RESERVED:
    case EVENT_OFFERED:
        return (struct flow){1, 0, false};
    case EVENT_CONFIRMED:
        return (struct flow){-1, 1, true};
    case EVENT_CONFIRMED_LATE: /* it has ended before */
        return (struct flow){0, 1, false};
    case EVENT_CANCELLED:
    case EVENT_RESERVATION_EXPIRED:
        return (struct flow){-1, 0, true};
    case EVENT_REDUCED:
        return (struct flow){-1, 0, false};
    default:
        return (struct flow){0, 0, false};
    }
}

struct hold_change hold_event_change(const struct hold_event *event,
                                     struct hf_bytes sku)
{
    struct flow flow = flow_of(event->kind);
    struct hold_change change = {.effect = EFFECT_NONE};
    bool own = hf_bytes_equal(event->name, sku);
    struct hold_item item;

    if (event->kind == EVENT_FLUSHED ||
        (own && event->kind == EVENT_STOCK_DELETED))
        change.effect = EFFECT_GONE;
    if (own && event->kind == EVENT_STOCK_CHANGED)
        return (struct hold_change){.effect = EFFECT_TOTAL,
                                    .total = event->total,
                                    .committed =
                                        event->total - event->available};
    if (own && (event->kind == EVENT_STOCK_ATTRIBUTES ||
                event->kind == EVENT_STOCK_LIMIT))
        change.effect = EFFECT_UNITS;
    if (flow.reserved == 0 && flow.sold == 0)
        return change;
    for (size_t at = 0; hold_next_item(event->items, &at, &item);) {
        if (!hf_bytes_equal(item.sku, sku))
            continue;
        change.effect = EFFECT_UNITS;
        change.reserved += flow.reserved * (int64_t)item.quantity;
        change.sold += flow.sold * (int64_t)item.quantity;
    }
    return change;
}

/* ---- Products. ---- */

static bool is_kept(const struct hold_book *book, struct hf_bytes sku)
{
    return book->only_len == 0 ||
           hf_bytes_equal(sku, hf_bytes(book->only, book->only_len));
}

static struct entry *find(const struct hold_book *book, struct hf_bytes sku)
{
    uint32_t number = hf_index_find(&book->products, sku);

    return number == 0 ? NULL : hf_index_at(&book->products, number);
}

struct hold_numbers hold_book_numbers(const struct hold_book *book,
                                      struct hf_bytes sku)
{
    const struct entry *entry = find(book, sku);

    if (entry == NULL)
        return (struct hold_numbers){.exists = false};
    return (struct hold_numbers){.exists = true,
                                 .total = entry->total,
                                 .reserved = entry->reserved,
                                 .sold = entry->sold};
}

/* A step of the product: its numbers add up, and it will be compared. */
static enum hf_status touch(struct hold_book *book, struct hf_bytes sku,
                            struct entry *entry)
{
    uint32_t number = hf_index_find(&book->products, sku);

    book->steps++;
    if (entry->reserved > entry->total ||
        entry->sold > entry->total - entry->reserved)
        return wrong(book,
                     "product '%.*s' is promised twice: total %llu, reserved "
                     "%llu, sold %llu",
                     HF_SHOW(sku), (unsigned long long)entry->total,
                     (unsigned long long)entry->reserved,
                     (unsigned long long)entry->sold);
    if (entry->touched)
        return HF_OK;
    entry->touched = true;
    return hf_buf_append(&book->touched, &number, sizeof number);
}

/* Its total was set: what is reserved and sold stays. */
static enum hf_status set_total(struct hold_book *book,
                                const struct hold_event *event)
{
    struct entry *entry = find(book, event->name);

    if (entry == NULL) {
        uint32_t number = hf_index_add(&book->products, event->name);
        if (number == 0)
            return HF_NOMEM;
        entry = hf_index_at(&book->products, number);
    }
    entry->total = event->total;
    if (event->available > event->total ||
        event->total - event->available != entry->reserved + entry->sold)
        return wrong(book,
                     "event %llu: product '%.*s' has %llu available of %llu, "
                     "with %llu reserved and %llu sold",
                     (unsigned long long)event->seq, HF_SHOW(event->name),
                     (unsigned long long)event->available,
                     (unsigned long long)event->total,
                     (unsigned long long)entry->reserved,
                     (unsigned long long)entry->sold);
    return touch(book, event->name, entry);
}

static enum hf_status delete_product(struct hold_book *book,
                                     const struct hold_event *event)
{
    uint32_t number = hf_index_find(&book->products, event->name);
    const struct entry *entry = find(book, event->name);

    if (entry == NULL || entry->reserved > 0)
        return wrong(book, "event %llu deletes product '%.*s', which %s",
                     (unsigned long long)event->seq, HF_SHOW(event->name),
                     entry == NULL ? "is not there" : "has reserved units");
    book->steps++;
    hf_index_remove(&book->products, number);
    return HF_OK;
}

/* Units of one item are reserved, sold or given back. */
static enum hf_status move_units(struct hold_book *book,
                                 const struct hold_event *event,
                                 const struct hold_item *item)
{
    struct flow flow = flow_of(event->kind);
    struct entry *entry = find(book, item->sku);

    if (entry == NULL ||
        (flow.reserved < 0 && entry->reserved < item->quantity))
        return wrong(book,
                     "event %llu of reservation '%.*s' is about %llu units of "
                     "product '%.*s', %s",
                     (unsigned long long)event->seq, HF_SHOW(event->name),
                     (unsigned long long)item->quantity, HF_SHOW(item->sku),
                     entry == NULL ? "which is not there"
                                   : "of which not so many are reserved");
    if (flow.reserved > 0)
        entry->reserved += item->quantity;
    else if (flow.reserved < 0)
        entry->reserved -= item->quantity;
    if (flow.sold > 0)
        entry->sold += item->quantity;
    return touch(book, item->sku, entry);
}

/* ---- Reservations. ---- */

/* Is one of the items about a product of the book? */
static bool concerns(const struct hold_book *book, struct hf_bytes items)
{
    struct hold_item item;

    for (size_t at = 0; hold_next_item(items, &at, &item);) {
        if (is_kept(book, item.sku))
            return true;
    }
    return false;
}

static enum hf_status add_pending(struct hold_book *book, struct hf_bytes id,
                                  struct hf_bytes items)
{
    uint32_t number = hf_index_find(&book->pending, id);

    if (number != 0)
        return wrong(book, "reservation '%.*s' is made a second time",
                     HF_SHOW(id));
    number = hf_index_add(&book->pending, id);
    if (number == 0)
        return HF_NOMEM;
    struct held *held = hf_index_at(&book->pending, number);
    return hf_texts_put(&book->texts, items, items.len, &held->items);
}

static enum hf_status end_pending(struct hold_book *book,
                                  const struct hold_event *event)
{
    uint32_t number = hf_index_find(&book->pending, event->name);

    if (number == 0)
        return wrong(book,
                     "event %llu is about reservation '%.*s', which is not "
                     "pending",
                     (unsigned long long)event->seq, HF_SHOW(event->name));
    struct held *held = hf_index_at(&book->pending, number);
    struct hf_bytes had = hf_text_bytes(&book->texts, held->items);
    if (!hf_bytes_equal(had, event->items))
        return wrong(book,
                     "event %llu ends reservation '%.*s' with other units "
                     "than it had",
                     (unsigned long long)event->seq, HF_SHOW(event->name));
    hf_texts_drop(&book->texts, held->items);
    hf_index_remove(&book->pending, number);
    return HF_OK;
}

/* What a reservation has beyond `freed`, in book->rest; both are in order.
 * HF_CORRUPT if that is not among it, or is all of it. */
static enum hf_status find_rest(struct hold_book *book, struct hf_bytes had,
                                struct hf_bytes freed)
{
    struct hold_item item;
    struct hold_item less = {.quantity = 0};
    size_t next = 0;
    bool left = hold_next_item(freed, &next, &less);

    book->rest.len = 0;
    for (size_t at = 0; hold_next_item(had, &at, &item);) {
        char bytes[2 + HOLD_SKU_MAX + 8];
        if (left && hf_bytes_equal(item.sku, less.sku)) {
            if (less.quantity > item.quantity)
                return HF_CORRUPT;
            item.quantity -= less.quantity;
            left = hold_next_item(freed, &next, &less);
        }
        if (item.quantity == 0)
            continue;
        char *end = hold_put_text(bytes, item.sku);
        hf_put_u64(end, item.quantity);
        if (hf_buf_append(&book->rest, bytes, (size_t)(end - bytes) + 8) !=
            HF_OK)
            return HF_NOMEM;
    }
    return left || book->rest.len == 0 ? HF_CORRUPT : HF_OK;
}

/* Some units of it are free again. Of a book about one product those of others
 * count as well: it must end with what it has then. */
static enum hf_status reduce_pending(struct hold_book *book,
                                     const struct hold_event *event)
{
    uint32_t number = hf_index_find(&book->pending, event->name);
    enum hf_status status = HF_CORRUPT;

    if (number == 0 && !concerns(book, event->items))
        return HF_OK;
    struct held *held =
        number == 0 ? NULL : hf_index_at(&book->pending, number);
    if (held != NULL)
        status = find_rest(book, hf_text_bytes(&book->texts, held->items),
                           event->items);
    if (status == HF_CORRUPT)
        return wrong(book,
                     "event %llu frees units of reservation '%.*s' that it "
                     "does not have, or all of them",
                     (unsigned long long)event->seq, HF_SHOW(event->name));
    if (status != HF_OK)
        return status;
    struct hf_bytes rest = hf_buf_bytes(&book->rest);
    hf_texts_drop(&book->texts, held->items);
    if (concerns(book, rest))
        return hf_texts_put(&book->texts, rest, rest.len, &held->items);
    hf_index_remove(&book->pending, number);
    return HF_OK;
}

static enum hf_status reservation(struct hold_book *book,
                                  const struct hold_event *event)
{
    struct flow flow = flow_of(event->kind);
    enum hf_status status = HF_OK;
    struct hold_item item;

    if (event->kind == EVENT_REDUCED)
        status = reduce_pending(book, event);
    else if (!concerns(book, event->items))
        return HF_OK;
    if (event->kind == EVENT_EXTENDED &&
        hf_index_find(&book->pending, event->name) == 0)
        return wrong(book,
                     "event %llu extends reservation '%.*s', which is not "
                     "pending",
                     (unsigned long long)event->seq, HF_SHOW(event->name));
    if (event->kind == EVENT_CONFIRMED_LATE &&
        hf_index_find(&book->pending, event->name) != 0)
        return wrong(book,
                     "event %llu confirms reservation '%.*s' late, which is "
                     "still pending",
                     (unsigned long long)event->seq, HF_SHOW(event->name));
    if (flow.ends)
        status = end_pending(book, event);
    else if (flow.reserved > 0)
        status = add_pending(book, event->name, event->items);
    bool moves = flow.reserved != 0 || flow.sold != 0;
    for (size_t at = 0; status == HF_OK && moves &&
                        hold_next_item(event->items, &at, &item);) {
        if (is_kept(book, item.sku))
            status = move_units(book, event, &item);
    }
    return status;
}

/* ---- The book. ---- */

static enum hf_status open_product(struct hold_book *book,
                                   const struct hold_engine *engine,
                                   const struct product *p)
{
    struct hf_bytes sku = hf_index_name(&engine->products, p);

    if (!is_kept(book, sku))
        return HF_OK;
    uint32_t number = hf_index_add(&book->products, sku);
    if (number == 0)
        return HF_NOMEM;
    struct entry *entry = hf_index_at(&book->products, number);
    entry->total = p->total;
    entry->sold = p->sold;
    return HF_OK;
}

/* What is reserved is counted from those who have it. */
static enum hf_status open_pending(struct hold_book *book,
                                   const struct hold_engine *engine,
                                   const struct reservation *r)
{
    struct hf_bytes items = hf_text_bytes(&engine->texts, r->items);
    struct hf_bytes id = hf_index_name(&engine->reservations, r);
    struct hold_item item;

    if (r->status != RESERVATION_PENDING || !concerns(book, items))
        return HF_OK;
    for (size_t at = 0; hold_next_item(items, &at, &item);) {
        struct entry *entry = find(book, item.sku);
        if (entry != NULL)
            entry->reserved += item.quantity;
        else if (is_kept(book, item.sku))
            return wrong(book,
                         "reservation '%.*s' is about product '%.*s', which "
                         "is not there",
                         HF_SHOW(id), HF_SHOW(item.sku));
    }
    return add_pending(book, id, items);
}

enum hf_status hold_book_open(struct hold_book *book,
                              const struct hold_engine *engine)
{
    enum hf_status status = HF_OK;

    for (uint32_t i = 1; i < hf_index_top(&engine->products) && status == HF_OK;
         i++) {
        const struct product *p = hf_index_used(&engine->products, i);
        if (p != NULL)
            status = open_product(book, engine, p);
    }
    for (uint32_t i = 1;
         i < hf_index_top(&engine->reservations) && status == HF_OK; i++) {
        const struct reservation *r = hf_index_used(&engine->reservations, i);
        if (r != NULL)
            status = open_pending(book, engine, r);
    }
    return status == HF_OK ? hold_book_finish(book, engine) : status;
}

static void clear(struct hold_book *book)
{
    hf_index_clear(&book->products);
    hf_index_clear(&book->pending);
    hf_texts_clear(&book->texts);
    book->touched.len = 0;
    book->steps++;
}

enum hf_status hold_book_event(struct hold_book *book,
                               const struct hold_event *event)
{
    switch (hold_event_subject(event->kind)) {
    case SUBJECT_RESERVATION:
        return reservation(book, event);
    case SUBJECT_ALL:
        clear(book);
        return HF_OK;
    case SUBJECT_PRODUCT:
        if (!is_kept(book, event->name))
            return HF_OK;
        if (event->kind == EVENT_STOCK_CHANGED)
            return set_total(book, event);
        if (event->kind == EVENT_STOCK_DELETED)
            return delete_product(book, event);
        return HF_OK;
    default:
        return HF_OK;
    }
}

static enum hf_status compare(struct hold_book *book,
                              const struct hold_engine *engine,
                              const struct entry *entry)
{
    struct hf_bytes sku = hf_index_name(&book->products, entry);
    struct hold_numbers has = hold_numbers(engine, sku);

    if (!has.exists)
        return wrong(book, "product '%.*s' is gone", HF_SHOW(sku));
    if (has.total != entry->total || has.reserved != entry->reserved ||
        has.sold != entry->sold)
        return wrong(
            book,
            "product '%.*s' has total %llu, reserved %llu, sold %llu, by the "
            "events %llu, %llu, %llu",
            HF_SHOW(sku), (unsigned long long)has.total,
            (unsigned long long)has.reserved, (unsigned long long)has.sold,
            (unsigned long long)entry->total,
            (unsigned long long)entry->reserved,
            (unsigned long long)entry->sold);
    return HF_OK;
}

/* One that was deleted meanwhile has left its number behind, perhaps to
 * another. */
enum hf_status hold_book_compare(struct hold_book *book,
                                 const struct hold_engine *engine)
{
    const uint32_t *numbers = (const uint32_t *)book->touched.data;
    size_t count = book->touched.len / sizeof *numbers;
    enum hf_status status = HF_OK;

    for (size_t i = 0; i < count && status == HF_OK; i++) {
        struct entry *entry = hf_index_used(&book->products, numbers[i]);
        if (entry == NULL)
            continue;
        entry->touched = false;
        status = compare(book, engine, entry);
    }
    book->touched.len = 0;
    return status;
}

enum hf_status hold_book_finish(struct hold_book *book,
                                const struct hold_engine *engine)
{
    uint32_t products = hf_index_count(&book->products);
    struct hf_bytes only = hf_bytes(book->only, book->only_len);
    enum hf_status status = HF_OK;

    for (uint32_t i = 1; i < hf_index_top(&book->products) && status == HF_OK;
         i++) {
        const struct entry *entry = hf_index_used(&book->products, i);
        if (entry != NULL)
            status = compare(book, engine, entry);
    }
    if (status != HF_OK)
        return status;
    if (book->only_len > 0)
        return hold_numbers(engine, only).exists == (products == 1)
                   ? HF_OK
                   : wrong(book, "product '%.*s' is there, by the events not",
                           HF_SHOW(only));
    if (products != hf_index_count(&engine->products) ||
        hf_index_count(&book->pending) != engine->pending)
        return wrong(book,
                     "%u products and %llu pending reservations, by the "
                     "events %u and %u",
                     hf_index_count(&engine->products),
                     (unsigned long long)engine->pending, products,
                     hf_index_count(&book->pending));
    return HF_OK;
}
