/* A script's looks: with nothing due, and with a copy, an addition and an assignment of all
 * weights, beside the same movement of memory alone. The door and its trainer are the worker's; the
 * script is dpnode.h, in the same process.
 *
 * usage: bench_script [MILLION_ELEMENTS]   (124) */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "compute/machine/stopwatch.h"
#include "compute/model/state.h"
#include "compute/model/tensor_table.h"
#include "compute/worker/script_door.h"

#define DPNODE_IMPLEMENTATION
#include "contrib/script/dpnode.h"

enum { LOOKS = 1000000, TIMES = 5, ONE = 65536 };

static const char *const path = "/tmp/bench_script.sock";

static void must(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "bench_script: %s\n", what);
        exit(1);
    }
}

static void on_present(void *context, uint32_t pid)
{
    (void)context;
    (void)pid;
}

static void on_copied(void *context)
{
    (void)context;
}

static void on_stepped(void *context, const dp_script_progress *progress)
{
    (void)context;
    (void)progress;
}

static dp_trainer *open_trainer(uint64_t elements)
{
    const dp_model_config shape = {.arch = DP_ARCH_EXTERNAL};
    const dp_tensor_row row = {.name = dp_view_text("w"),
                               .type = DP_NUMBER_F32,
                               .n_dims = 1,
                               .shape = {(uint32_t)elements}};
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    dp_buf table;
    dp_why why = {{0}};
    dp_manifest m;
    dp_trainer *trainer = NULL;
    dp_buf_init(&table, DP_TENSOR_TABLE_BYTES_MAX);
    must(dp_tensor_table_write(&row, 1, &table, &why) == DP_OK, why.text);
    dp_manifest_default(&m);
    dp_manifest_set_model(&m, &shape);
    m.val_per_mille = 0;
    m.samples = 1000000;
    m.trust = DP_TRUST_MEMBERS;
    m.elements = elements;
    m.tokenizer_bytes = table.size;
    m.tokenizer = dp_object_hash(dp_buf_view(&table), NULL);
    m.init_bytes = dp_state_bytes(elements, 0);
    m.init.bytes[0] = 1;
    must(dp_manifest_encode(&m, bytes, &size) == DP_OK, "no manifest");
    const dp_trainer_setup setup = {.manifest = dp_view_of(bytes, size),
                                    .tokenizer = dp_buf_view(&table)};
    must(dp_trainer_open(&trainer, &setup, &why) == DP_OK, why.text);
    dp_buf_close(&table);
    return trainer;
}

static double milliseconds_since(uint64_t begin)
{
    return (double)(dp_now_us() - begin) / 1000.0;
}

/* One look that has something to do; the time for which it held the script. */
static double look(dp_script *door, dpnode *node, dp_script_change change, bool copies)
{
    dp_script_enter(door, true);
    must(!copies || dp_script_ask_copy(door), "no copy was asked for");
    dp_script_leave(door, change);
    const uint64_t begin = dp_now_us();
    must(dpnode_look(node) == DPNODE_OK, "the look failed");
    return milliseconds_since(begin);
}

typedef struct times {
    double least;
    double most;
} times;

static void take(times *all, double value)
{
    all->least = all->least == 0 || value < all->least ? value : all->least;
    all->most = value > all->most ? value : all->most;
}

/* As dpnode.h moves them. */
static double plain_copy(float *to, const float *from, size_t n)
{
    const uint64_t begin = dp_now_us();
    memcpy(to, from, n * sizeof *to);
    return milliseconds_since(begin);
}

static double plain_add(float *to, const float *from, size_t n)
{
    const uint64_t begin = dp_now_us();
    for (size_t i = 0; i < n; i++) {
        to[i] += from[i];
    }
    return milliseconds_since(begin);
}

static void print(const char *what, const times *all, const times *plain)
{
    printf("%-8s %8.1f to %.1f ms; the memory alone %.1f to %.1f ms\n", what, all->least, all->most,
           plain->least, plain->most);
}

static void measure(dp_script *door, dpnode *node, float *weights, size_t n)
{
    float *const other = dp_alloc(n, sizeof *other);
    times copied = {0};
    times added = {0};
    times assigned = {0};
    times copy = {0};
    times add = {0};
    must(other != NULL, "no memory");
    memcpy(other, weights, n * sizeof *other); /* Its pages exist now. */
    for (int i = 0; i < TIMES; i++) {
        take(&copied, look(door, node, DP_SCRIPT_SAME, true));
        take(&added, look(door, node, DP_SCRIPT_MOVED, false));
        take(&assigned, look(door, node, DP_SCRIPT_SET, false));
        take(&copy, plain_copy(other, weights, n));
        take(&add, plain_add(other, weights, n));
    }
    print("copy", &copied, &copy);
    print("add", &added, &add);
    print("assign", &assigned, &copy);
    dp_free(other);
}

int main(int argc, char **argv)
{
    const size_t n = (argc > 1 ? strtoul(argv[1], NULL, 10) : 124) * 1000000;
    float *const weights = dp_alloc(n, sizeof *weights);
    dp_trainer *const trainer = open_trainer(n);
    const dp_script_setup setup = {.path = path,
                                   .trainer = trainer,
                                   .present = on_present,
                                   .copied = on_copied,
                                   .stepped = on_stepped};
    dp_script *door = NULL;
    dpnode *node = NULL;
    dp_why why = {{0}};
    must(weights != NULL, "no memory");
    must(dp_script_open(&door, &setup, &why) == DP_OK, why.text);
    const dpnode_tensor tensor = {"w", weights, 1, {(uint32_t)n}};
    must(dpnode_open(&node, path, &tensor, 1) == DPNODE_OK, dpnode_problem(NULL));
    dp_script_enter(door, false);
    dp_script_train(door, 1, 0);
    dp_script_leave(door, DP_SCRIPT_SAME);
    must(dpnode_look(node) == DPNODE_OK, "the look failed");
    const uint64_t begin = dp_now_us();
    for (int i = 0; i < LOOKS; i++) {
        must(dpnode_step(node, 0, 1.0) == DPNODE_OK, "the look failed");
    }
    printf("%zu million elements\n", n / 1000000);
    printf("a look with nothing due: %.3f us\n", milliseconds_since(begin) * 1000 / LOOKS);
    measure(door, node, weights, n);
    dpnode_close(node);
    dp_script_close(door);
    dp_trainer_close(trainer);
    dp_free(weights);
    return 0;
}
