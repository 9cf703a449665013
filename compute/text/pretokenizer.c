#include "compute/text/pretokenizer.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

/* A match, or the text between two. */
typedef struct part {
    size_t begin;
    size_t end;
    bool match;
} part;

/* A step at work. */
typedef struct level {
    const dp_pretokenizer_step *step;
    dp_matcher *matcher; /* or NULL */
    dp_buf changed;
    dp_view text; /* lent by the level before, or changed */
    size_t first; /* bytes that come from the first character of the document */
    size_t at;    /* all before is in parts that were found */
    bool found;   /* the match after at is begin..end-1 */
    size_t begin;
    size_t end;
    bool held; /* a part that was found and not taken */
    part next;
} level;

struct dp_pretokenizer {
    level levels[DP_PRETOKENIZER_STEPS_MAX];
    unsigned n_levels;
    unsigned depth; /* the level that has the next piece */
    dp_view whole;  /* without steps: the piece */
};

void dp_pretokenizer_steps_close(dp_pretokenizer_steps *steps)
{
    for (unsigned i = 0; i < steps->count; i++) {
        dp_free(steps->items[i].pattern);
    }
    *steps = (dp_pretokenizer_steps){.count = 0};
}

dp_status dp_pretokenizer_steps_add(dp_pretokenizer_steps *steps, const dp_pretokenizer_step *step,
                                    dp_view pattern)
{
    if (steps->count == DP_PRETOKENIZER_STEPS_MAX) {
        return DP_TOOBIG;
    }
    dp_pretokenizer_step made = *step;
    made.pattern = NULL;
    made.pattern_bytes = pattern.size;
    if (pattern.size > 0) {
        made.pattern = dp_alloc(pattern.size, 1);
        if (made.pattern == NULL) {
            return DP_NOMEM;
        }
        memcpy(made.pattern, pattern.data, pattern.size);
    }
    steps->items[steps->count] = made;
    steps->count++;
    return DP_OK;
}

static dp_status open_level(level *l, const dp_pretokenizer_step *step, unsigned index, dp_why *why)
{
    dp_why inner = {{0}};
    l->step = step;
    if (step->pattern == NULL) {
        return DP_OK;
    }
    const dp_status status = dp_matcher_open(
        &l->matcher, dp_view_of(step->pattern, step->pattern_bytes), step->kind, &inner);
    return status == DP_OK || status == DP_NOMEM
               ? status
               : dp_why_set(why, status, "step %u: %.300s", index, inner.text);
}

dp_status dp_pretokenizer_open(dp_pretokenizer **out, const dp_pretokenizer_steps *steps,
                               dp_why *why)
{
    dp_pretokenizer *const pieces = dp_alloc(1, sizeof *pieces);
    if (pieces == NULL) {
        return DP_NOMEM;
    }
    dp_status status = DP_OK;
    for (unsigned i = 0; i < steps->count && status == DP_OK; i++) {
        pieces->n_levels++;
        status = open_level(&pieces->levels[i], &steps->items[i], i, why);
    }
    if (status != DP_OK) {
        dp_pretokenizer_close(pieces);
        return status;
    }
    *out = pieces;
    return DP_OK;
}

void dp_pretokenizer_close(dp_pretokenizer *pieces)
{
    if (pieces == NULL) {
        return;
    }
    for (unsigned i = 0; i < pieces->n_levels; i++) {
        dp_matcher_close(pieces->levels[i].matcher);
        dp_buf_close(&pieces->levels[i].changed);
    }
    dp_free(pieces);
}

static bool begins_with(dp_view text, dp_view mark)
{
    return text.size >= mark.size && memcmp(text.data, mark.data, mark.size) == 0;
}

/* Copies text with its spaces as marks. */
static dp_status replace_spaces(dp_view text, dp_view mark, dp_buf *out)
{
    size_t at = 0;
    while (at < text.size) {
        const uint8_t *const space = memchr(text.data + at, ' ', text.size - at);
        const size_t end = space == NULL ? text.size : (size_t)(space - text.data);
        DP_TRY(dp_buf_append(out, dp_view_of(text.data + at, end - at)));
        if (space != NULL) {
            DP_TRY(dp_buf_append(out, mark));
        }
        at = end + (space != NULL);
    }
    return DP_OK;
}

/* A text that begins with a space begins with the mark when spaces become marks. */
static bool needs_mark(const level *l, dp_view text, dp_view mark)
{
    const dp_pretokenizer_step *const s = l->step;
    const bool wanted =
        s->prefix == DP_PREFIX_ALWAYS || (s->prefix == DP_PREFIX_FIRST && l->first > 0);
    return wanted && !begins_with(text, mark) && !(s->replaces && text.data[0] == ' ');
}

/* text is not empty. */
static dp_status begin_level(level *l, dp_view text, size_t first)
{
    const dp_pretokenizer_step *const s = l->step;
    const dp_view mark = dp_view_of(s->mark, s->mark_bytes);
    l->first = first;
    l->at = 0;
    l->found = false;
    l->held = false;
    l->text = text;
    const bool marked = needs_mark(l, text, mark);
    for (size_t i = 0; s->replaces && i < first && i < text.size; i++) {
        l->first += text.data[i] == ' ' ? mark.size - 1U : 0;
    }
    l->first += marked && first > 0 ? mark.size : 0;
    if (!marked && !s->replaces) {
        return DP_OK;
    }
    dp_buf_clear(&l->changed);
    l->changed.max = DP_MARK_BYTES_MAX * (text.size + 1);
    if (marked) {
        DP_TRY(dp_buf_append(&l->changed, mark));
    }
    DP_TRY(s->replaces ? replace_spaces(text, mark, &l->changed)
                       : dp_buf_append(&l->changed, text));
    l->text = dp_buf_view(&l->changed);
    return DP_OK;
}

dp_status dp_pretokenizer_begin(dp_pretokenizer *pieces, dp_view text, size_t first)
{
    pieces->depth = 0;
    pieces->whole = text;
    if (pieces->n_levels == 0 || text.size == 0) {
        pieces->levels[0].text = dp_view_of(NULL, 0);
        pieces->levels[0].at = 0;
        pieces->levels[0].held = false;
        return DP_OK;
    }
    return begin_level(&pieces->levels[0], text, first);
}

/* The next match or text between matches. DP_NOTFOUND: no more. */
static dp_status next_part(level *l, part *out, dp_why *why)
{
    if (l->held) {
        l->held = false;
        *out = l->next;
        return DP_OK;
    }
    if (l->at >= l->text.size) {
        return DP_NOTFOUND;
    }
    if (!l->found) {
        dp_status status = DP_NOTFOUND;
        if (l->matcher != NULL) {
            status = dp_matcher_find(l->matcher, l->text, l->at, &l->begin, &l->end, why);
        }
        if (status == DP_NOTFOUND) {
            l->begin = l->text.size;
            l->end = l->text.size;
        } else if (status != DP_OK) {
            return status;
        }
        l->found = true;
    }
    const bool match = l->at == l->begin;
    *out =
        (part){.begin = l->at, .end = match ? l->end : l->begin, .match = match != l->step->invert};
    l->found = !match;
    l->at = out->end;
    return DP_OK;
}

/* Joins the next part to p if its being a match is as wanted; else it stays. */
static dp_status join(level *l, part *p, bool wanted, bool *joined, dp_why *why)
{
    *joined = false;
    const dp_status status = next_part(l, &l->next, why);
    if (status != DP_OK) {
        return status == DP_NOTFOUND ? DP_OK : status;
    }
    *joined = l->next.match == wanted;
    l->held = !*joined;
    p->end = *joined ? l->next.end : p->end;
    return DP_OK;
}

static dp_status next_piece(level *l, part *p, dp_why *why)
{
    bool joined = true;
    DP_TRY(next_part(l, p, why));
    if (l->matcher == NULL) {
        return DP_OK;
    }
    switch (l->step->behavior) {
    case DP_SPLIT_ISOLATED:
        return DP_OK;
    case DP_SPLIT_REMOVED:
        while (p->match) {
            DP_TRY(next_part(l, p, why));
        }
        return DP_OK;
    case DP_SPLIT_CONTIGUOUS:
        while (joined) {
            DP_TRY(join(l, p, p->match, &joined, why));
        }
        return DP_OK;
    case DP_SPLIT_MERGED_WITH_PREVIOUS:
        return p->match ? DP_OK : join(l, p, true, &joined, why);
    case DP_SPLIT_MERGED_WITH_NEXT:
        return p->match ? join(l, p, false, &joined, why) : DP_OK;
    }
    return DP_BADARG;
}

dp_status dp_pretokenizer_next(dp_pretokenizer *pieces, dp_view *piece, dp_why *why)
{
    part p = {.begin = 0};
    if (pieces->n_levels == 0) {
        *piece = pieces->whole;
        pieces->whole.size = 0;
        if (piece->size > DP_PIECE_BYTES_MAX) {
            return dp_why_set(why, DP_TOOBIG, "the text has a piece of more than %d MiB",
                              DP_PIECE_BYTES_MAX >> 20);
        }
        return piece->size > 0 ? DP_OK : DP_NOTFOUND;
    }
    for (;;) {
        level *const l = &pieces->levels[pieces->depth];
        const dp_status status = next_piece(l, &p, why);
        if (status == DP_NOTFOUND && pieces->depth > 0) {
            pieces->depth--;
            continue;
        }
        DP_TRY(status);
        const dp_view text = dp_view_of(l->text.data + p.begin, p.end - p.begin);
        if (pieces->depth + 1 == pieces->n_levels) {
            if (text.size > DP_PIECE_BYTES_MAX) {
                return dp_why_set(why, DP_TOOBIG,
                                  "the text has a piece of more than %d MiB at byte %zu; is it "
                                  "text?",
                                  DP_PIECE_BYTES_MAX >> 20, p.begin);
            }
            *piece = text;
            return DP_OK;
        }
        pieces->depth++;
        DP_TRY(begin_level(&pieces->levels[pieces->depth], text,
                           l->first > p.begin ? l->first - p.begin : 0));
    }
}
