/* group.h - several commands as one: the form of a group.
 *
 *   4 bytes length, a record (command.h) | 4 bytes length, a record | ...
 *
 * Each record has the time 0, no REQ, and does not wait. A group is what
 * HOLD_GROUP carries; `count` says of how many commands.
 */
#ifndef HOLD_GROUP_H
#define HOLD_GROUP_H

#include "hold/schema.h"

#define HOLD_GROUP_HEAD 4u
/* The longest reply of a question in a group. */
#define HOLD_GROUP_READ_MAX (8u * 1024)
/* With so many bytes of replies a group takes no further command. */
#define HOLD_GROUP_REPLIES_MAX (192u * 1024)

/* The next record of a group that is one, from `*at` on; false at its end. */
bool hold_group_next(struct hf_bytes group, size_t *at, struct hf_bytes *out);
/* May a command of this kind be in a group? */
bool hold_may_group(enum hold_kind kind);
/* Makes a command one for a group: it has no time of its own, and does not
 * wait. */
void hold_group_plain(struct hold_command *command);
/* HF_CORRUPT: it is no group of so many commands. */
enum hf_status hold_group_check(struct hf_bytes group, uint64_t count);

#endif
