/* retry.c - a lock as a loop that tries again, to compare with one that waits.
 *
 *   retry --port PORT NAME COMMAND [ARGUMENT...]
 *
 * Takes the lock NAME of a Redis server by SET NX PX. Whoever does not get it
 * tries again after 50 to 100 ms, by chance, as client libraries for lock
 * services do. Runs the command and gives the lock back by comparing and
 * deleting. Ends as the command does.
 */
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ask.h"
#include "base/random.h"

#define PAUSE_MS 50u

static void try_until_taken(struct client *client, const char *name,
                            const char *value, struct hf_random *random)
{
    char words[200];
    snprintf(words, sizeof words, "SET %s %s NX PX 30000", name, value);
    for (;;) {
        struct hf_bytes reply = ask(client, words);
        if (reply.data[0] == '+')
            return;
        if (reply.data[0] == '-')
            drive_fail("SET", "refused");
        ask_sleep_until(client_now_ns() +
                        (PAUSE_MS + hf_random_below(random, PAUSE_MS + 1)) *
                            ASK_NS_PER_MS);
    }
}

static void give_back(struct client *client, const char *name,
                      const char *value)
{
    static const char script[] =
        "if redis.call('get',KEYS[1])==ARGV[1] then "
        "return redis.call('del',KEYS[1]) end return 0";
    struct hf_bytes args[] = {hf_bytes_text("EVAL"), hf_bytes_text(script),
                              hf_bytes_text("1"), hf_bytes_text(name),
                              hf_bytes_text(value)};
    ask_must(client_send(client, sizeof args / sizeof *args, args), "EVAL");
    ask_flush(client);
    (void)ask_next(client);
}

int main(int argc, char **argv)
{
    struct client client;
    struct hf_random random;
    char value[32];
    uint64_t seed;
    int status;
    if (argc < 5 || strcmp(argv[1], "--port") != 0)
        drive_fail("usage", "retry --port PORT NAME COMMAND [ARGUMENT...]");
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
        drive_fail("retry", "no random numbers");
    hf_random_init(&random, seed);
    snprintf(value, sizeof value, "%llx", (unsigned long long)seed);
    ask_connect(&client, drive_number(argv[2]));
    try_until_taken(&client, argv[3], value, &random);
    pid_t child = fork();
    if (child == 0) {
        execvp(argv[4], argv + 4);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        drive_fail(argv[4], "cannot be run");
    give_back(&client, argv[3], value);
    client_close(&client);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
