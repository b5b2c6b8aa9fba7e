/* share.c - counts what is remembered of each address. */
#include "server/share.h"

#include "server/server.h"

/* One more than the eighths that are kept: the oldest is only partly old. */
#define PARTS 9u

struct share {
    struct hf_named named;
    uint64_t taken; /* on its way */
    uint64_t part;  /* number of the newest eighth */
    uint32_t counts[PARTS];
};

enum hf_status shares_open(struct shares *shares)
{
    struct hf_hash_seed seed;

    if (server_random(&seed, sizeof seed) != HF_OK)
        return HF_IO;
    hf_texts_init(&shares->texts, &shares->bytes);
    return hf_index_init(&shares->clients, (sizeof(struct share) + 7) / 8 * 8,
                         &shares->texts, seed, &shares->bytes);
}

void shares_close(struct shares *shares)
{
    hf_index_destroy(&shares->clients);
    hf_texts_destroy(&shares->texts);
}

static uint64_t part_of(const struct server *server)
{
    uint64_t keep_us = server->config.bounds.request_keep_ms * 1000;
    uint64_t part_us = keep_us / (PARTS - 1);

    return server_now_us(server) / (part_us > 0 ? part_us : 1);
}

static uint64_t count_of(const struct share *share, uint64_t part)
{
    uint64_t sum = share->taken;

    for (uint64_t i = 0; i < PARTS; i++) {
        uint64_t number = share->part - i;
        if (i <= share->part && part - number < PARTS)
            sum += share->counts[number % PARTS];
    }
    return sum;
}

bool share_is_spent(const struct server *server, struct hf_bytes address)
{
    const struct hf_index *clients = &server->shares.clients;
    uint32_t number = hf_index_find(clients, address);
    uint64_t most = server->config.bounds.requests_max / 100 *
                        server->config.requests_share +
                    server->config.bounds.requests_max % 100 *
                        server->config.requests_share / 100;

    return number != 0 && count_of(hf_index_at(clients, number),
                                   part_of(server)) >= (most > 0 ? most : 1);
}

void share_take(struct server *server, struct hf_bytes address)
{
    struct hf_index *clients = &server->shares.clients;
    uint32_t number = hf_index_find(clients, address);

    if (number == 0)
        number = hf_index_add(clients, address);
    if (number != 0)
        ((struct share *)hf_index_at(clients, number))->taken++;
}

void share_settle(struct server *server, struct hf_bytes address, bool success)
{
    struct hf_index *clients = &server->shares.clients;
    uint32_t number = hf_index_find(clients, address);
    uint64_t part = part_of(server);

    if (number == 0)
        return;
    struct share *share = hf_index_at(clients, number);
    share->taken -= share->taken > 0;
    if (!success)
        return;
    if (part - share->part >= PARTS) /* also a new one, or another unit */
        memset(share->counts, 0, sizeof share->counts);
    else
        for (uint64_t i = share->part + 1; i <= part; i++)
            share->counts[i % PARTS] = 0;
    share->part = part;
    share->counts[part % PARTS]++;
}

void shares_clear(struct shares *shares)
{
    for (uint32_t i = 1; i < hf_index_top(&shares->clients); i++) {
        struct share *share = hf_index_used(&shares->clients, i);
        if (share != NULL)
            memset(share->counts, 0, sizeof share->counts);
    }
}

void shares_tend(struct server *server)
{
    struct hf_index *clients = &server->shares.clients;
    uint64_t part = part_of(server);

    for (uint32_t i = 1; i < hf_index_top(clients); i++) {
        struct share *share = hf_index_used(clients, i);
        if (share != NULL && count_of(share, part) == 0)
            hf_index_remove(clients, i);
    }
}
