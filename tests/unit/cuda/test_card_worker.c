/* A worker that computes on the emulated card, as a daemon sees it. */
#include "compute/backend/backend.h"

#include "tests/cuda/fake_cuda.h"
#include "tests/unit/compute/worker_kit.h"

const dp_backend *dp_backend_query(uint32_t version);

static peer card_peer(const fake_cuda *fake)
{
    fake_cuda_set(fake);
    const peer p = start_with(
        &(dp_worker_options){.threads = 1, .backend = dp_backend_query(DP_BACKEND_VERSION)});
    CHECK(open_run(&p, 1) > 0);
    init(&p);
    return p;
}

/* The engine's block is the first memory of the card; the blob's is the second, and the host
 * encodes. */
static void a_round_by_the_host_leaves_no_reason_behind_for_later_refusals(void **state)
{
    (void)state;
    const peer p = card_peer(&(fake_cuda){.alloc_at = 2});
    train_until(&p, 1, 1);
    const answer published = publish(&p, 1);
    const dp_view junk = dp_view_text("no blob");
    const dp_trainer_msg bad = record_of(1, DP_SETTLE_NONE, 1);
    send_views(&p, &bad, &junk, 1);
    const answer refused = expect(&p, DP_TRAINER_FAILED);
    CHECK(strstr(refused.msg.text, "memory") == NULL);
    CHECK(strstr(refused.msg.text, "(DP_BADMSG)") != NULL);
    const dp_trainer_msg record = record_of(1, DP_SETTLE_INCLUDED, 1);
    apply(&p, &record, published.fds); /* It lives, and knows its publication. */
    release(&published);
    train_until(&p, 2, 1);
    stop(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_by_the_host_leaves_no_reason_behind_for_later_refusals),
    };
    return cmocka_run_group_tests(tests, make_files, drop_files);
}
