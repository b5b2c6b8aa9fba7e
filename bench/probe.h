/* probe.h - how long others wait for a LOCK and an UNLOCK meanwhile.
 *
 *   probe_start(port, PROBE_LOCK); ... probe_stop();
 *   probe_print("beside", from_ns, to_ns);
 *
 * A thread with 50 connections. On each, a lock of its own is taken and given
 * back every 100 ms; or, with PROBE_STOCK, a unit of a product of its own is
 * reserved and the reservation cancelled. A LOCK is timed from when it was due,
 * not from when it could be sent at last: who is held up for a second is late
 * ten times. An UNLOCK is timed from the answer before it.
 *
 * Threads: the caller's; one probe at a time.
 */
#ifndef BENCH_PROBE_H
#define BENCH_PROBE_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "ask.h"
#include "holdfast/spread.h"

#define PROBE_CLIENTS  50u
#define PROBE_EVERY_NS (100 * ASK_NS_PER_MS)
#define PROBE_TIMES    1000000u /* more are not kept: 16 minutes */

enum probe_work { PROBE_LOCK, PROBE_STOCK };

struct probe_client {
    struct client client;
    uint64_t due_ns;
    uint64_t begun_ns; /* from which the answer is timed */
    uint64_t token;    /* of the lock; 0: it is asked for */
    uint64_t rounds;   /* name the reservations */
    bool busy;
};

struct probe_time {
    uint64_t begun_ns;
    uint64_t took_ns;
};

static struct {
    enum probe_work work;
    struct probe_client clients[PROBE_CLIENTS];
    struct probe_time times[PROBE_TIMES];
    size_t count;
    atomic_bool stopping;
    pthread_t thread;
} probe;

static inline void probe_ask(unsigned i, uint64_t begun_ns)
{
    struct probe_client *c = &probe.clients[i];
    char words[100];
    if (probe.work == PROBE_STOCK && c->token == 0)
        snprintf(words, sizeof words, "RESERVE probe%u-%llu ITEM probe%u 1", i,
                 (unsigned long long)++c->rounds, i);
    else if (probe.work == PROBE_STOCK)
        snprintf(words, sizeof words, "CANCEL probe%u-%llu", i,
                 (unsigned long long)c->rounds);
    else if (c->token == 0)
        snprintf(words, sizeof words, "LOCK probe%u OWNER probe TTL 3600000",
                 i);
    else
        snprintf(words, sizeof words, "UNLOCK probe%u %llu", i,
                 (unsigned long long)c->token);
    c->busy = true;
    c->begun_ns = begun_ns;
    ask_send(&c->client, words);
    ask_flush(&c->client);
}

static inline void probe_answered(unsigned i, struct hf_bytes reply)
{
    struct probe_client *c = &probe.clients[i];
    uint64_t now_ns = client_now_ns();
    if (reply.data[0] == '-')
        drive_fail("probe", "refused");
    if (probe.count < PROBE_TIMES)
        probe.times[probe.count++] =
            (struct probe_time){c->begun_ns, now_ns - c->begun_ns};
    c->busy = false;
    if (c->token == 0) {
        c->token = probe.work == PROBE_STOCK ? 1 : ask_field(reply, "token");
        probe_ask(i, now_ns);
    } else {
        c->token = 0;
    }
}

/* Sends what is due; when the next is. 0: nothing is left to wait for. */
static inline uint64_t probe_send(void)
{
    bool stopping = atomic_load(&probe.stopping);
    uint64_t now_ns = client_now_ns();
    uint64_t next_ns = now_ns + PROBE_EVERY_NS;
    bool any = !stopping;
    for (unsigned i = 0; i < PROBE_CLIENTS; i++) {
        struct probe_client *c = &probe.clients[i];
        if (!c->busy && !stopping && c->due_ns <= now_ns) {
            probe_ask(i, c->due_ns);
            c->due_ns += PROBE_EVERY_NS;
        }
        any = any || c->busy;
        if (!c->busy && c->due_ns < next_ns)
            next_ns = c->due_ns;
    }
    return any ? next_ns : 0;
}

/* What has arrived; sending receives, too. */
static inline bool probe_take(void)
{
    struct hf_bytes reply;
    bool any = false;
    for (unsigned i = 0; i < PROBE_CLIENTS; i++) {
        while (client_take(&probe.clients[i].client, &reply) == HF_OK) {
            probe_answered(i, reply);
            any = true;
        }
    }
    return any;
}

static inline void *probe_run(void *argument)
{
    struct pollfd polls[PROBE_CLIENTS];
    uint64_t next_ns;
    (void)argument;
    while ((next_ns = probe_send()) != 0) {
        if (probe_take())
            continue;
        uint64_t now_ns = client_now_ns();
        long left_ns = next_ns > now_ns ? (long)(next_ns - now_ns) : 0;
        for (unsigned i = 0; i < PROBE_CLIENTS; i++)
            polls[i] = (struct pollfd){
                .fd = probe.clients[i].client.fd,
                .events = client_events(&probe.clients[i].client)};
        (void)ppoll(polls, PROBE_CLIENTS,
                    &(struct timespec){.tv_nsec = left_ns}, NULL);
        for (unsigned i = 0; i < PROBE_CLIENTS; i++) {
            if (polls[i].revents != 0)
                ask_must(client_step(&probe.clients[i].client), "probe");
        }
    }
    return NULL;
}

static inline void probe_start(uint64_t port, enum probe_work work)
{
    uint64_t now_ns = client_now_ns();
    char words[100];
    probe.work = work;
    for (unsigned i = 0; i < PROBE_CLIENTS; i++) {
        ask_connect(&probe.clients[i].client, port);
        snprintf(words, sizeof words, "STOCK SET probe%u 1", i);
        if (work == PROBE_STOCK)
            (void)ask(&probe.clients[i].client, words);
        probe.clients[i].due_ns = now_ns + i * (PROBE_EVERY_NS / PROBE_CLIENTS);
    }
    if (pthread_create(&probe.thread, NULL, probe_run, NULL) != 0)
        drive_fail("thread", "cannot start one");
}

/* What is under way is waited for. */
static inline void probe_stop(void)
{
    atomic_store(&probe.stopping, true);
    pthread_join(probe.thread, NULL);
    for (unsigned i = 0; i < PROBE_CLIENTS; i++)
        client_close(&probe.clients[i].client);
}

/* After probe_stop(): of what began between these two. */
static inline void probe_print(const char *side, uint64_t from_ns,
                               uint64_t to_ns)
{
    static const struct {
        const char *name;
        double percent;
    } figures[] = {{"p50_us", 50}, {"p99_us", 99}, {"max_us", 100}};
    struct hf_spread *times;
    uint64_t count = 0;
    ask_must(hf_spread_open(&times, NULL), "spread");
    for (size_t i = 0; i < probe.count; i++) {
        const struct probe_time *t = &probe.times[i];
        if (t->begun_ns < from_ns || t->begun_ns >= to_ns)
            continue;
        ask_must(hf_spread_record(times, t->took_ns, 1), "record");
        count++;
    }
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        printf("%s %s %.1f\n", side, figures[i].name,
               (double)hf_spread_percentile(times, figures[i].percent) / 1000);
    printf("%s requests %llu\n", side, (unsigned long long)count);
    hf_spread_close(times);
}

#endif
