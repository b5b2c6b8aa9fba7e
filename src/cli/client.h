/* client.h - a connection to a server, for one thread.
 *
 * The socket never blocks. `client_step` moves bytes as far as they go now and
 * suits a loop of one's own; `client_open`, `client_call` and `client_wait`
 * are the same with waiting, up to a deadline.
 *
 *   client_start --> (client_step, client_send, client_take)* --> client_close
 *   client_open  --> (client_call)*                           --> client_close
 *
 * Time: deadlines and client_now_ns() are on a clock that also counts while
 * the machine is suspended, as the server's clock goes on then.
 */
#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "cli/args.h"
#include "holdfast/clock.h"
#include "holdfast/status.h"

#define CLIENT_PORT       7420
#define CLIENT_CONNECT_MS 5000 /* how long the commands wait for a server */
#define CLIENT_REPLY_MS   5000 /* and for an answer that need not wait */

/* Where the server is; the options --host and --port write here. */
struct client_address {
    const char *host;
    uint64_t port;
    char text[256]; /* host from the environment */
};

/* Rows for a table of options. */
#define CLIENT_OPTIONS(address)                                     \
    ARGS_TEXT("host", "HOST",                                       \
              "server's address (127.0.0.1, or from HOLDFAST_URL)", \
              (address)->host),                                     \
        ARGS_NUMBER("port", "PORT",                                 \
                    "server's port (7420, or from HOLDFAST_URL)",   \
                    (address)->port, 1, 65535)

/* args_parse for a command that has CLIENT_OPTIONS(address). */
int client_args(const struct args_spec *spec, int argc, char **argv,
                struct client_address *address, struct args *out);

struct client {
    int fd; /* -1: closed */
    bool connecting;
    bool reached; /* the server took the connection, once */
    int error;    /* why the last call failed: errno, or EAI_ if below 0 */
    struct hf_buf in;
    size_t taken; /* bytes of `in` that client_take has returned */
    bool warned;  /* a push said that a lock is lost, or will be */
    struct hf_buf out;
    size_t sent; /* bytes of `out` that the socket took */
};

uint64_t client_now_ns(void);

/* One of the addresses that a name stands for. Looking it up may take a while,
 * so the one that answered is kept. */
struct client_target {
    struct sockaddr_storage address;
    socklen_t len;
};

/* Starts to connect. HF_OK: started or connected; HF_IO. */
enum hf_status client_start(struct client *client,
                            const struct client_target *target);
/* Queues a request; client_step sends it. */
enum hf_status client_send(struct client *client, size_t count,
                           const struct hf_bytes *args);
/* What to poll the socket for. */
short client_events(const struct client *client);
/* Connects, sends and receives as far as possible. HF_OK; HF_CLOSED: the
 * server ended it; HF_IO: refused or broken. */
enum hf_status client_step(struct client *client);
/* The next whole reply, valid until the next client_step. HF_MORE: not here
 * yet; HF_INVALID: not RESP. */
enum hf_status client_take(struct client *client, struct hf_bytes *reply);
/* Closes and forgets what was queued, but not why a call failed; safe to
 * repeat. */
void client_close(struct client *client);

/* Gives the socket away and forgets the rest. */
int client_detach(struct client *client);

/* Waits for the socket and steps. HF_TIMEOUT, or as client_step. */
enum hf_status client_wait(struct client *client, uint64_t deadline_ns);
/* Tries each address of the name; deadline 0: CLIENT_CONNECT_MS from now.
 * `target`, if not NULL, gets the one that answered. If none does, the result
 * is the first one's. HF_NOTFOUND: there is no such name; HF_TIMEOUT; HF_IO:
 * refused or unreachable. */
enum hf_status client_open(struct client *client,
                           const struct client_address *address,
                           uint64_t deadline_ns, struct client_target *target);
enum hf_status client_receive(struct client *client, uint64_t deadline_ns,
                              struct hf_bytes *reply);
enum hf_status client_call(struct client *client, size_t count,
                           const struct hf_bytes *args, uint64_t deadline_ns,
                           struct hf_bytes *reply);

/* Why a call on this client failed with `status`, as a sentence for people
 * that begins with the address. */
#define CLIENT_REASON_MAX 512
void client_explain(const struct client *client,
                    const struct client_address *address, enum hf_status status,
                    char out[CLIENT_REASON_MAX]);

#endif
