/* postgres_array.h - arrays as parameters of PostgreSQL, and numbers in its
 * answers, in binary.
 *
 * Numbers in network order:
 *
 *   u32 dimensions (1; 0: no element)   u32 has NULLs (0)   u32 type
 *   u32 elements   u32 first index (1)
 *   then each: u32 length, its bytes
 *
 * Memory: the array keeps its room from one use to the next. Without memory it
 *         remembers that, so that one look at the end is enough.
 */
#ifndef STORES_POSTGRES_ARRAY_H
#define STORES_POSTGRES_ARRAY_H

#include <stdbool.h>

#include "base/bytes.h"

struct pg_result; /* libpq's own name for PGresult */

enum { POSTGRES_BIGINT = 20, POSTGRES_TEXT = 25 };

struct postgres_array {
    struct hf_buf buf;
    uint32_t count;
    bool failed; /* no memory: what is in it is not whole */
};

void hf_postgres_array_begin(struct postgres_array *array, uint32_t type);
void hf_postgres_array_text(struct postgres_array *array, struct hf_bytes text);
void hf_postgres_array_number(struct postgres_array *array, int64_t number);
/* To be sent from now on. */
void hf_postgres_array_end(struct postgres_array *array);

/* What is in a row of a result. */
int64_t hf_postgres_number(const struct pg_result *result, int row, int column);
struct hf_bytes hf_postgres_text(const struct pg_result *result, int row,
                                 int column);

#endif
