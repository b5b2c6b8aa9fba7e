/* crowd.c - a server with very many held locks and clients that wait.
 *
 *   crowd --port PORT [--locks N] [--waiters N] [--seconds N]
 *
 * Takes N locks (1,000,000), with names and owners of 16 bytes. Then so many
 * clients (100,000) wait for one of them each, on a connection each. If there
 * are not enough descriptors for that, as many as there are for. Meanwhile
 * other clients take and give back locks of their own (probe.h), for so many
 * seconds (4) after the last one waits. Prints lines of SIDE FIGURE VALUE: the
 * bytes of a lock and of a waiter, by the engine's count and by the growth of
 * the process, which has a connection for each waiter, too.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "probe.h"

#define LOCKS       1000000u
#define WAITERS     100000u
#define BATCH       1000u /* LOCKs in one write */
#define SPARE_FILES 200u  /* descriptors for all else, here and there */
#define PER_ADDRESS 5000u /* connections from one loopback address */
#define LOOK_NS     (20 * ASK_NS_PER_MS)

static struct client client;

struct memory {
    double counted;
    double resident;
};

static struct memory look(void)
{
    return (struct memory){
        ask_figure(&client, "INFO memory", "engine_bytes"),
        ask_figure(&client, "METRICS", "process_resident_memory_bytes")};
}

static void print(const char *side, uint64_t count, struct memory before)
{
    struct memory after = look();
    printf("%s count %llu\n", side, (unsigned long long)count);
    printf("%s counted_bytes %.1f\n", side,
           (after.counted - before.counted) / (double)count);
    printf("%s resident_bytes %.1f\n", side,
           (after.resident - before.resident) / (double)count);
}

static void take_locks(uint64_t count)
{
    char words[100];
    for (uint64_t i = 0; i < count; i += BATCH) {
        for (uint64_t k = i; k < i + BATCH; k++) {
            snprintf(words, sizeof words, "LOCK l%015llu OWNER o%015llu TTL %u",
                     (unsigned long long)k, (unsigned long long)k,
                     DRIVE_TTL_MS);
            ask_send(&client, words);
        }
        ask_flush(&client);
        for (unsigned k = 0; k < BATCH; k++)
            (void)ask_next(&client);
    }
}

/* As many as the system lets us open, with all that it allows. The server
 * raises its own limit alike. */
static uint64_t files_max(uint64_t wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        drive_fail("descriptors", "their limit cannot be read");
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max <= SPARE_FILES)
        drive_fail("descriptors", "there are too few");
    return wanted + SPARE_FILES < limit.rlim_max ? wanted
                                                 : limit.rlim_max - SPARE_FILES;
}

/* A client that waits, from an address that has ports left. It is closed when
 * the program ends. */
static void wait_for(uint64_t number, uint64_t port)
{
    char name[DRIVE_NAME_BYTES], owner[DRIVE_NAME_BYTES];
    struct hf_bytes args[] = {
        hf_bytes_text("LOCK"),   drive_name(name, 'l', number),
        hf_bytes_text("OWNER"),  drive_name(owner, 'w', number),
        hf_bytes_text("TTL"),    hf_bytes_text("86400000"),
        hf_bytes_text("FOREVER")};
    static struct hf_buf request;
    uint32_t host = INADDR_LOOPBACK + 1 + (uint32_t)(number / PER_ADDRESS);
    struct sockaddr_in from = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(host)};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons((uint16_t)port)};
    request.len = 0;
    ask_must(resp_encode(&request, sizeof args / sizeof *args, args), "encode");
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int yes = 1;
    if (fd < 0 ||
        setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof yes) !=
            0 ||
        bind(fd, (struct sockaddr *)&from, sizeof from) != 0 ||
        connect(fd, (struct sockaddr *)&to, sizeof to) != 0 ||
        write(fd, request.data, request.len) != (ssize_t)request.len)
        drive_fail("waiter", strerror(errno));
}

static void await_waiters(uint64_t count)
{
    uint64_t end_ns = client_now_ns() + ASK_WAIT_NS;
    while (ask_figure(&client, "INFO holds", "lock_waiters") != (double)count) {
        if (client_now_ns() > end_ns)
            drive_fail("waiters", "not all came to wait");
        ask_sleep_until(client_now_ns() + LOOK_NS);
    }
}

int main(int argc, char **argv)
{
    uint64_t locks = LOCKS, waiters = WAITERS, port = 0, seconds = 4;
    for (int i = 1; i + 1 < argc; i += 2) {
        uint64_t number = drive_number(argv[i + 1]);
        if (strcmp(argv[i], "--port") == 0)
            port = number;
        else if (strcmp(argv[i], "--locks") == 0)
            locks = number;
        else if (strcmp(argv[i], "--waiters") == 0)
            waiters = number;
        else if (strcmp(argv[i], "--seconds") == 0)
            seconds = number;
    }
    if (port == 0 || locks % BATCH != 0 || waiters > locks)
        drive_fail("usage", "crowd --port PORT [--locks N] [--waiters N] "
                            "[--seconds N]");
    signal(SIGPIPE, SIG_IGN);
    ask_connect(&client, port);
    waiters = files_max(waiters);
    (void)ask(&client, "CONFIG SET maxclients 200000");
    struct memory before = look();
    take_locks(locks);
    print("locks", locks, before);
    before = look();
    for (uint64_t i = 0; i < waiters; i++)
        wait_for(i, port);
    await_waiters(waiters);
    print("waiters", waiters, before);
    probe_start(port, PROBE_LOCK);
    uint64_t from_ns = client_now_ns();
    ask_sleep_until(from_ns + seconds * ASK_NS_PER_S);
    probe_stop();
    probe_print("beside", from_ns, UINT64_MAX);
    client_close(&client);
    return 0;
}
