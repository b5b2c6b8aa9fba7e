/* check.c - from events to calls with windows, then one subject after the
 * other. */
#include "history/check.h"

#include <stdarg.h>

#include "base/memory.h"

#define START_SLACK_US  1000000u
#define REQUEST_KEEP_US 600000000u
#define ENDED_KEEP_US   600000000u
#define LISTINGS_MAX    1000u /* more are not looked through for each name */

/* One allocation. */
struct block {
    struct block *next;
    char bytes[];
};

void check_found(struct check *c, const char *rule, uint64_t id, uint64_t other,
                 const char *format, ...)
{
    struct history_report *report = c->report;
    va_list args;

    report->violations++;
    if (report->count == HISTORY_REPORT_MAX)
        return;
    size_t n = report->count++;
    snprintf(report->found[n].rule, sizeof report->found[n].rule, "%s", rule);
    report->found[n].id = id;
    report->found[n].other = other;
    va_start(args, format);
    vsnprintf(report->found[n].text, sizeof report->found[n].text, format,
              args);
    va_end(args);
}

/* Positions and instants. */

/* The first event at that instant or later. */
static uint32_t event_at(const struct check *c, uint64_t us)
{
    uint32_t low = 0;
    uint32_t high = c->end;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (c->history->events[middle].time_us < us)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t check_last(const struct check *c, uint64_t us)
{
    uint32_t next = us == UINT64_MAX ? c->end : event_at(c, us + 1);

    return next == 0 || next == c->end ? next : next - 1;
}

uint64_t check_us(const struct check *c, uint32_t at)
{
    return at < c->end ? c->history->events[at].time_us : UINT64_MAX;
}

size_t check_below(const void *items, size_t count, size_t bytes, size_t field,
                   uint64_t bound)
{
    size_t low = 0;
    size_t high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint32_t key;
        memcpy(&key, (const char *)items + middle * bytes + field, sizeof key);
        if (key < bound)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t check_next_start(const struct check *c, uint32_t at)
{
    return check_below(c->starts, c->start_count, sizeof *c->starts, 0,
                       (uint64_t)at + 1);
}

size_t check_calls_until(const struct check *c, uint32_t at)
{
    return check_below(c->calls, c->count, sizeof *c->calls,
                       offsetof(struct call, call_at), (uint64_t)at + 1);
}

uint32_t check_until(const struct check *c, uint32_t from, uint64_t until_us)
{
    for (size_t i = check_next_start(c, from); i < c->start_count; i++) {
        if (check_us(c, c->starts[i]) >= until_us)
            break;
        if (c->dated_at < c->starts[i])
            return c->starts[i];
        if (until_us < c->opts.start_slack_us)
            return from;
        until_us -= c->opts.start_slack_us;
    }
    return event_at(c, until_us);
}

uint64_t check_kept_us(const struct check *c, uint32_t from, uint32_t at,
                       uint64_t until_us)
{
    for (size_t i = check_next_start(c, from); i < c->start_count; i++) {
        if (c->starts[i] > at)
            break;
        if (c->dated_at < c->starts[i] || until_us < c->opts.start_slack_us)
            return 0;
        until_us -= c->opts.start_slack_us;
    }
    return until_us;
}

uint64_t check_over_us(const struct check *c, uint32_t at, uint64_t ttl_ms)
{
    uint64_t over_us;

    if (at >= c->end ||
        __builtin_mul_overflow(ttl_ms + 1, (uint64_t)US_PER_MS, &over_us) ||
        __builtin_add_overflow(over_us, check_us(c, at), &over_us))
        return UINT64_MAX;
    for (size_t i = check_next_start(c, at); i < c->start_count; i++) {
        if (c->dated_at < c->starts[i])
            return UINT64_MAX;
        /* its date may be behind, and what was over is not yet */
        if (check_us(c, c->starts[i]) < over_us + c->opts.start_slack_us)
            over_us += c->opts.start_slack_us;
    }
    return over_us;
}

bool check_flushed(const struct check *c, uint32_t lo, uint32_t hi)
{
    for (size_t i = 0; i < c->flush_count; i++) {
        if (c->flushes[i].lo <= hi && c->flushes[i].hi >= lo)
            return true;
    }
    return false;
}

uint32_t check_next_flush(const struct check *c, uint32_t at)
{
    uint32_t next = c->end;

    for (size_t i = 0; i < c->flush_count; i++) {
        if (c->flushes[i].hi >= at && c->flushes[i].lo < next)
            next = c->flushes[i].lo;
    }
    return next;
}

uint32_t check_gone(const struct check *c, uint32_t client, bool seen)
{
    const struct gone *all = c->gone.data;

    for (size_t i = 0; i < c->gone.count; i++) {
        if (all[i].client == client && (all[i].told || seen))
            return all[i].at;
    }
    return CHECK_NEVER;
}

/* Memory, and what is kept in it. */

void *check_alloc(struct check *c, size_t bytes)
{
    struct block *block = hf_alloc_zeroed(sizeof *block + bytes);

    if (block == NULL)
        longjmp(c->no_memory, 1);
    block->next = c->blocks;
    c->blocks = block;
    return block->bytes;
}

void *check_push(struct check *c, struct list *list, size_t size)
{
    if (list->count == list->cap) {
        size_t cap = list->cap == 0 ? 64 : list->cap * 2;
        void *data = check_alloc(c, cap * size);
        if (list->count > 0)
            memcpy(data, list->data, list->count * size);
        list->data = data;
        list->cap = cap;
    }
    return memset((char *)list->data + list->count++ * size, 0, size);
}

void check_refer(struct check *c, struct list *refs, struct hf_bytes name,
                 uint64_t number, const void *thing)
{
    struct ref *ref = check_push(c, refs, sizeof *ref);

    *ref = (struct ref){{name, {number}}, thing};
}

void check_number_given(struct check *c, uint64_t number, uint32_t lo,
                        uint32_t hi, uint64_t id)
{
    struct number *place = check_push(c, &c->numbers, sizeof *place);

    *place = (struct number){{.by = {number}}, lo, hi, id};
}

static int by_key(const void *a, const void *b)
{
    const struct key *left = a;
    const struct key *right = b;
    int order = check_compare(left->name, right->name);

    for (size_t i = 0; order == 0 && i < 3; i++)
        order = (left->by[i] > right->by[i]) - (left->by[i] < right->by[i]);
    return order;
}

void check_sort(struct list *list, size_t size)
{
    if (list->count > 0)
        qsort(list->data, list->count, size, by_key);
}

void check_groups(struct check *c, struct list *list, size_t size,
                  void (*judge)(struct check *c, void *items, size_t count))
{
    char *first = list->data;

    check_sort(list, size);
    for (size_t left = list->count, count = 0; left > 0; left -= count) {
        const struct key *key = (const struct key *)first;
        count = 1;
        while (count < left &&
               hf_bytes_equal(key->name,
                              ((struct key *)(first + count * size))->name))
            count++;
        judge(c, first, count);
        first += count * size;
    }
}

const struct ref *check_last_below(const struct list *refs, uint64_t bound)
{
    const struct ref *all = refs->data;
    size_t low = 0;
    size_t high = refs->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (all[middle].key.by[0] < bound)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? NULL : &all[low - 1];
}

/* From events to calls. */

/* A call's place in c->calls: calls are in the order of their events. */
static struct call *find_call(struct check *c, uint64_t id)
{
    uint32_t event = history_find(c->history, id)->event;

    return &c->calls[check_calls_until(c, event) - 1];
}

static void add_call(struct check *c, uint32_t at)
{
    const struct event *event = &c->history->events[at];
    struct call *call = &c->calls[c->count++];
    struct hf_bytes *words = check_alloc(c, event->words * sizeof *words);
    size_t data = event->data;

    *call = (struct call){.id = event->id,
                          .client = event->client,
                          .call_us = event->time_us,
                          .told_us = event->time_us,
                          .call_at = at,
                          .lo = at,
                          .run_end = c->end,
                          .answer_at = CHECK_NEVER,
                          .arrived_at = CHECK_NEVER,
                          .sent_at = CHECK_NEVER,
                          .words = words,
                          .word_count = event->words};
    for (uint32_t i = 0; i < event->words; i++)
        words[i] = history_word(c->history, &data);
}

static void read_events(struct check *c)
{
    struct list starts = {0};

    c->calls =
        check_alloc(c, hf_index_count(&c->history->ids) * sizeof *c->calls);
    for (uint32_t i = 0; i < c->end; i++) {
        const struct event *event = &c->history->events[i];
        struct call *call;
        switch (event->kind) {
        case HISTORY_CALL:
            add_call(c, i);
            break;
        case HISTORY_ARRIVED:
            find_call(c, event->id)->arrived_at = i;
            break;
        case HISTORY_SENT:
            find_call(c, event->id)->sent_at = i;
            break;
        case HISTORY_ANSWER:
            call = find_call(c, event->id);
            call->answer_at = i;
            call->reply =
                hf_bytes(c->history->bytes.data + event->data, event->len);
            break;
        case HISTORY_START:
            *(uint32_t *)check_push(c, &starts, sizeof i) = i;
            c->starts = starts.data;
            c->start_count = starts.count;
            break;
        case HISTORY_DATE: /* the start before may not have read it yet */
            if (c->dated_at == CHECK_NEVER)
                c->dated_at =
                    c->start_count > 1 ? c->starts[c->start_count - 1] - 1 : i;
            break;
        case HISTORY_CLOSED:
        case HISTORY_GONE:
            *(struct gone *)check_push(c, &c->gone, sizeof(struct gone)) =
                (struct gone){event->client, i, event->kind == HISTORY_GONE};
            break;
        case HISTORY_FAILED:
            *(uint32_t *)check_push(c, &c->failed, sizeof i) = i;
            break;
        default:
            break;
        }
    }
}

/* The calls from `from` up to `*tail` are of one run, which ended so. */
static void doubt(struct check *c, size_t from, size_t *tail, bool crashed,
                  bool broken)
{
    for (; *tail > from; --*tail) {
        c->calls[*tail - 1].doubtful = crashed || broken;
        c->calls[*tail - 1].broken = broken;
    }
}

/* Where each call's run ended, and whether what it told may be undone. */
static void find_runs(struct check *c)
{
    uint32_t run_end = c->end;
    bool crashed = false;
    bool broken = false;
    uint32_t at = c->end;
    size_t tail = c->count; /* calls from here on have their run */

    for (size_t i = c->count; i-- > 0;) {
        struct call *call = &c->calls[i];
        for (; at > call->call_at; at--) {
            enum history_event kind = c->history->events[at - 1].kind;
            broken = broken || kind == HISTORY_FAILED;
            if (kind != HISTORY_CRASH && kind != HISTORY_STOP)
                continue;
            doubt(c, i + 1, &tail, crashed, broken);
            run_end = at - 1;
            crashed = kind == HISTORY_CRASH;
            broken = false;
        }
        call->run_end = run_end;
        broken = broken || check_code(call, "JOURNAL");
    }
    doubt(c, 0, &tail, crashed, broken);
}

/* From where on it is not known what a restart will find: the first failure
 * in the run whose calls begin at `first`. A start before it may have failed,
 * too, and is a run without calls. */
static uint32_t find_failure(const struct check *c, size_t first)
{
    const uint32_t *marks = c->failed.data;
    uint32_t run_end = c->calls[first].run_end;
    size_t starts = check_next_start(c, run_end);
    uint32_t from = starts > 0 ? c->starts[starts - 1] : 0;
    uint32_t failed = CHECK_NEVER;

    for (size_t i = 0; i < c->failed.count && failed == CHECK_NEVER; i++) {
        if (marks[i] >= from && marks[i] < run_end)
            failed = marks[i];
    }
    for (size_t i = first; c->opts.failed_doubted && i < c->count &&
                           c->calls[i].run_end == run_end;
         i++) {
        if (check_code(&c->calls[i], "JOURNAL") &&
            c->calls[i].answer_at < failed)
            failed = c->calls[i].answer_at;
    }
    return failed;
}

/* What is told from there up to the end of the run may turn out otherwise. */
static void doubt_failed(struct check *c)
{
    uint32_t run_end = 0;
    uint32_t failed = CHECK_NEVER;

    for (size_t i = 0; i < c->count; i++) {
        const struct call *call = &c->calls[i];
        if (call->run_end != run_end) {
            failed = find_failure(c, i);
            run_end = call->run_end;
        }
        if (failed != CHECK_NEVER && check_told(call) >= failed) {
            c->calls[i].outcome = OUTCOME_UNKNOWN;
            c->calls[i].code.len = c->calls[i].reply.len = 0;
        }
    }
}

/* The call before it on the same connection, or NULL. Only asked where the
 * network is known, which is where clients are few. */
static const struct call *call_before(const struct check *c, size_t i)
{
    const struct call *call = &c->calls[i];

    while (i-- > 0) {
        if (c->calls[i].client == call->client)
            return &c->calls[i];
    }
    return NULL;
}

/* Times in a reply count from the moment it was made, which is when it was
 * sent, unless it had to wait behind others that the client did not take. */
static void find_told(struct check *c)
{
    for (size_t i = 0; i < c->count; i++) {
        struct call *call = &c->calls[i];
        bool known =
            call->arrived_at != CHECK_NEVER || call->sent_at != CHECK_NEVER;
        const struct call *before = known ? call_before(c, i) : NULL;
        if (call->arrived_at != CHECK_NEVER)
            call->told_us = check_us(c, call->arrived_at);
        call->alone =
            known && (before == NULL || before->answer_at < call->call_at);
        if (call->sent_at != CHECK_NEVER && call->alone) {
            uint64_t sent_us = check_us(c, call->sent_at);
            if (sent_us > call->told_us + c->opts.made_slack_us)
                call->told_us = sent_us - c->opts.made_slack_us;
        }
    }
}

static void find_windows(struct check *c)
{
    for (size_t i = 0; i < c->count; i++) {
        struct call *call = &c->calls[i];
        bool known = call->outcome != OUTCOME_UNKNOWN;
        uint32_t told = check_told(call);
        if (call->arrived_at != CHECK_NEVER)
            call->lo = call->arrived_at;
        call->hi = known && told < call->run_end ? told : call->run_end;
        if (call->hi < call->lo)
            call->hi = call->lo;
        call->first = call->lo;
        call->sure = call->outcome == OUTCOME_DONE;
        call->may = call->outcome != OUTCOME_REFUSED;
    }
}

static void find_flushes_and_listings(struct check *c)
{
    struct list flushes = {0};

    for (size_t i = 0; i < c->count; i++) {
        const struct call *call = &c->calls[i];
        if (call->verb == VERB_FLUSHALL && call->may)
            *(struct window *)check_push(c, &flushes, sizeof(struct window)) =
                (struct window){call->lo, call->hi, call->sure, call->id};
        if (check_is_whole(call) && c->listings.count < LISTINGS_MAX)
            *(const struct call **)check_push(c, &c->listings, sizeof call) =
                call;
    }
    c->flushes = flushes.data;
    c->flush_count = flushes.count;
}

/* HF_NOMEM from wherever memory was missing. */
static enum hf_status run(struct check *c)
{
    static void (*const subjects[])(struct check *) = {
        check_requests, check_members,  check_sessions,  check_locks,
        check_done,     check_leaders,  check_deadlocks, check_reservations,
        check_buyers,   check_expected, check_stock,     check_fences,
        check_limits,   check_answers,  check_steps,     check_keys,
        check_past,     check_numbers,
    };

    if (setjmp(c->no_memory) != 0)
        return HF_NOMEM;
    read_events(c);
    for (size_t i = 0; i < c->count; i++) {
        check_parse(c, &c->calls[i]);
        c->report->answers += c->calls[i].answer_at != CHECK_NEVER;
    }
    c->report->calls = c->count;
    find_runs(c);
    doubt_failed(c);
    find_told(c);
    find_windows(c);
    check_join(c);
    find_flushes_and_listings(c);
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++)
        subjects[i](c);
    return HF_OK;
}

enum hf_status history_check(const struct history *history,
                             const struct history_opts *opts,
                             struct history_report *out)
{
    struct check check = {
        .history = history,
        .report = out,
        .dated_at = CHECK_NEVER,
        .end = (uint32_t)history->count,
        .closed =
            history->count > 0 && history->events[0].kind == HISTORY_START,
    };

    if (opts != NULL)
        check.opts = *opts;
    if (check.opts.start_slack_us == 0)
        check.opts.start_slack_us = START_SLACK_US;
    if (check.opts.request_keep_us == 0)
        check.opts.request_keep_us = REQUEST_KEEP_US;
    if (check.opts.ended_keep_us == 0)
        check.opts.ended_keep_us = ENDED_KEEP_US;
    memset(out, 0, sizeof *out);
    enum hf_status status = run(&check);
    while (check.blocks != NULL) {
        struct block *block = check.blocks;
        check.blocks = block->next;
        hf_free(block);
    }
    return status;
}
