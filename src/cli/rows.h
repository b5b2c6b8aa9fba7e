/* rows.h - products as rows of a file: CSV, or JSON lines.
 *
 *   sku,total,low,attributes                       {"sku": "shoe-42",
 *   shoe-42,100,5,"{""colour"": ""red""}"           "total": 100, ...}
 *
 * CSV is that of RFC 4180: fields with commas, quotes or ends of lines are in
 * quotes. Its first row names the columns, in any order. A column
 * `attribute.NAME` has an attribute of its own. JSON lines have an object each.
 *
 * A reader is given the file in pieces and gives the rows that are whole. What
 * it does not know is an error, so that no column is lost by a wrong name; what
 * an export tells beyond what an import takes is passed by.
 *
 * Memory: texts of a row are the reader's, until it goes on.
 */
#ifndef CLI_ROWS_H
#define CLI_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "hold/bounds.h"

/* The longest row, and the most columns. */
#define ROWS_BYTES_MAX   (64u * 1024)
#define ROWS_COLUMNS_MAX 64u
#define ROWS_ERROR_MAX   256u

enum rows_format { ROWS_CSV, ROWS_JSON };

struct rows_pair {
    struct hf_bytes name;
    struct hf_bytes value;
};

struct row {
    uint64_t line; /* in which it begins, from 1 */
    struct hf_bytes sku;
    uint64_t total;
    uint64_t low;
    bool has_low;
    uint32_t attribute_count;
    struct rows_pair attributes[HOLD_ATTRS_MAX];
};

struct rows {
    enum rows_format format;
    struct hf_buf in;
    size_t at;
    bool ended; /* there is no more to come */
    uint64_t line;
    uint32_t column_count; /* of CSV; 0: the first row was not read */
    struct hf_bytes columns[ROWS_COLUMNS_MAX];
    struct hf_buf names; /* of the columns */
    struct hf_buf texts; /* of the row */
    char error[ROWS_ERROR_MAX];
    bool lost; /* it cannot go on behind the error */
};

void rows_init(struct rows *rows, enum rows_format format);
void rows_destroy(struct rows *rows);
/* More bytes of the file; none: it ends. HF_NOMEM. */
enum hf_status rows_add(struct rows *rows, const char *data, size_t len);
/* The next row. HF_MORE: it needs more bytes; HF_CLOSED: that was all;
 * HF_INVALID: `error` says what is wrong with the row of `out->line`, and it
 * goes on behind it unless it is `lost`; HF_NOMEM. */
enum hf_status rows_next(struct rows *rows, struct row *out);

/* The first row of an export, and one product as STOCK LIST shows it.
 * HF_INVALID: no product; HF_NOMEM. A name in JSON has to be UTF-8: HF_CORRUPT.
 */
enum hf_status rows_head(struct hf_buf *out, enum rows_format format);
enum hf_status rows_put(struct hf_buf *out, enum rows_format format,
                        struct hf_bytes product);

#endif
