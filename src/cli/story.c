/* story.c - an event as a line for people, or as JSON. */
#include "cli/story.h"

#include "cli/json.h"

static void print_json_text(const char *name, struct hf_bytes text)
{
    struct hf_buf quoted = {0};

    printf(", \"%s\": ", name);
    if (json_string(&quoted, text) == HF_OK)
        printf("%.*s", HF_SHOW(quoted));
    else
        printf("null");
    hf_buf_destroy(&quoted);
}

static void print_json_items(struct hf_bytes items)
{
    struct hold_item item;
    const char *comma = "";

    printf(", \"items\": [");
    for (size_t at = 0; hold_next_item(items, &at, &item); comma = ", ") {
        printf("%s{\"quantity\": %llu", comma,
               (unsigned long long)item.quantity);
        print_json_text("sku", item.sku);
        printf("}");
    }
    printf("]");
}

static void print_json(const struct hold_event *event, uint64_t now_us,
                       const struct hold_numbers *numbers)
{
    printf("{\"seq\": %llu, \"kind\": \"%s\", \"at_ms\": %llu",
           (unsigned long long)event->seq, hold_event_name(event->kind),
           (unsigned long long)(now_us / 1000));
    if (event->name.len > 0)
        print_json_text(
            hold_event_subject(event->kind) == SUBJECT_PRODUCT ? "sku" : "id",
            event->name);
    if (event->owner.len > 0)
        print_json_text("owner", event->owner);
    if (event->items.len > 0)
        print_json_items(event->items);
    if (event->note.len > 0)
        print_json_text("reason", event->note);
    if (numbers->exists)
        printf(", \"total\": %llu, \"available\": %llu, \"reserved\": %llu, "
               "\"sold\": %llu",
               (unsigned long long)numbers->total,
               (unsigned long long)(numbers->total - numbers->reserved -
                                    numbers->sold),
               (unsigned long long)numbers->reserved,
               (unsigned long long)numbers->sold);
    printf("}\n");
}

static void print_text(const struct hold_event *event, uint64_t now_us,
                       const struct hold_numbers *numbers)
{
    struct hold_item item;

    printf("%llu %s at_ms %llu", (unsigned long long)event->seq,
           hold_event_name(event->kind), (unsigned long long)(now_us / 1000));
    if (event->name.len > 0)
        printf(" %.*s", HF_SHOW(event->name));
    if (event->owner.len > 0)
        printf(" owner %.*s", HF_SHOW(event->owner));
    for (size_t at = 0; hold_next_item(event->items, &at, &item);)
        printf(" %.*s=%llu", HF_SHOW(item.sku),
               (unsigned long long)item.quantity);
    if (event->note.len > 0)
        printf(" reason %.*s", HF_SHOW(event->note));
    if (numbers->exists)
        printf(": total %llu, available %llu, reserved %llu, sold %llu",
               (unsigned long long)numbers->total,
               (unsigned long long)(numbers->total - numbers->reserved -
                                    numbers->sold),
               (unsigned long long)numbers->reserved,
               (unsigned long long)numbers->sold);
    printf("\n");
}

void story_event(void *context, const struct hold_event *event, uint64_t now_us,
                 const struct hold_book *book)
{
    struct story *story = context;
    struct hold_numbers numbers = {.exists = false};

    if (!event_is_about(event, &story->about))
        return;
    if (book != NULL && story->about.subject == SUBJECT_PRODUCT)
        numbers = hold_book_numbers(book, story->about.name);
    story->count++;
    if (story->json)
        print_json(event, now_us, &numbers);
    else
        print_text(event, now_us, &numbers);
}
