/* waits.c - who waits, and what can happen to them. */
#include "server/waits.h"

#include <assert.h>

#include "base/memory.h"
#include "server/answer.h"
#include "server/audit.h"
#include "server/conn.h"
#include "server/history.h"
#include "server/server.h"

/* One who is due ends, or is looked at later than now. */
static wait_fn *const kinds[WAIT_KINDS][WAIT_EVENTS] = {
    [WAIT_LOCK] = {lock_wait_due, lock_wait_left, lock_wait_stop,
                   lock_wait_fail},
    [WAIT_LIMIT] = {limit_wait_again, limit_wait_left, limit_wait_again},
    [WAIT_FEED] = {events_wait_due, events_wait_left, events_wait_due},
    [WAIT_AUDIT] = {NULL, audit_wait_left, audit_wait_stop},
    [WAIT_HISTORY] = {NULL, history_wait_left, history_wait_stop},
};

static struct wait **numbered(struct waits *waits, uint32_t number)
{
    return hf_slab_at(&waits->numbers, number);
}

static void moved(void *context, uint32_t ref, uint32_t position)
{
    (*numbered(context, ref))->position = position;
}

void waits_open(struct waits *waits)
{
    hf_heap_init(&waits->due, moved, waits, &waits->bytes);
    hf_slab_init(&waits->numbers, sizeof(struct wait *), &waits->bytes);
}

void waits_close(struct waits *waits)
{
    while (waits->first != NULL) {
        struct wait *wait = waits->first;
        waits->first = wait->next;
        hf_free(wait);
    }
    hf_heap_destroy(&waits->due);
    hf_slab_destroy(&waits->numbers);
}

/* ---- Coming and going. ---- */

void waits_look(struct waits *waits, struct wait *wait, uint64_t when_ns)
{
    if (wait->number != 0)
        hf_heap_change(&waits->due, wait->position, when_ns, ++waits->order);
}

void waits_attach(struct waits *waits, struct wait *wait, struct conn *conn)
{
    assert(wait->conn == NULL && conn->wait == NULL);
    wait->conn = conn;
    conn->wait = wait;
    waits_look(waits, wait, wait->deadline_ns);
}

/* Its place in the heap stays: another connection may come. */
struct conn *waits_detach(struct waits *waits, struct wait *wait)
{
    struct conn *conn = wait->conn;

    if (conn == NULL)
        return NULL;
    conn->wait = NULL;
    wait->conn = NULL;
    waits_look(waits, wait, UINT64_MAX);
    return conn;
}

static enum hf_status add_look(struct waits *waits, struct wait *wait)
{
    struct hf_heap_entry entry = {UINT64_MAX, ++waits->order,
                                  hf_slab_take(&waits->numbers)};

    if (entry.ref == 0)
        return HF_NOMEM;
    *numbered(waits, entry.ref) = wait;
    if (hf_heap_add(&waits->due, entry) != HF_OK) {
        hf_slab_give(&waits->numbers, entry.ref);
        return HF_NOMEM;
    }
    wait->number = entry.ref;
    return HF_OK;
}

enum hf_status waits_add(struct waits *waits, struct wait *wait,
                         struct conn *conn)
{
    if (conn != NULL && add_look(waits, wait) != HF_OK)
        return HF_NOMEM;
    wait->prev = waits->last;
    *(waits->last != NULL ? &waits->last->next : &waits->first) = wait;
    waits->last = wait;
    waits->counts[wait->kind]++;
    if (conn != NULL)
        waits_attach(waits, wait, conn);
    return HF_OK;
}

bool waits_may_close(const struct conn *conn)
{
    return conn->wait == NULL || !conn->wait->queued;
}

void waits_queue(struct wait *wait)
{
    wait->queued = true;
    if (wait->conn != NULL && wait->conn->ended)
        conn_touch(wait->conn); /* closes when all it is owed was sent */
}

void waits_remove(struct waits *waits, struct wait *wait)
{
    waits_detach(waits, wait);
    if (wait->number != 0) {
        hf_heap_remove(&waits->due, wait->position);
        hf_slab_give(&waits->numbers, wait->number);
    }
    *(wait->prev != NULL ? &wait->prev->next : &waits->first) = wait->next;
    *(wait->next != NULL ? &wait->next->prev : &waits->last) = wait->prev;
    waits->counts[wait->kind]--;
    hf_free(wait);
}

/* ---- What can happen. ---- */

void waits_due(struct server *server, uint64_t now_ns)
{
    struct waits *waits = &server->waits;

    while (waits_next_ns(waits) <= now_ns) {
        struct wait *wait = *numbered(waits, hf_heap_first(&waits->due)->ref);
        kinds[wait->kind][WAIT_DUE](server, wait);
    }
}

void waits_leave(struct server *server, struct conn *conn)
{
    struct wait *wait = conn->wait;

    if (wait == NULL)
        return;
    waits_detach(&server->waits, wait);
    kinds[wait->kind][WAIT_LEFT](server, wait);
}

void waits_end(struct server *server, enum wait_event why)
{
    struct wait *next;

    answer_now(server);
    for (struct wait *wait = server->waits.first; wait != NULL; wait = next) {
        next = wait->next;
        if (kinds[wait->kind][why] != NULL)
            kinds[wait->kind][why](server, wait);
    }
}
