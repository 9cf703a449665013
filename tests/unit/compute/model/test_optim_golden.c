/* Sixty steps of each optimizer on a quadratic against tests/golden/make_optim.py, which knows
 * nothing of this code. */
#include "tests/lib/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "compute/model/optim.h"

enum { TENSORS = 3, N = 48, STEPS = 60 };

typedef struct scene {
    dp_tensor tensors[TENSORS];
    dp_model model;
    dp_optim optim;
    dp_optim_options options;
    float *params; /* of the arena */
    float *grads;
} scene;

static const struct {
    const char *name;
    dp_optim_kind kind;
    float lr;
} kinds[] = {{"adamw", DP_OPTIM_ADAMW, 0.03125F},
             {"lamb", DP_OPTIM_LAMB, 0.03125F},
             {"lars", DP_OPTIM_LARS, 1.0F},
             {"muon", DP_OPTIM_MUON, 0.03125F}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static double curvature(size_t i)
{
    return 0.25 + (double)(7 * i % 11) / 8;
}

static double target(size_t i)
{
    return ((double)(5 * i % 13) - 6) / 8;
}

/* Place in the arena of the i-th element of all tensors. */
static size_t place(const scene *s, size_t i)
{
    size_t t = 0;
    while (i >= s->tensors[t].elements) {
        i -= s->tensors[t].elements;
        t++;
    }
    return s->tensors[t].offset + i;
}

static void open_scene(scene *s, size_t kind)
{
    static const struct {
        size_t shape[2];
        dp_slot slot;
    } rows[TENSORS] = {{{4, 6}, DP_LAYER_OUT_W}, {{5, 4}, DP_SLOT_EMBED}, {{4, 1}, DP_LAYER_OUT_B}};
    *s = (scene){.options = {.lr = kinds[kind].lr,
                             .beta1 = 0.9F,
                             .beta2 = 0.95F,
                             .eps = 1e-6F,
                             .decay = 0.015625F,
                             .clip = 1.0F,
                             .momentum = 0.95F}};
    for (size_t t = 0; t < TENSORS; t++) {
        s->tensors[t] = (dp_tensor){.n_dims = t < 2 ? 2 : 1,
                                    .shape = {rows[t].shape[0], rows[t].shape[1]},
                                    .offset = t * DP_ARENA_ALIGN,
                                    .elements = rows[t].shape[0] * rows[t].shape[1],
                                    .decay = t < 2,
                                    .slot = rows[t].slot};
    }
    s->model = (dp_model){
        .tensors = s->tensors, .n_tensors = TENSORS, .n_elements = TENSORS * DP_ARENA_ALIGN};
    s->params = calloc(s->model.n_elements, sizeof(float));
    s->grads = calloc(s->model.n_elements, sizeof(float));
    for (size_t i = 0; i < 44; i++) { /* The vector starts at 0. */
        s->params[place(s, i)] = ((float)(3 * i % 7) - 3.0F) / 4.0F;
    }
    CHECK_OK(
        dp_optim_init(&s->optim, &(dp_optim_setup){.model = &s->model, .kind = kinds[kind].kind}));
}

static void close_scene(scene *s)
{
    dp_optim_close(&s->optim);
    free(s->params);
    free(s->grads);
}

/* Value before the step, then the step. */
static double walk(scene *s)
{
    double loss = 0.0;
    for (size_t i = 0; i < N; i++) {
        const double off = (double)s->params[place(s, i)] - target(i);
        loss += curvature(i) * off * off / 2;
        s->grads[place(s, i)] = (float)(curvature(i) * off);
    }
    CHECK_OK(dp_optim_step(&s->optim, s->params, s->grads, &s->options, NULL, NULL));
    return loss;
}

static void every_curve_is_that_of_the_definition(void **state)
{
    (void)state;
    FILE *const file = fopen("tests/golden/optim.txt", "r");
    assert_non_null(file);
    scene scenes[KINDS];
    size_t lines = 0;
    char name[16];
    int step;
    double wanted;
    for (size_t k = 0; k < KINDS; k++) {
        open_scene(&scenes[k], k);
    }
    while (fscanf(file, "%15s %d %lf", name, &step, &wanted) == 3) { /* NOLINT(cert-err34-c) */
        size_t k = 0;
        while (k < KINDS && strcmp(kinds[k].name, name) != 0) {
            k++;
        }
        assert_in_range(k, 0, KINDS - 1);
        const double loss = walk(&scenes[k]);
        /* fp32 in 60 steps; Muon's quintics enlarge roundings. */
        if (!(fabs(loss - wanted) <= 1e-4 * wanted + 1e-6)) {
            fail_msg("%s step %d: %.9g, wanted %.9g", name, step, loss, wanted);
        }
        lines++;
    }
    assert_int_equal(lines, KINDS * STEPS);
    for (size_t k = 0; k < KINDS; k++) {
        close_scene(&scenes[k]);
    }
    assert_int_equal(fclose(file), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_curve_is_that_of_the_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
