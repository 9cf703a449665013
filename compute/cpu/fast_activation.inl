/* Activations: GELU, squared ReLU, SwiGLU, GEGLU. */

/* s = sigmoid(2u), with u the argument of GELU's tanh: (1 + tanh u)/2 = s. */
DP_INLINE dp_vec gelu_gate(dp_vec x)
{
    const dp_vec inner = dp_fma(x * x * x, dp_vec_set(0.044715F), x);
    const dp_vec e = dp_exp(inner * dp_vec_set(-1.5957691216F)); /* -2 sqrt(2/pi) */
    return dp_vec_set(1.0F) / (dp_vec_set(1.0F) + e);
}

DP_INLINE dp_vec gelu_value(dp_vec x)
{
    return x * gelu_gate(x);
}

DP_INLINE dp_vec gelu_slope(dp_vec x, dp_vec s)
{
    const dp_vec inner = dp_fma(x * x, dp_vec_set(3.0F * 0.044715F), dp_vec_set(1.0F));
    return dp_fma(x * s * (dp_vec_set(1.0F) - s) * dp_vec_set(1.5957691216F), inner, s);
}

DP_INLINE dp_vec sigmoid(dp_vec x)
{
    return dp_vec_set(1.0F) / (dp_vec_set(1.0F) + dp_exp(-x));
}

/* A NaN stays: dp_max gives its second argument then. */
DP_INLINE dp_vec relu(dp_vec x)
{
    return dp_max(dp_vec_set(0.0F), x);
}

static void fast_gelu_forward(const float *x, size_t rows, size_t width, float *y)
{
    const size_t n = rows * width;
    size_t i = 0;
    for (; i + DP_LANES <= n; i += DP_LANES) {
        dp_vec_store(y + i, gelu_value(dp_vec_load(x + i)));
    }
    if (i < n) {
        dp_vec_store_some(y + i, gelu_value(dp_vec_load_some(x + i, n - i, 0.0F)), n - i);
    }
}

static void fast_gelu_backward(const float *x, size_t rows, size_t width, float *y, float *d)
{
    const size_t n = rows * width;
    size_t i = 0;
    for (; i + DP_LANES <= n; i += DP_LANES) {
        const dp_vec v = dp_vec_load(x + i);
        const dp_vec s = gelu_gate(v);
        dp_vec_store(y + i, v * s);
        dp_vec_store(d + i, dp_vec_load(d + i) * gelu_slope(v, s));
    }
    if (i < n) {
        const dp_vec v = dp_vec_load_some(x + i, n - i, 0.0F);
        const dp_vec s = gelu_gate(v);
        dp_vec_store_some(y + i, v * s, n - i);
        dp_vec_store_some(d + i, dp_vec_load_some(d + i, n - i, 0.0F) * gelu_slope(v, s), n - i);
    }
}

/* The share of the normal distribution below x, and its density there. erf by 7.1.26 of Abramowitz
 * and Stegun (1964), whose error is below 1.5e-7; the density is a by-product. */
struct normal_vectors {
    dp_vec share;
    dp_vec density;
};

DP_INLINE struct normal_vectors normal_of(dp_vec x)
{
    const dp_vec size = dp_max(x, -x);
    const dp_vec e = dp_exp(x * x * dp_vec_set(-0.5F));
    const dp_vec z = size * dp_vec_set(0.70710678118F);
    const dp_vec t = dp_vec_set(1.0F) / dp_fma(z, dp_vec_set(0.3275911F), dp_vec_set(1.0F));
    dp_vec p = dp_fma(t, dp_vec_set(1.061405429F), dp_vec_set(-1.453152027F));
    p = dp_fma(p, t, dp_vec_set(1.421413741F));
    p = dp_fma(p, t, dp_vec_set(-0.284496736F));
    p = dp_fma(p, t, dp_vec_set(0.254829592F));
    const dp_vec tail = p * t * e * dp_vec_set(0.5F); /* beyond |x| */
    const dp_ivec below = x < dp_vec_set(0.0F);
    const dp_vec above = dp_vec_set(1.0F) - tail;
    return (struct normal_vectors){
        .share = (dp_vec)((below & (dp_ivec)tail) | (~below & (dp_ivec)above)),
        .density = e * dp_vec_set(0.39894228040F)}; /* 1/sqrt(2 pi) */
}

static void fast_gelu_erf_forward(const float *x, size_t rows, size_t width, float *y)
{
    const size_t n = rows * width;
    for (size_t i = 0; i < n; i += DP_LANES) {
        const size_t rest = n - i < DP_LANES ? n - i : DP_LANES;
        const dp_vec v = dp_vec_load_some(x + i, rest, 0.0F);
        dp_vec_store_some(y + i, v * normal_of(v).share, rest);
    }
}

static void fast_gelu_erf_backward(const float *x, size_t rows, size_t width, float *y, float *d)
{
    const size_t n = rows * width;
    for (size_t i = 0; i < n; i += DP_LANES) {
        const size_t rest = n - i < DP_LANES ? n - i : DP_LANES;
        const dp_vec v = dp_vec_load_some(x + i, rest, 0.0F);
        const struct normal_vectors normal = normal_of(v);
        const dp_vec slope = dp_fma(v, normal.density, normal.share);
        dp_vec_store_some(y + i, v * normal.share, rest);
        dp_vec_store_some(d + i, dp_vec_load_some(d + i, rest, 0.0F) * slope, rest);
    }
}

static void fast_relu2_forward(const float *x, size_t rows, size_t width, float *y)
{
    const size_t n = rows * width;
    size_t i = 0;
    for (; i + DP_LANES <= n; i += DP_LANES) {
        const dp_vec v = relu(dp_vec_load(x + i));
        dp_vec_store(y + i, v * v);
    }
    if (i < n) {
        const dp_vec v = relu(dp_vec_load_some(x + i, n - i, 0.0F));
        dp_vec_store_some(y + i, v * v, n - i);
    }
}

static void fast_relu2_backward(const float *x, size_t rows, size_t width, float *y, float *d)
{
    const size_t n = rows * width;
    size_t i = 0;
    for (; i + DP_LANES <= n; i += DP_LANES) {
        const dp_vec v = relu(dp_vec_load(x + i));
        dp_vec_store(y + i, v * v);
        dp_vec_store(d + i, dp_vec_load(d + i) * (v + v));
    }
    if (i < n) {
        const dp_vec v = relu(dp_vec_load_some(x + i, n - i, 0.0F));
        dp_vec_store_some(y + i, v * v, n - i);
        dp_vec_store_some(d + i, dp_vec_load_some(d + i, n - i, 0.0F) * (v + v), n - i);
    }
}

/* The two that have gates differ in the gate alone. */
enum gate { GATE_SILU, GATE_GELU };

DP_INLINE dp_vec gate_value(enum gate kind, dp_vec gate)
{
    return kind == GATE_SILU ? gate * sigmoid(gate) : gelu_value(gate);
}

DP_INLINE void gated_forward(enum gate kind, const float *x, size_t rows, size_t width, float *y)
{
    for (size_t row = 0; row < rows; row++) {
        const float *gate = x + 2 * row * width;
        const float *up = gate + width;
        float *out = y + row * width;
        size_t i = 0;
        for (; i + DP_LANES <= width; i += DP_LANES) {
            dp_vec_store(out + i, gate_value(kind, dp_vec_load(gate + i)) * dp_vec_load(up + i));
        }
        if (i < width) {
            const dp_vec g = dp_vec_load_some(gate + i, width - i, 0.0F);
            const dp_vec u = dp_vec_load_some(up + i, width - i, 0.0F);
            dp_vec_store_some(out + i, gate_value(kind, g) * u, width - i);
        }
    }
}

/* One vector's y, d_gate and d_up. */
struct gated_vectors {
    dp_vec y;
    dp_vec d_gate;
    dp_vec d_up;
};

DP_INLINE struct gated_vectors gated_back(enum gate kind, dp_vec gate, dp_vec up, dp_vec dy)
{
    const dp_vec s = kind == GATE_SILU ? sigmoid(gate) : gelu_gate(gate);
    const dp_vec value = gate * s;
    const dp_vec slope =
        kind == GATE_SILU ? dp_fma(value, dp_vec_set(1.0F) - s, s) : gelu_slope(gate, s);
    return (struct gated_vectors){
        .y = value * up,
        .d_gate = dy * up * slope,
        .d_up = dy * value,
    };
}

DP_INLINE void gated_backward(enum gate kind, const float *x, size_t rows, size_t width, float *y,
                              float *d)
{
    for (size_t row = 0; row < rows; row++) {
        const float *gate = x + 2 * row * width;
        const float *up = gate + width;
        float *d_gate = d + 2 * row * width;
        float *d_up = d_gate + width;
        float *out = y + row * width;
        size_t i = 0;
        for (; i + DP_LANES <= width; i += DP_LANES) {
            const struct gated_vectors v = gated_back(kind, dp_vec_load(gate + i),
                                                      dp_vec_load(up + i), dp_vec_load(d_gate + i));
            dp_vec_store(out + i, v.y);
            dp_vec_store(d_gate + i, v.d_gate);
            dp_vec_store(d_up + i, v.d_up);
        }
        if (i < width) {
            const size_t rest = width - i;
            const struct gated_vectors v = gated_back(kind, dp_vec_load_some(gate + i, rest, 0.0F),
                                                      dp_vec_load_some(up + i, rest, 0.0F),
                                                      dp_vec_load_some(d_gate + i, rest, 0.0F));
            dp_vec_store_some(out + i, v.y, rest);
            dp_vec_store_some(d_gate + i, v.d_gate, rest);
            dp_vec_store_some(d_up + i, v.d_up, rest);
        }
    }
}

static void fast_swiglu_forward(const float *x, size_t rows, size_t width, float *y)
{
    gated_forward(GATE_SILU, x, rows, width, y);
}

static void fast_swiglu_backward(const float *x, size_t rows, size_t width, float *y, float *d)
{
    gated_backward(GATE_SILU, x, rows, width, y, d);
}

static void fast_geglu_forward(const float *x, size_t rows, size_t width, float *y)
{
    gated_forward(GATE_GELU, x, rows, width, y);
}

static void fast_geglu_backward(const float *x, size_t rows, size_t width, float *y, float *d)
{
    gated_backward(GATE_GELU, x, rows, width, y, d);
}
