/* expire.c - how long others wait while very many sessions expire at once.
 *
 *   expire --port PORT [--sessions N]
 *
 * N sessions (100,000) are opened, with two locks each. Their TTLs differ, so
 * that all end at the same instant, as far as milliseconds go. Other clients
 * take and give back locks of their own all the time (probe.h). Prints lines
 * of SIDE FIGURE VALUE: `alone` for the time before the instant, `beside` from
 * then until the server has no session left, and `released` for how long that
 * took.
 */
#include <signal.h>

#include "probe.h"

#define SESSIONS   100000u
#define BATCH      500u /* sessions opened with one write */
#define LOCKS_EACH 2u
#define LEAD_NS    (12 * ASK_NS_PER_S) /* to fill, at first */
#define LEADS_MAX  4u                  /* each twice as long */
#define ALONE_NS   (1 * ASK_NS_PER_S)
#define LOOK_NS    (10 * ASK_NS_PER_MS)

static struct client client;

/* Opens them and takes their locks, to end at that time. False if the time is
 * too near for that. */
static bool fill(uint64_t sessions, uint64_t end_ns)
{
    static uint64_t ids[BATCH];
    char words[100];
    for (uint64_t i = 0; i < sessions; i += BATCH) {
        uint64_t now_ns = client_now_ns();
        if (now_ns + 2 * ALONE_NS > end_ns)
            return false;
        snprintf(words, sizeof words, "SESSION OPEN TTL %llu",
                 (unsigned long long)((end_ns - now_ns) / ASK_NS_PER_MS));
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
    return true;
}

/* Until no session is left; when that was. */
static uint64_t await_none(uint64_t from_ns)
{
    for (uint64_t look_ns = from_ns;; look_ns = client_now_ns() + LOOK_NS) {
        ask_sleep_until(look_ns);
        if (ask_figure(&client, "INFO holds", "sessions") == 0)
            return client_now_ns();
    }
}

int main(int argc, char **argv)
{
    uint64_t sessions = SESSIONS;
    uint64_t port = 0;
    uint64_t lead_ns = LEAD_NS;
    uint64_t end_ns = 0;
    bool filled = false;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--port") == 0)
            port = drive_number(argv[i + 1]);
        else if (strcmp(argv[i], "--sessions") == 0)
            sessions = drive_number(argv[i + 1]);
    }
    if (port == 0 || sessions % BATCH != 0)
        drive_fail("usage", "expire --port PORT [--sessions N], N a multiple "
                            "of 500");
    signal(SIGPIPE, SIG_IGN);
    ask_connect(&client, port);
    probe_start(port);
    for (unsigned i = 0; i < LEADS_MAX && !filled; i++, lead_ns *= 2) {
        end_ns = client_now_ns() + lead_ns;
        filled = fill(sessions, end_ns);
        if (!filled)
            (void)await_none(end_ns);
    }
    if (!filled)
        drive_fail("expire", "the machine is too slow to fill the server");
    if ((uint64_t)ask_figure(&client, "INFO holds", "sessions") != sessions)
        drive_fail("expire", "the server counts other sessions");
    uint64_t gone_ns = await_none(end_ns);
    probe_stop();
    probe_print("alone", end_ns - ALONE_NS, end_ns);
    probe_print("beside", end_ns, gone_ns);
    printf("released sessions %llu\n", (unsigned long long)sessions);
    printf("released last_seconds %.3f\n",
           (double)(gone_ns - end_ns) / (double)ASK_NS_PER_S);
    client_close(&client);
    return 0;
}
