#include "load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "holdfast/clock.h"

#define READ_BYTES   65536u
#define EVENTS_MAX   256
#define SETTLE_NS    30000000000u /* all clients are ready, or idle, by then */
#define SAMPLES_STEP 65536u
#define SECOND_NS    1000000000u

static struct {
    struct load_opts opts;
    const struct load_protocol *protocol;
    struct load_client *clients;
    int epoll;
    uint32_t ready;
    uint32_t idle;  /* at the end: clients whose last cycle is over */
    bool measuring; /* false while warming up */
    bool stopping;
    uint64_t now_ns; /* when the bytes in hand were read */
    uint64_t begun_ns;
    uint64_t end_ns;
    uint64_t cycles;
    struct load_client *holder; /* hand-off: who has the lock */
    uint64_t release_ns;        /* when it gives it back */
    uint64_t released_ns;       /* when the last one did */
    uint64_t grants;
    uint64_t *samples;
    size_t sample_count;
    size_t sample_cap;
} load;

const struct load_opts *load_opts(void)
{
    return &load.opts;
}

void load_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s: ", load.protocol->name);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

void load_put(struct hf_buf *out, const void *data, size_t len)
{
    if (hf_buf_append(out, data, len))
        load_fail("out of memory");
}

void load_put_u8(struct hf_buf *out, uint8_t number)
{
    load_put(out, &number, 1);
}

void load_put_be32(struct hf_buf *out, uint32_t number)
{
    uint32_t big = htonl(number);
    load_put(out, &big, 4);
}

void load_put_be64(struct hf_buf *out, uint64_t number)
{
    load_put_be32(out, (uint32_t)(number >> 32));
    load_put_be32(out, (uint32_t)number);
}

uint32_t load_get_be32(const unsigned char *data)
{
    return (uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 |
           (uint32_t)data[2] << 8 | data[3];
}

uint64_t load_get_be64(const unsigned char *data)
{
    return (uint64_t)load_get_be32(data) << 32 | load_get_be32(data + 4);
}

static uint64_t now_ns(void)
{
    return hf_clock_now_ns(hf_clock_system());
}

static void add_sample(uint64_t ns)
{
    if (load.sample_count == load.sample_cap) {
        load.sample_cap += SAMPLES_STEP;
        load.samples = hf_realloc(load.samples, load.sample_cap * 8);
        if (load.samples == NULL)
            load_fail("out of memory");
    }
    load.samples[load.sample_count++] = ns;
}

static void begin(struct load_client *client)
{
    client->begun_ns = now_ns();
    client->resting = false;
    load.protocol->begin(client);
}

void load_ready(struct load_client *client)
{
    (void)client;
    load.ready++;
}

static void flush(struct load_client *client)
{
    while (client->out.len > 0) {
        ssize_t sent =
            send(client->fd, client->out.data, client->out.len, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            load_fail("send: %s", strerror(errno));
        hf_buf_consume(&client->out, (size_t)sent);
    }
}

/* Who gave the lock back asks again once another has it: every grant is a
 * hand-over, and the question does not slow it down. */
static void resume_others(struct load_client *holder)
{
    for (uint32_t i = 0; i < load.opts.clients; i++) {
        struct load_client *client = &load.clients[i];
        if (client == holder || !client->resting)
            continue;
        begin(client);
        flush(client);
    }
}

void load_granted(struct load_client *client)
{
    if (!load.opts.handoff) {
        load.protocol->release(client);
        return;
    }
    if (load.holder != NULL)
        load_fail("two clients hold one lock");
    load.holder = client;
    load.grants++;
    if (load.released_ns != 0 && load.measuring && !load.stopping)
        add_sample(load.now_ns - load.released_ns);
    load.release_ns = load.now_ns + load.opts.hold_us * (uint64_t)1000;
}

void load_released(struct load_client *client)
{
    if (!load.opts.handoff)
        return;
    if (load.holder != client)
        load_fail("a client releases what it does not hold");
    load.holder = NULL;
    client->grants = load.grants;
    load.released_ns = now_ns();
}

void load_done(struct load_client *client)
{
    if (load.stopping) {
        load.idle++;
        return;
    }
    if (load.measuring) {
        load.cycles++;
        if (!load.opts.handoff)
            add_sample(load.now_ns - client->begun_ns);
    }
    client->resting = load.opts.handoff && client->grants == load.grants;
    if (!client->resting)
        begin(client);
}

/* Requests are small and few, so the socket's buffer takes them: only reading
 * must not block. */
static void receive(struct load_client *client)
{
    if (hf_buf_reserve(&client->in, READ_BYTES))
        load_fail("out of memory");
    ssize_t got = recv(client->fd, client->in.data + client->in.len, READ_BYTES,
                       MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0)
        load_fail("connection lost: %s", got == 0 ? "closed" : strerror(errno));
    load.now_ns = now_ns();
    uint64_t grants = load.grants;
    client->in.len += (size_t)got;
    size_t used = load.protocol->take(
        client, (const unsigned char *)client->in.data, client->in.len);
    hf_buf_consume(&client->in, used);
    flush(client);
    if (load.grants != grants && !load.stopping)
        resume_others(client);
}

/* Hand-off: the holder kept the lock long enough. */
static void release_when_due(void)
{
    struct load_client *holder = load.holder;
    if (holder == NULL || now_ns() < load.release_ns)
        return;
    load.protocol->release(holder);
    flush(holder);
}

static void turn(void)
{
    struct epoll_event events[EVENTS_MAX];
    struct timespec rest = {.tv_nsec = SECOND_NS / 10};
    if (load.holder != NULL) {
        uint64_t now = now_ns();
        rest.tv_nsec =
            load.release_ns > now ? (long)(load.release_ns - now) : 0;
    }
    int count = epoll_pwait2(load.epoll, events, EVENTS_MAX, &rest, NULL);
    if (count < 0 && errno != EINTR)
        load_fail("epoll_wait: %s", strerror(errno));
    for (int i = 0; i < count; i++)
        receive(events[i].data.ptr);
    release_when_due();
}

static void connect_client(struct load_client *client)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_port = htons(load.opts.port);
    if (inet_pton(AF_INET, load.opts.host, &address.sin_addr) != 1)
        load_fail("%s is not an IPv4 address", load.opts.host);
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client->fd < 0)
        load_fail("socket: %s", strerror(errno));
    if (connect(client->fd, (struct sockaddr *)&address, sizeof address))
        load_fail("connect: %s", strerror(errno));
    int yes = 1;
    setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
    if (epoll_ctl(load.epoll, EPOLL_CTL_ADD, client->fd, &event))
        load_fail("epoll_ctl: %s", strerror(errno));
}

static void settle(void)
{
    uint32_t count = load.opts.clients;
    load.epoll = epoll_create1(EPOLL_CLOEXEC);
    load.clients = hf_alloc_zeroed(count * sizeof *load.clients);
    if (load.epoll < 0 || load.clients == NULL)
        load_fail("cannot start");
    for (uint32_t i = 0; i < count; i++) {
        struct load_client *client = &load.clients[i];
        client->number = i;
        client->state = hf_alloc_zeroed(load.protocol->state_bytes);
        if (client->state == NULL)
            load_fail("out of memory");
        connect_client(client);
        load.protocol->greet(client);
        flush(client);
    }
    uint64_t late_ns = now_ns() + SETTLE_NS;
    while (load.ready < count) {
        turn();
        if (now_ns() > late_ns)
            load_fail("only %u of %u clients got ready", load.ready, count);
    }
}

static void run(void)
{
    uint64_t begin_ns = now_ns() + load.opts.warmup * (uint64_t)SECOND_NS;
    for (uint32_t i = 0; i < load.opts.clients; i++) {
        begin(&load.clients[i]);
        flush(&load.clients[i]);
    }
    while (now_ns() < begin_ns)
        turn();
    load.measuring = true;
    load.begun_ns = now_ns();
    load.end_ns = load.begun_ns + load.opts.seconds * (uint64_t)SECOND_NS;
    while (now_ns() < load.end_ns)
        turn();
    load.end_ns = now_ns();
}

/* Every client ends its cycle, so that no lock stays behind for the next run.
 */
static void stop(void)
{
    uint64_t late_ns = now_ns() + SETTLE_NS;
    load.stopping = true;
    for (uint32_t i = 0; i < load.opts.clients; i++)
        load.idle += load.clients[i].resting;
    while (load.idle < load.opts.clients) {
        turn();
        if (now_ns() > late_ns)
            load_fail("cycles that do not end");
    }
    for (uint32_t i = 0; i < load.opts.clients; i++) {
        load.protocol->leave(&load.clients[i]);
        flush(&load.clients[i]);
        shutdown(load.clients[i].fd, SHUT_WR);
    }
    for (uint32_t i = 0; i < load.opts.clients; i++) {
        char rest[256];
        while (recv(load.clients[i].fd, rest, sizeof rest, 0) > 0)
            ;
        close(load.clients[i].fd);
    }
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static double sample_us(double share)
{
    if (load.sample_count == 0)
        return 0;
    size_t place = (size_t)(share * (double)(load.sample_count - 1));
    return (double)load.samples[place] / 1e3;
}

static double mean_us(void)
{
    double sum = 0;
    for (size_t i = 0; i < load.sample_count; i++)
        sum += (double)load.samples[i];
    return load.sample_count == 0 ? 0 : sum / (double)load.sample_count / 1e3;
}

static void print(void)
{
    double seconds = (double)(load.end_ns - load.begun_ns) / 1e9;
    if (load.sample_count > 0)
        qsort(load.samples, load.sample_count, sizeof *load.samples, compare);
    printf("{\"peer\":\"%s\",\"recipe\":\"%s\",\"work\":\"%s\","
           "\"clients\":%u,\"seconds\":%.3f,\"operations\":%llu,"
           "\"operations_per_second\":%.1f,\"p50_us\":%.1f,\"p99_us\":%.1f,"
           "\"p999_us\":%.1f,\"mean_us\":%.1f}\n",
           load.protocol->name, load.opts.recipe,
           load.opts.handoff ? "handoff" : "lock", load.opts.clients, seconds,
           (unsigned long long)load.cycles, (double)load.cycles / seconds,
           sample_us(0.5), sample_us(0.99), sample_us(0.999), mean_us());
}

static void usage(void)
{
    fprintf(stderr,
            "usage: %s --port P [--host A] [--recipe R] [--clients N] "
            "[--seconds S] [--warmup S] [--work lock|handoff] [--hold "
            "US]\nrecipes:%s\n",
            load.protocol->name, load.protocol->recipes);
    exit(2);
}

static uint64_t number(const char *text, uint64_t min, uint64_t max)
{
    uint64_t value;
    if (hf_parse_u64(hf_bytes_text(text), &value) || value < min || value > max)
        usage();
    return value;
}

static void set_option(const char *key, const char *value)
{
    struct load_opts *opts = &load.opts;
    if (!strcmp(key, "--port"))
        opts->port = (uint16_t)number(value, 1, 65535);
    else if (!strcmp(key, "--host"))
        opts->host = value;
    else if (!strcmp(key, "--recipe"))
        opts->recipe = value;
    else if (!strcmp(key, "--clients"))
        opts->clients = (uint32_t)number(value, 1, 10000);
    else if (!strcmp(key, "--seconds"))
        opts->seconds = (uint32_t)number(value, 1, 3600);
    else if (!strcmp(key, "--warmup"))
        opts->warmup = (uint32_t)number(value, 0, 3600);
    else if (!strcmp(key, "--hold"))
        opts->hold_us = (uint32_t)number(value, 0, 900000);
    else if (!strcmp(key, "--work"))
        opts->handoff = !strcmp(value, "handoff");
    else
        usage();
}

int load_main(int argc, char **argv, const struct load_protocol *protocol)
{
    load.protocol = protocol;
    load.opts.host = "127.0.0.1";
    load.opts.recipe = "recipe";
    load.opts.clients = 50;
    load.opts.seconds = 4;
    load.opts.warmup = 1;
    load.opts.hold_us = 1000;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc)
            usage();
        set_option(argv[i], argv[i + 1]);
    }
    char spaced[64];
    snprintf(spaced, sizeof spaced, " %s ", load.opts.recipe);
    if (load.opts.port == 0 || strstr(protocol->recipes, spaced) == NULL)
        usage();
    settle();
    run();
    stop();
    print();
    return 0;
}
