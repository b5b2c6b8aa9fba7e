/* load.c - the loop: epoll, one read and one write per batch. */
#include "cli/load.h"

#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "resp/resp.h"

#define SILENCE_NS  (30 * HF_NS_PER_S) /* then the server is given up */
#define TURN_NS     (HF_NS_PER_S / 10) /* longest sleep of the loop */
#define EVENTS_MAX  256
#define REPLY_BYTES 512 /* room for one reply of a batch; grows */
#define BAR_WIDTH   30

void load_done(struct load *load, uint64_t took_ns)
{
    load->accepted++;
    if (load->stopping)
        return;
    load->counts.operations++;
    if (hf_spread_record(load->times, took_ns, 1) != HF_OK)
        load_failed(load, hf_bytes_text("no memory for a latency"));
}

void load_failed(struct load *load, struct hf_bytes why)
{
    load->counts.errors++;
    if (load->first_error[0] == '\0')
        snprintf(load->first_error, sizeof load->first_error, "%.*s",
                 (int)(why.len < 150 ? why.len : 150), why.data);
}

/* When the next batch falls due. */
static uint64_t due_ns(const struct load *load)
{
    uint64_t pace = load->options->pace;

    return load->paced_ns + load->paced / pace * HF_NS_PER_S +
           load->paced % pace * HF_NS_PER_S / pace;
}

bool load_due(struct load *load, struct load_conn *conn)
{
    uint64_t clients = load->options->clients;

    conn->started_ns = load->now_ns;
    if (load->options->pace == 0)
        return true;
    if (due_ns(load) > load->now_ns) {
        assert(load->idle_count < clients);
        load->idle[(load->idle_first + load->idle_count++) % clients] = conn;
        return false;
    }
    conn->started_ns = due_ns(load);
    load->paced += load->options->pipeline;
    return true;
}

/* Sends what is in `out`, and tells epoll whether some of it is left. */
static enum hf_status flush(struct load *load, struct load_conn *conn)
{
    while (conn->sent < conn->out.len) {
        ssize_t done = send(conn->fd, conn->out.data + conn->sent,
                            conn->out.len - conn->sent, MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0 && errno != EAGAIN)
            return HF_IO;
        if (done < 0)
            break;
        conn->sent += (size_t)done;
    }
    bool blocked = conn->sent < conn->out.len;
    if (blocked != conn->blocked) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = conn};
        if (blocked)
            event.events |= EPOLLOUT;
        epoll_ctl(load->epoll, EPOLL_CTL_MOD, conn->fd, &event);
        conn->blocked = blocked;
    }
    if (!blocked) {
        conn->out.len = 0;
        conn->sent = 0;
    }
    return HF_OK;
}

/* The connection has nothing under way: gives it its next batch. */
static enum hf_status next_batch(struct load *load, struct load_conn *conn)
{
    bool asleep = conn->wake_ns != 0;

    assert(conn->pending == 0);
    conn->slot = 0;
    conn->wake_ns = 0;
    enum hf_status status = load->work->batch(load, conn);
    if (status != HF_OK)
        return status;
    load->sleepers -= asleep;
    load->sleepers += conn->wake_ns != 0;
    if (conn->done)
        load->live--;
    if (conn->pending == 0)
        return HF_OK;
    conn->first_id = record_requests(load->record, conn->index + 1,
                                     hf_buf_bytes(&conn->out));
    return flush(load, conn);
}

static void take_reply(struct load *load, struct load_conn *conn,
                       struct hf_bytes reply)
{
    load->counts.requests += !load->stopping;
    record_answer(load->record, conn->index + 1, conn->first_id + conn->slot,
                  reply);
    const char *excused = load->work->excused;
    bool failed = reply.data[0] == '-' &&
                  (excused == NULL || reply.len < strlen(excused) ||
                   memcmp(reply.data, excused, strlen(excused)) != 0);
    if (failed)
        load_failed(load, hf_bytes(reply.data + 1, reply.len - 3));
    else
        load->work->reply(load, conn, reply);
    conn->slot++;
}

/* Takes all whole replies out of `in`. */
static enum hf_status take_replies(struct load *load, struct load_conn *conn)
{
    struct hf_bytes input = hf_buf_bytes(&conn->in);
    size_t at = 0;

    while (conn->pending > 0) {
        size_t start = at;
        enum hf_status status = resp_skip(input, &at);
        if (status == HF_MORE)
            break;
        if (status != HF_OK)
            return status;
        take_reply(load, conn, hf_bytes(input.data + start, at - start));
        conn->pending--;
    }
    if (conn->pending == 0 && at < input.len)
        return HF_INVALID; /* more replies than requests */
    hf_buf_consume(&conn->in, at);
    return HF_OK;
}

static enum hf_status receive(struct load *load, struct load_conn *conn)
{
    if (conn->in.len == conn->in.cap &&
        hf_buf_reserve(&conn->in, conn->in.cap) != HF_OK)
        return HF_NOMEM;
    ssize_t got = recv(conn->fd, conn->in.data + conn->in.len,
                       conn->in.cap - conn->in.len, 0);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? HF_OK : HF_IO;
    if (got == 0)
        return HF_IO;
    conn->in.len += (size_t)got;
    load->now_ns = client_now_ns();
    bool busy = conn->pending > 0;
    enum hf_status status = take_replies(load, conn);
    if (status == HF_OK && busy && conn->pending == 0)
        status = next_batch(load, conn);
    return status;
}

static enum hf_status wake_sleepers(struct load *load)
{
    enum hf_status status = HF_OK;

    for (uint64_t i = 0; load->sleepers > 0 && i < load->options->clients;
         i++) {
        struct load_conn *conn = &load->conns[i];
        if (conn->wake_ns == 0 || conn->wake_ns > load->now_ns)
            continue;
        status = next_batch(load, conn);
        if (status != HF_OK)
            break;
    }
    return status;
}

/* Begins what has fallen due. At the end, those that rest are told so. */
static enum hf_status begin_due(struct load *load)
{
    enum hf_status status = HF_OK;

    while (status == HF_OK && load->idle_count > 0 &&
           (load->stopping || due_ns(load) <= load->now_ns)) {
        struct load_conn *conn = load->idle[load->idle_first];
        load->idle_first = (load->idle_first + 1) % load->options->clients;
        load->idle_count--;
        status = next_batch(load, conn);
    }
    return status;
}

/* How long epoll may sleep. */
static struct timespec rest(const struct load *load)
{
    uint64_t wake_ns = load->now_ns + TURN_NS;

    if (load->idle_count > 0 && due_ns(load) < wake_ns)
        wake_ns = due_ns(load);
    for (uint64_t i = 0; load->sleepers > 0 && i < load->options->clients;
         i++) {
        uint64_t at_ns = load->conns[i].wake_ns;
        if (at_ns != 0 && at_ns < wake_ns)
            wake_ns = at_ns;
    }
    uint64_t left_ns = wake_ns > load->now_ns ? wake_ns - load->now_ns : 0;
    return (struct timespec){.tv_nsec = (long)left_ns};
}

static uint64_t end_ns(const struct load *load)
{
    return load->began_ns + load->options->seconds * HF_NS_PER_S;
}

/* From warming up to measuring to stopping. */
static void advance(struct load *load, uint64_t start_ns)
{
    const struct load_options *options = load->options;

    if (!load->measuring &&
        load->now_ns >= start_ns + options->warmup * HF_NS_PER_S) {
        load->measuring = true;
        load->began_ns = load->now_ns;
        load->counts = (struct load_counts){.errors = load->counts.errors};
        hf_spread_reset(load->times);
    }
    if (!load->measuring || load->stopping)
        return;
    bool enough = options->requests > 0
                      ? load->counts.operations >= options->requests
                      : load->now_ns >= end_ns(load);
    if (enough) {
        load->stopping = true;
        load->ended_ns = load->now_ns;
    }
}

static void draw(struct load *load)
{
    const struct load_options *options = load->options;
    uint64_t took_ns = load->now_ns - load->began_ns;
    double part = 0;

    if (!options->progress || load->now_ns < load->drawn_ns + HF_NS_PER_S / 10)
        return;
    load->drawn_ns = load->now_ns;
    if (!load->measuring || took_ns == 0) {
        fprintf(stderr, "\r  warming up\033[K");
        return;
    }
    if (options->requests > 0)
        part = (double)load->counts.operations / (double)options->requests;
    else
        part = (double)took_ns / (double)(options->seconds * HF_NS_PER_S);
    int full = (int)((part > 1 ? 1 : part) * BAR_WIDTH);
    fprintf(stderr, "\r  [%.*s%*s] %3d%%  %.0f/s\033[K", full,
            "##############################", BAR_WIDTH - full, "",
            (int)((part > 1 ? 1 : part) * 100),
            (double)load->counts.operations * 1e9 / (double)took_ns);
}

/* One turn: waits, then serves every connection that is ready. */
static enum hf_status turn(struct load *load, uint64_t *heard_ns)
{
    struct epoll_event events[EVENTS_MAX];
    struct timespec limit = rest(load);
    enum hf_status status = HF_OK;

    int count = epoll_pwait2(load->epoll, events, EVENTS_MAX, &limit, NULL);
    load->now_ns = client_now_ns();
    if (count > 0 || load->sleepers > 0 ||
        load->idle_count == load->options->clients)
        *heard_ns = load->now_ns;
    for (int i = 0; i < count && status == HF_OK; i++) {
        struct load_conn *conn = events[i].data.ptr;
        if (events[i].events & EPOLLOUT)
            status = flush(load, conn);
        if (status == HF_OK && (events[i].events & ~(uint32_t)EPOLLOUT))
            status = receive(load, conn);
    }
    if (status == HF_OK)
        status = wake_sleepers(load);
    if (status == HF_OK)
        status = begin_due(load);
    if (status == HF_OK && load->now_ns > *heard_ns + SILENCE_NS)
        status = HF_TIMEOUT;
    return status;
}

enum hf_status load_run(struct load *load)
{
    enum hf_status status = HF_OK;
    uint64_t start_ns = client_now_ns();
    uint64_t heard_ns = start_ns;

    load->now_ns = start_ns;
    load->paced_ns = start_ns;
    advance(load, start_ns);
    for (uint64_t i = 0; status == HF_OK && i < load->options->clients; i++)
        status = next_batch(load, &load->conns[i]);
    while (status == HF_OK && load->live > 0) {
        status = turn(load, &heard_ns);
        advance(load, start_ns);
        draw(load);
    }
    if (load->ended_ns == 0)
        load->ended_ns = load->now_ns;
    if (load->options->progress)
        fprintf(stderr, "\r\033[K");
    return status;
}

static void raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static enum hf_status open_conn(struct load *load, struct load_conn *conn,
                                const struct client_address *address)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = conn};
    struct client client;

    enum hf_status status = client_open(&client, address, 0, NULL);
    if (status != HF_OK)
        return status;
    conn->fd = client_detach(&client);
    record_mark(load->record, conn->index + 1, HISTORY_OPEN);
    conn->tokens = hf_alloc_zeroed(load->options->pipeline * sizeof(uint64_t));
    if (conn->tokens == NULL ||
        hf_buf_reserve(&conn->in, load->options->pipeline * REPLY_BYTES) !=
            HF_OK)
        return HF_NOMEM;
    if (load->work->open != NULL)
        status = load->work->open(load, conn);
    if (status == HF_OK &&
        epoll_ctl(load->epoll, EPOLL_CTL_ADD, conn->fd, &event) != 0)
        status = HF_IO;
    return status;
}

/* Loads the workload's script; its name is the reply. */
static enum hf_status load_script(struct load *load,
                                  const struct client_address *address)
{
    struct hf_bytes args[] = {hf_bytes_text("SCRIPT"), hf_bytes_text("LOAD"),
                              hf_bytes_text(load->work->script)};
    struct client client;
    struct hf_bytes reply;
    struct resp_value value;
    uint64_t deadline_ns = client_now_ns() + CLIENT_REPLY_MS * HF_NS_PER_MS;
    size_t at = 0;

    enum hf_status status = client_open(&client, address, 0, NULL);
    if (status == HF_OK)
        status = client_call(&client, 3, args, deadline_ns, &reply);
    if (status == HF_OK)
        status = resp_read(reply, &at, &value);
    if (status == HF_OK &&
        (value.kind != RESP_BULK || value.text.len >= sizeof load->script))
        status = HF_INVALID;
    if (status == HF_OK)
        memcpy(load->script, value.text.data, value.text.len);
    client_close(&client);
    return status;
}

enum hf_status load_open(struct load *load, const struct work *work,
                         const struct load_options *options,
                         const struct client_address *address,
                         struct record *record)
{
    *load = (struct load){
        .options = options, .work = work, .record = record, .epoll = -1};
    if (getrandom(&load->tag, sizeof load->tag, 0) != (ssize_t)sizeof load->tag)
        return HF_IO;
    hf_random_init(&load->random, client_now_ns());
    raise_file_limit();
    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    load->conns = hf_alloc_zeroed(options->clients * sizeof *load->conns);
    load->idle = hf_alloc_zeroed(options->clients * sizeof *load->idle);
    if (load->conns == NULL || load->idle == NULL ||
        hf_spread_open(&load->times, NULL) != HF_OK)
        return HF_NOMEM;
    for (uint32_t i = 0; i < options->clients; i++)
        load->conns[i] = (struct load_conn){.fd = -1, .index = i};
    load->live = (uint32_t)options->clients;
    enum hf_status status = HF_OK;
    if (options->redis && work->script != NULL)
        status = load_script(load, address);
    if (status == HF_OK && work->prepare != NULL)
        status = work->prepare(load);
    for (uint64_t i = 0; status == HF_OK && i < options->clients; i++)
        status = open_conn(load, &load->conns[i], address);
    return status;
}

void load_close(struct load *load)
{
    for (uint64_t i = 0; load->conns != NULL && i < load->options->clients;
         i++) {
        struct load_conn *conn = &load->conns[i];
        if (conn->fd >= 0) {
            close(conn->fd);
            record_mark(load->record, conn->index + 1, HISTORY_CLOSED);
        }
        hf_buf_destroy(&conn->in);
        hf_buf_destroy(&conn->out);
        hf_buf_destroy(&conn->first);
        hf_buf_destroy(&conn->second);
        hf_free(conn->tokens);
    }
    hf_buf_destroy(&load->pattern);
    hf_free(load->idle);
    hf_free(load->conns);
    load->idle = NULL;
    load->conns = NULL;
    hf_spread_close(load->times);
    if (load->epoll >= 0)
        close(load->epoll);
}
