/* rows_parts.h - what the files of rows.h share. */
#ifndef CLI_ROWS_PARTS_H
#define CLI_ROWS_PARTS_H

#include "cli/rows.h"

/* What a row can tell. */
enum rows_field {
    ROWS_SKU,
    ROWS_TOTAL,
    ROWS_LOW,
    ROWS_ATTRIBUTES,
    ROWS_PASSED_BY, /* of an export */
    ROWS_ATTRIBUTE, /* attribute.NAME, of CSV */
    ROWS_UNKNOWN,
};
#define ROWS_ATTRIBUTE_PREFIX "attribute."

enum rows_field rows_field(struct hf_bytes name);

/* Says what is wrong. Always HF_INVALID. */
enum hf_status rows_wrong(struct rows *rows, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Puts one value into the row. */
enum hf_status rows_take_text(struct rows *rows, enum rows_field field,
                              struct hf_bytes text, struct row *out);
enum hf_status rows_take_attribute(struct rows *rows, struct hf_bytes name,
                                   struct hf_bytes value, struct row *out);
/* Is all there, and not too much? */
enum hf_status rows_finish(struct rows *rows, struct row *out);

/* A line, without its end, that is an object. */
enum hf_status rows_json_line(struct rows *rows, struct hf_bytes line,
                              struct row *out);
/* An object of texts, which become attributes. */
enum hf_status rows_json_attributes(struct rows *rows, struct hf_bytes text,
                                    struct row *out);

#endif
