/* work_parts.h - what the workloads share. */
#ifndef CLI_WORK_PARTS_H
#define CLI_WORK_PARTS_H

#include "cli/load.h"

#define KEY_DIGITS 8
#define KEY_ZEROS  "00000000"

/* Writes `number` over `digits` digits. */
void work_put_digits(char *at, size_t digits, uint64_t number);
/* Appends a request of words that are separated by single spaces. */
enum hf_status work_add_request(struct hf_buf *out, const char *line);
/* Where `digits` stand in the pattern. */
size_t work_find_digits(const struct load *load, const char *digits);
/* A batch begins, unless it is not due or there is to be no further one. */
bool work_begin(struct load *load, struct load_conn *conn);

/* sell: see work_sell.c. */
enum hf_status work_sell_prepare(struct load *load);
enum hf_status work_sell_batch(struct load *load, struct load_conn *conn);
void work_sell_reply(struct load *load, struct load_conn *conn,
                     struct hf_bytes reply);

#endif
