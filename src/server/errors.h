/* errors.h - every sentence that an error tells a client.
 *
 *   ERROR_    what the server itself refuses: a code and a sentence into which
 *             the facts go, for answer_error()
 *   WRONG_    what is wrong with the words of a request: -BADARG
 *   REFUSALS  what the engine refuses: see reply.c
 */
#ifndef SERVER_ERRORS_H
#define SERVER_ERRORS_H

#include "hold/reply.h"

/* Requests. */
#define WRONG_FORM  "wrong number of arguments, the form is: "
#define WRONG_COUNT WRONG_FORM "%s %s"
#define ERROR_COUNT HOLD_BADARG, WRONG_FORM "%s"
#define ERROR_COMMAND                                                     \
    HOLD_ERR,                                                             \
        "unknown command '%.*s'. HELP lists all commands, docs/redis.md " \
        "those of Redis"
#define ERROR_NO_LOCK                                                       \
    HOLD_ERR,                                                               \
        "'%.*s' is not supported: Holdfast keeps locks, stock and limits, " \
        "see docs/redis.md"
#define ERROR_WATCH                                                           \
    HOLD_ERR, "'%.*s' is not supported: the conditions of a group are HELD, " \
              "FENCE and IF version, see docs/groups.md"
#define ERROR_FORMS \
    HOLD_BADARG, "unknown command '%.*s%s%.*s', the forms are: %s"
#define ERROR_HTTP   HOLD_ERR, "this is not an HTTP server"
#define ERROR_REMOTE HOLD_NOPERM, "allowed only from the same machine"

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
#define ERROR_NO_SESSION                                                     \
    HOLD_STATE, "no session is bound to this connection: SESSION OPEN with " \
                "BIND"
#define ERROR_NO_COMMAND HOLD_NOTFOUND, "no such command"

/* Groups. The words of those that Redis has, too, are its own. */
#define ERROR_NESTED   HOLD_ERR, "MULTI calls can not be nested"
#define ERROR_NO_MULTI HOLD_ERR, "%s without MULTI"
#define ERROR_GROUP_WRONG \
    HOLD_ABORTED, "Transaction discarded because of previous errors."
#define ERROR_EXEC        HOLD_ABORTED, "Transaction discarded because of: %s"
#define ERROR_NOT_GROUPED HOLD_ERR, "%s is not allowed in MULTI"
#define ERROR_GROUP_REQ \
    HOLD_BADARG, "REQ is not allowed in MULTI: give one to EXEC"
#define ERROR_GROUP_LIMIT                                                     \
    HOLD_BADARG, "LIMIT in MULTI takes no WAIT, HOLD, REFUND, PEEK, HEADERS " \
                 "and REQ"
#define ERROR_GROUP_FULL \
    HOLD_BADARG, "a group has at most %u commands and %u bytes"
#define GROUP_REFUSED      "command %u of %u: %s"
#define ERROR_GROUP_DENIED HOLD_ABORTED, "%s"
#define ERROR_GROUP_REPLY                                                    \
    HOLD_BADARG, "the replies of this group may be too long to be kept for " \
                 "a REQ: at most 65535 bytes"
#define GROUP_DENIED "DENIED the limit '%.*s' has no permits, retry in %lld ms"

/* Events. */
#define WRONG_EVENTS \
    "FROM is required: EVENTS FROM number [COUNT n] [WAIT ms] [MATCH pattern]"
#define ERROR_NO_FEED HOLD_STATE, "events are not kept: events-keep-bytes is 0"
#define ERROR_NO_SUCH_EVENTS                                                  \
    HOLD_STATE, "FROM %llu is above %llu, the newest number: it is of other " \
                "data; take the state anew, and begin with FROM 0"

/* The past of a product. */
#define ERROR_PAST                                                            \
    HOLD_STATE, "the numbers of '%.*s' at %llu are not known any more, they " \
                "are from %llu on"
#define ERROR_NOT_THEN HOLD_NOTFOUND, "there was no product '%.*s' at %llu"
#define ERROR_AUDITING HOLD_BUSY, "another audit is under way"
#define ERROR_AUDIT    HOLD_ERR, "the audit of '%.*s' failed: %s"
#define AUDIT_WRONG    "at %llu: %s"
#define AUDIT_DIFFERS                                                      \
    "at %llu the server had total %llu, reserved %llu, sold %llu, by the " \
    "journal up to %llu these are %llu, %llu, %llu"
#define ERROR_NO_AUDIT   HOLD_STATE, "this log cannot be read while it is open"
#define ERROR_NO_PRODUCT HOLD_NOTFOUND, "no product '%.*s'"
#define ERROR_FUTURE \
    HOLD_BADARG, "the number %llu was not given yet, the last one is %llu"

#define ERROR_CHANNEL HOLD_BADARG, "a channel's name has 1 to %u bytes"
#define ERROR_SUBSCRIPTIONS                                                   \
    HOLD_OVERLOADED, "too many subscriptions: at most %u of one client, and " \
                     "%u patterns of all clients"
#define ERROR_SUBSCRIBED                                                     \
    HOLD_ERR, "only SUBSCRIBE, UNSUBSCRIBE, PSUBSCRIBE, PUNSUBSCRIBE, PING " \
              "and QUIT are allowed while subscribed; RESP3 allows all"
#define ERROR_PUBLISH \
    HOLD_NOPERM, "channels that begin with hf: are the server's own"
#define ERROR_SLOW_SUBSCRIBER                                             \
    HOLD_OVERLOADED, "output-max-bytes is reached: this subscriber does " \
                     "not read fast enough; EVENTS FROM tells what it missed"
#define ERROR_SLOW_PATTERN \
    HOLD_OVERLOADED, "a pattern takes too long to compare"
#define ERROR_MANY_CHANNELS                                                 \
    HOLD_OVERLOADED, "there are too many channels to list, or the pattern " \
                     "takes too long to compare"

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
#define ERROR_SYNTAX   HOLD_ERR, WRONG_SYNTAX
#define ERROR_INTEGER  HOLD_ERR, WRONG_INTEGERS

/* Keys and scripts, in the words of Redis where clients look at them. */
#define WRONG_SYNTAX   "syntax error"
#define WRONG_INTEGERS "value is not an integer or out of range"
#define WRONG_EXPIRE   "invalid expire time in '%s' command"
#define WRONG_ARITY    "wrong number of arguments for '%.*s' command"
#define WRONG_CURSOR   "invalid cursor"
#define WRONG_KEYS     "at most %u keys in one command"
#define WRONG_NUMKEYS  "Number of keys can't be greater than number of args"
#define WRONG_NEGATIVE "Number of keys can't be negative"
#define WRONG_SCRIPT                                               \
    "unknown script: only scripts of lock clients are known, see " \
    "docs/redis.md"
#define WRONG_NOSCRIPT "No matching script. Please use EVAL: see docs/redis.md"
#define WRONG_LOOK \
    "a count is only told with the call that is counted: see docs/redis.md"
#define WRONG_ANEW \
    "a window that begins anew with each call is not known: see docs/redis.md"
#define WRONG_TOO_FEW "too few keys or arguments for this script"
#define ERROR_SCRIPT  HOLD_ERR, WRONG_SCRIPT
#define ERROR_FLUSH   HOLD_ERR, "SCRIPT FLUSH only support SYNC|ASYNC option"

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
#define ERROR_STOPPING HOLD_TIMED_OUT, "the server stops"
#define ERROR_STALLED  HOLD_TIMED_OUT, "waited while the disk did not answer"

/* Words. Those without % are followed by the word that is meant. */
#define WRONG_WORD       "%s: '%.*s'%s"
#define WRONG_EMPTY      "%s is empty"
#define WRONG_LONG       "%s has %zu bytes, at most %zu are allowed"
#define WRONG_INTEGER    "not a whole number"
#define WRONG_CHANGE     "the change must not be 0"
#define WRONG_ITEMS      "at most %u different products in one reservation"
#define WRONG_SUM        "the quantities add up to too much for sku"
#define WRONG_SKUS       "at most %u products in one request"
#define WRONG_CHOICE     "%s must be one of %s, not '%.*s'"
#define WRONG_OF         "PERMITS n is followed by OF max, not by"
#define WRONG_NAMES      "at most %u names in one set"
#define WRONG_NAME_AGAIN "a set has each name once"
#define WRONG_FOREVER    "WAIT and FOREVER cannot be combined"
#define WRONG_MODES      "SHARED and PERMITS cannot be combined"
#define WRONG_PERMITS    "PERMITS n OF max: n must not be more than max"
#define WRONG_AGE        "DEADLOCK WAITDIE and WOUNDWAIT need a SESSION"
#define WRONG_DONE       "RESULT needs DONE"
#define WRONG_TREES      "TREE and PERMITS cannot be combined"
#define WRONG_SOME       "WAIT cannot be combined with BEST and MIN"
#define WRONG_PLACE      "a place is given once, and has no '@'"
#define WRONG_PLACES \
    "at most %u places in one reservation, of %u bytes together"
#define WRONG_NO_PLACE "SPLIT needs PLACE"
#define WRONG_PLACED   "PLACE cannot be combined with WAIT, BEST and MIN"
#define WRONG_PARTS    "SPLIT: items times places must be at most 128"
#define WRONG_AT       "sku@place must not have more than 256 bytes"
#define WRONG_GROUPED  "WAIT cannot be combined with GROUP"
#define WRONG_BOOKED                                                           \
    "PREORDER is of one item: book each, in one group (MULTI) if it is to be " \
    "all or none"
#define WRONG_BOOKS \
    "PREORDER cannot be combined with WAIT, BEST, MIN, PLACE and GROUP"
#define WRONG_BIND_REQ \
    "BIND takes no REQ: an answer that is told again would bind nothing"
#define WRONG_MISSING "an argument is missing"
#define WRONG_OPTION  "unknown option"
#define WRONG_TWICE   "option given twice"
#define WRONG_VALUE   "a value is missing after"

#define WRONG_NUMBER "%s must be a whole number from %llu to %llu, not '%.*s'"

/* Words of limits. */
#define WRONG_ALGORITHM \
    "ALGORITHM is BUCKET, GCRA, FIXED, SLIDING, LOG or LEASES"
#define WRONG_KEEPS     "KEEP has at most three numbers"
#define WRONG_KEEP      "KEEP exceeds the burst (%llu)"
#define WRONG_POLICY    "a policy's name has 1 to 31 bytes"
#define WRONG_POLICIES  "at most 16 policies in one call"
#define WRONG_NO_POLICY "no policy '%.*s', LIMIT DEFINE makes one"
#define WRONG_RULE      "RATE and PER are required, or POLICY"
#define WRONG_BURST     "BURST is for BUCKET and GCRA"
#define WRONG_SLOTS     "the maximum RATE of LOG and LEASES is 10000"
#define WRONG_RATE                                                         \
    "invalid limit: the maximum is 1e9 permits per second, and 146 years " \
    "to earn a burst"
#define WRONG_ACTIONS "PEEK, REFUND and HOLD cannot be combined"
#define WRONG_WAIT    "WAIT cannot be combined with PEEK or REFUND"
#define WRONG_REQ     "REQ and WAIT cannot be combined"
#define WRONG_PEEK    "PEEK and REQ cannot be combined"
#define WRONG_ALSO    "ALSO requires POLICY or RATE for the first key"
#define WRONG_OWN \
    "BURST, ALGORITHM, KEEP and SHADOW require RATE; a policy has its own"

/* As redis-cell says it, without a code. */
#define CELL_INTEGER "Cell error: Store error: Couldn't parse as integer: %.*s"
#define CELL_ZERO    "Cell error: Store error: Zero rates are not supported"

/* Refusals of the engine: the first row counts that has the code and whose
 * field, or two of them, are among the facts; ANY: any facts will do. In a
 * sentence `{field}` is the fact, `{-field}` a time that is left, counted from
 * now on. */
#define REFUSALS(ROW, TWO, ANY)                                                \
    TWO(BUSY, FIELD_WAITED_MS, FIELD_TREE,                                     \
        "lock '{name}' is wanted first by '{owner}' with TREE on "             \
        "'{related}', who has waited {waited_ms} ms, {waiting} waiting, "      \
        "position {position}")                                                 \
    TWO(BUSY, FIELD_WAITED_MS, FIELD_RELATED,                                  \
        "lock '{name}' is not free with TREE: '{related}' below it is wanted " \
        "first by '{owner}', who has waited {waited_ms} ms, {waiting} "        \
        "waiting, position {position}")                                        \
    ROW(BUSY, FIELD_WAITED_MS,                                                 \
        "lock '{name}' is wanted first by '{owner}', who has waited "          \
        "{waited_ms} ms, {waiting} waiting, position {position}")              \
    TWO(BUSY, FIELD_OWNER, FIELD_TREE,                                         \
        "lock '{name}' is held by '{owner}' with TREE on '{related}' for "     \
        "{-expires_ms} ms more, {waiting} waiting, position {position}")       \
    TWO(BUSY, FIELD_OWNER, FIELD_RELATED,                                      \
        "lock '{name}' is not free with TREE: '{related}' below it is held "   \
        "by '{owner}' for {-expires_ms} ms more, {waiting} waiting, position " \
        "{position}")                                                          \
    ROW(BUSY, FIELD_OWNER,                                                     \
        "lock '{name}' is held by '{owner}' for {-expires_ms} ms more, "       \
        "{waiting} waiting, position {position}")                              \
    ROW(BUSY, FIELD_TREE,                                                      \
        "lock '{name}' is closed with all names below '{related}' by DELAY "   \
        "for {-expires_ms} ms more, {waiting} waiting, position {position}")   \
    ROW(BUSY, FIELD_RELATED,                                                   \
        "lock '{name}' is not free with TREE: '{related}' below it is closed " \
        "by DELAY for {-expires_ms} ms more, {waiting} waiting, position "     \
        "{position}")                                                          \
    ROW(BUSY, ANY,                                                             \
        "lock '{name}' is closed by DELAY for {-expires_ms} ms more, "         \
        "{waiting} waiting, position {position}")                              \
    ROW(TIMED_OUT, FIELD_SKU,                                                  \
        "waited {waited_ms} ms for sku '{sku}', {waiting} waiting, "           \
        "position {position}")                                                 \
    ROW(TIMED_OUT, FIELD_POSITION,                                             \
        "waited {waited_ms} ms for the lock, {waiting} waiting, position "     \
        "{position}")                                                          \
    ROW(TIMED_OUT, ANY, "the wait was given up, as was told before")           \
    ROW(NOTHELD, FIELD_NAME, "lock '{name}' is not held with token {token}")   \
    ROW(NOTHELD, FIELD_TOKEN, "no set is held with token {token}")             \
    ROW(NOTHELD, ANY, "everything was flushed")                                \
    ROW(LOST, FIELD_SESSION, "session {session} has ended")                    \
    ROW(LOST, FIELD_NAME,                                                      \
        "lock '{name}' is no longer held with token {token}")                  \
    ROW(LOST, ANY, "no set is held with token {token} any more")               \
    ROW(DEADLOCK, FIELD_LENGTH,                                                \
        "waiting for '{name}' would be a deadlock: {cycle}")                   \
    ROW(DEADLOCK, ANY, "waiting for '{name}' would have been a deadlock")      \
    ROW(DONE, ANY,                                                             \
        "the work of '{name}' is done, for {-expires_ms} ms more: {result}")   \
    ROW(STALE, ANY,                                                            \
        "token {token} is older than {newest}, the newest seen for '{name}'")  \
    ROW(SHORT, FIELD_ITEMS, "{items}")                                         \
    TWO(SHORT, FIELD_WAITING, FIELD_EXPECTED,                                  \
        "sku '{sku}': requested {requested}, available {available}, "          \
        "{waiting} waiting, expected {expected}, of which {booked} are "       \
        "booked")                                                              \
    TWO(SHORT, FIELD_AVAILABLE, FIELD_EXPECTED,                                \
        "sku '{sku}': requested {requested}, available {available}, expected " \
        "{expected}, of which {booked} are booked")                            \
    TWO(SHORT, FIELD_AVAILABLE, FIELD_WAITING,                                 \
        "sku '{sku}': requested {requested}, available {available}, "          \
        "{waiting} waiting")                                                   \
    ROW(SHORT, FIELD_AVAILABLE,                                                \
        "sku '{sku}': requested {requested}, available {available}")           \
    ROW(SHORT, ANY,                                                            \
        "sku '{sku}': total {requested} is below {reserved} reserved and "     \
        "{sold} sold")                                                         \
    TWO(STATE, FIELD_SKU, FIELD_BOOKED,                                        \
        "sku '{sku}' has {reserved} reserved, and {booked} are booked")        \
    TWO(STATE, FIELD_SKU, FIELD_WAITING,                                       \
        "sku '{sku}' has {reserved} reserved, and {waiting} wait for it")      \
    ROW(STATE, FIELD_SKU, "sku '{sku}' has {reserved} reserved")               \
    ROW(STATE, FIELD_LIMIT,                                                    \
        "reservation '{id}' has reached its limit of {maximum} {limit}")       \
    ROW(STATE, FIELD_TREE,                                                     \
        "this owner holds '{name}' without TREE; unlock it first (an upgrade " \
        "would deadlock with another one)")                                    \
    TWO(STATE, FIELD_MODE, FIELD_TOKEN,                                        \
        "lock '{name}' ({mode}) cannot be downgraded: only an exclusive one "  \
        "that LOCK or ELECT took can")                                         \
    ROW(STATE, FIELD_NAMES,                                                    \
        "'{name}' is held as one of the {names} names of a set, which has "    \
        "UNLOCKSET and RENEWSET")                                              \
    ROW(STATE, FIELD_MODE,                                                     \
        "this owner holds '{name}' already, as {mode}, and not in the same "   \
        "way; unlock it first (an upgrade would deadlock with another one)")   \
    ROW(STATE, FIELD_MAXIMUM,                                                  \
        "lock '{name}' has {maximum} permits, as its first holder said")       \
    ROW(STATE, FIELD_COUNT,                                                    \
        "lock '{name}' is held {count} times: DONE comes with the last "       \
        "UNLOCK")                                                              \
    ROW(STATE, ANY, "reservation '{id}' is {status}")                          \
    ROW(EXPIRED, ANY, "reservation '{id}' expired {expires_ms} ms ago")        \
    ROW(NOTFOUND, FIELD_REF, "no arrival '{ref}' of sku '{sku}' is announced") \
    ROW(NOTFOUND, FIELD_SKU, "no product '{sku}'")                             \
    ROW(NOTFOUND, FIELD_SESSION, "no session {session}")                       \
    ROW(NOTFOUND, FIELD_GROUP, "no group '{group}'")                           \
    ROW(NOTFOUND, FIELD_CLASS, "no class '{class}'")                           \
    ROW(NOTFOUND, FIELD_ID, "no reservation '{id}'")                           \
    ROW(NOTFOUND, FIELD_RESOURCE, "no fence '{resource}'")                     \
    ROW(NOTFOUND, ANY, "nobody holds lock '{name}'")                           \
    ROW(CONFLICT, FIELD_VERSION,                                               \
        "sku '{sku}' is at version {version}, not {requested} (0: there is "   \
        "no such product)")                                                    \
    ROW(CONFLICT, ANY, "id '{id}' was used with other arguments")              \
    ROW(OVERLOADED, ANY, "{name} of {maximum} is reached")                     \
    TWO(BADARG, FIELD_SKU, FIELD_LIMIT,                                        \
        "sku '{sku}' has a limit of {limit} for each owner: OWNER is needed")  \
    ROW(BADARG, FIELD_REF, "AT is missing: '{ref}' of sku '{sku}' is new")     \
    ROW(BADARG, FIELD_SKU,                                                     \
        "reservation '{id}' has {reserved} of sku '{sku}', not {requested}")   \
    ROW(BADARG, ANY,                                                           \
        "the token {token} was never given, the newest number is {newest}")    \
    ROW(ABORTED, ANY, "command {position} of {count}: ")                       \
    ROW(WRONGTYPE, ANY,                                                        \
        "Operation against a key holding the wrong kind of value: '{name}' "   \
        "is {mode}, or a lock that SET did not make")                          \
    ROW(QUOTA, FIELD_ITEMS, "owner '{owner}': {items}")                        \
    ROW(QUOTA, ANY,                                                            \
        "owner '{owner}': sku '{sku}': requested {requested}, has {has}, "     \
        "limit {limit}")                                                       \
    ROW(MOVED, ANY, "the request goes on in a newer connection")

#endif
