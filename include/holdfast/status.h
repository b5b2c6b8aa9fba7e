/* status.h - the one error type: how a call ended.
 *
 * Every call that can fail returns `enum hf_status`; HF_OK is 0, so that
 * `if (status)` reads "if it failed". Outputs come last in the argument list
 * and are written only on HF_OK unless the call says otherwise.
 *
 * Example:
 *
 *   enum hf_status status = HF_FULL;
 *
 *   if (status)
 *       fprintf(stderr, "not accepted: %s\n", hf_status_text(status));
 */
#ifndef HOLDFAST_STATUS_H
#define HOLDFAST_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

enum hf_status {
    HF_OK = 0,
    HF_INVALID,   /* an argument is outside its documented range */
    HF_NOMEM,     /* memory could not be had; nothing was changed */
    HF_FULL,      /* a named limit is reached; nothing was changed */
    HF_EMPTY,     /* there is nothing to take */
    HF_NOTFOUND,  /* what was named does not exist */
    HF_EXISTS,    /* what was named exists already */
    HF_TIMEOUT,   /* the deadline passed first */
    HF_CLOSED,    /* the object was closed */
    HF_CANCELLED, /* the request was withdrawn */
    HF_PENDING,   /* accepted, not finished yet */
    HF_MORE,      /* more input is needed before an answer is possible */
    HF_IO,        /* the operating system reported an error */
    HF_CORRUPT,   /* stored bytes do not match their checksum or format */
    HF_FAILED,    /* work that was handed over reported a failure */
    HF_DEADLOCK,  /* to wait would be to wait for ever */
    HF_CONTENDED, /* others were faster, each time; nothing was changed */
    HF_STATUS_COUNT
};

/* A short lower-case text without a full stop; never NULL. */
const char *hf_status_text(enum hf_status status);

#ifdef __cplusplus
}
#endif

#endif
