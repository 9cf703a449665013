/* Causal attention of the query heads that share a head of k and v, one after the other,
 * DP_OPS_QUERY_ROWS queries at a time; scores are made twice instead of kept (Dao et al. 2022). */

/* The problem of query head g alone. */
static dp_attention attention_head(const dp_attention *a, size_t g)
{
    dp_attention head = *a;
    head.ld_qk = a->ld_qk == 0 ? a->ld_qkv : a->ld_qk;
    head.q += g * a->head;
    head.out += g * a->head;
    head.lse += g * a->length;
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

/* k and v are packed. */
static void attention_forward_head(const dp_attention *a, const struct attention_room *room)
{
    const float scale = 1.0F / sqrtf((float)a->head);
    for (size_t first = 0; first < a->length; first += DP_OPS_QUERY_ROWS) {
        const size_t rows = least_of(a->length - first, DP_OPS_QUERY_ROWS);
        const size_t keys = first + rows;
        float sums[DP_OPS_QUERY_ROWS];
        fast_gemm(&(dp_gemm){.m = rows,
                             .n = keys,
                             .k = a->head,
                             .a = a->q + first * a->ld_qk,
                             .a_row = a->ld_qk,
                             .a_depth = 1,
                             .packed = room->packed_k,
                             .c = room->scores,
                             .ldc = room->ld_scores});
        for (size_t r = 0; r < rows; r++) {
            float *score = room->scores + r * room->ld_scores;
            const size_t seen = first + r + 1;
            const float largest = row_largest(score, seen) * scale;
            sums[r] = row_exp(score, seen, scale, largest);
            a->lse[first + r] = largest + logf(sums[r]);
            memset(score + seen, 0, (keys - seen) * sizeof *score);
        }
        fast_gemm(&(dp_gemm){.m = rows,
                             .n = a->head,
                             .k = keys,
                             .a = room->scores,
                             .a_row = room->ld_scores,
                             .a_depth = 1,
                             .packed = room->packed_v,
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
    const size_t keys = first + rows;
    for (size_t r = 0; r < rows; r++) {
        float *p = room->scores + r * room->ld_scores;
        float *d = room->d_scores + r * room->ld_scores;
        const float *out = a->out + (first + r) * a->ld_out;
        const float *d_out = a->d_out + (first + r) * a->ld_out;
        const size_t seen = first + r + 1;
        float delta = 0.0F;
        for (size_t i = 0; i < a->head; i++) {
            delta += out[i] * d_out[i];
        }
        const float lse = a->lse[first + r];
        size_t i = 0;
        for (; i < seen;
             i += DP_LANES) { /* The room behind a row is wide enough for a whole vector. */
            const dp_vec e =
                dp_exp(dp_fma(dp_vec_load(p + i), dp_vec_set(scale), dp_vec_set(-lse)));
            dp_vec_store(p + i, e);
            dp_vec_store(d + i, (dp_vec_load(d + i) - dp_vec_set(delta)) * e * dp_vec_set(scale));
        }
        memset(p + seen, 0, (keys - seen) * sizeof *p);
        memset(d + seen, 0, (keys - seen) * sizeof *d);
    }
}

/* k and v are packed; adds to dk and dv. */
static void attention_backward_head(const dp_attention *a, const struct attention_room *room)
{
    const float scale = 1.0F / sqrtf((float)a->head);
    for (size_t first = 0; first < a->length; first += DP_OPS_QUERY_ROWS) {
        const size_t rows = least_of(a->length - first, DP_OPS_QUERY_ROWS);
        const size_t keys = first + rows;
        const float *q = a->q + first * a->ld_qk;
        const float *d_out = a->d_out + first * a->ld_out;
        fast_gemm(&(dp_gemm){.m = rows,
                             .n = keys,
                             .k = a->head,
                             .a = q,
                             .a_row = a->ld_qk,
                             .a_depth = 1,
                             .packed = room->packed_k,
                             .c = room->scores,
                             .ldc = room->ld_scores});
        fast_gemm(&(dp_gemm){.m = rows,
                             .n = keys,
                             .k = a->head,
                             .a = d_out,
                             .a_row = a->ld_out,
                             .a_depth = 1,
                             .packed = room->packed_v,
                             .c = room->d_scores,
                             .ldc = room->ld_scores});
        attention_backward_rows(a, room, first, rows, scale);
        fast_pack(q, a->ld_qk, false, rows, a->head, room->packed_q);
        fast_pack(d_out, a->ld_out, false, rows, a->head, room->packed_d_out);
        fast_gemm(&(dp_gemm){.m = keys,
                             .n = a->head,
                             .k = rows,
                             .a = room->scores,
                             .a_row = 1,
                             .a_depth = room->ld_scores,
                             .packed = room->packed_d_out,
                             .c = a->dv,
                             .ldc = a->ld_qkv,
                             .add = a->dv,
                             .ld_add = a->ld_qkv});
        fast_gemm(&(dp_gemm){.m = keys,
                             .n = a->head,
                             .k = rows,
                             .a = room->d_scores,
                             .a_row = 1,
                             .a_depth = room->ld_scores,
                             .packed = room->packed_q,
                             .c = a->dk,
                             .ldc = a->ld_qkv,
                             .add = a->dk,
                             .ld_add = a->ld_qkv});
        fast_gemm(&(dp_gemm){.m = rows,
                             .n = a->head,
                             .k = keys,
                             .a = room->d_scores,
                             .a_row = room->ld_scores,
                             .a_depth = 1,
                             .packed = room->packed_k_rows,
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
