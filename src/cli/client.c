/* client.c - a non-blocking socket, two buffers, and waiting on top. */
#include "cli/client.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include "resp/resp.h"

#define READ_BYTES (64 * 1024)

uint64_t client_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The built-in address, or that of the environment: HOLDFAST_URL=host:port,
 * [v6]:port, or host alone. HF_INVALID: the variable is malformed. */
static enum hf_status address_init(struct client_address *address)
{
    const char *url = getenv("HOLDFAST_URL");
    size_t len;

    address->host = "127.0.0.1";
    address->port = CLIENT_PORT;
    if (url == NULL || url[0] == '\0')
        return HF_OK;
    const char *colon = strrchr(url, ':');
    if (url[0] == '[') { /* [v6] or [v6]:port */
        const char *end = strchr(++url, ']');
        if (end == NULL || (end[1] != '\0' && end + 1 != colon))
            return HF_INVALID;
        len = (size_t)(end - url);
        colon = end[1] == ':' ? end + 1 : NULL;
    } else {
        len = colon != NULL ? (size_t)(colon - url) : strlen(url);
    }
    if (len == 0 || len >= sizeof address->text)
        return HF_INVALID;
    memcpy(address->text, url, len);
    address->text[len] = '\0';
    address->host = address->text;
    if (colon == NULL)
        return HF_OK;
    if (hf_parse_u64(hf_bytes_text(colon + 1), &address->port) != HF_OK ||
        address->port == 0 || address->port > 65535)
        return HF_INVALID;
    return HF_OK;
}

int client_args(const struct args_spec *spec, int argc, char **argv,
                struct client_address *address, struct args *out)
{
    if (address_init(address) != HF_OK)
        return args_wrong(spec, "HOLDFAST_URL is not host:port");
    return args_parse(spec, argc, argv, out);
}

/* Keeps the reason for client_explain. */
static enum hf_status failed(struct client *client, int error)
{
    client->error = error;
    return HF_IO;
}

enum hf_status client_start(struct client *client,
                            const struct client_target *target)
{
    int on = 1;
    int idle_s = 60;

    *client = (struct client){.fd = -1};
    int fd = socket(target->address.ss_family,
                    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return failed(client, errno);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    /* who waits for ever must learn of a host that vanished */
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &on, sizeof on);
    int code =
        connect(fd, (const struct sockaddr *)&target->address, target->len);
    if (code != 0 && errno != EINPROGRESS) {
        failed(client, errno);
        close(fd);
        return HF_IO;
    }
    client->fd = fd;
    client->connecting = code != 0;
    client->reached = code == 0;
    return HF_OK;
}

enum hf_status client_send(struct client *client, size_t count,
                           const struct hf_bytes *args)
{
    return resp_encode(&client->out, count, args);
}

short client_events(const struct client *client)
{
    bool writes = client->connecting || client->sent < client->out.len;

    return writes ? POLLIN | POLLOUT : POLLIN;
}

static enum hf_status finish_connect(struct client *client)
{
    struct pollfd ready = {.fd = client->fd, .events = POLLOUT};
    int error = 0;
    socklen_t len = sizeof error;

    if (poll(&ready, 1, 0) <= 0)
        return HF_OK;
    if (getsockopt(client->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        error = errno;
    if (error != 0)
        return failed(client, error);
    client->connecting = false;
    client->reached = true;
    return HF_OK;
}

static enum hf_status flush(struct client *client)
{
    while (client->sent < client->out.len) {
        ssize_t done = send(client->fd, client->out.data + client->sent,
                            client->out.len - client->sent, MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno == EAGAIN ? HF_OK : failed(client, errno);
        client->sent += (size_t)done;
    }
    client->out.len = 0;
    client->sent = 0;
    return HF_OK;
}

static enum hf_status fill(struct client *client)
{
    hf_buf_consume(&client->in, client->taken);
    client->taken = 0;
    for (;;) {
        if (hf_buf_reserve(&client->in, READ_BYTES) != HF_OK)
            return HF_NOMEM;
        ssize_t got =
            recv(client->fd, client->in.data + client->in.len, READ_BYTES, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno == EAGAIN ? HF_OK : failed(client, errno);
        if (got == 0)
            return HF_CLOSED;
        client->in.len += (size_t)got;
        if (got < READ_BYTES)
            return HF_OK;
    }
}

enum hf_status client_step(struct client *client)
{
    enum hf_status status = HF_OK;

    assert(client->fd >= 0);
    if (client->connecting)
        status = finish_connect(client);
    if (status != HF_OK || client->connecting)
        return status;
    status = flush(client);
    return status != HF_OK ? status : fill(client);
}

/* A push: its first value says of what. */
static void hear(struct client *client, struct hf_bytes push)
{
    struct resp_value value;
    size_t at = 0;

    if (resp_read(push, &at, &value) == HF_OK &&
        resp_read(push, &at, &value) == HF_OK &&
        (hf_bytes_is(value.text, "lock_lost") ||
         hf_bytes_is(value.text, "lock_wounded")))
        client->warned = true;
}

enum hf_status client_take(struct client *client, struct hf_bytes *reply)
{
    bool pushed = true;

    while (pushed) { /* which answers nothing */
        size_t at = client->taken;
        enum hf_status status = resp_skip(hf_buf_bytes(&client->in), &at);
        if (status != HF_OK)
            return status;
        *reply = hf_bytes(client->in.data + client->taken, at - client->taken);
        client->taken = at;
        pushed = reply->data[0] == '>';
        if (pushed)
            hear(client, *reply);
    }
    return HF_OK;
}

void client_close(struct client *client)
{
    if (client->fd >= 0)
        close(client->fd);
    hf_buf_destroy(&client->in);
    hf_buf_destroy(&client->out);
    *client = (struct client){
        .fd = -1, .reached = client->reached, .error = client->error};
}

int client_detach(struct client *client)
{
    int fd = client->fd;

    client->fd = -1;
    client_close(client);
    return fd;
}

enum hf_status client_wait(struct client *client, uint64_t deadline_ns)
{
    struct pollfd ready = {.fd = client->fd, .events = client_events(client)};
    uint64_t now_ns = client_now_ns();
    uint64_t left_ms =
        deadline_ns > now_ns ? (deadline_ns - now_ns) / 1000000 + 1 : 0;

    if (left_ms == 0)
        return HF_TIMEOUT;
    int found = poll(&ready, 1, left_ms > 60000 ? 60000 : (int)left_ms);
    if (found < 0 && errno != EINTR)
        return failed(client, errno);
    return found > 0 ? client_step(client) : HF_OK;
}

static enum hf_status open_one(struct client *client,
                               const struct client_target *target,
                               uint64_t deadline_ns)
{
    enum hf_status status = client_start(client, target);

    while (status == HF_OK && client->connecting)
        status = client_wait(client, deadline_ns);
    if (status != HF_OK)
        client_close(client);
    return status;
}

enum hf_status client_open(struct client *client,
                           const struct client_address *address,
                           uint64_t deadline_ns, struct client_target *target)
{
    struct client_target one;
    struct addrinfo want = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    char port[HF_DIGITS_MAX + 1];
    enum hf_status first = HF_OK;
    int first_error = 0;

    *client = (struct client){.fd = -1};
    if (deadline_ns == 0)
        deadline_ns = client_now_ns() + CLIENT_CONNECT_MS * (uint64_t)1000000;
    port[hf_print_u64(port, address->port)] = '\0';
    int code = getaddrinfo(address->host, port, &want, &found);
    if (code != 0) {
        client->error = code == EAI_SYSTEM ? errno : code;
        return HF_NOTFOUND;
    }
    for (struct addrinfo *at = found; at != NULL; at = at->ai_next) {
        assert(at->ai_addrlen <= sizeof one.address);
        memcpy(&one.address, at->ai_addr, at->ai_addrlen);
        one.len = at->ai_addrlen;
        enum hf_status status = open_one(client, &one, deadline_ns);
        if (status == HF_OK) {
            if (target != NULL)
                *target = one;
            first = HF_OK;
            break;
        }
        if (first == HF_OK) {
            first = status;
            first_error = client->error;
        }
        client->error = first_error;
    }
    freeaddrinfo(found);
    return first;
}

enum hf_status client_receive(struct client *client, uint64_t deadline_ns,
                              struct hf_bytes *reply)
{
    enum hf_status status = HF_OK;

    for (;;) {
        /* what came with the end of the connection still counts */
        enum hf_status took = client_take(client, reply);
        if (took != HF_MORE)
            return took;
        if (status != HF_OK)
            return status;
        status = client_wait(client, deadline_ns);
    }
}

enum hf_status client_call(struct client *client, size_t count,
                           const struct hf_bytes *args, uint64_t deadline_ns,
                           struct hf_bytes *reply)
{
    enum hf_status status = client_send(client, count, args);

    if (status == HF_OK)
        status = client_step(client);
    if (status != HF_OK && status != HF_CLOSED)
        return status;
    return client_receive(client, deadline_ns, reply);
}

_Static_assert(CLIENT_CONNECT_MS == 5000, "it is told below");

/* What went wrong; `*cause` if the system can say more of it. */
static const char *reason_of(const struct client *client, enum hf_status status,
                             bool *cause)
{
    switch (status) {
    case HF_IO:
        *cause = client->error != 0 && client->error != ECONNREFUSED;
        return client->error == ECONNREFUSED
                   ? "connection refused: is the server running? (holdfast "
                     "serve)"
               : client->reached ? "the connection was lost"
                                 : "cannot connect";
    case HF_TIMEOUT:
        return client->reached
                   ? "timed out: connected, but no answer came"
                   : "timed out: nobody took the connection within 5 s";
    case HF_CLOSED:
        return "the server closed the connection before it answered";
    case HF_INVALID:
        return "the answer is not understood: is it a holdfast server?";
    default:
        return hf_status_text(status);
    }
}

void client_explain(const struct client *client,
                    const struct client_address *address, enum hf_status status,
                    char out[CLIENT_REASON_MAX])
{
    bool v6 = strchr(address->host, ':') != NULL;
    bool cause = false;
    const char *reason = reason_of(client, status, &cause);
    const char *system = client->error < 0 ? gai_strerror(client->error)
                                           : strerror(client->error);

    if (status == HF_NOTFOUND)
        snprintf(out, CLIENT_REASON_MAX, "cannot look up the host '%s': %s",
                 address->host, system);
    else
        snprintf(out, CLIENT_REASON_MAX, "%s%s%s:%llu: %s%s%s", v6 ? "[" : "",
                 address->host, v6 ? "]" : "",
                 (unsigned long long)address->port, reason, cause ? ": " : "",
                 cause ? system : "");
}
