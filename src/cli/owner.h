/* owner.h - a default owner of a lock: readable, and unique on its own.
 *
 *   web-3:4711:9f2c41d07be35a18
 *   host  pid  random
 *
 * The same owner may enter a lock again, so two processes must never have the
 * same one by default. Host and pid alone do not do: containers often share
 * both. They are there for people; the random part is what tells apart.
 */
#ifndef CLI_OWNER_H
#define CLI_OWNER_H

#include <stdint.h>

#include "hold/bounds.h"
#include "holdfast/status.h"

/* Room for an owner and its end mark. */
#define OWNER_BYTES (HOLD_OWNER_MAX + 1)

/* The owner of these parts; a host that is too long for it is cut. */
void owner_print(char out[OWNER_BYTES], const char *host, long pid,
                 uint64_t random);
/* A new one for this process. HF_IO: the system gives no randomness. */
enum hf_status owner_make(char out[OWNER_BYTES]);

#endif
