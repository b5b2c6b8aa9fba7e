/* run.h - one seed, from an empty disk to the last clean stop. */
#ifndef SIM_SERVER_RUN_H
#define SIM_SERVER_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "history/history.h"
#include "sim/server/client.h"

struct run_opts {
    uint64_t seed;
    uint64_t commands;
    uint32_t faults_off; /* a bit for each kind of fault */
    uint64_t limit;      /* stop asking after so many; 0: `commands` */
    const struct client_masks *masks;
    const bool *fault_masks; /* single faults that are left out; may be NULL */
    const char *dir;         /* for the data folder */
    const char *history;     /* where to save the history; NULL: nowhere */
    bool story;              /* print everything that happened */
};

struct run_result {
    bool failed;
    char rule[32];
    char text[512];
    uint64_t id; /* of the calls that show it */
    uint64_t other;
    uint64_t digest;
    uint64_t sent;
    uint64_t answers;
    uint64_t grants;
    uint64_t reads;
    uint64_t reservations;
    uint64_t turns; /* of the loop */
    uint64_t starts;
    uint64_t crashes;
    uint64_t stops;
    uint64_t simulated_us;
    uint64_t clients;
    uint64_t client_turns[CLIENTS_MAX];
    size_t faults;
};

void run_seed(const struct run_opts *opts, struct run_result *out);
/* What the run is about, in a line or two. */
void run_describe(const struct run_opts *opts, FILE *out);
/* The story of the last run, around its failure; all of it without one. */
void run_story(const struct run_result *result, FILE *out);

#endif
