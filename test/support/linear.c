/* linear.c - search for an order that explains a history.
 *
 * The algorithm is Wing and Gong's with Lowe's memory of what was tried. The
 * events of a history, calls and returns, form one list in the order of their
 * tickets. The calls before the first return are those that may come next: no
 * call that has not been placed ended before they began. A call that is placed
 * is lifted out of the list with its return; going back puts both in again.
 *
 *   head - call a - call b - return b - call c - return a - return c
 *          `--- may be next ---'
 *
 * The search ends well when every call that returned is placed. It goes back
 * where a return is reached and nothing before it fits. A pair (set of placed
 * calls, state) that was left once is not entered again; a hash of 128 bits
 * stands for the pair. Should two pairs ever share one, a good history might
 * be refused, never a bad one accepted.
 */
#include "support/linear.h"

#include "support/test.h"

#define LIMIT_STEPS   1000000u
#define EXPLAIN_STEPS 100000u
#define SEEN_FIRST    256u
#define EXPLAIN_LAST  24u
#define NONE          UINT32_MAX

struct event { /* of call i: event 1 + 2 * i and, when it returned, the next */
    uint32_t next;
    uint32_t before;
};

struct placed {
    uint32_t call;
    bool settled;   /* a call that only reads: no other choice is better */
    size_t used;    /* bytes of the state before it */
    size_t undo_at; /* where that state is kept */
};

struct seen {
    uint64_t hash[2];
    uint32_t round; /* which check it belongs to; others are free places */
};

struct linear {
    struct linear_model model;
    size_t calls_max;
    size_t limit_steps;
    struct call *all;       /* the history's calls */
    const struct call *now; /* the part of it being checked */
    uint32_t count;         /* of those */
    uint32_t missing;       /* returned and not placed */
    struct event *events;   /* event 0 is the head of the list */
    uint32_t *returns;      /* calls by the ticket of their return */
    uint64_t *set;          /* a bit per placed call */
    uint32_t set_low;       /* words before it are full */
    uint32_t set_end;       /* words from it on are empty */
    struct placed *order;
    uint32_t depth;
    unsigned char *state;
    unsigned char *undo; /* the states before each placed call */
    size_t undo_bytes;
    size_t undo_end;
    struct seen *seen;
    size_t seen_size; /* a power of two */
    size_t seen_count;
    uint32_t round;
    uint32_t *best; /* the longest order that led nowhere */
    uint32_t best_depth;
    uint32_t *refused; /* what could have come next there */
    uint32_t refused_count;
};

static void *resized(void *old, size_t bytes)
{
    void *memory = realloc(old, bytes > 0 ? bytes : 1);

    CHECK(memory != NULL);
    return memory;
}

static void *zeroed(size_t count, size_t bytes)
{
    void *memory = calloc(count > 0 ? count : 1, bytes);

    CHECK(memory != NULL);
    return memory;
}

struct linear *linear_new(const struct linear_model *model, size_t calls_max)
{
    struct linear *checker = zeroed(1, sizeof *checker);

    CHECK(calls_max < NONE / 4);
    checker->model = *model;
    checker->calls_max = calls_max;
    checker->limit_steps = LIMIT_STEPS;
    checker->all = zeroed(calls_max, sizeof *checker->all);
    checker->events = zeroed(2 * calls_max + 1, sizeof *checker->events);
    checker->returns = zeroed(calls_max, sizeof *checker->returns);
    checker->set = zeroed(calls_max / 64 + 2, sizeof *checker->set);
    checker->order = zeroed(calls_max, sizeof *checker->order);
    checker->state = zeroed(model->state_bytes + 8, 1);
    checker->seen = zeroed(SEEN_FIRST, sizeof *checker->seen);
    checker->seen_size = SEEN_FIRST;
    checker->best = zeroed(calls_max, sizeof *checker->best);
    checker->refused = zeroed(calls_max, sizeof *checker->refused);
    return checker;
}

void linear_free(struct linear *checker)
{
    if (checker == NULL)
        return;
    free(checker->all);
    free(checker->events);
    free(checker->returns);
    free(checker->set);
    free(checker->order);
    free(checker->state);
    free(checker->undo);
    free(checker->seen);
    free(checker->best);
    free(checker->refused);
    free(checker);
}

void linear_limit(struct linear *checker, size_t steps)
{
    checker->limit_steps = steps;
}

/* The list of events. */

static uint32_t call_event(uint32_t call)
{
    return 1 + 2 * call;
}

static bool is_pending(const struct linear *checker, uint32_t call)
{
    return checker->now[call].returned_at == CALLS_PENDING;
}

static void append(struct linear *checker, uint32_t *last, uint32_t event)
{
    checker->events[*last].next = event;
    checker->events[event].before = *last;
    checker->events[event].next = NONE;
    *last = event;
}

static uint32_t sort_returns(struct linear *checker)
{
    uint32_t count = 0;

    /* By insertion: they come nearly sorted. */
    for (uint32_t i = 0; i < checker->count; i++) {
        uint64_t at = checker->now[i].returned_at;
        uint32_t to = count;

        if (at == CALLS_PENDING)
            continue;
        for (; to > 0; to--) {
            if (checker->now[checker->returns[to - 1]].returned_at <= at)
                break;
            checker->returns[to] = checker->returns[to - 1];
        }
        checker->returns[to] = i;
        count++;
    }
    return count;
}

static void build_events(struct linear *checker)
{
    uint32_t returns = sort_returns(checker);
    uint32_t last = 0;
    uint32_t call = 0;

    checker->events[0].next = NONE;
    for (uint32_t i = 0; i < returns; i++) {
        uint32_t ending = checker->returns[i];

        while (call < checker->count &&
               checker->now[call].called_at <= checker->now[ending].returned_at)
            append(checker, &last, call_event(call++));
        append(checker, &last, call_event(ending) + 1);
    }
    while (call < checker->count)
        append(checker, &last, call_event(call++));
    checker->missing = returns;
}

static void unlink_event(struct linear *checker, uint32_t event)
{
    struct event *one = &checker->events[event];

    checker->events[one->before].next = one->next;
    if (one->next != NONE)
        checker->events[one->next].before = one->before;
}

static void relink_event(struct linear *checker, uint32_t event)
{
    struct event *one = &checker->events[event];

    checker->events[one->before].next = event;
    if (one->next != NONE)
        checker->events[one->next].before = event;
}

static void lift(struct linear *checker, uint32_t call)
{
    unlink_event(checker, call_event(call));
    if (!is_pending(checker, call)) {
        unlink_event(checker, call_event(call) + 1);
        checker->missing--;
    }
}

static void put_back(struct linear *checker, uint32_t call)
{
    if (!is_pending(checker, call)) {
        relink_event(checker, call_event(call) + 1);
        checker->missing++;
    }
    relink_event(checker, call_event(call));
}

/* The set of placed calls, and what was seen. */

static void set_add(struct linear *checker, uint32_t call)
{
    checker->set[call / 64] |= 1ull << call % 64;
    while (checker->set[checker->set_low] == UINT64_MAX)
        checker->set_low++;
    if (checker->set_end <= call / 64)
        checker->set_end = call / 64 + 1;
}

static void set_remove(struct linear *checker, uint32_t call)
{
    checker->set[call / 64] &= ~(1ull << call % 64);
    if (checker->set_low > call / 64)
        checker->set_low = call / 64;
    while (checker->set_end > 0 && checker->set[checker->set_end - 1] == 0)
        checker->set_end--;
}

static void mix(uint64_t hash[2], uint64_t word)
{
    unsigned __int128 wide =
        (unsigned __int128)(hash[0] ^ word) * 0x9e3779b97f4a7c15u;
    uint64_t other = hash[1] ^ word * 0xff51afd7ed558ccdu;

    hash[0] = (uint64_t)wide ^ (uint64_t)(wide >> 64);
    hash[1] = (other << 29 | other >> 35) * 0xc4ceb9fe1a85ec53u + hash[0];
}

static size_t state_used(const struct linear *checker)
{
    size_t used = checker->model.state_bytes;

    if (checker->model.state_used != NULL)
        used =
            checker->model.state_used(checker->state, checker->model.context);
    CHECK(used <= checker->model.state_bytes);
    return used;
}

static void hash_now(const struct linear *checker, uint64_t hash[2])
{
    size_t used = state_used(checker);
    uint64_t word = 0;
    size_t i;

    hash[0] = 0x243f6a8885a308d3u;
    hash[1] = 0x13198a2e03707344u;
    mix(hash, (uint64_t)checker->set_low << 32 | checker->set_end);
    for (i = checker->set_low; i < checker->set_end; i++)
        mix(hash, checker->set[i]);
    for (i = 0; i + 8 <= used; i += 8) {
        memcpy(&word, checker->state + i, 8);
        mix(hash, word);
    }
    word = 0;
    memcpy(&word, checker->state + i, used - i);
    mix(hash, word);
}

static struct seen *find_seen(struct seen *seen, size_t size, uint32_t round,
                              const uint64_t hash[2])
{
    size_t at = (size_t)hash[1] & (size - 1);

    while (seen[at].round == round &&
           (seen[at].hash[0] != hash[0] || seen[at].hash[1] != hash[1]))
        at = (at + 1) & (size - 1);
    return &seen[at];
}

static void grow_seen(struct linear *checker)
{
    size_t size = 2 * checker->seen_size;
    struct seen *bigger = zeroed(size, sizeof *bigger);

    for (size_t i = 0; i < checker->seen_size; i++) {
        struct seen *old = &checker->seen[i];

        if (old->round == checker->round)
            *find_seen(bigger, size, checker->round, old->hash) = *old;
    }
    free(checker->seen);
    checker->seen = bigger;
    checker->seen_size = size;
}

/* True if the set and the state are new; they are known from now on. */
static bool first_time(struct linear *checker)
{
    uint64_t hash[2];
    struct seen *place;

    hash_now(checker, hash);
    place = find_seen(checker->seen, checker->seen_size, checker->round, hash);
    if (place->round == checker->round)
        return false;
    *place = (struct seen){{hash[0], hash[1]}, checker->round};
    if (++checker->seen_count > checker->seen_size / 2)
        grow_seen(checker);
    return true;
}

/* The search. */

static void save_state(struct linear *checker, struct placed *placed)
{
    placed->used = state_used(checker);
    placed->undo_at = checker->undo_end;
    if (checker->undo_bytes < placed->undo_at + placed->used) {
        checker->undo_bytes = 2 * (placed->undo_at + placed->used);
        checker->undo = resized(checker->undo, checker->undo_bytes);
    }
    memcpy(checker->undo + placed->undo_at, checker->state, placed->used);
}

static void restore_state(struct linear *checker, const struct placed *placed)
{
    memcpy(checker->state, checker->undo + placed->undo_at, placed->used);
}

static bool apply(struct linear *checker, uint32_t call)
{
    const struct linear_model *model = &checker->model;

    return is_pending(checker, call)
               ? model->apply_pending(checker->state, &checker->now[call],
                                      model->context)
               : model->apply(checker->state, &checker->now[call],
                              model->context);
}

enum placing { REFUSED, PLACED, KNOWN_BAD };

/* Places the call next if it fits there and leads to something new. */
static enum placing place(struct linear *checker, uint32_t call)
{
    const struct linear_model *model = &checker->model;
    struct placed *placed = &checker->order[checker->depth];

    placed->call = call;
    save_state(checker, placed);
    if (!apply(checker, call)) {
        restore_state(checker, placed);
        return REFUSED;
    }
    placed->settled = !is_pending(checker, call) && model->reads_only != NULL &&
                      model->reads_only(&checker->now[call], model->context);
    set_add(checker, call);
    if (!first_time(checker)) {
        set_remove(checker, call);
        restore_state(checker, placed);
        return placed->settled ? KNOWN_BAD : REFUSED;
    }
    lift(checker, call);
    checker->undo_end = placed->undo_at + placed->used;
    checker->depth++;
    return PLACED;
}

/* Keeps the longest order, to explain a failure by. */
static void remember_best(struct linear *checker)
{
    uint32_t event = checker->events[0].next;

    if (checker->depth < checker->best_depth ||
        (checker->depth == checker->best_depth && checker->refused_count > 0))
        return;
    checker->best_depth = checker->depth;
    for (uint32_t i = 0; i < checker->depth; i++)
        checker->best[i] = checker->order[i].call;
    checker->refused_count = 0;
    for (; event != NONE && event % 2 == 1; event = checker->events[event].next)
        checker->refused[checker->refused_count++] = (event - 1) / 2;
}

/* Goes back to the last choice; returns the event to try next, NONE if there
 * is no choice left. A call that only reads was no choice: had it been placed
 * later instead, the same order with it here would do as well. */
static uint32_t go_back(struct linear *checker)
{
    remember_best(checker);
    while (checker->depth > 0) {
        const struct placed *placed = &checker->order[--checker->depth];

        put_back(checker, placed->call);
        set_remove(checker, placed->call);
        restore_state(checker, placed);
        checker->undo_end = placed->undo_at;
        if (!placed->settled)
            return checker->events[call_event(placed->call)].next;
    }
    return NONE;
}

static enum linear_result search(struct linear *checker, size_t steps_max)
{
    uint32_t event = checker->events[0].next;

    while (checker->missing > 0) {
        enum placing placing = KNOWN_BAD;

        if (event % 2 == 1) /* a call; NONE is odd but cannot be here */
            placing = place(checker, (event - 1) / 2);
        if (placing == PLACED) {
            event = checker->events[0].next;
        } else if (placing == REFUSED) {
            event = checker->events[event].next;
        } else {
            event = go_back(checker);
            if (event == NONE)
                return LINEAR_NO;
        }
        if (checker->seen_count > steps_max)
            return LINEAR_UNKNOWN;
    }
    return LINEAR_YES;
}

static void begin_search(struct linear *checker, const struct call *calls,
                         size_t count)
{
    checker->now = calls;
    checker->count = (uint32_t)count;
    checker->depth = 0;
    checker->undo_end = 0;
    checker->seen_count = 0;
    checker->round++;
    checker->best_depth = 0;
    checker->refused_count = 0;
    memset(checker->set, 0, (count / 64 + 2) * sizeof *checker->set);
    checker->set_low = 0;
    checker->set_end = 0;
    memset(checker->state, 0, checker->model.state_bytes);
    if (checker->model.init != NULL)
        checker->model.init(checker->state, checker->model.context);
    build_events(checker);
}

static void print_best(const struct linear *checker, FILE *out)
{
    const char *const *names = checker->model.op_names;
    uint32_t from = checker->best_depth > EXPLAIN_LAST
                        ? checker->best_depth - EXPLAIN_LAST
                        : 0;

    fprintf(out, "the longest order found explains %u of %u calls%s:\n",
            checker->best_depth, checker->count, from > 0 ? ", at last" : "");
    for (uint32_t i = from; i < checker->best_depth; i++)
        calls_print_call(&checker->now[checker->best[i]], out, names);
    fprintf(out, "none of these can come next:\n");
    for (uint32_t i = 0; i < checker->refused_count; i++)
        calls_print_call(&checker->now[checker->refused[i]], out, names);
}

static void clear_hints(struct call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++)
        memset(calls[i].hint, 0, sizeof calls[i].hint);
}

static void explain_part(struct linear *checker, struct call *calls,
                         size_t count, enum linear_result result, FILE *out)
{
    if (result == LINEAR_NO)
        fprintf(out, "not linearizable: ");
    else
        fprintf(out, "gave up after %zu steps: ", checker->seen_count);
    /* Once more without hints, which refuse calls before one can see why. */
    if (checker->model.prepare != NULL) {
        clear_hints(calls, count);
        begin_search(checker, calls, count);
        CHECK(search(checker, EXPLAIN_STEPS) != LINEAR_YES ||
              result != LINEAR_NO);
    }
    remember_best(checker);
    print_best(checker, out);
}

static enum linear_result check_part(struct linear *checker, struct call *calls,
                                     size_t count, FILE *explain)
{
    const struct linear_model *model = &checker->model;
    enum linear_result result = LINEAR_NO;

    clear_hints(calls, count);
    if (model->prepare == NULL ||
        model->prepare(calls, count, model->context)) {
        begin_search(checker, calls, count);
        result = search(checker, checker->limit_steps);
    }
    if (result != LINEAR_YES && explain != NULL)
        explain_part(checker, calls, count, result, explain);
    return result;
}

static enum linear_result give_up(FILE *explain, const char *why)
{
    if (explain != NULL)
        fprintf(explain, "not checked: %s\n", why);
    return LINEAR_UNKNOWN;
}

static int by_key(const void *left, const void *right)
{
    const struct call *a = left;
    const struct call *b = right;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->called_at < b->called_at ? -1 : a->called_at > b->called_at;
}

/* Checks checker->all[0 .. count - 1], object by object. */
static enum linear_result check_all(struct linear *checker, size_t count,
                                    FILE *explain)
{
    enum linear_result worst = LINEAR_YES;
    size_t end;

    for (size_t i = 0; i < count; i++) {
        if (checker->all[i].returned_at == CALLS_PENDING &&
            checker->model.apply_pending == NULL)
            return give_up(explain, "the model knows no pending calls");
    }
    if (!checker->model.by_key)
        return check_part(checker, checker->all, count, explain);
    qsort(checker->all, count, sizeof *checker->all, by_key);
    for (size_t from = 0; from < count; from = end) {
        enum linear_result result;

        end = from + 1;
        while (end < count && checker->all[end].key == checker->all[from].key)
            end++;
        result = check_part(checker, checker->all + from, end - from, explain);
        if (result == LINEAR_NO)
            return LINEAR_NO;
        if (result == LINEAR_UNKNOWN)
            worst = LINEAR_UNKNOWN;
    }
    return worst;
}

enum linear_result linear_check(struct linear *checker,
                                const struct calls *history, FILE *explain)
{
    if (calls_overflowed(history))
        return give_up(explain, "a thread made more calls than it has room");
    if (calls_count(history) > checker->calls_max)
        return give_up(explain, "more calls than linear_new() was told");
    return check_all(checker, calls_collect(history, checker->all), explain);
}

enum linear_result linear_check_calls(struct linear *checker,
                                      const struct call *calls, size_t count,
                                      FILE *explain)
{
    if (count > checker->calls_max)
        return give_up(explain, "more calls than linear_new() was told");
    if (count > 0)
        memcpy(checker->all, calls, count * sizeof *calls);
    return check_all(checker, count, explain);
}
