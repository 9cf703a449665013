/* The optimizers beside AdamW against their definitions in float64. */
#include "tests/unit/compute/optim_rig.h"

#include <math.h>

/* The state of one optimizer in float64, and the three rules written down once more. */
typedef struct exact {
    double *x;
    double *m;
    double *v;
    double *u;
    double *g;
} exact;

static double norm_of(const double *x, size_t n)
{
    double squares = 0.0;
    for (size_t i = 0; i < n; i++) {
        squares += x[i] * x[i];
    }
    return sqrt(squares);
}

static void lamb_tensor(const exact *r, const dp_tensor *t, int step, const dp_optim_options *o)
{
    const size_t at = t->offset;
    const double lambda = t->decay ? (double)o->decay : 0.0;
    for (size_t i = at; i < at + t->elements; i++) {
        r->m[i] = 0.9 * r->m[i] + 0.1 * r->g[i];
        r->v[i] = 0.95 * r->v[i] + 0.05 * r->g[i] * r->g[i];
        r->u[i] = r->m[i] / (1 - pow(0.9, step)) /
                      (sqrt(r->v[i] / (1 - pow(0.95, step))) + (double)o->eps) +
                  lambda * r->x[i];
    }
    const double x_norm = norm_of(r->x + at, t->elements);
    const double u_norm = norm_of(r->u + at, t->elements);
    const double ratio = t->decay && x_norm > 0 && u_norm > 0 ? fmin(x_norm, 10.0) / u_norm : 1.0;
    for (size_t i = at; i < at + t->elements; i++) {
        r->x[i] -= (double)o->lr * ratio * r->u[i];
    }
}

static void lars_tensor(const exact *r, const dp_tensor *t, const dp_optim_options *o)
{
    const size_t at = t->offset;
    const double lambda = t->decay ? (double)o->decay : 0.0;
    const double x_norm = norm_of(r->x + at, t->elements);
    const double g_norm = norm_of(r->g + at, t->elements);
    const double local =
        t->decay && x_norm > 0 && g_norm > 0 ? x_norm / (g_norm + lambda * x_norm) : 1.0;
    for (size_t i = at; i < at + t->elements; i++) {
        r->m[i] = (double)o->momentum * r->m[i] +
                  (double)o->lr * 0.001 * local * (r->g[i] + lambda * r->x[i]);
        r->x[i] -= r->m[i];
    }
}

/* out [m][n] = a [m][k] b [k][n], each transposed if said. */
static void product(const double *a, bool a_t, const double *b, bool b_t, size_t m, size_t n,
                    size_t k, double *out)
{
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) {
            double sum = 0.0;
            for (size_t d = 0; d < k; d++) {
                sum += (a_t ? a[d * m + i] : a[i * k + d]) * (b_t ? b[j * k + d] : b[d * n + j]);
            }
            out[i * n + j] = sum;
        }
    }
}

/* The paper's loop, always from the left: for a tall matrix that is the longer way to the same. */
static void newton_schulz(double *x, size_t rows, size_t columns)
{
    double *const gram = calloc(2 * rows * rows + rows * columns, sizeof *gram);
    double *const square = gram + rows * rows;
    double *const more = square + rows * rows;
    const double norm = norm_of(x, rows * columns) + 1e-7;
    for (size_t i = 0; i < rows * columns; i++) {
        x[i] /= norm;
    }
    for (int step = 0; step < 5; step++) {
        product(x, false, x, true, rows, rows, columns, gram);
        product(gram, false, gram, false, rows, rows, rows, square);
        for (size_t i = 0; i < rows * rows; i++) {
            square[i] = -4.7750 * gram[i] + 2.0315 * square[i];
        }
        product(square, false, x, false, rows, columns, rows, more);
        for (size_t i = 0; i < rows * columns; i++) {
            x[i] = 3.4445 * x[i] + more[i];
        }
    }
    free(gram);
}

/* Columns first .. first + columns - 1 as one matrix. */
static void muon_columns(const exact *r, const dp_tensor *t, size_t first, size_t columns,
                         const dp_optim_options *o)
{
    const size_t rows = t->shape[0];
    double *const x = calloc(rows * columns, sizeof *x);
    for (size_t k = 0; k < rows * columns; k++) {
        const size_t i = t->offset + k / columns * t->shape[1] + first + k % columns;
        r->m[i] = (double)o->momentum * r->m[i] + r->g[i];
        x[k] = r->g[i] + (double)o->momentum * r->m[i];
    }
    newton_schulz(x, rows, columns);
    const double longer = (double)(rows > columns ? rows : columns);
    for (size_t k = 0; k < rows * columns; k++) {
        const size_t i = t->offset + k / columns * t->shape[1] + first + k % columns;
        r->x[i] -= (double)o->lr * (0.2 * sqrt(longer) * x[k] + (double)o->decay * r->x[i]);
    }
    free(x);
}

static void muon_tensor(const exact *r, const dp_tensor *t, const dp_optim_options *o)
{
    if (t->slot == DP_LAYER_QKV_W) {
        muon_columns(r, t, 0, 25, o);
        muon_columns(r, t, 25, 20, o);
        muon_columns(r, t, 45, 20, o);
    } else {
        muon_columns(r, t, 0, t->shape[1], o);
    }
}

static void adamw_tensor(const exact *r, const dp_tensor *t, int step, const dp_optim_options *o)
{
    for (size_t i = t->offset; i < t->offset + t->elements; i++) {
        r->m[i] = 0.9 * r->m[i] + 0.1 * r->g[i];
        r->v[i] = 0.95 * r->v[i] + 0.05 * r->g[i] * r->g[i];
        const double move = r->m[i] / (1 - pow(0.9, step)) /
                            (sqrt(r->v[i] / (1 - pow(0.95, step))) + (double)o->eps);
        r->x[i] -= (double)o->lr * (move + (t->decay ? (double)o->decay : 0.0) * r->x[i]);
    }
}

static void right_step(dp_optim_kind kind, const exact *r, const dp_tensor *t, int step,
                       const dp_optim_options *o)
{
    const bool inside = t->n_dims == 2 && strstr(t->name, ".h.") != NULL;
    if (kind == DP_OPTIM_LAMB) {
        lamb_tensor(r, t, step, o);
    } else if (kind == DP_OPTIM_LARS) {
        lars_tensor(r, t, o);
    } else if (kind == DP_OPTIM_MUON && inside) {
        muon_tensor(r, t, o);
    } else {
        adamw_tensor(r, t, step, o);
    }
}

/* Largest difference after four steps with other gradients each. */
static void check_definition(dp_optim_kind kind, const dp_optim_options *options, double bound)
{
    rig r;
    dp_optim optim;
    rig_open(&r);
    memset(r.params + r.tensors[4].offset, 0,
           r.tensors[4].elements * sizeof(float)); /* a norm of 0 */
    const size_t n = r.model.n_elements;
    double *const memory = calloc(5 * n, sizeof *memory);
    const exact right = {memory, memory + n, memory + 2 * n, memory + 3 * n, memory + 4 * n};
    CHECK_OK(dp_optim_init(&optim, &(dp_optim_setup){.model = &r.model, .kind = kind}));
    for (size_t i = 0; i < n; i++) {
        right.x[i] = (double)r.params[i];
    }
    for (int step = 1; step <= 4; step++) {
        double norm = 0.0;
        rig_draw(&r, r.grads, (uint64_t)step, 1.0F);
        CHECK_OK(dp_optim_step(&optim, r.params, r.grads, options, NULL, &norm));
        const double clip = (double)options->clip;
        for (size_t i = 0; i < n; i++) {
            right.g[i] = (double)r.grads[i] * (clip > 0 && norm > clip ? clip / norm : 1.0);
        }
        for (size_t t = 0; t < RIG_TENSORS; t++) {
            right_step(kind, &right, &r.tensors[t], step, options);
        }
        for (size_t i = 0; i < n; i++) {
            if (!(fabs((double)r.params[i] - right.x[i]) <= bound)) {
                fail_msg("kind %d step %d element %zu: %.9g, right %.9g", (int)kind, step, i,
                         (double)r.params[i], right.x[i]);
            }
        }
    }
    free(memory);
    dp_optim_close(&optim);
    rig_close(&r);
}

static dp_optim_options with(float lr, float clip)
{
    dp_optim_options options = rig_options;
    options.lr = lr;
    options.clip = clip;
    return options;
}

static void lamb_equals_its_definition(void **state)
{
    (void)state;
    const dp_optim_options loose = with(1e-2F, 0.0F);
    const dp_optim_options tight = with(1e-2F, 0.5F);
    check_definition(DP_OPTIM_LAMB, &loose, 2e-6);
    check_definition(DP_OPTIM_LAMB, &tight, 2e-6);
}

/* Moments are near 1, so that an eps of 1e-6 moves nothing beyond the bounds; one of a quarter
 * halves many a step. */
static void eps_stands_where_the_definitions_have_it(void **state)
{
    (void)state;
    dp_optim_options options = with(1e-2F, 0.0F);
    options.eps = 0.25F;
    check_definition(DP_OPTIM_ADAMW, &options, 2e-6);
    check_definition(DP_OPTIM_LAMB, &options, 2e-6);
}

static void lars_equals_its_definition(void **state)
{
    (void)state;
    const dp_optim_options loose = with(1.0F, 0.0F);
    const dp_optim_options tight = with(1.0F, 0.5F);
    check_definition(DP_OPTIM_LARS, &loose, 1e-6);
    check_definition(DP_OPTIM_LARS, &tight, 1e-6);
}

static void muon_equals_its_definition(void **state)
{
    (void)state;
    const dp_optim_options loose = with(1e-2F, 0.0F);
    const dp_optim_options tight = with(1e-2F, 0.5F);
    /* An element moves by 2e-3 a step; five quintics with a slope of 3.4 at 0 enlarge roundings. */
    check_definition(DP_OPTIM_MUON, &loose, 5e-6);
    check_definition(DP_OPTIM_MUON, &tight, 5e-6);
}

/* Of the step that Muon makes with one gradient, without decay: o = change / (lr 0.2
 * sqrt(longer)). */
static void muon_steps_are_nearly_orthogonal(void **state)
{
    (void)state;
    rig r;
    dp_optim optim;
    rig_open(&r);
    dp_optim_options options = with(1.0F, 0.0F);
    options.decay = 0.0F;
    CHECK_OK(dp_optim_init(&optim, &(dp_optim_setup){.model = &r.model, .kind = DP_OPTIM_MUON}));
    memset(r.params, 0, r.model.n_elements * sizeof *r.params);
    CHECK_OK(dp_optim_step(&optim, r.params, r.grads, &options, NULL, NULL));
    for (size_t t = 0; t < RIG_TENSORS; t++) {
        const dp_tensor *const tensor = &r.tensors[t];
        const size_t rows = tensor->shape[0];
        const size_t columns = tensor->shape[1];
        if (tensor->n_dims != 2 || strstr(tensor->name, ".h.") == NULL ||
            tensor->slot == DP_LAYER_QKV_W) {
            continue;
        }
        const double unit = 0.2 * sqrt((double)(rows > columns ? rows : columns));
        const size_t side = rows < columns ? rows : columns;
        double squares = 0.0;
        double along = 0.0; /* the step goes down */
        for (size_t i = tensor->offset; i < tensor->offset + tensor->elements; i++) {
            squares += pow((double)r.params[i] / unit, 2);
            along -= (double)r.params[i] * (double)r.grads[i];
        }
        /* The mean squared singular value; each wanders between 0.7 and 1.2. */
        CHECK(squares / (double)side > 0.45 && squares / (double)side < 1.45 && along > 0);
    }
    dp_optim_close(&optim);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lamb_equals_its_definition),
        cmocka_unit_test(eps_stands_where_the_definitions_have_it),
        cmocka_unit_test(lars_equals_its_definition),
        cmocka_unit_test(muon_equals_its_definition),
        cmocka_unit_test(muon_steps_are_nearly_orthogonal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
