/* check_modes.c - which holds of a lock exclude each other, fences of shared
 * ones, and permits of counting ones. */
#include "history/locks.h"

/* Earlier holds that are looked at for permits; of more it is not checked. */
#define LOOK_BACK 200u

bool modes_exclude(const struct hold *earlier, const struct hold *later)
{
    if (later->mode == MODE_EXCLUSIVE)
        return true;
    if (earlier->mode == MODE_EXCLUSIVE)
        return later->mode == MODE_COUNTING || later->hi < earlier->softened;
    return earlier->mode != MODE_NONE && later->mode != MODE_NONE &&
           earlier->mode != later->mode;
}

void modes_find_next(struct lock_view *view, struct hold *hold)
{
    for (int mode = MODE_NONE; mode < MODES; mode++) {
        const struct hold *first = view->first[mode];
        if (first != NULL && modes_exclude(hold, first) &&
            (hold->next == NULL || first->hi < hold->next->hi))
            hold->next = first;
    }
}

/* Readers of one phase have one fence, which is that of its first; it is newer
 * than any writer before. */
static void judge_fences(struct lock_view *view)
{
    const struct hold *longest = NULL; /* of the readers so far */
    const struct hold *writer = NULL;  /* the last so far */

    for (size_t i = 0; i < view->hold_count; i++) {
        const struct hold *hold = &view->holds[i];
        unsigned long long fence = (unsigned long long)hold->fence;
        if (hold->proof == NULL)
            continue;
        if (hold->mode == MODE_EXCLUSIVE)
            writer = hold;
        if (hold->fence == 0)
            continue;
        uint64_t least = writer == NULL ? 0 : writer->token;
        if (writer != NULL && writer->softened == CHECK_NEVER)
            least++;
        if (fence > hold->token || fence < least)
            check_found(view->check, "phase", hold->proof->id,
                        writer == NULL ? 0 : writer->proof->id,
                        "lock %.*s, token %llu has fence %llu, which is not of "
                        "its readers",
                        SHOW(view->name), (unsigned long long)hold->token,
                        fence);
        else if (longest != NULL && hold->hi < longest->kept &&
                 longest->fence != hold->fence)
            check_found(view->check, "phase", hold->proof->id,
                        longest->proof->id,
                        "lock %.*s, token %llu has fence %llu, and token %llu "
                        "at the same time %llu",
                        SHOW(view->name), (unsigned long long)hold->token,
                        fence, (unsigned long long)longest->token,
                        (unsigned long long)longest->fence);
        if (longest == NULL || hold->kept > longest->kept)
            longest = hold;
    }
}

/* When a hold is given, those that are surely held then leave it room. */
static void judge_permits(struct lock_view *view, size_t n)
{
    const struct hold *hold = &view->holds[n];
    uint64_t used = hold->permits;
    uint64_t maximum = hold->begin->call->terms.maximum;
    const struct hold *other = NULL;

    for (size_t i = n; i-- > 0 && n - i < LOOK_BACK;) {
        const struct hold *before = &view->holds[i];
        if (before->proof != NULL && before->mode == MODE_COUNTING &&
            hold->hi < before->kept) {
            used += before->permits;
            other = before;
            if (before->begin != NULL &&
                before->begin->call->terms.maximum != maximum)
                used = UINT64_MAX / 2;
        }
    }
    if (used > maximum)
        check_found(view->check, "permits", hold->proof->id,
                    other == NULL ? 0 : other->proof->id,
                    "lock %.*s: token %llu was given, and there are only %llu "
                    "permits",
                    SHOW(view->name), (unsigned long long)hold->token,
                    (unsigned long long)maximum);
}

/* Who holds it and asks again gets the token it has. Holds of one owner, in the
 * order of their tokens. */
static void judge_owners(struct lock_view *view)
{
    const struct hold *longest = NULL; /* of this owner so far */
    struct list list = {0};

    for (size_t i = 0; i < view->hold_count; i++) {
        const struct hold *hold = &view->holds[i];
        if (hold->begin != NULL && hold->proof != NULL &&
            hold->mode != MODE_EXCLUSIVE && hold->session != CHECK_UNKNOWN)
            check_refer(view->check, &list, hold->owner, hold->token, hold);
    }
    check_sort(&list, sizeof(struct ref));
    for (size_t i = 0; i < list.count; i++) {
        const struct hold *hold = ((const struct ref *)list.data)[i].thing;
        if (longest != NULL && (!hf_bytes_equal(longest->owner, hold->owner) ||
                                longest->session != hold->session))
            longest = NULL;
        if (longest != NULL && hold->hi < longest->kept &&
            !modes_exclude(longest, hold))
            check_found(view->check, "count", hold->proof->id,
                        longest->proof->id,
                        "lock %.*s: %.*s was given token %llu, and has token "
                        "%llu already",
                        SHOW(view->name), SHOW(hold->owner),
                        (unsigned long long)hold->token,
                        (unsigned long long)longest->token);
        if (longest == NULL || hold->kept > longest->kept)
            longest = hold;
    }
}

void modes_judge(struct lock_view *view)
{
    judge_fences(view);
    judge_owners(view);
    for (size_t i = 0; i < view->hold_count; i++) {
        const struct hold *hold = &view->holds[i];
        if (hold->mode == MODE_COUNTING && hold->begin != NULL)
            judge_permits(view, i);
    }
}
