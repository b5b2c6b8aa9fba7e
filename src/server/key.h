/* key.h - the commands of Redis about keys.
 *
 * A key is a lock (hold/key.c): SET takes it, DEL gives it back. These commands
 * are read in the order that Redis has, and what is wrong with one is told in
 * the words of Redis, since its clients look at them.
 *
 * Threads: the loop's.
 */
#ifndef SERVER_KEY_H
#define SERVER_KEY_H

#include "server/table.h"

extern const struct command key_commands[];
extern const size_t key_command_count;

/* One of its arguments: a key, a value, or the time to live, in milliseconds if
 * `unit_ms` is 1. HF_INVALID or HF_FAILED: see answer_bad_code(). */
enum hf_status key_take_name(struct hf_bytes text, struct hf_bytes *out,
                             char error[PARSE_ERROR_MAX]);
enum hf_status key_take_value(struct hf_bytes text, struct hf_bytes *out,
                              char error[PARSE_ERROR_MAX]);
enum hf_status key_take_ttl(struct hf_bytes text, uint64_t unit_ms,
                            const char *command, uint64_t *out,
                            char error[PARSE_ERROR_MAX]);
enum hf_status key_take_integer(struct hf_bytes text, int64_t *out,
                                char error[PARSE_ERROR_MAX]);
/* Says what is wrong in the words of Redis; always HF_FAILED. */
enum hf_status key_wrong(char error[PARSE_ERROR_MAX], const char *sentence, ...)
    __attribute__((format(printf, 2, 3)));
/* One of several keys. */
enum hf_status key_add(struct hold_command *command, struct hf_bytes name,
                       char error[PARSE_ERROR_MAX]);
/* Several that are but one are one. */
void key_settle_names(struct hold_command *command);

#endif
