/* A network of two layers that tells three spirals apart, trained by a run of dpnode. The smallest
 * whole user of dpnode.h:
 *
 *     cc -O2 mlp.c -lm -o mlp
 *     ./mlp --write model.safetensors                 # names, shapes and first weights
 *     dpnode run create run.yaml --from model.safetensors
 *     ./mlp                                           # on each node, as often as you like
 *
 * run.yaml: name: spirals, model: {arch: external}, data: {samples: 30000},
 * members: {trust: members}. Options: --dir DIR of the node, --steps N, --quiet,
 * --patience S, seconds for which a node may be away. */
#define DPNODE_IMPLEMENTATION
#include "dpnode.h"

#include <stdbool.h>

enum { IN = 2, WIDE = 64, OUT = 3, BATCH = 32, N = WIDE * IN + WIDE + OUT * WIDE + OUT };

/* All weights in a row, and the tensors in it. */
static float weights[N], gradients[N], m[N], v[N];
static float *const w1 = weights, *const b1 = w1 + WIDE * IN, *const w2 = b1 + WIDE,
                    *const b2 = w2 + OUT * WIDE;
static const dpnode_tensor tensors[] = {
    {"in.weight", weights, 2, {WIDE, IN}},
    {"in.bias", weights + WIDE *IN, 1, {WIDE}},
    {"out.weight", weights + WIDE *IN + WIDE, 2, {OUT, WIDE}},
    {"out.bias", weights + WIDE *IN + WIDE + OUT *WIDE, 1, {OUT}}};
enum { TENSORS = sizeof tensors / sizeof tensors[0] };

/* Uniform in 0 .. 1, the same for the same number. */
static float chance(uint64_t number)
{
    number = (number + 1) * 0x9e3779b97f4a7c15U;
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9U;
    number = (number ^ (number >> 27)) * 0x94d049bb133111ebU;
    return (float)((number ^ (number >> 31)) >> 40) / 16777216.0F;
}

/* The data set: sample number index, a point of one of the spirals. Returns which. */
static int sample(uint64_t index, float x[IN])
{
    const int spiral = (int)(index % OUT);
    const float along = chance(3 * index);
    const float angle = 2.0F * (float)M_PI * (along + (float)spiral / OUT);
    x[0] = along * cosf(angle) + 0.02F * (chance(3 * index + 1) - 0.5F);
    x[1] = along * sinf(angle) + 0.02F * (chance(3 * index + 2) - 0.5F);
    return spiral;
}

/* Forward and backward for one sample; adds to the gradients. Returns its loss. */
static float learn(uint64_t index)
{
    float x[IN], h[WIDE], p[OUT], sum = 0, most = -INFINITY;
    const int target = sample(index, x);
    for (int i = 0; i < WIDE; i++) {
        const float a = w1[2 * i] * x[0] + w1[2 * i + 1] * x[1] + b1[i];
        h[i] = a > 0 ? a : 0;
    }
    for (int o = 0; o < OUT; o++) {
        p[o] = b2[o];
        for (int i = 0; i < WIDE; i++) {
            p[o] += w2[o * WIDE + i] * h[i];
        }
        most = p[o] > most ? p[o] : most;
    }
    for (int o = 0; o < OUT; o++) {
        p[o] = expf(p[o] - most);
        sum += p[o];
    }
    float *const g1 = gradients, *const gb1 = g1 + WIDE * IN, *const g2 = gb1 + WIDE,
                 *const gb2 = g2 + OUT * WIDE;
    for (int i = 0; i < WIDE; i++) {
        float back = 0;
        for (int o = 0; o < OUT; o++) {
            const float d = (p[o] / sum - (o == target ? 1.0F : 0.0F)) / BATCH;
            g2[o * WIDE + i] += d * h[i];
            gb2[o] += i == 0 ? d : 0;
            back += d * w2[o * WIDE + i];
        }
        back = h[i] > 0 ? back : 0;
        g1[2 * i] += back * x[0];
        g1[2 * i + 1] += back * x[1];
        gb1[i] += back;
    }
    return -logf(p[target] / sum + 1e-9F);
}

/* Adam (Kingma, Ba 2015). */
static void update(uint64_t step)
{
    const float c1 = 1 - powf(0.9F, (float)step), c2 = 1 - powf(0.999F, (float)step);
    for (int i = 0; i < N; i++) {
        m[i] = 0.9F * m[i] + 0.1F * gradients[i];
        v[i] = 0.999F * v[i] + 0.001F * gradients[i] * gradients[i];
        weights[i] -= 3e-3F * (m[i] / c1) / (sqrtf(v[i] / c2) + 1e-8F);
        gradients[i] = 0;
    }
}

/* The first weights as a safetensors file. */
static int write_model(const char *path)
{
    char header[512];
    int size = 0;
    for (int i = 0; i < N; i++) { /* He et al. 2015 */
        const bool bias = (i >= WIDE * IN && i < WIDE * IN + WIDE) || i >= N - OUT;
        weights[i] =
            bias ? 0 : (chance((uint64_t)i) - 0.5F) * sqrtf(24.0F / (i < WIDE * IN ? IN : WIDE));
    }
    for (int t = 0; t < TENSORS; t++) {
        const size_t begin = (size_t)(tensors[t].values - weights) * 4;
        const size_t end =
            (t + 1 < TENSORS ? (size_t)(tensors[t + 1].values - weights) : (size_t)N) * 4;
        char second[16] = "";
        snprintf(second, sizeof second, ",%u", tensors[t].shape[1]);
        size += snprintf(header + size, sizeof header - (size_t)size,
                         "%c\"%s\":{\"dtype\":\"F32\",\"shape\":[%u%s],\"data_offsets\":[%zu,%zu]}",
                         t > 0 ? ',' : '{', tensors[t].name, tensors[t].shape[0],
                         tensors[t].n_dims > 1 ? second : "", begin, end);
    }
    size += snprintf(header + size, sizeof header - (size_t)size, "}");
    const uint64_t length = (uint64_t)size;
    FILE *file = fopen(path, "wb");
    const bool good = file != NULL && fwrite(&length, 8, 1, file) == 1 &&
                      fwrite(header, length, 1, file) == 1 &&
                      fwrite(weights, sizeof weights, 1, file) == 1;
    if (file == NULL || fclose(file) != 0 || !good) {
        perror(path);
        return 1;
    }
    return 0;
}

/* Steps until the node goes, or there are enough. */
static dpnode_status train(dpnode *run, uint64_t steps, bool quiet)
{
    static uint64_t step;
    static double mean;
    uint64_t indices[BATCH];
    dpnode_status status = DPNODE_OK;
    while (status == DPNODE_OK && step < steps) {
        double loss = 0;
        if (dpnode_draw(run, indices, BATCH) != BATCH) {
            return dpnode_state(run);
        }
        for (int i = 0; i < BATCH; i++) {
            loss += (double)learn(indices[i]) / BATCH;
        }
        update(++step);
        mean = step == 1 ? loss : 0.99 * mean + 0.01 * loss;
        status = dpnode_step(run, BATCH, loss);
        if (!quiet && step % 1000 == 0) {
            printf("round %llu, step %llu, loss %.4f\n", (unsigned long long)dpnode_round(run),
                   (unsigned long long)step, mean);
            fflush(stdout);
        }
    }
    return status;
}

int main(int argc, char **argv)
{
    const char *dir = NULL;
    uint64_t steps = UINT64_MAX, patience = 30;
    bool quiet = false;
    for (int i = 1; i < argc; i++) {
        const bool has = i + 1 < argc;
        if (has && strcmp(argv[i], "--write") == 0) {
            return write_model(argv[i + 1]);
        }
        dir = has && strcmp(argv[i], "--dir") == 0 ? argv[++i] : dir;
        steps = has && strcmp(argv[i], "--steps") == 0 ? strtoull(argv[++i], NULL, 10) : steps;
        patience =
            has && strcmp(argv[i], "--patience") == 0 ? strtoull(argv[++i], NULL, 10) : patience;
        quiet = quiet || strcmp(argv[i], "--quiet") == 0;
    }
    for (uint64_t tries = 0; tries < patience * 10; tries++) { /* The node may restart. */
        dpnode *run;
        dpnode_status status = dpnode_open(&run, dir, tensors, TENSORS);
        if (status == DPNODE_OK) {
            tries = 0;
            status = train(run, steps, quiet);
            fprintf(stderr, "mlp: %s\n", status == DPNODE_OK ? "done" : dpnode_problem(run));
            const dpnode_status last = dpnode_close(run);
            if (status == DPNODE_OK && last != DPNODE_OK) {
                fprintf(stderr, "mlp: the last steps: %s\n", dpnode_problem(NULL));
                status = last;
            }
        } else if (status != DPNODE_NO_NODE && status != DPNODE_GONE) {
            fprintf(stderr, "mlp: %s\n", dpnode_problem(NULL));
        }
        if (status != DPNODE_NO_NODE && status != DPNODE_GONE) {
            return status != DPNODE_OK;
        }
        usleep(100000);
    }
    fprintf(stderr, "mlp: %s\n", dpnode_problem(NULL));
    return 1;
}
