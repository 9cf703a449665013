/* Leases: a state that peers are fetching stays a while longer than its checkpoint. A lease is a
 * pin whose round is the time it was given, in seconds of the caller's clock. */
#include "store/ckpt.h"
#include "store/inside.h"

struct lease {
    const dp_hash *run;
    const dp_hash *object;
    uint64_t given; /* in the row that stands; 0: none */
    uint64_t now_s;
    uint32_t others; /* leases of other states */
};

static dp_status count(dp_store *store, struct lease *lease)
{
    static const char sql[] =
        "SELECT root,max(round) FROM pin WHERE run=? AND kind=? GROUP BY root";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, lease->run);
    dp_bind_i64(&query, DP_PIN_LEASE);
    dp_status status = dp_query_next(&query);
    while (status == DP_OK) {
        const dp_hash root = dp_column_hash(&query, 0);
        if (dp_hash_equal(&root, lease->object)) {
            lease->given = dp_column_u64(&query, 1);
        } else {
            lease->others++;
        }
        status = dp_query_next(&query);
    }
    return status == DP_NOTFOUND ? DP_OK : status;
}

static dp_status is_state(dp_store *store, const struct lease *lease)
{
    static const char sql[] = "SELECT 1 FROM ckpt WHERE run=? AND object=? AND state IN(1,2)";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, lease->run);
    dp_bind_hash(&query, lease->object);
    const dp_status status = dp_query_next(&query);
    if (status == DP_OK) {
        dp_query_end(&query);
    }
    return status;
}

static dp_status lease_body(dp_store *store, void *context)
{
    const struct lease *lease = (const struct lease *)context;
    const dp_pin pin = {.run = *lease->run, .kind = DP_PIN_LEASE, .round = lease->now_s};
    if (lease->given != 0) {
        const dp_pin old = {.run = *lease->run, .kind = DP_PIN_LEASE, .round = lease->given};
        DP_TRY(dp_object_unpin(store, lease->object, &old));
    }
    return dp_object_pin(store, lease->object, &pin);
}

dp_status dp_ckpt_lease(dp_store *store, const dp_hash *run, const dp_hash *object, uint64_t now_s)
{
    struct lease lease = {.run = run, .object = object, .now_s = now_s};
    DP_TRY(count(store, &lease));
    if (lease.given != 0 && now_s < lease.given + DP_LEASE_S / 3) {
        return DP_OK;
    }
    if (lease.given == 0) {
        DP_TRY(is_state(store, &lease));
        if (lease.others >= DP_LEASES_MAX) {
            return DP_TOOBIG;
        }
    }
    return dp_store_atomically(store, lease_body, &lease);
}

dp_status dp_ckpt_end_leases(dp_store *store, const dp_hash *run, uint64_t now_s)
{
    return now_s <= DP_LEASE_S ? DP_OK
                               : dp_object_prune(store, run, DP_PIN_LEASE, now_s - DP_LEASE_S);
}

/* ---- from one life to the next ---- */

struct carry {
    const dp_hash *run;
    uint64_t now_s;
};

/* The object with the highest id was begun last. DP_NOTFOUND. */
static dp_status find_fetched(dp_store *store, const dp_hash *run, dp_hash *root)
{
    static const char sql[] = "SELECT o.root FROM object o JOIN pin p ON p.root=o.root"
                              " WHERE p.run=? AND (p.kind=? AND p.round=0 OR p.kind=? AND"
                              " o.complete=0) ORDER BY o.id DESC LIMIT 1";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, run);
    dp_bind_i64(&query, DP_PIN_STATE);
    dp_bind_i64(&query, DP_PIN_LEASE);
    DP_TRY(dp_query_next(&query));
    *root = dp_column_hash(&query, 0);
    dp_query_end(&query);
    return DP_OK;
}

static dp_status carry_body(dp_store *store, void *context)
{
    const struct carry *carry = (const struct carry *)context;
    const dp_pin pin = {.run = *carry->run, .kind = DP_PIN_LEASE, .round = carry->now_s};
    dp_hash root;
    const dp_status found = find_fetched(store, carry->run, &root);
    if (found != DP_OK && found != DP_NOTFOUND) {
        return found;
    }
    DP_TRY(dp_object_prune(store, carry->run, DP_PIN_STATE, INT64_MAX));
    DP_TRY(dp_object_prune(store, carry->run, DP_PIN_LEASE, INT64_MAX));
    return found == DP_OK ? dp_object_pin(store, &root, &pin) : DP_OK;
}

dp_status dp_ckpt_carry_over(dp_store *store, const dp_hash *run, uint64_t now_s)
{
    struct carry carry = {.run = run, .now_s = now_s};
    return dp_store_atomically(store, carry_body, &carry);
}
