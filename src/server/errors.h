/* errors.h - the errors that the server itself gives: a code and a sentence
 * into which the facts go, for answer_error().
 *
 * Refusals of the engine are in reply.c, what is wrong with a word in parse.c.
 */
#ifndef SERVER_ERRORS_H
#define SERVER_ERRORS_H

#include "hold/reply.h"

/* Requests. */
#define ERROR_COUNT HOLD_BADARG, "wrong number of arguments, the form is: %s %s"

#define ERROR_UNKNOWN \
    HOLD_ERR, "unknown command '%.*s' (with '%.*s'), HELP lists all commands"
#define ERROR_HTTP   HOLD_ERR, "this is not an HTTP server"
#define ERROR_REMOTE HOLD_NOPERM, "allowed only from the same machine"
#define ERROR_FORM   HOLD_BADARG, "the form is: %s %s"

/* Connection and settings. */
#define ERROR_CLIENTS  HOLD_OVERLOADED, "maxclients is reached"
#define ERROR_VERSION  HOLD_NOPROTO, "unsupported protocol version"
#define ERROR_AUTH     HOLD_ERR, "AUTH is not needed: no password is set"
#define ERROR_DATABASE HOLD_BADARG, "there is only database 0"
#define ERROR_NAME \
    HOLD_BADARG,   \
        "a client's name has at most 63 printable characters and no blanks"
#define ERROR_LEVEL HOLD_BADARG, "log-level is debug, info, warn or error"
#define ERROR_RANGE HOLD_BADARG, "%s is a number from %llu to %llu"
#define ERROR_SETTING                                                        \
    HOLD_BADARG,                                                             \
        "unknown setting, or one that only a restart changes; CONFIG GET * " \
        "lists them"
#define ERROR_NO_COMMAND HOLD_NOTFOUND, "no such command"

/* Limits. */
#define ERROR_KEYS                                                 \
    HOLD_OVERLOADED,                                               \
        "limit-keys-max is reached, by keys or by open holds, or " \
        "limit-log-max-bytes is"
#define ERROR_LIMIT \
    HOLD_BADARG,    \
        "invalid limit: the cost or the numbers of the rule are out of range"
#define ERROR_DROPPED  HOLD_NOTFOUND, "the policy was dropped"
#define ERROR_REUSED   HOLD_CONFLICT, "the REQ id was used with other arguments"
#define ERROR_REQUESTS HOLD_OVERLOADED, "requests-max is reached"
#define ERROR_POLICY_NAME                                                    \
    HOLD_BADARG,                                                             \
        "a policy's name is printable, without comma, quote, backslash and " \
        "space"
#define ERROR_POLICY_COUNT \
    HOLD_OVERLOADED, "too many policies: the maximum is %u"
#define ERROR_POLICY    HOLD_BADARG, "invalid policy"
#define ERROR_NO_POLICY HOLD_NOTFOUND, "no policy '%s'"
#define ERROR_DEFAULT   HOLD_BADARG, "the policy 'default' cannot be dropped"
#define ERROR_NO_HOLD                                                       \
    HOLD_NOTFOUND,                                                          \
        "no such hold: it was settled, or it expired and its permits were " \
        "returned"
#define ERROR_THROTTLE HOLD_ERR, "invalid rate, burst, period, quantity or key"
#define ERROR_SYNTAX   HOLD_ERR, "syntax error"
#define ERROR_INTEGER  HOLD_ERR, "value is not an integer or out of range"

/* The state of the server. */
#define ERROR_JOURNAL HOLD_JOURNAL, "not acknowledged, writes are refused: %s"
#define ERROR_SILENT  HOLD_JOURNAL, "not acknowledged: the log does not answer"
#define ERROR_DISK    HOLD_OVERLOADED, "the disk does not keep up"
#define ERROR_MEMORY                                                         \
    HOLD_OVERLOADED,                                                         \
        "out of memory: memory-max-bytes is reached, or the machine has no " \
        "more"
#define ERROR_SHARE                                                    \
    HOLD_OVERLOADED,                                                   \
        "this client has filled its share of the REQ ids remembered: " \
        "requests-share of requests-max"
#define ERROR_STOPPING HOLD_TIMED_OUT, "the server stops, nobody waits any more"
#define ERROR_STALLED \
    HOLD_TIMED_OUT, "waited for the lock while the disk did not answer"

#endif
