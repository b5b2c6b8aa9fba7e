/* subscribers.c - clients that hear of every lock, and read as fast as they
 * can.
 *
 *   subscribers --port PORT --count N
 *
 * N connections, RESP3, each with the pattern hf:lock:*. Prints `ready` when
 * all have subscribed, and reads until its input ends. Then it prints how many
 * bytes it has read; it fails if the server has cut one of them.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "ask.h"
#include "cli/args.h"

#define COUNT_MAX   10000u
#define EVENTS      64
#define BUFFER      (256u * 1024)
#define OUTPUT_SIZE "CONFIG SET output-max-bytes 67108864"

static struct client clients[COUNT_MAX + 1];
static char buffer[BUFFER];

static void subscribe(struct client *client, uint64_t port, int epoll)
{
    struct epoll_event event = {.events = EPOLLIN};

    ask_connect(client, port);
    (void)ask(client, "HELLO 3");
    ask_send(client, "PSUBSCRIBE hf:lock:*"); /* told by a push */
    (void)ask(client, "PING");
    event.data.fd = client->fd;
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, client->fd, &event) != 0)
        drive_fail("epoll", strerror(errno));
}

/* Until the input ends; the bytes that came. */
static uint64_t listen_on(int epoll)
{
    struct epoll_event ready[EVENTS];
    uint64_t bytes = 0;

    for (;;) {
        int count = epoll_wait(epoll, ready, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            if (ready[i].data.fd == STDIN_FILENO)
                return bytes;
            ssize_t got = read(ready[i].data.fd, buffer, BUFFER);
            if (got == 0 || (got < 0 && errno != EAGAIN))
                drive_fail("read", "a subscriber was cut");
            bytes += got > 0 ? (uint64_t)got : 0;
        }
    }
}

int main(int argc, char **argv)
{
    uint64_t port = 0;
    uint64_t count = 0;
    const struct args_option options[] = {
        ARGS_NUMBER("port", "PORT", "of the server", port, 1, 65535),
        ARGS_NUMBER("count", "N", "subscribers", count, 0, COUNT_MAX),
    };
    const struct args_spec spec = {"subscribers",
                                   "--port PORT --count N",
                                   "Hears of every lock.\n",
                                   "",
                                   options,
                                   2};
    struct epoll_event input = {.events = EPOLLIN, .data.fd = STDIN_FILENO};
    struct args args;

    int code = args_parse(&spec, argc, argv, &args);
    if (code != ARGS_GO)
        return code;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO, &input) != 0)
        drive_fail("epoll", strerror(errno));
    ask_connect(&clients[count], port);
    (void)ask(&clients[count], OUTPUT_SIZE);
    for (uint64_t i = 0; i < count; i++)
        subscribe(&clients[i], port, epoll);
    printf("ready\n");
    fflush(stdout);
    printf("%llu\n", (unsigned long long)listen_on(epoll));
    return 0;
}
