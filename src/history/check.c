/* check.c - from events to calls with windows, then one subject after the
 * other. */
#include "history/check.h"

#include <stdarg.h>

#include "base/memory.h"

#define START_SLACK_US  1000000u
#define REQUEST_KEEP_US 600000000u
#define ENDED_KEEP_US   600000000u
#define LISTINGS_MAX    1000u /* more are not looked through for each name */

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

uint32_t check_at(const struct check *c, uint64_t us)
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
    uint32_t next = us == UINT64_MAX ? c->end : check_at(c, us + 1);

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
    return check_at(c, until_us);
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

uint32_t check_gone(const struct check *c, uint32_t client)
{
    const struct gone *all = (const struct gone *)c->gone.data;

    for (size_t i = 0; i < c->gone.count; i++) {
        if (all[i].client == client)
            return all[i].at;
    }
    return CHECK_NEVER;
}

void *check_push(struct list *list, size_t size)
{
    if (list->count == list->cap) {
        size_t cap = list->cap == 0 ? 64 : list->cap * 2;
        void *data = hf_realloc(list->data, cap * size);
        if (data == NULL)
            return NULL;
        list->data = data;
        list->cap = cap;
    }
    char *place = list->data + list->count++ * size;
    memset(place, 0, size);
    return place;
}

enum hf_status check_number_given(struct check *c, uint64_t number, uint32_t lo,
                                  uint32_t hi, uint64_t id)
{
    struct number *place = check_push(&c->numbers, sizeof *place);

    if (place == NULL)
        return HF_NOMEM;
    *place = (struct number){number, lo, hi, id};
    return HF_OK;
}

/* From events to calls. */

static enum hf_status allocate(struct check *c)
{
    const struct history *history = c->history;
    size_t words = 0;
    size_t starts = 0;

    for (size_t i = 0; i < history->count; i++) {
        words += history->events[i].words;
        starts += history->events[i].kind == HISTORY_START;
    }
    c->calls = hf_alloc_zeroed((history->id_count + 1) * sizeof *c->calls);
    c->words = hf_alloc((words + 1) * sizeof *c->words);
    c->starts = hf_alloc((starts + 1) * sizeof *c->starts);
    return c->calls == NULL || c->words == NULL || c->starts == NULL ? HF_NOMEM
                                                                     : HF_OK;
}

/* A call's place in c->calls: calls are in the order of their events. */
static struct call *find_call(struct check *c, uint64_t id)
{
    uint32_t event = history_find(c->history, id)->event;

    return &c->calls[check_calls_until(c, event) - 1];
}

static void add_call(struct check *c, uint32_t at, size_t *word)
{
    const struct event *event = &c->history->events[at];
    struct call *call = &c->calls[c->count++];
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
                          .words = c->words + *word,
                          .word_count = event->words};
    for (uint32_t i = 0; i < event->words; i++)
        c->words[(*word)++] = history_word(c->history, &data);
}

static enum hf_status add_gone(struct check *c, uint32_t at)
{
    struct gone *gone = check_push(&c->gone, sizeof *gone);

    if (gone == NULL)
        return HF_NOMEM;
    *gone = (struct gone){c->history->events[at].client, at};
    return HF_OK;
}

static enum hf_status read_events(struct check *c)
{
    size_t word = 0;

    for (uint32_t i = 0; i < c->end; i++) {
        const struct event *event = &c->history->events[i];
        struct call *call;
        uint32_t *place;
        switch (event->kind) {
        case HISTORY_CALL:
            add_call(c, i, &word);
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
            c->starts[c->start_count++] = i;
            break;
        case HISTORY_DATE: /* the start before may not have read it yet */
            if (c->dated_at == CHECK_NEVER)
                c->dated_at =
                    c->start_count > 1 ? c->starts[c->start_count - 1] - 1 : i;
            break;
        case HISTORY_GONE:
            if (add_gone(c, i) != HF_OK)
                return HF_NOMEM;
            break;
        case HISTORY_FAILED:
            place = check_push(&c->failed, sizeof *place);
            if (place == NULL)
                return HF_NOMEM;
            *place = i;
            break;
        default:
            break;
        }
    }
    return HF_OK;
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
 * in the run whose calls begin at `first`, and that began behind `from`. */
static uint32_t find_failure(const struct check *c, size_t first, uint32_t from)
{
    const uint32_t *marks = (const uint32_t *)(const void *)c->failed.data;
    uint32_t run_end = c->calls[first].run_end;
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
            failed = find_failure(c, i, run_end);
            run_end = call->run_end;
        }
        uint32_t told =
            call->sent_at < call->answer_at ? call->sent_at : call->answer_at;
        if (failed != CHECK_NEVER && told >= failed) {
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
        uint32_t told =
            call->sent_at < call->answer_at ? call->sent_at : call->answer_at;
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

static enum hf_status find_flushes(struct check *c)
{
    size_t count = 0;

    for (size_t i = 0; i < c->count; i++)
        count += c->calls[i].verb == VERB_FLUSHALL && c->calls[i].may;
    if (count == 0)
        return HF_OK;
    c->flushes = hf_alloc(count * sizeof *c->flushes);
    if (c->flushes == NULL)
        return HF_NOMEM;
    for (size_t i = 0; i < c->count; i++) {
        const struct call *call = &c->calls[i];
        if (call->verb == VERB_FLUSHALL && call->may)
            c->flushes[c->flush_count++] =
                (struct window){call->lo, call->hi, call->sure, call->id};
    }
    return HF_OK;
}

static enum hf_status find_listings(struct check *c)
{
    for (size_t i = 0; i < c->count; i++) {
        if (!check_is_whole(&c->calls[i]) || c->listings.count == LISTINGS_MAX)
            continue;
        const struct call **place = check_push(&c->listings, sizeof *place);
        if (place == NULL)
            return HF_NOMEM;
        *place = &c->calls[i];
    }
    return HF_OK;
}

static enum hf_status run(struct check *c)
{
    static enum hf_status (*const subjects[])(struct check *) = {
        check_requests, check_locks,  check_reservations, check_stock,
        check_fences,   check_limits, check_answers,      check_numbers,
    };
    enum hf_status status = allocate(c);

    if (status != HF_OK)
        return status;
    status = read_events(c);
    for (size_t i = 0; i < c->count; i++) {
        check_parse(c, &c->calls[i]);
        c->report->answers += c->calls[i].answer_at != CHECK_NEVER;
    }
    c->report->calls = c->count;
    find_runs(c);
    doubt_failed(c);
    find_told(c);
    find_windows(c);
    if (status == HF_OK)
        status = find_flushes(c);
    if (status == HF_OK)
        status = find_listings(c);
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
        if (status == HF_OK)
            status = subjects[i](c);
    }
    return status;
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
    hf_free(check.calls);
    hf_free(check.words);
    hf_free(check.starts);
    hf_free(check.flushes);
    hf_free(check.numbers.data);
    hf_free(check.gone.data);
    hf_free(check.failed.data);
    hf_free(check.listings.data);
    hf_free(check.bookings.data);
    hf_free(check.shares.data);
    return status;
}
