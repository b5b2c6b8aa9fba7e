/* uv_tcp.c - the calls of libuv that concern streams and addresses. */
#include <uv.h>

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>

#include "sim/server/net.h"
#include "sim/server/uv_state.h"

uv_buf_t uv_buf_init(char *base, unsigned int len)
{
    uv_buf_t buf = {.base = base, .len = len};

    return buf;
}

const char *uv_strerror(int code)
{
    return strerror(-code);
}

/* ---- Addresses. ---- */

int uv_ip4_addr(const char *text, int port, struct sockaddr_in *out)
{
    memset(out, 0, sizeof *out);
    out->sin_family = AF_INET;
    out->sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, text, &out->sin_addr) == 1 ? 0 : UV_EINVAL;
}

int uv_ip6_addr(const char *text, int port, struct sockaddr_in6 *out)
{
    memset(out, 0, sizeof *out);
    out->sin6_family = AF_INET6;
    out->sin6_port = htons((uint16_t)port);
    return inet_pton(AF_INET6, text, &out->sin6_addr) == 1 ? 0 : UV_EINVAL;
}

int uv_ip4_name(const struct sockaddr_in *in, char *out, size_t len)
{
    return inet_ntop(AF_INET, &in->sin_addr, out, (socklen_t)len) ? 0
                                                                  : UV_ENOSPC;
}

int uv_ip6_name(const struct sockaddr_in6 *in, char *out, size_t len)
{
    return inet_ntop(AF_INET6, &in->sin6_addr, out, (socklen_t)len) ? 0
                                                                    : UV_ENOSPC;
}

/* ---- TCP. ---- */

int uv_tcp_init(uv_loop_t *loop, uv_tcp_t *tcp)
{
    loop_init_handle(loop, tcp, UV_TCP, sizeof *tcp);
    return 0;
}

int uv_tcp_nodelay(uv_tcp_t *tcp, int on)
{
    (void)tcp;
    (void)on;
    return 0;
}

int uv_tcp_keepalive(uv_tcp_t *tcp, int on, unsigned int delay)
{
    (void)tcp;
    (void)on;
    (void)delay;
    return 0;
}

int uv_tcp_bind(uv_tcp_t *tcp, const struct sockaddr *address, unsigned flags)
{
    (void)tcp;
    (void)address;
    (void)flags;
    return 0;
}

int uv_tcp_getsockname(const uv_tcp_t *tcp, struct sockaddr *name, int *len)
{
    (void)tcp;
    *len = (int)sizeof(struct sockaddr_in);
    return uv_ip4_addr("127.0.0.1", 7420, (struct sockaddr_in *)name);
}

int uv_tcp_getpeername(const uv_tcp_t *tcp, struct sockaddr *name, int *len)
{
    const struct wire *wire = loop_wire(tcp);

    if (wire == NULL || wire->reset_told)
        return UV_ENOTCONN;
    if (wire->six) {
        *len = (int)sizeof(struct sockaddr_in6);
        return uv_ip6_addr(wire->local ? "::1" : "fd00::1",
                           (int)(20000 + wire->number % 40000),
                           (struct sockaddr_in6 *)name);
    }
    *len = (int)sizeof(struct sockaddr_in);
    return uv_ip4_addr(wire->local ? "127.0.0.1" : "10.0.0.1",
                       (int)(20000 + wire->number % 40000),
                       (struct sockaddr_in *)name);
}

/* Not a descriptor: the wire's number, for the two calls below. */
#define FD_FIRST 1000000

int uv_fileno(const uv_handle_t *handle, uv_os_fd_t *fd)
{
    const struct wire *wire = loop_wire(handle);

    if (wire == NULL || uv_is_closing(handle))
        return UV_EBADF;
    *fd = FD_FIRST + (int)wire->number;
    return 0;
}

int __wrap_ioctl(int fd, unsigned long request, void *value);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_setsockopt(int fd, int level, int name, const void *value,
                      socklen_t len);

static const struct wire *find_wire(int fd)
{
    const struct wire *wire = net_first();

    while (wire != NULL && wire->number != (uint64_t)(fd - FD_FIRST))
        wire = wire->next;
    assert(wire != NULL);
    return wire;
}

/* Bytes that the client has not taken. */
int __wrap_ioctl(int fd, unsigned long request, void *value)
{
    const struct wire *wire = find_wire(fd);

    assert(request == TIOCOUTQ);
    *(int *)value = (int)(wire->down.written - wire->down.taken);
    return 0;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
    struct tcp_info *info = value;
    const struct wire *wire = find_wire(fd);

    assert(level == IPPROTO_TCP && name == TCP_INFO && *len == sizeof *info);
    memset(info, 0, sizeof *info);
    info->tcpi_state = wire->reset            ? TCP_CLOSE
                       : wire->up.fin_arrived ? TCP_CLOSE_WAIT
                                              : TCP_ESTABLISHED;
    return 0;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value,
                      socklen_t len)
{
    (void)level;
    (void)name;
    (void)value;
    (void)len;
    return fd >= FD_FIRST ? 0 : -1;
}

int uv_listen(uv_stream_t *stream, int backlog, uv_connection_cb call)
{
    (void)backlog;
    stream->connection_cb = call;
    loop_listens(stream);
    net_listen(true);
    return 0;
}

int uv_accept(uv_stream_t *listener, uv_stream_t *stream)
{
    struct wire *wire = net_waiting();

    assert(wire != NULL);
    stream->u.reserved[0] = wire;
    wire_accept(wire, stream);
    loop_accepted(listener);
    return 0;
}

int uv_read_start(uv_stream_t *stream, uv_alloc_cb alloc, uv_read_cb read)
{
    if (uv_is_closing((uv_handle_t *)stream))
        return UV_EINVAL;
    stream->alloc_cb = alloc;
    stream->read_cb = read;
    loop_reads(stream, true);
    return 0;
}

int uv_read_stop(uv_stream_t *stream)
{
    loop_reads(stream, false);
    return 0;
}

static bool cannot_write(const uv_stream_t *stream)
{
    const struct wire *wire = loop_wire(stream);

    return wire == NULL || uv_is_closing((const uv_handle_t *)stream);
}

int uv_try_write(uv_stream_t *stream, const uv_buf_t bufs[], unsigned count)
{
    struct wire *wire = loop_wire(stream);

    assert(count == 1);
    if (cannot_write(stream))
        return UV_EBADF;
    if (world_is_dead())
        return (int)bufs[0].len;
    if (wire->write != NULL)
        return UV_EAGAIN;
    if (wire->reset)
        return UV_EPIPE; /* too late to count as told: the reply was made */
    size_t room = wire_window(wire);
    size_t len = bufs[0].len < room ? bufs[0].len : room;
    if (len == 0)
        return UV_EAGAIN;
    wire_send(wire, bufs[0].base, len);
    return (int)len;
}

size_t uv_stream_get_write_queue_size(const uv_stream_t *stream)
{
    return stream->write_queue_size;
}

int uv_write(uv_write_t *write, uv_stream_t *stream, const uv_buf_t bufs[],
             unsigned count, uv_write_cb call)
{
    struct wire *wire = loop_wire(stream);

    assert(count == 1);
    if (cannot_write(stream))
        return UV_EBADF;
    assert(wire->write == NULL); /* the server has one at a time */
    write->cb = call;
    write->handle = stream;
    wire->write = write;
    wire->write_data = bufs[0].base;
    wire->write_len = bufs[0].len;
    stream->write_queue_size = bufs[0].len;
    return 0;
}
