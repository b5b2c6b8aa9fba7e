/* shrink.c - tries smaller runs, each in a process of its own. */
#include "sim/server/shrink.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    struct run_opts opts;
    struct client_masks masks;
    bool faults[FAULTS_MAX];
    char rule[32];
    bool trying;
    uint64_t tries;
} state;

bool shrink_is_trying(void)
{
    return state.trying;
}

/* Does it still fail by the same rule? */
static bool still_fails(void)
{
    struct run_result result;
    int status = 0;

    state.tries++;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        state.trying = true;
        run_seed(&state.opts, &result);
        _exit(result.failed && strcmp(result.rule, state.rule) == 0 ? 1 : 0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return false;
    if (strcmp(state.rule, "dies") == 0)
        return WIFSIGNALED(status);
    return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

/* A run that dies is left to a child, which tells how it ended. */
bool shrink_dies(const struct run_opts *opts)
{
    memset(&state, 0, sizeof state);
    state.opts = *opts;
    snprintf(state.rule, sizeof state.rule, "dies");
    return still_fails();
}

static void cut_length(void)
{
    uint64_t low = 1;
    uint64_t high = state.opts.limit ? state.opts.limit : state.opts.commands;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        state.opts.limit = middle;
        if (still_fails())
            high = middle;
        else
            low = middle + 1;
    }
    state.opts.limit = high;
}

static void drop_faults(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (state.faults[i])
            continue;
        state.faults[i] = true;
        if (!still_fails())
            state.faults[i] = false;
    }
}

static void drop_clients(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (state.masks.clients[i])
            continue;
        state.masks.clients[i] = true;
        if (!still_fails())
            state.masks.clients[i] = false;
    }
}

/* Ever smaller pieces of a client's turns. */
static void drop_turns(uint64_t client, uint64_t turns)
{
    uint8_t *masks = state.masks.turns[client];
    uint8_t before[TURNS_MAX / 8];

    for (uint64_t piece = turns / 2 + 1; piece > 0; piece /= 2) {
        for (uint64_t from = 0; from < turns; from += piece) {
            memcpy(before, masks, sizeof before);
            for (uint64_t t = from; t < from + piece && t < TURNS_MAX; t++)
                masks[t / 8] |= (uint8_t)(1u << (t % 8));
            if (memcmp(before, masks, sizeof before) != 0 && !still_fails())
                memcpy(masks, before, sizeof before);
        }
    }
}

void shrink(const struct run_opts *opts, const struct run_result *found,
            FILE *out)
{
    struct run_result result = {0};

    memset(&state, 0, sizeof state);
    state.opts = *opts;
    state.opts.masks = &state.masks;
    state.opts.fault_masks = state.faults;
    memcpy(state.rule, found->rule, sizeof state.rule);
    cut_length();
    drop_clients(found->clients);
    drop_faults(found->faults);
    cut_length();
    for (uint64_t i = 0; i < found->clients; i++) {
        if (!state.masks.clients[i])
            drop_turns(i, found->client_turns[i]);
    }
    drop_faults(found->faults);
    fflush(out);
    run_seed(&state.opts, &result);
    fprintf(out, "shrunk to %llu requests in %llu tries: %s: %s\n",
            (unsigned long long)result.sent, (unsigned long long)state.tries,
            result.rule, result.text);
    run_story(
        &(struct run_result){.id = result.sent > 60 ? result.id : 0,
                             .other = result.sent > 60 ? result.other : 0},
        out);
}
