/* json.h - a strict reader of JSON (RFC 8259), for tests.
 *
 * Threads: pure functions.
 */
#ifndef TEST_SUPPORT_JSON_H
#define TEST_SUPPORT_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

/* Is it one object, with nothing behind it? */
bool test_json_is_object(struct hf_bytes text);
/* The value of a field of an object as it stands there, "" if it has none; the
 * quotes of a text are left out. */
struct hf_bytes test_json_field(struct hf_bytes text, const char *name);
/* The same as a number; TEST_NO_NUMBER (wire.h) if it is none. */
int64_t test_json_number(struct hf_bytes text, const char *name);

#endif
