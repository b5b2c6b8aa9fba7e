/* expire.c - how long others wait while very much expires at once.
 *
 *   expire --port PORT [--sessions N | --reservations N]
 *
 * N sessions (100,000) are opened, with two locks each; or N units are
 * reserved, one each, of 4,000 products. Their TTLs differ, so that all end at
 * the same instant, as far as milliseconds go. Other clients take and give back
 * locks, or units, of their own all the time (probe.h). Prints lines of SIDE
 * FIGURE VALUE: `alone` for the time before the instant, `beside` from then
 * until the server has swept the last one, and `released` for how long that
 * took.
 *
 * Of reservations, all units must be free from the instant on, however many are
 * still to be swept: sampled products are read as soon as the last reservation
 * has ended, and again when the last one is swept. `first` tells how many were
 * not swept yet, how far apart the first and the last one ended at most, and
 * how long it took to read all samples.
 */
#include <signal.h>

#include "probe.h"

#define SESSIONS   100000u
#define BATCH      500u /* sessions opened with one write */
#define LOCKS_EACH 2u
#define PRODUCTS   4000u
#define TOTAL      1000000u            /* units of each product */
#define SAMPLES    400u                /* products that are read */
#define LEAD_NS    (12 * ASK_NS_PER_S) /* to fill, at first */
#define FILL_RATE  50000u              /* reservations a second, at least */
#define LEADS_MAX  4u                  /* each twice as long */
#define ALONE_NS   (1 * ASK_NS_PER_S)
#define LOOK_NS    (10 * ASK_NS_PER_MS)

static struct client client;
static uint64_t last_ns; /* when the last reservation has ended for sure */

/* What expires. */
struct kind {
    const char *name;
    enum probe_work probe;
    void (*add)(uint64_t first, uint64_t ttl_ms); /* a batch */
    uint64_t (*left)(uint64_t added);             /* not swept yet */
};

static void add_sessions(uint64_t first, uint64_t ttl_ms)
{
    static uint64_t ids[BATCH];
    char words[100];
    (void)first;
    snprintf(words, sizeof words, "SESSION OPEN TTL %llu",
             (unsigned long long)ttl_ms);
    for (unsigned k = 0; k < BATCH; k++)
        ask_send(&client, words);
    ask_flush(&client);
    for (unsigned k = 0; k < BATCH; k++)
        ids[k] = ask_field(ask_next(&client), "session");
    for (unsigned k = 0; k < BATCH * LOCKS_EACH; k++) {
        snprintf(words, sizeof words, "LOCK s%llu/%u OWNER o SESSION %llu",
                 (unsigned long long)ids[k / LOCKS_EACH], k % LOCKS_EACH,
                 (unsigned long long)ids[k / LOCKS_EACH]);
        ask_send(&client, words);
    }
    ask_flush(&client);
    for (unsigned k = 0; k < BATCH * LOCKS_EACH; k++)
        (void)ask_next(&client);
}

static uint64_t sessions_left(uint64_t added)
{
    (void)added;
    return (uint64_t)ask_figure(&client, "INFO holds", "sessions");
}

static void add_reservations(uint64_t first, uint64_t ttl_ms)
{
    char words[100];
    for (unsigned k = 0; k < BATCH; k++) {
        snprintf(words, sizeof words, "RESERVE * ITEM sku%llu 1 TTL %llu",
                 (unsigned long long)((first + k) % PRODUCTS),
                 (unsigned long long)ttl_ms);
        ask_send(&client, words);
    }
    ask_flush(&client);
    for (unsigned k = 0; k < BATCH; k++)
        (void)ask_next(&client);
    uint64_t ended_ns = client_now_ns() + ttl_ms * ASK_NS_PER_MS;
    last_ns = ended_ns > last_ns ? ended_ns : last_ns;
}

static uint64_t reservations_left(uint64_t added)
{
    return added -
           (uint64_t)ask_figure(&client, "INFO stats",
                                "events_total{event=\"reservation_expired\"}");
}

static const struct kind kinds[] = {
    {"--sessions", PROBE_LOCK, add_sessions, sessions_left},
    {"--reservations", PROBE_STOCK, add_reservations, reservations_left},
};

/* Adds them, to end at that time; how many. Fewer than asked for if the time
 * is too near for all. */
static uint64_t fill(const struct kind *kind, uint64_t count, uint64_t end_ns)
{
    for (uint64_t i = 0; i < count; i += BATCH) {
        uint64_t now_ns = client_now_ns();
        if (now_ns + 2 * ALONE_NS > end_ns)
            return i;
        kind->add(i, (end_ns - now_ns) / ASK_NS_PER_MS);
    }
    return count;
}

/* Until none is left; when that was. */
static uint64_t await_none(const struct kind *kind, uint64_t added,
                           uint64_t from_ns)
{
    for (uint64_t look_ns = from_ns;; look_ns = client_now_ns() + LOOK_NS) {
        ask_sleep_until(look_ns);
        if (kind->left(added) == 0)
            return client_now_ns();
    }
}

static void make_products(void)
{
    char words[100];
    for (unsigned i = 0; i < PRODUCTS; i++) {
        snprintf(words, sizeof words, "STOCK SET sku%u %u", i, TOTAL);
        ask_send(&client, words);
    }
    ask_flush(&client);
    for (unsigned i = 0; i < PRODUCTS; i++)
        (void)ask_next(&client);
}

/* All units of the sampled products must be free. */
static void check_free(uint64_t added)
{
    char words[100];
    unsigned wrong = 0;
    for (unsigned i = 0; i < SAMPLES; i++) {
        snprintf(words, sizeof words, "STOCK GET sku%u",
                 i * (PRODUCTS / SAMPLES));
        ask_send(&client, words);
    }
    ask_flush(&client);
    for (unsigned i = 0; i < SAMPLES; i++) {
        struct hf_bytes reply = ask_next(&client);
        wrong += ask_field(reply, "available") != TOTAL ||
                 ask_field(reply, "reserved") != 0;
    }
    if (wrong == 0)
        return;
    snprintf(words, sizeof words,
             "%u of %u products with units reserved, %llu to be swept", wrong,
             SAMPLES, (unsigned long long)reservations_left(added));
    drive_fail("stock after all has expired", words);
}

/* As soon as the last reservation has ended. */
static void check_first(uint64_t added, uint64_t end_ns)
{
    ask_sleep_until(last_ns + ASK_NS_PER_MS);
    uint64_t unswept = reservations_left(added);
    uint64_t begun_ns = client_now_ns();
    check_free(added);
    uint64_t took_ns = client_now_ns() - begun_ns;
    printf("first products %u\n", SAMPLES);
    printf("first spread_ms %.1f\n",
           (double)(last_ns - end_ns) / (double)ASK_NS_PER_MS);
    printf("first unswept %llu\n", (unsigned long long)unswept);
    printf("first read_seconds %.3f\n", (double)took_ns / (double)ASK_NS_PER_S);
}

static double lag(const char *part)
{
    char name[50];
    snprintf(name, sizeof name, "cleanup_lag_seconds_%s", part);
    return ask_figure(&client, "INFO stats", name);
}

static void measure(const struct kind *kind, uint64_t count)
{
    bool stock = kind->probe == PROBE_STOCK;
    uint64_t lead_ns = LEAD_NS, end_ns = 0, added = 0, filled = 0;
    if (stock)
        lead_ns += count / FILL_RATE * ASK_NS_PER_S;
    for (unsigned i = 0; i < LEADS_MAX && filled < count; i++, lead_ns *= 2) {
        end_ns = client_now_ns() + lead_ns;
        filled = fill(kind, count, end_ns);
        added += filled;
        if (filled < count)
            (void)await_none(kind, added, end_ns);
    }
    if (filled < count)
        drive_fail("expire", "the machine is too slow to fill the server");
    if (kind->left(added) != count)
        drive_fail("expire", "the server counts others");
    double swept = lag("count"), late = lag("sum");
    ask_sleep_until(end_ns);
    if (stock)
        check_first(added, end_ns);
    uint64_t gone_ns = await_none(kind, added, end_ns);
    if (stock)
        check_free(added);
    swept = lag("count") - swept;
    late = lag("sum") - late;
    ask_sleep_until(gone_ns + ALONE_NS); /* who is late catches up */
    probe_stop();
    probe_print("alone", end_ns - ALONE_NS, end_ns);
    probe_print("beside", end_ns, gone_ns);
    printf("released %s %llu\n", kind->name + 2, (unsigned long long)count);
    printf("released last_seconds %.3f\n",
           (double)(gone_ns - end_ns) / (double)ASK_NS_PER_S);
    printf("released lag_mean_seconds %.3f\n", swept > 0 ? late / swept : 0);
}

int main(int argc, char **argv)
{
    uint64_t count = SESSIONS, port = 0;
    const struct kind *kind = &kinds[0];
    for (int i = 1; i + 1 < argc; i += 2) {
        uint64_t number = drive_number(argv[i + 1]);
        if (strcmp(argv[i], "--port") == 0)
            port = number;
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            if (strcmp(argv[i], kinds[k].name) != 0)
                continue;
            kind = &kinds[k];
            count = number;
        }
    }
    if (port == 0 || count % BATCH != 0)
        drive_fail("usage", "expire --port PORT [--sessions N | "
                            "--reservations N], N a multiple of 500");
    signal(SIGPIPE, SIG_IGN);
    ask_connect(&client, port);
    if (kind->probe == PROBE_STOCK)
        make_products();
    probe_start(port, kind->probe);
    measure(kind, count);
    client_close(&client);
    return 0;
}
