/* Activations: GELU, squared ReLU, SwiGLU. */

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

static void fast_swiglu_forward(const float *x, size_t rows, size_t width, float *y)
{
    for (size_t row = 0; row < rows; row++) {
        const float *gate = x + 2 * row * width;
        const float *up = gate + width;
        float *out = y + row * width;
        size_t i = 0;
        for (; i + DP_LANES <= width; i += DP_LANES) {
            const dp_vec g = dp_vec_load(gate + i);
            dp_vec_store(out + i, g * sigmoid(g) * dp_vec_load(up + i));
        }
        if (i < width) {
            const dp_vec g = dp_vec_load_some(gate + i, width - i, 0.0F);
            dp_vec_store_some(out + i, g * sigmoid(g) * dp_vec_load_some(up + i, width - i, 0.0F),
                              width - i);
        }
    }
}

/* One vector's y, d_gate and d_up. */
struct swiglu_vectors {
    dp_vec y;
    dp_vec d_gate;
    dp_vec d_up;
};

DP_INLINE struct swiglu_vectors swiglu_back(dp_vec gate, dp_vec up, dp_vec dy)
{
    const dp_vec s = sigmoid(gate);
    const dp_vec swish = gate * s;
    return (struct swiglu_vectors){
        .y = swish * up,
        .d_gate = dy * up * dp_fma(swish, dp_vec_set(1.0F) - s, s),
        .d_up = dy * swish,
    };
}

static void fast_swiglu_backward(const float *x, size_t rows, size_t width, float *y, float *d)
{
    for (size_t row = 0; row < rows; row++) {
        const float *gate = x + 2 * row * width;
        const float *up = gate + width;
        float *d_gate = d + 2 * row * width;
        float *d_up = d_gate + width;
        float *out = y + row * width;
        size_t i = 0;
        for (; i + DP_LANES <= width; i += DP_LANES) {
            const struct swiglu_vectors v =
                swiglu_back(dp_vec_load(gate + i), dp_vec_load(up + i), dp_vec_load(d_gate + i));
            dp_vec_store(out + i, v.y);
            dp_vec_store(d_gate + i, v.d_gate);
            dp_vec_store(d_up + i, v.d_up);
        }
        if (i < width) {
            const size_t rest = width - i;
            const struct swiglu_vectors v = swiglu_back(dp_vec_load_some(gate + i, rest, 0.0F),
                                                        dp_vec_load_some(up + i, rest, 0.0F),
                                                        dp_vec_load_some(d_gate + i, rest, 0.0F));
            dp_vec_store_some(out + i, v.y, rest);
            dp_vec_store_some(d_gate + i, v.d_gate, rest);
            dp_vec_store_some(d_up + i, v.d_up, rest);
        }
    }
}
