/* tail.c - one piece at a time: read, keep, write. */
#include "cli/tail.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

enum hf_status tail_open(struct tail *tail, int *output)
{
    int ends[2];

    *tail = (struct tail){.fd = -1};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return HF_IO;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    tail->fd = ends[0];
    *output = ends[1];
    return HF_OK;
}

/* The command then learns of it as it would from its own output. */
static void close_pipe(struct tail *tail)
{
    if (tail->fd >= 0)
        close(tail->fd);
    tail->fd = -1;
}

void tail_keep(struct tail *tail, const char *data, size_t len)
{
    size_t room = sizeof tail->kept;

    if (len > room) {
        data += len - room;
        len = room;
    }
    size_t stays =
        room - len < tail->kept_count ? room - len : tail->kept_count;
    memmove(tail->kept, tail->kept + tail->kept_count - stays, stays);
    memcpy(tail->kept + stays, data, len);
    tail->kept_count = stays + len;
}

/* One piece from the pipe; false: there is none now. */
static bool read_piece(struct tail *tail)
{
    if (tail->fd < 0)
        return false;
    if (hf_buf_reserve(&tail->unwritten, PIPE_BUF) != HF_OK) {
        close_pipe(tail);
        return false;
    }
    char *place = tail->unwritten.data + tail->unwritten.len;
    ssize_t got = read(tail->fd, place, PIPE_BUF);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got <= 0) {
        close_pipe(tail);
        return false;
    }
    tail_keep(tail, place, (size_t)got);
    tail->unwritten.len += (size_t)got;
    return true;
}

/* One write; false: nobody reads it. */
static bool write_piece(struct tail *tail)
{
    size_t len =
        tail->unwritten.len < PIPE_BUF ? tail->unwritten.len : PIPE_BUF;
    ssize_t done = write(STDOUT_FILENO, tail->unwritten.data, len);

    if (done < 0 && errno != EAGAIN && errno != EINTR) {
        tail->error = errno;
        return false;
    }
    if (done < 0)
        return true;
    hf_buf_consume(&tail->unwritten, (size_t)done);
    return true;
}

/* A pipe that is ready takes PIPE_BUF bytes without waiting. */
struct pollfd tail_poll(const struct tail *tail)
{
    if (tail->unwritten.len > 0)
        return (struct pollfd){.fd = STDOUT_FILENO, .events = POLLOUT};
    return (struct pollfd){.fd = tail->fd, .events = POLLIN};
}

void tail_step(struct tail *tail)
{
    if (tail->unwritten.len == 0) {
        (void)read_piece(tail);
    } else if (!write_piece(tail)) {
        close_pipe(tail);
        tail->unwritten.len = 0;
    }
}

void tail_end(struct tail *tail)
{
    while (read_piece(tail))
        ;
    close_pipe(tail);
}

void tail_flush(struct tail *tail)
{
    struct pollfd ready = {.fd = STDOUT_FILENO, .events = POLLOUT};

    while (tail->unwritten.len > 0) {
        if (!write_piece(tail))
            break;
        if (tail->unwritten.len > 0)
            poll(&ready, 1, -1);
    }
    hf_buf_destroy(&tail->unwritten);
}

struct hf_bytes tail_lines(const struct tail *tail)
{
    struct hf_bytes lines = hf_bytes(tail->kept, tail->kept_count);

    if (lines.len > 0 && lines.data[lines.len - 1] == '\n')
        lines.len--;
    if (lines.len <= TAIL_MAX)
        return lines;
    /* a line begins behind a line break, which may stand before the room */
    const char *room = lines.data + lines.len - TAIL_MAX;
    const char *end = memchr(room - 1, '\n', TAIL_MAX + 1);
    const char *begin = end != NULL ? end + 1 : room;
    return hf_bytes(begin, (size_t)(lines.data + lines.len - begin));
}
