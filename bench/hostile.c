/* hostile.c - how long a holder waits for its RENEW while others are rude.
 *
 *   hostile --port PORT [--seconds N] [--clients N]
 *
 * A server with 100,000 products is asked for lists whose pattern costs the
 * most that one can (`*a*a*a*a*z` over names of many a's), 1,000 in one write,
 * again as soon as all are answered, by so many clients (1). Meanwhile
 * another client renews its lock every 5 ms; TTL is 2 s. Prints lines of SIDE
 * FIGURE VALUE for the same client alone and beside the rude ones.
 *
 * A time is counted from when the RENEW was due, not from when it could be
 * sent at last: who is held up for a second is late 200 times. What is not
 * answered when the time is up, three times the seconds at most, is as late as
 * that.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "ask.h"
#include "holdfast/spread.h"

#define PRODUCTS    100000u
#define LISTS       1000u
#define BATCH       1000u /* STOCK SETs in one write */
#define CLIENTS_MAX 16u
#define SECONDS_MAX 600u
#define EVERY_NS    ((uint64_t)5000000)

static uint64_t port;
static atomic_bool stopping;
static atomic_uint_fast64_t lists_answered;

static void make_products(struct client *client)
{
    char words[100];
    for (uint32_t i = 0; i < PRODUCTS;) {
        for (uint32_t j = 0; j < BATCH; j++, i++) {
            snprintf(words, sizeof words,
                     "STOCK SET aaaaaaaaaaaaaaaaaaaaaaaa-%06u 1", i);
            ask_send(client, words);
        }
        ask_flush(client);
        for (uint32_t j = 0; j < BATCH; j++)
            (void)ask_next(client);
    }
}

/* One rude client; ends by itself when the measurement does. */
static void *be_rude(void *argument)
{
    struct client client;
    struct hf_bytes reply;
    (void)argument;
    ask_connect(&client, port);
    while (!atomic_load(&stopping)) {
        for (uint32_t i = 0; i < LISTS; i++)
            ask_send(&client, "STOCK LIST *a*a*a*a*z");
        enum hf_status status = client_step(&client);
        for (uint32_t i = 0; i < LISTS && status == HF_OK;) {
            status = client_take(&client, &reply);
            if (status == HF_MORE)
                status =
                    client_wait(&client, client_now_ns() + ASK_NS_PER_S / 10);
            else if (status == HF_OK) {
                atomic_fetch_add(&lists_answered, 1);
                i++;
            }
            if (status == HF_TIMEOUT && !atomic_load(&stopping))
                status = HF_OK;
        }
        if (status != HF_OK && !atomic_load(&stopping))
            drive_fail("STOCK LIST", hf_status_text(status));
        if (status != HF_OK)
            break;
    }
    client_close(&client);
    return NULL;
}

static uint64_t take_lock(struct client *client)
{
    return ask_field(ask(client, "LOCK held OWNER bench TTL 2000"), "token");
}

static void print(const char *side, const struct hf_spread *times,
                  uint64_t lost)
{
    printf("%s p50_us %.1f\n", side,
           (double)hf_spread_percentile(times, 50) / 1000);
    printf("%s p99_us %.1f\n", side,
           (double)hf_spread_percentile(times, 99) / 1000);
    printf("%s max_us %.1f\n", side,
           (double)hf_spread_percentile(times, 100) / 1000);
    printf("%s lost %llu\n", side, (unsigned long long)lost);
}

/* Renews so many seconds long, at most three times that by the clock. */
static void measure(struct client *client, uint64_t seconds, const char *side)
{
    struct hf_spread *times;
    struct hf_bytes reply;
    char words[100];
    uint64_t lost = 0;
    ask_must(hf_spread_open(&times, NULL), "spread");
    uint64_t token = take_lock(client);
    uint64_t start_ns = client_now_ns();
    uint64_t end_ns = start_ns + 3 * seconds * ASK_NS_PER_S;
    uint64_t count = seconds * (ASK_NS_PER_S / EVERY_NS);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t due_ns = start_ns + i * EVERY_NS;
        ask_sleep_until(due_ns);
        if (client_now_ns() >= end_ns) {
            ask_must(hf_spread_record(times, end_ns - due_ns, 1), "record");
            continue;
        }
        snprintf(words, sizeof words, "RENEW held %llu TTL 2000",
                 (unsigned long long)token);
        reply = ask(client, words);
        ask_must(hf_spread_record(times, client_now_ns() - due_ns, 1),
                 "record");
        if (reply.data[0] == '-') {
            lost++;
            token = take_lock(client);
        }
    }
    print(side, times, lost);
    hf_spread_close(times);
    snprintf(words, sizeof words, "UNLOCK held %llu",
             (unsigned long long)token);
    (void)ask(client, words);
}

int main(int argc, char **argv)
{
    pthread_t threads[CLIENTS_MAX];
    struct client client;
    uint64_t seconds = 4;
    uint64_t clients = 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--port") == 0)
            port = drive_number(argv[i + 1]);
        else if (strcmp(argv[i], "--seconds") == 0)
            seconds = drive_number(argv[i + 1]);
        else if (strcmp(argv[i], "--clients") == 0)
            clients = drive_number(argv[i + 1]);
    }
    if (port == 0 || clients > CLIENTS_MAX || seconds > SECONDS_MAX)
        drive_fail("usage", "hostile --port PORT [--seconds 1-600] "
                            "[--clients 1-16]");
    signal(SIGPIPE, SIG_IGN);
    ask_connect(&client, port);
    make_products(&client);
    measure(&client, seconds, "alone");
    uint64_t begun_ns = client_now_ns();
    for (uint64_t i = 0; i < clients; i++)
        if (pthread_create(&threads[i], NULL, be_rude, NULL) != 0)
            drive_fail("thread", "cannot start one");
    measure(&client, seconds, "beside");
    uint64_t took_ns = client_now_ns() - begun_ns;
    atomic_store(&stopping, true);
    for (uint64_t i = 0; i < clients; i++)
        pthread_join(threads[i], NULL);
    printf("rude operations_per_second %.0f\n",
           (double)atomic_load(&lists_answered) * 1e9 / (double)took_ns);
    client_close(&client);
    return 0;
}
