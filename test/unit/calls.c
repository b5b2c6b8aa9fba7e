/* calls.c - tests of recording by real threads, and of large histories. */
#include "support/calls.h"

#include <pthread.h>

#include "base/random.h"
#include "holdfast/status.h"
#include "support/linear.h"
#include "support/models.h"
#include "support/test.h"
#include "support/threads.h"

#define THREADS 4
#define CALLS   1000u /* of each thread */

/* A queue under a lock: the simplest that is right. */
struct queue {
    pthread_mutex_t mutex;
    uint64_t items[THREADS * CALLS]; /* (m) */
    size_t first;                    /* (m) */
    size_t end;                      /* (m) */
    struct calls *history;
};

static enum hf_status queue_take(struct queue *queue, uint64_t *value)
{
    enum hf_status status = HF_EMPTY;

    pthread_mutex_lock(&queue->mutex);
    if (queue->first < queue->end) {
        *value = queue->items[queue->first++];
        status = HF_OK;
    }
    pthread_mutex_unlock(&queue->mutex);
    return status;
}

static void work(void *context, int index)
{
    struct queue *queue = context;
    unsigned thread = (unsigned)index;
    struct hf_random random;

    hf_random_init(&random, test_seed() + thread);
    for (unsigned i = 0; i < CALLS; i++) {
        uint64_t value = thread * CALLS + i;
        struct call *call;

        if (hf_random_below(&random, 100) < 52) {
            call = calls_begin(queue->history, thread, MODEL_PUT, 0, value);
            pthread_mutex_lock(&queue->mutex);
            queue->items[queue->end++] = value;
            pthread_mutex_unlock(&queue->mutex);
            calls_end(queue->history, call, HF_OK, 0);
        } else {
            enum hf_status status;
            uint64_t got = 0;
            call = calls_begin(queue->history, thread, MODEL_TAKE_FIRST, 0, 0);
            status = queue_take(queue, &got);
            calls_end(queue->history, call, status, got);
        }
    }
}

TEST(a_queue_under_a_lock_is_linearizable)
{
    static const struct model_list shape = {.room = THREADS * CALLS};
    static struct queue queue;
    struct linear_model model = model_list(&shape);
    struct linear *checker = linear_new(&model, THREADS * CALLS);

    pthread_mutex_init(&queue.mutex, NULL);
    queue.history = calls_new(THREADS, CALLS);
    test_threads(THREADS, work, &queue);
    CHECK_EQ(calls_count(queue.history), THREADS * CALLS);
    CHECK_EQ(linear_check(checker, queue.history, stdout), LINEAR_YES);
    calls_free(queue.history);
    linear_free(checker);
    pthread_mutex_destroy(&queue.mutex);
}

/* Large histories with as much overlap as threads allow. */

struct plan {
    unsigned puts_percent;
    unsigned stuck;  /* thread 0 goes on this rarely; 0: as the others */
    unsigned filled; /* so many puts come first */
    bool stack;
};

static struct call calls[THREADS * CALLS];

struct simulated {
    uint64_t items[THREADS * CALLS];
    size_t first;
    size_t end;
};

static void happen(struct simulated *queue, bool stack, struct call *call)
{
    call->result = HF_OK;
    if (call->op == MODEL_PUT)
        queue->items[queue->end++] = call->argument;
    else if (queue->first == queue->end)
        call->result = HF_EMPTY;
    else
        call->value =
            stack ? queue->items[--queue->end] : queue->items[queue->first++];
}

static void simulate(const struct plan *plan)
{
    static struct simulated queue;
    struct call *running[THREADS] = {NULL};
    bool happened[THREADS] = {false};
    struct hf_random random;
    uint64_t ticket = 0;
    size_t begun = 0;
    size_t ended = 0;

    queue.first = queue.end = 0;
    hf_random_init(&random, test_seed());
    while (ended < THREADS * CALLS) {
        unsigned thread = (unsigned)hf_random_below(&random, THREADS);
        struct call *call = running[thread];

        if (thread == 0 && plan->stuck > 0 && begun < THREADS * CALLS &&
            hf_random_below(&random, plan->stuck) > 0)
            continue;
        if (call == NULL && begun < THREADS * CALLS) {
            bool put = begun < plan->filled ||
                       hf_random_below(&random, 100) < plan->puts_percent;
            uint32_t take = plan->stack ? MODEL_TAKE_LAST : MODEL_TAKE_FIRST;
            calls[begun] = (struct call){
                .thread = thread,
                .op = put ? MODEL_PUT : take,
                .argument = begun,
                .called_at = ++ticket,
            };
            running[thread] = &calls[begun++];
            happened[thread] = false;
        } else if (call != NULL && !happened[thread]) {
            happen(&queue, plan->stack, call);
            happened[thread] = true;
        } else if (call != NULL) {
            call->returned_at = ++ticket;
            running[thread] = NULL;
            ended++;
        }
    }
}

static void check_calls(enum linear_result expected)
{
    static const struct model_list shape = {.room = THREADS * CALLS};
    struct linear_model model = model_list(&shape);
    struct linear *checker = linear_new(&model, THREADS * CALLS);

    CHECK_EQ(linear_check_calls(checker, calls, THREADS * CALLS, NULL),
             expected);
    linear_free(checker);
}

static void check_plan(const struct plan *plan)
{
    simulate(plan);
    check_calls(LINEAR_YES);
}

TEST(large_histories_of_a_queue_are_decided)
{
    check_plan(&(struct plan){.puts_percent = 50});
    check_plan(&(struct plan){.puts_percent = 40});
    check_plan(&(struct plan){.puts_percent = 60});
    check_plan(&(struct plan){.puts_percent = 50, .stuck = 1000});
    check_plan(&(struct plan){.puts_percent = 0, .filled = 2000});
    check_plan(&(struct plan){.filled = 2000, .stuck = 500});
}

static bool strictly_before(const struct call *first, const struct call *then)
{
    return first->returned_at < then->called_at;
}

/* Exchanges what two takes returned, such that no order can explain it. */
static void swap_two(struct hf_random *random)
{
    for (;;) {
        struct call *one = &calls[hf_random_below(random, THREADS * CALLS)];
        struct call *other = &calls[hf_random_below(random, THREADS * CALLS)];

        if (one->op == MODEL_TAKE_FIRST && one->result == HF_OK &&
            other->op == MODEL_TAKE_FIRST && other->result == HF_OK &&
            strictly_before(one, other) && /* the argument is the index */
            strictly_before(&calls[one->value], &calls[other->value])) {
            uint64_t value = one->value;
            one->value = other->value;
            other->value = value;
            return;
        }
    }
}

TEST(one_swap_among_thousands_of_calls_is_found)
{
    struct hf_random random;

    hf_random_init(&random, test_seed());
    for (int i = 0; i < 10; i++) {
        simulate(&(struct plan){.puts_percent = 55});
        swap_two(&random);
        check_calls(LINEAR_NO);
    }
}

TEST(large_histories_of_a_shallow_stack_are_decided)
{
    check_plan(&(struct plan){.puts_percent = 35, .stack = true});
}

TEST(calls_are_collected_in_the_order_in_which_they_began)
{
    struct calls *history = calls_new(3, 4);
    struct call sorted[6];
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    for (unsigned round = 0; round < 2; round++) {
        calls_clear(history);
        for (unsigned i = 0; i < 6; i++) {
            unsigned thread = (5 - i) % 3;
            struct call *call = calls_begin(history, thread, 0, i, 10 + i);
            if (i < 5)
                calls_end(history, call, HF_FULL, i);
        }
        CHECK_EQ(calls_collect(history, sorted), 6);
        for (unsigned i = 0; i < 6; i++) {
            CHECK_EQ(sorted[i].key, i);
            CHECK_EQ(sorted[i].called_at, 1 + 2 * i);
            CHECK(sorted[i].returned_at == (i < 5 ? 2 + 2 * i : CALLS_PENDING));
        }
    }
    calls_print(history, out, NULL);
    fclose(out);
    CHECK(strstr(text, "       9-10     thread 1: op 0 key 4 (14) -> ") !=
          NULL);
    CHECK(
        strstr(text, "      11-       thread 0: op 0 key 5 (15) -> pending") !=
        NULL);
    free(text);
    calls_free(history);
}
