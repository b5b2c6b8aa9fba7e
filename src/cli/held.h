/* held.h - what lock, once, elect and session share: take, run, give back.
 *
 *   held_parse --> the request's own words --> held_take --> run_command
 *                                                              |
 *                                             held_give <------+
 */
#ifndef CLI_HELD_H
#define CLI_HELD_H

#include "cli/args.h"
#include "cli/owner.h"
#include "cli/run.h"

#define HELD_WAIT_MAX_MS (24u * 3600 * 1000)

struct held {
    struct lease lease;
    struct client_address address;
    char owner[OWNER_BYTES];
    const char *wait; /* the option, and what it says */
    uint64_t wait_ms;
};

/* Rows for a table of options. */
#define HELD_TTL(held, help_)                                               \
    ARGS_NUMBER("ttl", "MS", help_, (held)->lease.ttl_ms, LEASE_TTL_MIN_MS, \
                LEASE_TTL_MAX_MS)
#define HELD_WAIT(held, usual)                                              \
    ARGS_TEXT("wait", "MS|forever", "how long to queue for it (" usual ")", \
              (held)->wait)

/* What every help tells of the command that is run. */
#define HELD_RUNS                                                              \
    "SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to the command. What\n" \
    "it leaves running in its process group is killed before the end.\n"
#define HELD_EXITS                                                     \
    "exit code:\n"                                                     \
    "  of the command, or 128 + the signal that ended it; otherwise\n" \
    "  64  the command line is wrong\n"                                \
    "  65  the server refused the request\n"                           \
    "  69  the server cannot be reached\n"
#define HELD_EXITS_RUN                     \
    "  126 the command could not be run\n" \
    "  127 the command was not found\n"

/* Parses the line and looks at what all of them need: the command behind --,
 * --wait, an owner. ARGS_GO, or the exit code. */
int held_parse(struct held *held, const struct args_spec *spec, int argc,
               char **argv, struct args *args);
/* Appends the owner, the TTL and the wait. */
void held_words(const struct held *held, struct words *request);
/* Connects and asks. HF_OK: held; otherwise as lease_take. */
enum hf_status held_take(struct held *held, const struct words *request,
                         struct hf_bytes *error);
/* Tells why held_take failed; the exit code. */
int held_explain(const struct held *held, enum hf_status status,
                 struct hf_bytes error);
/* Takes, runs the command, gives back; the exit code. */
int held_run(struct held *held, const struct words *request, char **command);
/* Gives it back; tells if that fails. */
void held_give(struct held *held);

#endif
