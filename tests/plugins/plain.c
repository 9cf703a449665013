/* A second CPU backend as a plugin, behind the same table: operations without a processor's own
 * instructions. The self-test of the reference would take most of a minute beside other tests. */
#include "compute/backend/backend_cpu.h"
#include "compute/backend/plugin.h"

const dp_backend *dp_backend_query(uint32_t version);

static dp_status create(dp_engine **out, const dp_engine_setup *setup, dp_why *why)
{
    const dp_precision precision = dp_precision_of_kind(setup->precision);
    return dp_backend_cpu_create(out, setup, dp_ops_at_in(precision, 1), why);
}

__attribute__((visibility("default"))) const dp_backend *dp_backend_query(uint32_t version)
{
    static dp_backend plain;
    if (version != DP_BACKEND_VERSION) {
        return NULL;
    }
    plain = *dp_backend_cpu();
    plain.name = "plain";
    plain.create = create;
    return &plain;
}
