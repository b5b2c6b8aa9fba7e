/* show.h - a reply as readable lines, or as JSON.
 *
 *   id: r-17                    a map: one line per field
 *   items:                      a list of maps in it: one line each
 *     sku=a qty=2
 *     sku=b qty=1
 *
 *   sku=a total=5 available=3   an array: one line per value
 *
 * Control bytes are shown as \xHH, so that a name cannot act on the terminal.
 */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

#include "base/bytes.h"
#include "holdfast/status.h"

/* Appends the reply at the start of `input`, read in protocol version 3.
 * HF_INVALID: not a whole reply, or nested too deeply. */
enum hf_status show_reply(struct hf_buf *out, struct hf_bytes input);
/* The same as JSON: a map becomes an object; anything else becomes the only
 * member of one, {"result": value}, so that scripts always find an object. */
enum hf_status show_json(struct hf_buf *out, struct hf_bytes input);
enum hf_status show_text(struct hf_buf *out, struct hf_bytes text);

#endif
