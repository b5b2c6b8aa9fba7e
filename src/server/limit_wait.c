/* limit_wait.c - calls of LIMIT that wait for their permits.
 *
 * Those who want the same of the same pair are a queue, in the order in which
 * they came. Only the first is tried, at the instant at which it can be allowed
 * if nobody else takes, or earlier when something was given back; when it goes,
 * the next has its turn. So a permit costs one try, however many wait. The
 * others are in the heap for their deadlines only. A call that does not wait
 * may pass them all.
 */
#include <assert.h>

#include "base/memory.h"
#include "flow/limiter_watch.h"
#include "resp/resp.h"
#include "server/conn.h"
#include "server/limit.h"
#include "server/server.h"

#define NS_PER_MS UINT64_C(1000000)

struct limit_queue {
    struct limit_queue *next; /* of the stripe */
    uint64_t id;
    uint64_t class;
    struct limit_wait *first;
    struct limit_wait *last;
};

struct limit_wait {
    struct conn *conn;
    struct limit_queue *queue;
    struct limit_wait *before;
    struct limit_wait *behind;
    uint64_t came_ns;
    uint64_t deadline_ns;
    uint32_t number;
    uint32_t position; /* in the heap */
    size_t count;      /* words */
    struct hf_bytes words[];
};

void limits_close(struct limits *limits)
{
    assert(limits->waits.count == 0); /* every connection has gone */
    if (limits->limiter != NULL)
        limiter_watch(limits->limiter, NULL, NULL);
    hf_free(limits->calls);
    hf_heap_release(&limits->waits);
    hf_buf_release(&limits->body);
    hf_limiter_close(limits->limiter);
    hf_dedup_close(limits->seen);
}

static void moved(void *context, uint32_t ref, uint32_t position)
{
    struct limits *limits = context;

    if (limits->calls[ref] != NULL)
        limits->calls[ref]->position = position;
}

/* The call with copies of its words, in one piece of memory. */
static struct limit_wait *copy(const struct resp_request *request)
{
    size_t bytes =
        sizeof(struct limit_wait) + request->count * sizeof(struct hf_bytes);

    for (size_t i = 0; i < request->count; i++)
        bytes += request->args[i].len;
    struct limit_wait *wait = hf_alloc_zeroed(bytes);
    if (wait == NULL)
        return NULL;
    char *at = (char *)&wait->words[request->count];
    wait->count = request->count;
    for (size_t i = 0; i < request->count; i++) {
        size_t len = request->args[i].len;
        memcpy(at, request->args[i].data, len);
        wait->words[i] = hf_bytes(at, len);
        at += len;
    }
    return wait;
}

/* A free number; 0 without memory. */
static uint32_t find_place(struct limits *limits)
{
    for (uint32_t i = limits->call_free; i < limits->call_count; i++) {
        if (i > 0 && limits->calls[i] == NULL)
            return i;
    }
    uint32_t room = limits->call_count == 0 ? 16 : 2 * limits->call_count;
    void *calls = hf_realloc(limits->calls, room * sizeof limits->calls[0]);
    if (calls == NULL)
        return 0;
    uint32_t first = limits->call_count == 0 ? 1 : limits->call_count;
    limits->calls = calls;
    memset(limits->calls + limits->call_count, 0,
           (room - limits->call_count) * sizeof limits->calls[0]);
    limits->call_count = room;
    return first;
}

static void on_time(uv_timer_t *timer);

static void arm(struct server *server)
{
    struct limits *limits = &server->limits;
    const struct hf_heap_entry *first = hf_heap_first(&limits->waits);
    uint64_t now_ns = hf_clock_now_ns(server->clock);

    if (first == NULL) {
        uv_timer_stop(&limits->timer);
        return;
    }
    uint64_t delay_ns = first->when > now_ns ? first->when - now_ns : 0;
    uv_update_time(&server->loop);
    uv_timer_start(&limits->timer, on_time,
                   (delay_ns + NS_PER_MS - 1) / NS_PER_MS, 0);
}

/* ---- Queues. ---- */

static struct limit_queue *find_queue(const struct limits *limits,
                                      const struct limit_turn *turn)
{
    struct limit_queue *queue = limits->queues[turn->id % LIMIT_STRIPES];

    while (queue != NULL &&
           (queue->id != turn->id || queue->class != turn->class))
        queue = queue->next;
    return queue;
}

bool limit_queued(const struct limits *limits, const struct limit_turn *turn)
{
    return find_queue(limits, turn) != NULL;
}

/* The queue, made if there is none; NULL without memory. */
static struct limit_queue *need_queue(struct limits *limits,
                                      const struct limit_turn *turn)
{
    struct limit_queue *queue = find_queue(limits, turn);
    struct limit_queue **stripe = &limits->queues[turn->id % LIMIT_STRIPES];

    if (queue != NULL)
        return queue;
    queue = hf_alloc_zeroed(sizeof *queue);
    if (queue == NULL)
        return NULL;
    queue->id = turn->id;
    queue->class = turn->class;
    queue->next = *stripe;
    *stripe = queue;
    return queue;
}

/* At the end. */
static void join(struct limit_queue *queue, struct limit_wait *wait)
{
    wait->queue = queue;
    wait->before = queue->last;
    wait->behind = NULL;
    *(queue->last != NULL ? &queue->last->behind : &queue->first) = wait;
    queue->last = wait;
}

/* The first is to look again as soon as the timer rings. */
static void call_first(struct limits *limits, const struct limit_queue *queue)
{
    hf_heap_change(&limits->waits, queue->first->position, 0, ++limits->order);
}

/* The next has its turn if this was the first; the last takes the queue with
 * it. */
static void leave(struct limits *limits, struct limit_wait *wait)
{
    struct limit_queue *queue = wait->queue;
    bool first = queue->first == wait;

    *(wait->before != NULL ? &wait->before->behind : &queue->first) =
        wait->behind;
    *(wait->behind != NULL ? &wait->behind->before : &queue->last) =
        wait->before;
    if (queue->first == NULL) {
        struct limit_queue **link = &limits->queues[queue->id % LIMIT_STRIPES];
        while (*link != queue)
            link = &(*link)->next;
        *link = queue->next;
        hf_free(queue);
    } else if (first) {
        call_first(limits, queue);
    }
}

void limit_freed(void *context, uint64_t id)
{
    struct server *server = context;
    struct limits *limits = &server->limits;

    if (limits->waits.count == 0)
        return;
    for (uint32_t i = 0; i < LIMIT_STRIPES; i++) {
        if (id != LIMITER_WATCH_ALL && i != id % LIMIT_STRIPES)
            continue;
        for (struct limit_queue *queue = limits->queues[i]; queue != NULL;
             queue = queue->next)
            if (id == LIMITER_WATCH_ALL || queue->id == id)
                call_first(limits, queue);
    }
    arm(server);
}

/* ---- Waiting. ---- */

/* When it is to be looked at. */
static uint64_t when(const struct limit_wait *wait,
                     const struct limit_turn *turn)
{
    bool tries = wait->queue->first == wait && turn->due_ns < wait->deadline_ns;

    return tries ? turn->due_ns : wait->deadline_ns;
}

enum hf_status limit_park(struct server *server, struct conn *conn,
                          const struct resp_request *request,
                          const struct limit_turn *turn, uint64_t deadline_ns)
{
    struct limits *limits = &server->limits;
    struct limit_wait *wait = copy(request);
    uint32_t number = wait == NULL ? 0 : find_place(limits);

    if (limits->waits.moved == NULL)
        hf_heap_init(&limits->waits, moved, limits, &limits->wait_bytes);
    if (number == 0 || hf_heap_promise(&limits->waits) != HF_OK) {
        hf_free(wait);
        return HF_NOMEM;
    }
    wait->conn = conn;
    wait->number = number;
    wait->came_ns = hf_clock_now_ns(server->clock);
    wait->deadline_ns = deadline_ns;
    struct limit_queue *queue = need_queue(limits, turn);
    if (queue == NULL) {
        hf_heap_unpromise(&limits->waits);
        hf_free(wait);
        return HF_NOMEM;
    }
    join(queue, wait);
    limits->calls[number] = wait;
    limits->call_free = number + 1;
    (void)hf_heap_add(&limits->waits,
                      (struct hf_heap_entry){.when = when(wait, turn),
                                             .tie = ++limits->order,
                                             .ref = number});
    conn->limit_wait = number;
    if (hf_heap_first(&limits->waits)->ref == number)
        arm(server);
    return HF_OK;
}

static void unpark(struct limits *limits, struct limit_wait *wait)
{
    assert(wait->position != 0);
    hf_heap_remove(&limits->waits, wait->position);
    limits->calls[wait->number] = NULL;
    wait->conn->limit_wait = 0;
    if (wait->number < limits->call_free)
        limits->call_free = wait->number;
    leave(limits, wait);
    hf_free(wait);
}

/* It waits on; at the end of another queue, if something else denies now.
 * Without memory it stays where it is: it is looked at in time all the same. */
static void wait_on(struct limits *limits, struct limit_wait *wait,
                    const struct limit_turn *turn)
{
    struct limit_queue *queue = need_queue(limits, turn);

    if (queue != NULL && queue != wait->queue) {
        leave(limits, wait);
        join(queue, wait);
    }
    hf_heap_change(&limits->waits, wait->position, when(wait, turn),
                   ++limits->order);
}

/* Makes the call again. */
static void retry(struct server *server, uint32_t number, bool last)
{
    struct limits *limits = &server->limits;
    struct limit_wait *wait = limits->calls[number];
    struct resp_request *request = &server->request;
    struct limit_turn turn;

    request->count = wait->count;
    request->used = 0;
    memcpy(request->args, wait->words, wait->count * sizeof wait->words[0]);
    wait->conn->limit_wait = 0; /* if it must close now, the call stays */
    if (!limit_again(server, wait->conn, request, wait->deadline_ns, last,
                     &turn)) {
        wait->conn->limit_wait = number;
        wait_on(limits, wait, &turn);
        return;
    }
    table_took(server, request, wait->came_ns);
    conn_touch(wait->conn);
    unpark(limits, wait);
}

static void on_time(uv_timer_t *timer)
{
    struct server *server = timer->data;
    uint64_t now_ns = hf_clock_now_ns(server->clock);
    const struct hf_heap_entry *first;

    /* One that waits on is due later than now. */
    while ((first = hf_heap_first(&server->limits.waits)) != NULL &&
           first->when <= now_ns)
        retry(server, first->ref, false);
    arm(server);
    commit_turn(server);
}

void limits_end_waits(struct server *server)
{
    const struct hf_heap_entry *first;

    while ((first = hf_heap_first(&server->limits.waits)) != NULL)
        retry(server, first->ref, true);
}

void limits_leave(struct server *server, struct conn *conn)
{
    if (conn->limit_wait == 0)
        return;
    unpark(&server->limits, server->limits.calls[conn->limit_wait]);
    arm(server);
}
