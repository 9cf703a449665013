/* Causal attention of the query heads that share a head of k and v, one after the other,
 * DP_OPS_QUERY_ROWS queries at a time; scores are made twice instead of kept (Dao et al. 2022). */

/* The problem of query head g alone. */
static dp_attention attention_head(const dp_attention *a, size_t g)
{
    dp_attention head = *a;
    head.ld_qk = a->ld_qk == 0 ? a->ld_qkv : a->ld_qk;
    head.ld_q = a->ld_q == 0 ? head.ld_qk : a->ld_q;
    head.q += g * a->head;
    head.out += g * a->head;
    head.lse += g * (a->length - a->past);
    if (a->d_out != NULL) {
        head.d_out += g * a->head;
        head.dq += g * a->head;
    }
    return head;
}

/* Scratch of one head, cut from dp_attention.scratch. */
struct attention_room {
    float *packed_k; /* for scores: transposed */
    float *packed_v; /* forward: as it is; backward: transposed */
    float *packed_k_rows;
    float *scores; /* [DP_OPS_QUERY_ROWS][ld_scores] */
    float *d_scores;
    float *packed_q; /* of one block of queries */
    float *packed_d_out;
    float *delta; /* [DP_OPS_QUERY_ROWS] */
    size_t ld_scores;
};

static struct attention_room attention_room_of(const dp_attention *a)
{
    const size_t padded_length = (a->length + DP_OPS_PANEL_MAX - 1) / 16 * 16;
    const size_t padded_head = a->head + DP_OPS_PANEL_MAX;
    struct attention_room room;
    float *at = a->scratch;
    room.packed_k = at;
    at += padded_length * padded_head;
    room.packed_v = at;
    at += padded_length * padded_head;
    room.packed_k_rows = at;
    at += padded_length * padded_head;
    room.ld_scores =
        padded_length + 16; /* Not a power of two: rows fall into different cache sets. */
    room.scores = at;
    at += DP_OPS_QUERY_ROWS * room.ld_scores;
    room.d_scores = at;
    at += DP_OPS_QUERY_ROWS * room.ld_scores;
    room.packed_q = at;
    at += DP_OPS_QUERY_ROWS * padded_head;
    room.packed_d_out = at;
    at += DP_OPS_QUERY_ROWS * padded_head;
    room.delta = at;
    return room;
}

static float attention_scale(const dp_attention *a)
{
    return a->scale != 0.0F ? a->scale : 1.0F / sqrtf((float)a->head);
}

/* The keys that a block of queries sees, from a whole panel on. Scores stand from column 0 on. */
struct attention_keys {
    size_t from;
    size_t count;
};

static struct attention_keys attention_keys_of(const dp_attention *a, size_t first, size_t rows)
{
    const size_t from = dp_attention_first(a, first) / DP_PANEL * DP_PANEL;
    return (struct attention_keys){from, first + rows - from};
}

/* Panels of keys as columns (of k' and v'), from a key on; with keys as terms (k and v). */
static const float *attention_columns(const dp_attention *a, const float *packed, size_t from)
{
    return packed + from * ((a->head + DP_TERMS - 1) / DP_TERMS);
}

static const float *attention_terms(const float *packed, size_t from)
{
    return packed + from / DP_TERMS * DP_PANEL;
}

/* x[i] = cap * tanh(x[i] * scale / cap), n of them. */
static void attention_cap(const dp_attention *a, float *x, size_t n, float scale)
{
    for (size_t i = 0; i < n; i++) {
        x[i] *= scale;
    }
    fast_softcap(x, n, a->cap);
}

/* k and v are packed. */
static void attention_forward_head(const dp_attention *a, const struct attention_room *room)
{
    const float scale = attention_scale(a);
    const float rest = a->cap == 0.0F ? scale : 1.0F; /* that a cap has not applied */
    const size_t queries = a->length - a->past;
    for (size_t first = 0; first < queries; first += DP_OPS_QUERY_ROWS) {
        const size_t rows = least_of(queries - first, DP_OPS_QUERY_ROWS);
        const struct attention_keys keys = attention_keys_of(a, a->past + first, rows);
        float sums[DP_OPS_QUERY_ROWS];
        fast_gemm(&(dp_gemm){.m = rows,
                             .n = keys.count,
                             .k = a->head,
                             .a = a->q + first * a->ld_q,
                             .a_row = a->ld_q,
                             .a_depth = 1,
                             .packed = attention_columns(a, room->packed_k, keys.from),
                             .c = room->scores,
                             .ldc = room->ld_scores});
        for (size_t r = 0; r < rows; r++) {
            float *all = room->scores + r * room->ld_scores;
            const size_t at = a->past + first + r;
            const size_t before = dp_attention_first(a, at) - keys.from;
            float *score = all + before;
            const size_t seen = at + 1 - keys.from - before;
            if (a->cap != 0.0F) {
                attention_cap(a, score, seen, scale);
            }
            const float largest = row_largest(score, seen) * rest;
            sums[r] = row_exp(score, seen, rest, largest);
            a->lse[first + r] = largest + logf(sums[r]);
            memset(all, 0, before * sizeof *all);
            memset(score + seen, 0, (keys.count - before - seen) * sizeof *score);
        }
        fast_gemm(&(dp_gemm){.m = rows,
                             .n = a->head,
                             .k = keys.count,
                             .a = room->scores,
                             .a_row = room->ld_scores,
                             .a_depth = 1,
                             .packed = attention_terms(room->packed_v, keys.from),
                             .packed_depth = a->length,
                             .c = a->out + first * a->ld_out,
                             .ldc = a->ld_out});
        for (size_t r = 0; r < rows; r++) {
            float *out = a->out + (first + r) * a->ld_out;
            const float factor = 1.0F / sums[r];
            for (size_t i = 0; i < a->head; i++) {
                out[i] *= factor;
            }
        }
    }
}

static void fast_attention_forward(const dp_attention *a)
{
    const struct attention_room room = attention_room_of(a);
    const size_t ld_k = a->ld_qk == 0 ? a->ld_qkv : a->ld_qk;
    fast_pack(a->k, ld_k, true, a->head, a->length, room.packed_k);
    fast_pack(a->v, a->ld_qkv, false, a->length, a->head, room.packed_v);
    for (size_t g = 0; g == 0 || g < a->groups; g++) {
        const dp_attention head = attention_head(a, g);
        attention_forward_head(&head, &room);
    }
}

/* scores become probabilities; d_scores (of probabilities) become those of the unscaled scores. */
static void attention_backward_rows(const dp_attention *a, const struct attention_room *room,
                                    size_t first, size_t rows, float scale)
{
    const struct attention_keys keys = attention_keys_of(a, first, rows);
    const float rest = a->cap == 0.0F ? scale : 1.0F;
    const float inverse = a->cap == 0.0F ? 0.0F : 1.0F / a->cap;
    for (size_t r = 0; r < rows; r++) {
        const size_t before = dp_attention_first(a, first + r) - keys.from;
        float *all = room->scores + r * room->ld_scores;
        float *d_all = room->d_scores + r * room->ld_scores;
        float *p = all + before;
        float *d = d_all + before;
        const float *out = a->out + (first + r) * a->ld_out;
        const float *d_out = a->d_out + (first + r) * a->ld_out;
        const size_t seen = first + r + 1 - keys.from - before;
        float delta = 0.0F;
        for (size_t i = 0; i < a->head; i++) {
            delta += out[i] * d_out[i];
        }
        if (a->cap != 0.0F) {
            attention_cap(a, p, seen, scale);
        }
        const float lse = a->lse[first + r];
        size_t i = 0;
        for (; i < seen;
             i += DP_LANES) { /* The room behind a row is wide enough for a whole vector. */
            const dp_vec t = dp_vec_load(p + i) * dp_vec_set(inverse);
            const dp_vec slope = dp_vec_set(scale) * (dp_vec_set(1.0F) - t * t);
            const dp_vec e = dp_exp(dp_fma(dp_vec_load(p + i), dp_vec_set(rest), dp_vec_set(-lse)));
            dp_vec_store(p + i, e);
            dp_vec_store(d + i, (dp_vec_load(d + i) - dp_vec_set(delta)) * e * slope);
        }
        memset(all, 0, before * sizeof *all);
        memset(d_all, 0, before * sizeof *d_all);
        memset(p + seen, 0, (keys.count - before - seen) * sizeof *p);
        memset(d + seen, 0, (keys.count - before - seen) * sizeof *d);
    }
}

/* k and v are packed; adds to dk and dv. */
static void attention_backward_head(const dp_attention *a, const struct attention_room *room)
{
    const float scale = attention_scale(a);
    for (size_t first = 0; first < a->length; first += DP_OPS_QUERY_ROWS) {
        const size_t rows = least_of(a->length - first, DP_OPS_QUERY_ROWS);
        const struct attention_keys keys = attention_keys_of(a, first, rows);
        const float *q = a->q + first * a->ld_qk;
        const float *d_out = a->d_out + first * a->ld_out;
        fast_gemm(&(dp_gemm){.m = rows,
                             .n = keys.count,
                             .k = a->head,
                             .a = q,
                             .a_row = a->ld_qk,
                             .a_depth = 1,
                             .packed = attention_columns(a, room->packed_k, keys.from),
                             .c = room->scores,
                             .ldc = room->ld_scores});
        fast_gemm(&(dp_gemm){.m = rows,
                             .n = keys.count,
                             .k = a->head,
                             .a = d_out,
                             .a_row = a->ld_out,
                             .a_depth = 1,
                             .packed = attention_columns(a, room->packed_v, keys.from),
                             .c = room->d_scores,
                             .ldc = room->ld_scores});
        attention_backward_rows(a, room, first, rows, scale);
        fast_pack(q, a->ld_qk, false, rows, a->head, room->packed_q);
        fast_pack(d_out, a->ld_out, false, rows, a->head, room->packed_d_out);
        fast_gemm(&(dp_gemm){.m = keys.count,
                             .n = a->head,
                             .k = rows,
                             .a = room->scores,
                             .a_row = 1,
                             .a_depth = room->ld_scores,
                             .packed = room->packed_d_out,
                             .c = a->dv + keys.from * a->ld_qkv,
                             .ldc = a->ld_qkv,
                             .add = a->dv + keys.from * a->ld_qkv,
                             .ld_add = a->ld_qkv});
        fast_gemm(&(dp_gemm){.m = keys.count,
                             .n = a->head,
                             .k = rows,
                             .a = room->d_scores,
                             .a_row = 1,
                             .a_depth = room->ld_scores,
                             .packed = room->packed_q,
                             .c = a->dk + keys.from * a->ld_qkv,
                             .ldc = a->ld_qkv,
                             .add = a->dk + keys.from * a->ld_qkv,
                             .ld_add = a->ld_qkv});
        fast_gemm(&(dp_gemm){.m = rows,
                             .n = a->head,
                             .k = keys.count,
                             .a = room->d_scores,
                             .a_row = room->ld_scores,
                             .a_depth = 1,
                             .packed = attention_terms(room->packed_k_rows, keys.from),
                             .packed_depth = a->length,
                             .c = a->dq + first * a->ld_qkv,
                             .ldc = a->ld_qkv});
    }
}

static void fast_attention_backward(const dp_attention *a)
{
    const struct attention_room room = attention_room_of(a);
    const size_t ld_k = a->ld_qk == 0 ? a->ld_qkv : a->ld_qk;
    fast_pack(a->k, ld_k, true, a->head, a->length, room.packed_k);
    fast_pack(a->v, a->ld_qkv, true, a->head, a->length, room.packed_v);
    fast_pack(a->k, ld_k, false, a->length, a->head, room.packed_k_rows);
    for (size_t row = 0; row < a->length; row++) {
        memset(a->dk + row * a->ld_qkv, 0, a->head * sizeof *a->dk);
        memset(a->dv + row * a->ld_qkv, 0, a->head * sizeof *a->dv);
    }
    for (size_t g = 0; g == 0 || g < a->groups; g++) {
        const dp_attention head = attention_head(a, g);
        attention_backward_head(&head, &room);
    }
}
