/* Rotary positions. */

DP_INLINE void rope_group(float *x, const float *cosines, const float *sines, float sign,
                          size_t half)
{
    size_t i = 0;
    for (; i + DP_LANES <= half; i += DP_LANES) {
        const dp_vec a = dp_vec_load(x + i);
        const dp_vec b = dp_vec_load(x + half + i);
        const dp_vec c = dp_vec_load(cosines + i);
        const dp_vec s = dp_vec_load(sines + i) * dp_vec_set(sign);
        dp_vec_store(x + i, a * c - b * s);
        dp_vec_store(x + half + i, b * c + a * s);
    }
    for (; i < half; i++) {
        const float a = x[i];
        const float b = x[half + i];
        x[i] = a * cosines[i] - b * (sines[i] * sign);
        x[half + i] = b * cosines[i] + a * (sines[i] * sign);
    }
}

static void fast_rope(const dp_rope_rows *rope, bool back)
{
    const size_t half = rope->width / 2;
    for (size_t row = 0; row < rope->rows; row++) {
        const float *angles =
            rope->angles +
            (rope->positions != NULL ? rope->positions[row] : (rope->first + row) % rope->length) *
                rope->width;
        for (size_t group = 0; group < rope->groups; group++) {
            rope_group(rope->x + row * rope->ld + group * rope->width, angles, angles + half,
                       back ? -1.0F : 1.0F, half);
        }
    }
}
