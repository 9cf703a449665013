/* A plugin that does what the variable DP_FAULT says, and else what the CPU does. "late-..."
 * happens after some steps of an engine that is not the self-test's. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compute/backend/backend_cpu.h"
#include "compute/backend/plugin.h"

enum { LATE = 5 };

const dp_backend *dp_backend_query(uint32_t version);

static unsigned steps; /* of the engine made last */
static bool tested;    /* it is the self-test's */
static const char *sentence = "";

static bool fault(const char *name)
{
    const char *const wanted = getenv("DP_FAULT"); /* Nobody sets it meanwhile. */
    return wanted != NULL && strcmp(wanted, name) == 0;
}

static bool is_late(void)
{
    return !tested && steps > LATE;
}

static uint32_t no_devices(dp_why *why)
{
    DP_IGNORE(dp_why_set(why, DP_NOTFOUND, "there is no card in this machine"));
    return 0;
}

static dp_status create(dp_engine **out, const dp_engine_setup *setup, dp_why *why)
{
    steps = 0;
    tested = setup->shared;
    sentence = "";
    if (fault("load-crash") && !tested) {
        abort();
    }
    if (fault("create")) {
        return dp_why_set(why, DP_TOOBIG, "the card is too small");
    }
    return dp_backend_cpu()->create(out, setup, why);
}

/* Documents of a row that see each other; the same tokens otherwise. */
static const uint32_t *without_marks(const dp_gpt_batch *batch)
{
    static uint32_t tokens[1 << 12];
    const size_t n = batch->rows * batch->length;
    for (size_t i = 0; i < n && i < sizeof tokens / sizeof tokens[0]; i++) {
        tokens[i] = dp_token_of(batch->x[i]);
    }
    return n <= sizeof tokens / sizeof tokens[0] ? tokens : batch->x;
}

static dp_status step(dp_engine *e, const dp_gpt_batch *batch, float scale, double *loss_sum)
{
    steps++;
    if (fault("crash")) {
        abort();
    }
    while (fault("hang")) {
        pause();
    }
    if (fault("exit")) {
        _exit(3);
    }
    if (fault("late-gone") && is_late()) {
        sentence = "the card has fallen off the bus";
        return DP_IO;
    }
    dp_gpt_batch taken = *batch;
    if (fault("documents")) {
        taken.x = without_marks(batch);
    }
    DP_TRY(dp_backend_cpu()->step(e, &taken, scale, loss_sum));
    if (fault("nan") || (fault("late-nan") && is_late())) {
        *loss_sum = (double)NAN;
    }
    if (fault("wrong")) {
        *loss_sum *= 1.01;
    }
    return DP_OK;
}

static const char *problem(const dp_engine *e)
{
    (void)e;
    return sentence;
}

static dp_status add(dp_engine *e, dp_vector to, dp_vector from)
{
    DP_TRY(dp_backend_cpu()->add(e, to, from));
    if (fault("bit")) {
        /* One unit in the last place of one element, the least that there is. */
        dp_optim_vector lent[DP_BACKEND_STATE_MAX];
        if (to == DP_VECTOR_X && dp_backend_cpu()->lend_state(e, lent) > 0) {
            lent[0].values[5] = nextafterf(lent[0].values[5], 2.0F);
        }
    }
    return DP_OK;
}

static dp_status encode(dp_engine *e, dp_vector from, const dp_codec *codec, dp_view *blob)
{
    DP_TRY(dp_backend_cpu()->encode(e, from, codec, blob));
    if (fault("late-blob") && is_late()) {
        blob->size--;
    }
    return DP_OK;
}

static dp_status encode_take(dp_engine *e, dp_view *blob, const float **values)
{
    DP_TRY(dp_backend_cpu()->encode_take(e, blob, values));
    if (fault("late-blob") && is_late()) {
        blob->size--;
    }
    return DP_OK;
}

__attribute__((visibility("default"))) const dp_backend *dp_backend_query(uint32_t version)
{
    static dp_backend faulty;
    faulty = *dp_backend_cpu();
    faulty.name = "faulty";
    faulty.devices = fault("device") ? no_devices : faulty.devices;
    faulty.create = create;
    faulty.problem = problem;
    faulty.add = add;
    faulty.step = fault("hole") ? NULL : step;
    faulty.encode = encode;
    faulty.encode_take = encode_take;
    faulty.version += fault("version");
    faulty.magic += fault("magic");
    faulty.layout[3] += fault("layout") ? 8 : 0;
    return fault("refuse") || version != DP_BACKEND_VERSION ? NULL : &faulty;
}
