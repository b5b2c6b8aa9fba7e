/* limit_wait.c - calls of LIMIT that wait for their permits.
 *
 * Each is made again at the instant at which it can be allowed, if nobody else
 * takes: those who came first are tried first. A call that does not wait may
 * pass them.
 */
#include <assert.h>

#include "base/memory.h"
#include "resp/resp.h"
#include "server/conn.h"
#include "server/limit.h"
#include "server/server.h"

#define NS_PER_MS UINT64_C(1000000)

struct limit_wait {
    struct conn *conn;
    uint64_t deadline_ns;
    uint32_t position; /* in the heap */
    size_t count;      /* words */
    struct hf_bytes words[];
};

void limits_close(struct limits *limits)
{
    for (uint32_t i = 1; i < limits->call_count; i++)
        hf_free(limits->calls[i]);
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

enum hf_status limit_park(struct server *server, struct conn *conn,
                          const struct resp_request *request, uint64_t due_ns,
                          uint64_t deadline_ns)
{
    struct limits *limits = &server->limits;
    struct limit_wait *wait = copy(request);
    uint32_t number = wait == NULL ? 0 : find_place(limits);

    if (limits->waits.moved == NULL)
        hf_heap_init(&limits->waits, moved, limits, &limits->wait_bytes);
    if (number == 0) {
        hf_free(wait);
        return HF_NOMEM;
    }
    wait->conn = conn;
    wait->deadline_ns = deadline_ns;
    limits->calls[number] = wait;
    limits->call_free = number + 1;
    if (hf_heap_add(&limits->waits,
                    (struct hf_heap_entry){.when = due_ns,
                                           .tie = ++limits->order,
                                           .ref = number}) != HF_OK) {
        limits->calls[number] = NULL;
        hf_free(wait);
        return HF_NOMEM;
    }
    conn->limit_wait = number;
    if (hf_heap_first(&limits->waits)->ref == number)
        arm(server);
    return HF_OK;
}

static struct limit_wait *unpark(struct limits *limits, uint32_t number)
{
    struct limit_wait *wait = limits->calls[number];

    assert(wait != NULL && wait->position != 0);
    hf_heap_remove(&limits->waits, wait->position);
    limits->calls[number] = NULL;
    wait->conn->limit_wait = 0;
    if (number < limits->call_free)
        limits->call_free = number;
    return wait;
}

/* Makes the call again. */
static void retry(struct server *server, uint32_t number, bool last)
{
    struct limit_wait *wait = unpark(&server->limits, number);
    struct resp_request *request = &server->request;

    request->count = wait->count;
    request->used = 0;
    memcpy(request->args, wait->words, wait->count * sizeof wait->words[0]);
    (void)limit_again(server, wait->conn, request, wait->deadline_ns, last);
    conn_touch(wait->conn);
    hf_free(wait);
}

static void on_time(uv_timer_t *timer)
{
    struct server *server = timer->data;
    struct limits *limits = &server->limits;
    uint64_t now_ns = hf_clock_now_ns(server->clock);
    uint64_t newest = limits->order; /* one that waits on has a later number */
    const struct hf_heap_entry *first;

    while ((first = hf_heap_first(&limits->waits)) != NULL &&
           first->when <= now_ns && first->tie <= newest)
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
    if (conn->limit_wait != 0)
        hf_free(unpark(&server->limits, conn->limit_wait));
}
