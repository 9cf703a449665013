/* libdpnode_cuda.so as the worker meets it, where this build has made it: it loads without any
 * library of NVIDIA's, says in one sentence that there is no card, and plans for one that is not
 * there. */
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "compute/backend/plugin.h"
#include "tests/lib/check.h"

enum { CHECK_MS = 60 * 1000 };

static char path[PATH_MAX];

/* plugins/libdpnode_cuda.so beside this program. */
static bool find(void)
{
    static const char name[] = "/plugins/libdpnode_cuda.so";
    const ssize_t size = readlink("/proc/self/exe", path, PATH_MAX - sizeof name);
    path[size > 0 ? size : 0] = '\0';
    char *const slash = strrchr(path, '/');
    if (slash == NULL) {
        return false;
    }
    memcpy(slash, name, sizeof name);
    return access(path, R_OK) == 0;
}

static void it_loads_and_has_a_card_or_a_sentence(void **state)
{
    (void)state;
    dp_why why = {{0}};
    if (!find()) {
        skip();
    }
    const dp_status status = dp_plugin_try(path, 0, CHECK_MS, &why);
    if (status != DP_OK) {
        CHECK_STATUS(status, DP_UNSUPPORTED);
        CHECK(strstr(why.text, "finds no device: ") != NULL);
        CHECK(strstr(why.text, "no driver") != NULL || strstr(why.text, "too old") != NULL ||
              strstr(why.text, "card") != NULL);
    }
}

static dp_status plan_for(const char *preset, uint64_t budget, dp_plan *plan, dp_why *why)
{
    dp_manifest manifest;
    const dp_backend *backend = NULL;
    DP_TRY(dp_plugin_load(path, &backend, why));
    dp_manifest_default(&manifest);
    dp_manifest_set_model(&manifest, &dp_model_preset_find(preset)->config);
    manifest.precision = DP_PRECISION_BF16;
    const dp_plan_request request = {.manifest = &manifest, .budget = budget};
    return backend->plan(0, &request, plan, why);
}

static void a_plan_needs_no_card(void **state)
{
    (void)state;
    static const struct {
        uint64_t budget;
        bool fits;
    } cards[] = {{(uint64_t)1 << 30, false}, {(uint64_t)8 << 30, true}, {(uint64_t)80 << 30, true}};
    if (!find()) {
        skip();
    }
    for (size_t i = 0; i < sizeof cards / sizeof cards[0]; i++) {
        dp_why why = {{0}};
        dp_plan plan;
        const dp_status status = plan_for("gpt2-124m", cards[i].budget, &plan, &why);
        CHECK_STATUS(status, cards[i].fits ? DP_OK : DP_TOOBIG);
        CHECK((plan.rows > 0) == cards[i].fits && (plan.total <= cards[i].budget) == cards[i].fits);
        CHECK(cards[i].fits || strstr(why.text, "end what else uses the card") != NULL);
        CHECK(plan.total == plan.weights + plan.gradients + plan.moments + plan.anchors +
                                plan.packed + plan.buffers + plan.activations);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_loads_and_has_a_card_or_a_sentence),
        cmocka_unit_test(a_plan_needs_no_card),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
