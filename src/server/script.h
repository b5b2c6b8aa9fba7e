/* script.h - EVAL and EVALSHA of scripts that are known by their text.
 *
 * Nothing is interpreted. A script is one of those that lock clients of Redis
 * send, and stands for a command about keys. It is known by the SHA1 of its
 * text, without comments and spare blanks (script_rows.c); what the server was
 * sent is remembered by the SHA1 of the text as it is, for EVALSHA.
 *
 * Threads: the loop's.
 */
#ifndef SERVER_SCRIPT_H
#define SERVER_SCRIPT_H

#include "server/table.h"

#define SCRIPT_SHA_DIGITS 40u
#define SCRIPT_TEXT_MAX   8192u /* bytes; longer ones are not known */
#define SCRIPTS_MAX       1024u /* remembered */

/* What a script does. Each letter of `keys` and `args` says what a key, or an
 * argument, stands for:
 *
 *   k  the key                      v  the value to set
 *   K  as many keys as there are    e  the value to compare with
 *   V  a value to set for each of them, and behind all there is the time, in ms
 *   t  the time to live, in ms      s  in seconds
 *   T  in ms, or empty: no end      a  "0": it is added to what is left
 *   g  what must be left, in ms     l  permits that there are
 *   p  permits that are wanted      h  who holds them
 *   w  a window, in seconds         W  in ms
 *   n  permits per window           b  at once, of a bucket; 0: none ever
 *   N  permits per window; 0: none
 *   c  permits that are wanted      -  nothing
 *   y  "yes", or the key is only kept if its value is the one to set
 *   z  "1" is refused               u  the client's time: in seconds, or in ms
 *   x  a window, in the unit of the client's time
 *
 * Without a window permits are per second; with the client's time, per unit of
 * it.
 */
struct script {
    enum hold_kind kind; /* 0: a limit */
    uint64_t flags;      /* of the command; of a limit, what is told, SLIDE */
    const char *keys;
    const char *args;
};

/* What a script that limits a rate tells. */
enum script_told {
    SCRIPT_ALLOWED,   /* 1 or 0 */
    SCRIPT_COUNTED,   /* how many there were in this window */
    SCRIPT_PAIR,      /* list: 1 or 0, and how many are left */
    SCRIPT_PAIR_NULL, /* list: 1 or null, and how many are left */
    SCRIPT_ONE_NULL,  /* 1 or null */
    SCRIPT_COUNT_S,   /* list: as counted, and the rest of the window in s */
    SCRIPT_COUNT_MS,  /* the same in ms */
    SCRIPT_USED,      /* list: 1 or 0, and how many are used */
    SCRIPT_NOTHING,   /* it may be loaded, and is refused */
};
#define SCRIPT_TOLD   0xffu
#define SCRIPT_SLIDE  0x100u /* any window: a log */
#define SCRIPT_CLOSED 0x200u /* of no permits: all are refused */

/* Where a text is known by: of its normal form, or as it is. */
struct script_row {
    char sha1[SCRIPT_SHA_DIGITS + 1];
    uint8_t script; /* its place in `scripts` */
};
extern const struct script scripts[];
extern const struct script_row script_texts[], script_shas[];
extern const size_t script_text_count, script_sha_count;

/* The text without comments, spare blanks and the names of local variables, and
 * with one kind of quotes; `out` has room for as many bytes. Returns its
 * length; 0: it has something that no script has which is known. */
size_t script_normalise(struct hf_bytes text, char *out);

/* What clients sent, by the SHA1 of the text; the oldest is forgotten first. */
struct script_memory {
    uint32_t count;
    uint32_t next;
    struct script_row rows[SCRIPTS_MAX];
};

/* What they make has kind 0 if it is a limit, to be run by script_limit(). */
make_fn script_eval, script_evalsha;
void script_limit(struct server *server, struct conn *conn,
                  const struct hold_command *command);
/* The command was parsed so: the text of an EVAL is remembered, and an EVALSHA
 * that was not known by itself is looked for. The status, perhaps another. */
enum hf_status script_parsed(const struct asked *asked,
                             const struct command *command,
                             enum hf_status status,
                             char error[PARSE_ERROR_MAX]);
command_fn script_load, script_exists, script_flush;

#endif
