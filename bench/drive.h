/* drive.h - the engine without a server, for the programs that measure it.
 *
 * drive_write() takes the steps that the server takes for one journaled
 * command, but for the journal: refuse, prepare, encode, apply. Whatever goes
 * wrong ends the program; a measurement of failures is of no use.
 */
#ifndef BENCH_DRIVE_H
#define BENCH_DRIVE_H

#include <stdio.h>
#include <stdlib.h>

#include "hold/engine.h"
#include "holdfast/clock.h"

/* Names and owners of this length are what the limits on size speak of. */
#define DRIVE_NAME_BYTES 16u
/* As many as an engine takes by default. */
#define DRIVE_KEYS_MAX 10000000u
/* No hold runs out while it is measured. */
#define DRIVE_TTL_MS 86400000u

static inline void drive_fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

/* A letter and the number in 15 digits. */
static inline struct hf_bytes drive_name(char *out, char letter,
                                         uint64_t number)
{
    for (size_t i = DRIVE_NAME_BYTES - 1; i > 0; i--) {
        out[i] = (char)('0' + number % 10);
        number /= 10;
    }
    out[0] = letter;
    return hf_bytes(out, DRIVE_NAME_BYTES);
}

static inline uint64_t drive_number(const char *text)
{
    uint64_t number;
    if (hf_parse_u64(hf_bytes_text(text), &number) || number == 0 ||
        number > DRIVE_KEYS_MAX)
        drive_fail(text, "not a number between 1 and 10 million");
    return number;
}

static inline const struct hold_out *
drive_write(struct hold_engine *engine, const struct hold_command *command)
{
    static char record[HOLD_RECORD_MAX];
    if (hold_answer_now(engine, command) != NULL)
        drive_fail("refused", "a command that must succeed");
    if (hold_prepare(engine, command))
        drive_fail("prepare", "out of memory");
    size_t len = hold_encode(command, record);
    const struct hold_out *out = hold_apply(engine, hf_bytes(record, len));
    if (out == NULL || (out->code != HOLD_OK && out->code != HOLD_WAITING))
        drive_fail("apply", "a command that must succeed did not");
    return out;
}

/* An engine as a server has it; `command` gets the time. The default bounds
 * let in 10 million locks and more products than that. */
static inline struct hold_engine *drive_new(struct hold_command *command)
{
    struct hold_engine *engine = hold_new((struct hf_hash_seed){{1, 2}});
    if (engine == NULL)
        drive_fail("engine", "out of memory");
    command->now_us = hf_clock_wall_us(hf_clock_system());
    return engine;
}

/* The commands that the programs here give, written into `command`. */
static inline void drive_lock(struct hold_command *command,
                              struct hf_bytes name, struct hf_bytes owner)
{
    command->kind = HOLD_LOCK;
    command->name = name;
    command->owner = owner;
    command->token = 0;
    command->ttl_ms = DRIVE_TTL_MS;
}

static inline void drive_unlock(struct hold_command *command,
                                struct hf_bytes name, uint64_t token)
{
    command->kind = HOLD_UNLOCK;
    command->name = name;
    command->owner = hf_bytes(NULL, 0);
    command->token = token;
    command->ttl_ms = 0;
}

static inline void drive_stock(struct hold_command *command,
                               struct hf_bytes sku)
{
    command->kind = HOLD_STOCK_SET;
    command->name = sku;
    command->amount = 1000000000;
}

#endif
