/* lock_wait_find.c - those who wait in the engine, by ticket and by REQ. */
#include "base/memory.h"
#include "server/lock_wait.h"
#include "server/server.h"

enum hf_status lock_waits_open(struct lock_waits *waits)
{
    struct hf_hash_seed tickets = {{0, 0}}; /* they are our own numbers */
    struct hf_hash_seed requests;
    size_t bytes = (sizeof(struct wait_ref) + 7) / 8 * 8;

    if (server_random(&requests, sizeof requests) != HF_OK)
        return HF_IO;
    hf_texts_init(&waits->texts, &waits->bytes);
    enum hf_status status = hf_index_init(&waits->tickets, bytes, &waits->texts,
                                          tickets, &waits->bytes);
    if (status == HF_OK)
        status = hf_index_init(&waits->requests, bytes, &waits->texts, requests,
                               &waits->bytes);
    return status;
}

void lock_waits_close(struct lock_waits *waits)
{
    hf_free(waits->spare);
    hf_index_destroy(&waits->tickets);
    hf_index_destroy(&waits->requests);
    hf_texts_destroy(&waits->texts);
}

struct lock_wait *lock_wait_find(const struct hf_index *index,
                                 struct hf_bytes name)
{
    uint32_t number = hf_index_find(index, name);

    if (number == 0)
        return NULL;
    return ((struct wait_ref *)hf_index_at(index, number))->wait;
}

bool lock_wait_knows(const struct lock_waits *waits, struct hf_bytes request)
{
    return lock_wait_find(&waits->requests, request) != NULL;
}

bool lock_wait_was_told(const struct lock_waits *waits, struct hf_bytes request)
{
    const struct lock_wait *wait = lock_wait_find(&waits->requests, request);

    return wait != NULL && wait->end == END_TOLD;
}
