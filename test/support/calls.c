/* calls.c - calls of many threads, each in an array of its own. */
#include "support/calls.h"

#include "base/atomic.h"
#include "holdfast/status.h"
#include "support/test.h"

struct lane { /* one thread's calls; (t) that thread's while it records */
    _Alignas(HF_CACHE_LINE) struct call *calls; /* (i) */
    unsigned count;                             /* (t) */
    bool overflowed;                            /* (t) */
};

struct calls { /* (i) immutable  (a) atomic */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 ticket; /* (a) the last one */
    _Alignas(HF_CACHE_LINE) unsigned threads;            /* (i) */
    unsigned calls_per_thread;                           /* (i) */
    struct lane lanes[];
};

/* Not hf_alloc: a test that lets allocations fail means others. */
static void *zeroed(size_t bytes)
{
    void *memory = NULL;

    CHECK_EQ(posix_memalign(&memory, HF_CACHE_LINE, bytes), 0);
    memset(memory, 0, bytes);
    return memory;
}

struct calls *calls_new(unsigned threads, unsigned calls_per_thread)
{
    struct calls *history =
        zeroed(sizeof *history + threads * sizeof history->lanes[0]);

    history->threads = threads;
    history->calls_per_thread = calls_per_thread;
    for (unsigned i = 0; i < threads; i++)
        history->lanes[i].calls =
            zeroed((size_t)calls_per_thread * sizeof(struct call));
    return history;
}

void calls_free(struct calls *history)
{
    if (history == NULL)
        return;
    for (unsigned i = 0; i < history->threads; i++)
        free(history->lanes[i].calls);
    free(history);
}

void calls_clear(struct calls *history)
{
    for (unsigned i = 0; i < history->threads; i++) {
        history->lanes[i].count = 0;
        history->lanes[i].overflowed = false;
    }
    /* Nobody records: no order is needed. */
    hf_u64_store(&history->ticket, 0, __ATOMIC_RELAXED);
}

/* Acquire here and release in calls_end, no more: an end makes all before it
 * visible to every call that begins with a later ticket, which is what "came
 * after" means. Calls that overlap get no order from the tickets, so a missing
 * release or acquire of the structure itself remains visible to a thread
 * sanitizer. The counter changes by read-modify-write only, so a release is
 * seen through all later tickets. */
struct call *calls_begin(struct calls *history, unsigned thread, uint32_t op,
                         uint64_t key, uint64_t argument)
{
    struct lane *lane = &history->lanes[thread];
    struct call *call;

    if (lane->count == history->calls_per_thread) {
        lane->overflowed = true;
        return NULL;
    }
    call = &lane->calls[lane->count];
    *call = (struct call){
        .thread = thread,
        .op = op,
        .key = key,
        .argument = argument,
        .returned_at = CALLS_PENDING,
    };
    call->called_at = 1 + hf_u64_add(&history->ticket, 1, __ATOMIC_ACQUIRE);
    lane->count++;
    return call;
}

void calls_end(struct calls *history, struct call *call, uint64_t result,
               uint64_t value)
{
    /* Release: see calls_begin. */
    uint64_t ticket = 1 + hf_u64_add(&history->ticket, 1, __ATOMIC_RELEASE);

    if (call == NULL)
        return;
    call->result = result;
    call->value = value;
    call->returned_at = ticket;
}

size_t calls_count(const struct calls *history)
{
    size_t count = 0;

    for (unsigned i = 0; i < history->threads; i++)
        count += history->lanes[i].count;
    return count;
}

bool calls_overflowed(const struct calls *history)
{
    for (unsigned i = 0; i < history->threads; i++) {
        if (history->lanes[i].overflowed)
            return true;
    }
    return false;
}

/* Each lane is sorted already. It moves into `out` from behind, and what is
 * there and later makes room. */
static size_t merge_lane(struct call *out, size_t count,
                         const struct lane *lane)
{
    size_t from = count;
    size_t mine = lane->count;
    size_t to = count + mine;

    while (mine > 0) {
        if (from > 0 &&
            out[from - 1].called_at > lane->calls[mine - 1].called_at)
            out[--to] = out[--from];
        else
            out[--to] = lane->calls[--mine];
    }
    return count + lane->count;
}

size_t calls_collect(const struct calls *history, struct call *out)
{
    size_t count = 0;

    for (unsigned i = 0; i < history->threads; i++)
        count = merge_lane(out, count, &history->lanes[i]);
    return count;
}

static void print_result(const struct call *call, FILE *out)
{
    if (call->returned_at == CALLS_PENDING)
        fprintf(out, " -> pending");
    else if (call->result < HF_STATUS_COUNT)
        fprintf(out, " -> %s", hf_status_text((enum hf_status)call->result));
    else
        fprintf(out, " -> result %llu", (unsigned long long)call->result);
    if (call->returned_at != CALLS_PENDING && call->value == UINT64_MAX)
        fprintf(out, ", value not told");
    else if (call->returned_at != CALLS_PENDING)
        fprintf(out, ", value %llu", (unsigned long long)call->value);
}

void calls_print_call(const struct call *call, FILE *out,
                      const char *const *op_names)
{
    char until[24] = "";

    if (call->returned_at != CALLS_PENDING)
        snprintf(until, sizeof until, "%llu",
                 (unsigned long long)call->returned_at);
    fprintf(out,
            "  %6llu-%-6s thread %u: ", (unsigned long long)call->called_at,
            until, call->thread);
    if (op_names != NULL)
        fprintf(out, "%s", op_names[call->op]);
    else
        fprintf(out, "op %u", call->op);
    fprintf(out, " key %llu (%llu", (unsigned long long)call->key,
            (unsigned long long)call->argument);
    if (call->argument2 != 0)
        fprintf(out, ", %llu", (unsigned long long)call->argument2);
    fprintf(out, ")");
    print_result(call, out);
    fprintf(out, "\n");
}

void calls_print(const struct calls *history, FILE *out,
                 const char *const *op_names)
{
    size_t count = calls_count(history);
    struct call *calls = zeroed((count + 1) * sizeof *calls);

    calls_collect(history, calls);
    for (size_t i = 0; i < count; i++)
        calls_print_call(&calls[i], out, op_names);
    free(calls);
}
