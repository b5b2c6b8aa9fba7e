/* show.h - a reply as readable lines.
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

/* Appends the lines. HF_INVALID: not a whole reply, or nested too deeply. */
enum hf_status show_reply(struct hf_buf *out, struct hf_bytes input);
enum hf_status show_text(struct hf_buf *out, struct hf_bytes text);

#endif
