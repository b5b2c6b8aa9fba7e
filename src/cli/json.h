/* json.h - text in JSON (RFC 8259).
 *
 * Any bytes may come in: what is not UTF-8 becomes U+FFFD, byte by byte, so
 * that the output is always valid.
 */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include "base/bytes.h"
#include "holdfast/status.h"

/* Appends `text` in quotes. HF_NOMEM: the buffer ends in part of it. */
enum hf_status json_string(struct hf_buf *out, struct hf_bytes text);
/* Prints it; null if there is no memory for that. */
void json_print(const char *text);

#endif
