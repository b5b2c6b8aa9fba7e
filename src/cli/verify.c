/* verify.c - replays a journal offline and prints what that proved. */
#include "cli/verify.h"

#include "cli/args.h"
#include "cli/json.h"
#include "cli/story.h"
#include "history/history.h"
#include "journal/journal.h"

/* The journal drives a proof as it would drive an engine. */

struct verify {
    struct hf_hash_seed seed;
    struct feed_scan *feed;
    struct story *story; /* NULL: none is asked for */
    struct proof_result result;
};

static void *create(void *context)
{
    struct verify *verify = context;
    struct proof *proof = proof_new(verify->seed, &verify->result);

    if (proof != NULL && verify->feed != NULL) {
        proof_compare(proof, verify->feed);
        verify->feed = NULL; /* the proof's */
    }
    if (proof != NULL && verify->story != NULL)
        proof_watch(proof, story_event, verify->story);
    return proof;
}

/* Numbers with commas; the text lasts for the next few calls. */
static const char *grouped(uint64_t number)
{
    static char texts[8][32];
    static unsigned next;
    char *text = texts[next++ % 8];
    char digits[HF_DIGITS_MAX];
    size_t len = hf_print_u64(digits, number);
    size_t at = 0;

    for (size_t i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = '\0';
    return text;
}

static void print_feed(const struct proof_result *r)
{
    if (r->feed_files == 0) {
        printf("  feed: there are no files of events\n");
        return;
    }
    printf(
        "  feed: %s events in %s files are those of the replay, in the same "
        "order;\n    %s more are older than the journal, %s of it are not in "
        "them\n",
        grouped(r->feed_same), grouped(r->feed_files), grouped(r->feed_before),
        grouped(r->feed_missing));
    if (r->feed_beyond > 0)
        printf("    %s are beyond the journal's end: the next start drops "
               "them\n",
               grouped(r->feed_beyond));
}

/* Reservations: by RESERVE or offered; in time or within their grace. */
static uint64_t made(const struct proof_result *r)
{
    return r->events[EVENT_RESERVED] + r->events[EVENT_OFFERED];
}

static uint64_t confirmed(const struct proof_result *r)
{
    return r->events[EVENT_CONFIRMED] + r->events[EVENT_CONFIRMED_LATE];
}

static void print_text(const char *dir, const struct proof_result *r,
                       const struct log_stats *stats)
{
    const uint64_t *events = r->events;

    printf("%s: %s records, %s bytes on disk", dir, grouped(r->records),
           grouped(stats->disk_bytes));
    if (stats->snapshot_bytes > 0)
        printf(", after a snapshot of %s bytes",
               grouped(stats->snapshot_bytes));
    printf("\n");
    if (stats->cut_bytes > 0)
        printf("  the last %s bytes are a write cut short by a crash; they do "
               "not count\n",
               grouped(stats->cut_bytes));
    if (stats->unclean)
        printf("  the end is not that of a clean stop: the next start skips "
               "sequence numbers\n");
    printf("proved by replaying them:\n");
    printf("  events: %s, numbers strictly increasing from above %s to %s\n",
           grouped(r->event_count), grouped(r->first_seq),
           grouped(r->last_seq));
    printf("  locks: %s granted, tokens strictly increasing, none while "
           "another hold lasted;\n    %s re-entered, %s renewed, %s released, "
           "%s expired at their time; %s held now\n",
           grouped(events[EVENT_LOCK_GRANTED]),
           grouped(events[EVENT_LOCK_REENTERED]),
           grouped(events[EVENT_LOCK_RENEWED]),
           grouped(events[EVENT_LOCK_RELEASED]),
           grouped(events[EVENT_LOCK_EXPIRED]), grouped(r->counts.locks));
    printf("  products: %s now; their numbers follow from the events above "
           "%s, step by step:\n    available + reserved + sold = total, none "
           "negative, after each of %s changes\n",
           grouped(r->counts.products), grouped(r->first_seq),
           grouped(r->product_checks));
    printf("  reservations: %s made, %s confirmed, %s cancelled, %s expired, "
           "each ended once,\n    no unit promised twice; %s pending now\n",
           grouped(made(r)), grouped(confirmed(r)),
           grouped(events[EVENT_CANCELLED]),
           grouped(events[EVENT_RESERVATION_EXPIRED]),
           grouped(r->counts.pending));
    print_feed(r);
    printf("  state: every invariant holds at the end, digest %016llx\n",
           (unsigned long long)r->digest);
}

static void print_json(const char *dir, const struct proof_result *r,
                       const struct log_stats *stats)
{
    const struct {
        const char *name;
        uint64_t value;
    } fields[] = {
        {"records", r->records},
        {"disk_bytes", stats->disk_bytes},
        {"snapshot_bytes", stats->snapshot_bytes},
        {"cut_bytes", stats->cut_bytes},
        {"unclean", stats->unclean},
        {"events", r->event_count},
        {"first_sequence", r->first_seq},
        {"last_sequence", r->last_seq},
        {"locks_granted", r->events[EVENT_LOCK_GRANTED]},
        {"locks_expired", r->events[EVENT_LOCK_EXPIRED]},
        {"locks_held", r->counts.locks},
        {"products", r->counts.products},
        {"product_checks", r->product_checks},
        {"reserved", made(r)},
        {"confirmed", confirmed(r)},
        {"cancelled", r->events[EVENT_CANCELLED]},
        {"expired", r->events[EVENT_RESERVATION_EXPIRED]},
        {"pending", r->counts.pending},
        {"feed_files", r->feed_files},
        {"feed_events", r->feed_same},
        {"feed_older", r->feed_before},
        {"feed_beyond", r->feed_beyond},
        {"feed_missing", r->feed_missing},
    };

    printf("{\"ok\": true, \"dir\": ");
    json_print(dir);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        printf(", \"%s\": %llu", fields[i].name,
               (unsigned long long)fields[i].value);
    printf(", \"digest\": \"%016llx\"}\n", (unsigned long long)r->digest);
}

int verify_failed(const char *dir, const char *text, bool json)
{
    if (json) {
        printf("{\"ok\": false, \"error\": ");
        json_print(text);
        printf("}\n");
    } else {
        fprintf(stderr, "holdfast verify: %s%s%s\n", dir != NULL ? dir : "",
                dir != NULL ? ": " : "", text);
    }
    return CLI_FAILED;
}

/* `story`: what is printed instead of the proof, if all is well. */
static int verify(const char *dir, bool json, struct story *story)
{
    static struct verify verify;
    /* without save: reading makes no snapshot */
    struct journal_machine machine = {.context = &verify,
                                      .create = create,
                                      .destroy = proof_free,
                                      .apply = proof_apply,
                                      .load = proof_load};
    struct log_stats stats = {0};
    char error[JOURNAL_ERROR_MAX] = "";
    void *proof = NULL;

    verify.story = story;
    enum hf_status status = feed_scan_open(&verify.feed, dir, error);
    if (status == HF_OK)
        status = journal_read(dir, &machine, &proof, &stats, error);
    if (status == HF_OK)
        status = proof_finish(proof, stats.unclean);
    feed_scan_close(verify.feed);
    verify.feed = NULL;
    proof_free(proof);
    if (verify.result.wrong[0] != '\0')
        return verify_failed(dir, verify.result.wrong, json);
    if (status != HF_OK)
        return verify_failed(
            dir, error[0] != '\0' ? error : hf_status_text(status), json);
    if (stats.disk_bytes == 0)
        return verify_failed(dir, "there is no journal in it", json);
    if (story != NULL && json)
        return CLI_DONE;
    if (story != NULL)
        printf("%s events; those above %s are proved by a replay, up to %s\n",
               grouped(story->count), grouped(verify.result.first_seq),
               grouped(verify.result.last_seq));
    else if (json)
        print_json(dir, &verify.result, &stats);
    else
        print_text(dir, &verify.result, &stats);
    return CLI_DONE;
}

static const char verify_about[] =
    "Reads the journal in DIR without changing it, replays all of it and\n"
    "checks every step: sequence numbers and fence tokens only go up, no\n"
    "lock is granted while another holds it; the numbers of each product\n"
    "follow from the events, add up after every change, and no unit is\n"
    "promised twice; reservations end once; the files of events have the\n"
    "events of the replay and no others. Prints what that proved, and from\n"
    "which number on: older changes are in the snapshot that is kept. Exits\n"
    "1 if something is wrong or a file is damaged, and says where.\n"
    "\n"
    "With --sku or --reservation it prints what happened to one of them,\n"
    "oldest first, a line for each change; for a product also its numbers\n"
    "after it. Events from before the snapshot come from the files of\n"
    "events, as far as they are kept, without numbers.\n"
    "\n"
    "With --history it checks a FILE of `holdfast bench --record`: whether\n"
    "a server that keeps its promises can have given these answers, by\n"
    "the calls, the answers and their times alone. Prints how many it\n"
    "checked, and each violation with its story. What the server forgets is\n"
    "no violation: say so if its settings are not the defaults.\n";

#define KEEP_MS_MAX UINT64_C(1000000000000)

/* True if it is a name that there can be. */
static bool fits(const char *name, size_t max)
{
    return name == NULL || (name[0] != '\0' && strlen(name) <= max);
}

int verify_main(int argc, char **argv)
{
    bool json = false;
    const char *history = NULL;
    const char *sku = NULL;
    const char *reservation = NULL;
    uint64_t request_keep_ms = 0; /* as by default */
    uint64_t ended_keep_ms = 0;
    bool full = false;
    const struct args_option options[] = {
        ARGS_TEXT("sku", "NAME", "print the history of a product", sku),
        ARGS_TEXT("reservation", "ID", "print the history of a reservation",
                  reservation),
        ARGS_TEXT("history", "FILE", "check what clients were told instead",
                  history),
        ARGS_NUMBER("request-keep-ms", "MS",
                    "history: the server's setting (600000)", request_keep_ms,
                    1, KEEP_MS_MAX),
        ARGS_NUMBER("ended-keep-ms", "MS", "history: the same (600000)",
                    ended_keep_ms, 1, KEEP_MS_MAX),
        ARGS_FLAG("full",
                  "history: requests-max or reservations-max was reached",
                  full),
        ARGS_FLAG("json", "report as JSON", json),
    };
    const struct args_spec spec = {
        "verify",
        "DIR [--sku NAME | --reservation ID] [--json] | --history FILE",
        verify_about,
        "  holdfast verify ./data\n"
        "  holdfast verify --history run.txt\n"
        "  holdfast verify --json /backup/data\n"
        "  holdfast verify ./data --sku shoe-42\n",
        options,
        sizeof options / sizeof options[0],
    };
    struct args args;

    int result = args_parse(&spec, argc, argv, &args);
    if (result != ARGS_GO)
        return result;
    if (history != NULL && args.count == 0) {
        const struct history_opts opts = {
            .request_keep_us = request_keep_ms * 1000,
            .ended_keep_us = ended_keep_ms * 1000,
            .requests_full = full,
            .ended_full = full,
        };
        return verify_history(history, &opts, json);
    }
    if (args.count != 1 || history != NULL || full)
        return args_wrong(&spec, "one DIR or --history FILE is needed");
    if ((sku != NULL && reservation != NULL) || !fits(sku, HOLD_SKU_MAX) ||
        !fits(reservation, HOLD_ID_MAX))
        return args_wrong(&spec, "one --sku or --reservation may be given");
    struct story story = {.about = {SUBJECT_PRODUCT, hf_bytes("", 0)},
                          .json = json};
    if (sku != NULL)
        story.about.name = hf_bytes_text(sku);
    if (reservation != NULL)
        story.about = (struct event_about){SUBJECT_RESERVATION,
                                           hf_bytes_text(reservation)};
    return verify(args.words[0], json,
                  story.about.name.len > 0 ? &story : NULL);
}

int repair_main(int argc, char **argv)
{
    bool apply_it = false;
    const struct args_option options[] = {
        ARGS_FLAG("apply", "do it; without it nothing is changed", apply_it),
    };
    const struct args_spec spec = {
        "repair",
        "DIR [--apply]",
        "Shows what has to be dropped from the damaged journal in DIR so that\n"
        "it can be read again: everything from the first batch on that is\n"
        "damaged or missing. The next start then skips sequence numbers.\n"
        "With --apply it is dropped; the files are kept in DIR/dropped. No\n"
        "server may run on DIR.\n",
        "  holdfast repair ./data\n"
        "  holdfast repair ./data --apply\n",
        options,
        sizeof options / sizeof options[0],
    };
    struct args args;
    struct hf_buf text = {0};
    char error[JOURNAL_ERROR_MAX] = "";

    int result = args_parse(&spec, argc, argv, &args);
    if (result != ARGS_GO)
        return result;
    if (args.count != 1)
        return args_wrong(&spec, "one DIR is needed");
    if (journal_repair(args.words[0], apply_it, &text, error) == HF_OK) {
        printf("%.*s", (int)text.len, text.len > 0 ? text.data : "");
        result = CLI_DONE;
    } else {
        fprintf(stderr, "holdfast repair: %s\n", error);
        result = CLI_FAILED;
    }
    hf_buf_destroy(&text);
    return result;
}
