#include "compute/model/zero.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/cpu/ops.h"

enum { PAGE = 4096 };

static const uint64_t magic = 0x00316f72657a5044U; /* "DPzero1" and a NUL */

/* Contents of the first pages. */
struct header {
    uint64_t magic;
    uint64_t elements;
    uint32_t processes;
    uint32_t lanes;
    uint32_t kind;
    uint32_t weights;
    dp_process_barrier gate;
    dp_optim_options
        options[DP_PROCESS_BARRIER_PROCESSES_MAX]; /* of each process, for the running step */
    double losses[DP_ZERO_LANES_MAX];
};

struct dp_zero {
    dp_zero_setup setup;
    dp_optim optim;
    dp_pool *pool;
    size_t n;
    struct header *header; /* the mapping */
    size_t bytes;
    float *lanes;
    float *params;
    double *partial;
    size_t first_block; /* of the blocks whose lanes this process sums */
    size_t last_block;
    bool entered;
};

static size_t pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static size_t bytes_of(size_t n, size_t lanes)
{
    return pages(sizeof(struct header)) + (lanes + 1) * pages(n * sizeof(float)) +
           pages((dp_norm_blocks(n) + DP_PROCESS_BARRIER_PROCESSES_MAX) *
                 sizeof(double)); /* of parts too */
}

static dp_status check_setup(const dp_zero_setup *setup)
{
    const bool possible =
        setup->processes > 0 && setup->processes <= DP_PROCESS_BARRIER_PROCESSES_MAX &&
        setup->lanes >= setup->processes && setup->lanes <= DP_ZERO_LANES_MAX &&
        setup->rank < setup->processes && (setup->card == NULL || setup->lanes == setup->processes);
    return possible ? DP_OK : DP_BADARG;
}

static struct header header_of(const dp_zero_setup *setup)
{
    return (struct header){.magic = magic,
                           .elements = setup->optim.model->n_elements,
                           .processes = setup->processes,
                           .lanes = setup->lanes,
                           .kind = (uint32_t)setup->optim.kind,
                           .weights = (uint32_t)setup->optim.weights};
}

/* ---- Making and joining. */

static dp_status fill_header(int fd, const dp_zero_setup *setup)
{
    void *const memory =
        mmap(NULL, sizeof(struct header), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        return DP_NOMEM;
    }
    struct header *const header = memory;
    const struct header wanted = header_of(setup);
    memcpy(header, &wanted, offsetof(struct header, gate));
    const dp_status status = dp_process_barrier_make(&header->gate, setup->processes);
    munmap(memory, sizeof(struct header));
    return status;
}

dp_status dp_zero_make(int *fd, const dp_zero_setup *setup)
{
    DP_TRY(check_setup(setup));
    const size_t bytes = bytes_of(setup->optim.model->n_elements, setup->lanes);
    const int made = memfd_create("dpnode-zero", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (made < 0) {
        return DP_IO;
    }
    dp_status status = DP_OK;
    if (ftruncate(made, (off_t)bytes) != 0 ||
        fcntl(made, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        status = DP_IO;
    }
    if (status == DP_OK) {
        status = fill_header(made, setup);
    }
    if (status != DP_OK) {
        close(made);
        return status;
    }
    *fd = made;
    return DP_OK;
}

static dp_status map_memory(dp_zero *s, int fd, dp_why *why)
{
    struct stat stat;
    if (fstat(fd, &stat) != 0) {
        return DP_IO;
    }
    s->bytes = bytes_of(s->n, s->setup.lanes);
    if (stat.st_size < 0 || (size_t)stat.st_size != s->bytes) {
        return dp_why_set(why, DP_BADARG, "the shared memory has %lld bytes; this model needs %zu",
                          (long long)stat.st_size, s->bytes);
    }
    void *const memory = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        return DP_NOMEM;
    }
    s->header = memory;
    const struct header wanted = header_of(&s->setup);
    if (memcmp(s->header, &wanted, offsetof(struct header, gate)) != 0) {
        return dp_why_set(why, DP_BADARG,
                          "the shared memory was made for another model, optimizer or number of "
                          "processes");
    }
    char *at = (char *)memory + pages(sizeof(struct header));
    s->lanes = (float *)(void *)at;
    at += s->setup.lanes * pages(s->n * sizeof(float));
    s->params = (float *)(void *)at;
    at += pages(s->n * sizeof(float));
    s->partial = (double *)(void *)at;
    return DP_OK;
}

static dp_status take_place(dp_zero *s, dp_why *why)
{
    const dp_status status = dp_process_barrier_enter(&s->header->gate, s->setup.rank);
    if (status != DP_OK) {
        return dp_why_set(why, status, "place %u of the %u processes is taken or was",
                          s->setup.rank, s->setup.processes);
    }
    s->entered = true;
    return DP_OK;
}

/* Only the bounds of the part, where the elements are on a card. */
static dp_status init_optim(dp_zero *s)
{
    dp_optim_setup own = s->setup.optim;
    own.part = s->setup.rank;
    own.parts = s->setup.processes;
    if (s->setup.card == NULL) {
        return dp_optim_init(&s->optim, &own);
    }
    own.kind = own.kind == 0 ? DP_OPTIM_ADAMW : own.kind;
    if (own.kind < DP_OPTIM_ADAMW || own.kind > DP_OPTIM_LAST) {
        return DP_BADARG;
    }
    s->optim = (dp_optim){.setup = own,
                          .first = dp_optim_cut(own.kind, own.model, own.parts, own.part),
                          .last = dp_optim_cut(own.kind, own.model, own.parts, own.part + 1)};
    return DP_OK;
}

dp_status dp_zero_join(dp_zero **out, int fd, const dp_zero_setup *setup, dp_pool *pool,
                       dp_why *why)
{
    DP_TRY(check_setup(setup));
    dp_zero *const s = dp_alloc(1, sizeof *s);
    if (s == NULL) {
        return DP_NOMEM;
    }
    s->setup = *setup;
    s->pool = pool;
    s->n = setup->optim.model->n_elements;
    const size_t blocks = dp_norm_blocks(s->n);
    s->first_block = blocks * setup->rank / setup->processes;
    s->last_block = blocks * (setup->rank + 1) / setup->processes;
    dp_status status = init_optim(s);
    if (status == DP_OK) {
        status = map_memory(s, fd, why);
    }
    if (status == DP_OK) {
        status = take_place(s, why);
    }
    if (status != DP_OK) {
        dp_zero_close(s);
        return status;
    }
    *out = s;
    return DP_OK;
}

void dp_zero_close(dp_zero *s)
{
    if (s == NULL) {
        return;
    }
    if (s->entered) {
        dp_process_barrier_leave(&s->header->gate, s->setup.rank);
    }
    if (s->header != NULL) {
        munmap(s->header, s->bytes);
    }
    dp_optim_close(&s->optim);
    dp_free(s);
}

/* ---- Lanes. */

static float *lane_at(const dp_zero *s, size_t lane)
{
    return s->lanes + lane * (pages(s->n * sizeof(float)) / sizeof(float));
}

uint32_t dp_zero_lanes(const dp_zero *s, uint32_t *first)
{
    const uint32_t lanes = s->setup.lanes;
    *first = lanes * s->setup.rank / s->setup.processes;
    return lanes * (s->setup.rank + 1) / s->setup.processes - *first;
}

dp_zero_lane dp_zero_lane_of(dp_zero *s, uint32_t lane)
{
    uint32_t first;
    const uint32_t count = dp_zero_lanes(s, &first);
    dp_assert(lane >= first && lane < first + count);
    return (dp_zero_lane){.grads = lane_at(s, lane), .loss = &s->header->losses[lane]};
}

/* ---- The step. */

static dp_status meet(dp_zero *s, const char *what, dp_why *why)
{
    uint32_t culprit = 0;
    const dp_status status =
        dp_process_barrier_wait(&s->header->gate, s->setup.rank, s->setup.wait_us, &culprit);
    if (status == DP_TIMEOUT) {
        return dp_why_set(why, status, "process %u of %u did not come %s within %llu ms", culprit,
                          s->setup.processes, what, (unsigned long long)(s->setup.wait_us / 1000U));
    }
    if (status != DP_OK) {
        return dp_why_set(why, status, "process %u of %u is gone, noticed %s; start all again",
                          culprit, s->setup.processes, what);
    }
    return DP_OK;
}

/* Leaves the barrier after a failure, so that other processes do not wait for this one. */
static dp_status give_up(dp_zero *s, dp_status status)
{
    if (status != DP_OK && status != DP_DIVERGED && s->entered) {
        dp_process_barrier_leave(&s->header->gate, s->setup.rank);
        s->entered = false;
    }
    return status;
}

bool dp_zero_is_over(void *zero)
{
    const dp_zero *const s = zero;
    return !s->entered || dp_process_barrier_is_over(&s->header->gate, s->setup.rank);
}

/* Elements [first, last) of the tree over the lanes, cut at blocks from first on. */
struct tree_job {
    const dp_zero *s;
    size_t first;
    size_t last;
};

static void tree_task(void *ctx, size_t index, size_t worker)
{
    const struct tree_job *const job = ctx;
    const dp_zero *const s = job->s;
    (void)worker;
    const size_t first = job->first + index * DP_NORM_BLOCK;
    const size_t count = job->last - first < DP_NORM_BLOCK ? job->last - first : DP_NORM_BLOCK;
    const dp_ops *const ops = dp_ops_best();
    for (size_t step = 1; step < s->setup.lanes; step *= 2) {
        for (size_t lane = 0; lane + step < s->setup.lanes; lane += 2 * step) {
            ops->add(lane_at(s, lane + step) + first, lane_at(s, lane) + first, count);
        }
    }
}

static void add_lanes(const dp_zero *s, size_t first, size_t last)
{
    struct tree_job job = {.s = s, .first = first, .last = last};
    dp_pool_run(s->pool, dp_norm_blocks(last - first), tree_task, &job);
}

static double tree_of(const double *values, size_t count)
{
    double sums[DP_ZERO_LANES_MAX];
    memcpy(sums, values, count * sizeof *sums);
    for (size_t step = 1; step < count; step *= 2) {
        for (size_t lane = 0; lane + step < count; lane += 2 * step) {
            sums[lane] += sums[lane + step];
        }
    }
    return sums[0];
}

/* Blocks of all parts before this one. */
static size_t blocks_before(const dp_zero *s, size_t part)
{
    const dp_optim_setup *const o = &s->optim.setup;
    size_t blocks = 0;
    for (size_t p = 0; p < part; p++) {
        blocks += dp_norm_blocks(dp_optim_cut(o->kind, o->model, o->parts, p + 1) -
                                 dp_optim_cut(o->kind, o->model, o->parts, p));
    }
    return blocks;
}

/* Sums the own part of the gradients, and the squares of the result. */
static dp_status sum_up(dp_zero *s, dp_why *why)
{
    const dp_zero_card *const card = s->setup.card;
    const size_t first = s->optim.first;
    if (card == NULL) {
        const size_t end = s->last_block * DP_NORM_BLOCK;
        add_lanes(s, s->first_block * DP_NORM_BLOCK, end < s->n ? end : s->n);
        dp_norm_part(lane_at(s, 0), s->n, s->partial, s->first_block, s->last_block, s->pool);
        return DP_OK;
    }
    if (!card->linked) {
        add_lanes(s, first, s->optim.last);
    }
    return card->sum(card->context, card->linked ? NULL : lane_at(s, 0) + first,
                     s->partial + blocks_before(s, s->setup.rank), why);
}

static double norm_of(const dp_zero *s)
{
    const size_t blocks =
        s->setup.card == NULL ? dp_norm_blocks(s->n) : blocks_before(s, s->setup.processes);
    return dp_norm_of(s->partial, blocks * DP_NORM_BLOCK);
}

dp_status dp_zero_reduce(dp_zero *s, double *norm, double *loss, dp_why *why)
{
    const dp_zero_card *const card = s->setup.card;
    if (card != NULL && !card->linked) {
        DP_TRY(give_up(s, card->give(card->context, lane_at(s, s->setup.rank), why)));
    }
    DP_TRY(meet(s, "with its gradients", why));
    DP_TRY(give_up(s, sum_up(s, why)));
    const double sum = tree_of(s->header->losses, s->setup.lanes);
    DP_TRY(meet(s, "with its sums", why));
    *norm = norm_of(s);
    *loss = sum;
    return DP_OK;
}

/* Copies the parts of the other processes. */
static void gather(const dp_zero *s, float *params)
{
    const size_t first = s->optim.first;
    const size_t last = s->optim.last;
    memcpy(params, s->params, first * sizeof *params);
    memcpy(params + last, s->params + last, (s->n - last) * sizeof *params);
}

_Static_assert(sizeof(dp_optim_options) == 8 * sizeof(float), "its bytes are its values");

static bool options_agree(const dp_zero *s, const dp_optim_options *options)
{
    for (uint32_t i = 0; i < s->setup.processes; i++) {
        /* The same bits are wanted. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
        if (memcmp(&s->header->options[i], options, sizeof *options) != 0) {
            return false;
        }
    }
    return true;
}

static dp_status move_card(dp_zero *s, const dp_optim_options *options, double norm, dp_why *why)
{
    const dp_zero_card *const card = s->setup.card;
    return give_up(s,
                   card->move(card->context, options, norm, card->linked ? NULL : s->params, why));
}

dp_status dp_zero_update(dp_zero *s, float *params, const dp_optim_options *options, double norm,
                         dp_why *why)
{
    const dp_zero_card *const card = s->setup.card;
    const size_t first = s->optim.first;
    const size_t size = (s->optim.last - first) * sizeof *params;
    float *const kept = s->params + first;
    dp_status status;
    s->header->options[s->setup.rank] = *options;
    if (card != NULL) {
        status = move_card(s, options, norm, why);
    } else {
        /* The step moves the copy that is shared; params follow when all have come through. */
        memcpy(kept, params + first, size);
        status = dp_optim_step_with(&s->optim, s->params, lane_at(s, 0), options, s->pool, norm);
    }
    if (!s->entered) {
        return status;
    }
    DP_TRY(meet(s, "with its part of the weights", why));
    if (!options_agree(s, options)) {
        return dp_why_set(why, DP_BADARG,
                          "the processes do not agree on the options of the step; start all again");
    }
    DP_TRY(status);
    if (card != NULL) {
        return give_up(s, card->take(card->context, card->linked ? NULL : s->params, why));
    }
    memcpy(params + first, kept, size);
    gather(s, params);
    return DP_OK;
}

uint32_t dp_zero_lanes_all(const dp_zero *s)
{
    return s->setup.lanes;
}

float *dp_zero_shared(dp_zero *s)
{
    return s->params;
}

dp_optim *dp_zero_optim(dp_zero *s)
{
    return &s->optim;
}
