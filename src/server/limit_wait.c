/* limit_wait.c - calls of LIMIT that wait for their permits.
 *
 * Those who want the same of the same pair are a queue, in the order in which
 * they came. Only the first is tried, at the instant at which it can be allowed
 * if nobody else takes, or earlier when something was given back; when it goes,
 * the next has its turn. So a permit costs one try, however many wait. The
 * others are looked at for their deadlines only. A call that does not wait may
 * pass them all.
 */

#include "base/memory.h"
#include "resp/resp.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/limit.h"
#include "server/server.h"

struct limit_queue {
    struct limit_queue *next; /* of the stripe */
    uint64_t id;
    uint64_t class;
    struct limit_wait *first;
    struct limit_wait *last;
};

struct limit_wait {
    struct wait base;
    struct limit_queue *queue;
    struct limit_wait *before;
    struct limit_wait *behind;
    size_t count; /* words */
    struct hf_bytes words[];
};

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

/* The first is to try again at once. */
static void call_first(struct server *server, const struct limit_queue *queue)
{
    waits_look(&server->waits, &queue->first->base, 0);
}

/* The next has its turn if this was the first; the last takes the queue with
 * it. */
static void leave(struct server *server, struct limit_wait *wait)
{
    struct limits *limits = &server->limits;
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
        call_first(server, queue);
    }
}

void limit_freed(void *context, uint64_t id)
{
    struct server *server = context;
    struct limits *limits = &server->limits;

    if (server->waits.counts[WAIT_LIMIT] == 0)
        return;
    for (uint32_t i = 0; i < LIMIT_STRIPES; i++) {
        if (id != HF_LIMITER_WATCH_ALL && i != id % LIMIT_STRIPES)
            continue;
        for (struct limit_queue *queue = limits->queues[i]; queue != NULL;
             queue = queue->next)
            if (id == HF_LIMITER_WATCH_ALL || queue->id == id)
                call_first(server, queue);
    }
}

/* ---- Waiting. ---- */

static void look(struct server *server, struct limit_wait *wait,
                 const struct limit_turn *turn)
{
    uint64_t deadline_ns = wait->base.deadline_ns;
    bool tries = wait->queue->first == wait && turn->due_ns < deadline_ns;

    waits_look(&server->waits, &wait->base, tries ? turn->due_ns : deadline_ns);
}

enum hf_status limit_park(struct server *server, struct conn *conn,
                          const struct resp_request *request,
                          const struct limit_turn *turn, uint64_t deadline_ns)
{
    struct limit_wait *wait = copy(request);
    struct limit_queue *queue =
        wait == NULL ? NULL : need_queue(&server->limits, turn);

    if (queue == NULL) {
        hf_free(wait);
        return HF_NOMEM;
    }
    wait->base = (struct wait){.kind = WAIT_LIMIT,
                               .came_ns = server->heard_ns,
                               .deadline_ns = deadline_ns};
    join(queue, wait);
    if (waits_add(&server->waits, &wait->base, conn) != HF_OK) {
        leave(server, wait);
        hf_free(wait);
        return HF_NOMEM;
    }
    look(server, wait, turn);
    waits_queue(&wait->base);
    return HF_OK;
}

/* It waits on; at the end of another queue, if something else denies now.
 * Without memory it stays where it is: it is looked at in time all the same. */
static void wait_on(struct server *server, struct limit_wait *wait,
                    const struct limit_turn *turn)
{
    struct limit_queue *queue = need_queue(&server->limits, turn);

    if (queue != NULL && queue != wait->queue) {
        leave(server, wait);
        join(queue, wait);
    }
    look(server, wait, turn);
}

void limit_wait_left(struct server *server, struct wait *base)
{
    leave(server, (struct limit_wait *)base);
    waits_remove(&server->waits, base);
}

/* Makes the call again; when the server stops, for the last time. */
void limit_wait_again(struct server *server, struct wait *base)
{
    struct limit_wait *wait = (struct limit_wait *)base;
    struct conn *conn = base->conn;
    struct resp_request *request = &server->calls[0].request;
    struct limit_turn turn;

    answer_read_begin(server);
    request->count = wait->count;
    request->used = 0;
    memcpy(request->args, wait->words, wait->count * sizeof wait->words[0]);
    conn->wait = NULL; /* if it must close now, the call stays */
    if (!limit_again(server, conn, request, base->deadline_ns, server->stopping,
                     &turn)) {
        conn->wait = base;
        wait_on(server, wait, &turn);
        return;
    }
    table_took(server, request->args[0], base->came_ns);
    answer_done(conn);
    limit_wait_left(server, base);
}
