/* The command OPEN: opens the trainer with its data, on the backend or on the CPU in its place. */
#include <stdio.h>
#include <string.h>

#include "compute/backend/backend_cpu.h"
#include "compute/backend/process_group_cards.h"
#include "compute/cpu/ops.h"
#include "compute/machine/pool.h"
#include "compute/text/bpe.h"
#include "compute/worker/worker_inside.h"

enum { PROCESSES_TEXT_MAX = 32 };

static void unmap_shards(dp_worker *w)
{
    for (uint32_t i = 0; i < DP_WORKER_SHARDS_MAX; i++) {
        dp_memfd_unmap(w->shards[i]);
        w->shards[i] = dp_view_of(NULL, 0);
    }
}

/* Opens the trainer on the backend of setup, or on the CPU if the backend cannot hold the model. */
static dp_status open_somewhere(dp_worker *w, dp_trainer_setup *setup, dp_why *why)
{
    const dp_status status = dp_trainer_open(&w->trainer, setup, why);
    if (status == DP_OK || setup->backend == NULL || setup->backend == dp_backend_cpu()) {
        return status;
    }
    dp_why sentence = {{0}};
    DP_IGNORE(dp_why_set(&sentence, status, "%.400s; the CPU computes instead",
                         why->text[0] != '\0' ? why->text : dp_status_text(status)));
    setup->backend = NULL;
    DP_TRY(dp_trainer_open(&w->trainer, setup, why));
    if (w->options.tell != NULL) {
        w->options.tell(sentence.text);
    }
    return DP_OK;
}

/* Maps the files after the second, which are the shards and with adapters the base. After DP_OK
 * they stay mapped until the trainer is closed. */
static dp_status open_trainer(dp_worker *w, const dp_worker_command *c, dp_trainer_setup *setup,
                              dp_why *why)
{
    dp_status status = DP_OK;
    for (uint32_t i = DP_WORKER_OPEN_FDS; i < c->n_fds && status == DP_OK; i++) {
        status = dp_memfd_map(c->fds[i], DP_OBJECT_BYTES_MAX, &w->shards[i - DP_WORKER_OPEN_FDS]);
    }
    if (status == DP_OK) {
        dp_manifest manifest;
        setup->shards = w->shards;
        setup->n_shards = c->n_fds - DP_WORKER_OPEN_FDS;
        if (dp_manifest_decode(&manifest, setup->manifest) == DP_OK &&
            dp_manifest_adapts(&manifest) && setup->n_shards > 0) {
            setup->n_shards--; /* The last file is no shard. */
            setup->base = w->shards[setup->n_shards];
        }
        status = open_somewhere(w, setup, why);
    }
    if (status != DP_OK) {
        unmap_shards(w);
    }
    return status;
}

/* The device that computes, as text; the trainer is open. */
static void name_device(const dp_trainer_setup *setup, dp_precision_kind precision, char *text,
                        size_t size)
{
    dp_device device = {.name = ""};
    dp_why why;
    if (setup->backend == NULL || setup->backend == dp_backend_cpu()) {
        const size_t threads = setup->threads != 0 ? setup->threads : dp_pool_threads_default();
        const uint32_t processes =
            setup->team != NULL ? dp_process_group_processes(setup->team) : 1;
        char each[PROCESSES_TEXT_MAX] = "";
        if (processes > 1) {
            snprintf(each, sizeof each, "%u processes of ", processes);
        }
        snprintf(text, size, "cpu: %s, %s%zu thread%s",
                 dp_ops_best_in(dp_precision_of_kind(precision))->name, each, threads,
                 threads == 1 ? "" : "s");
        return;
    }
    const bool told = setup->backend->device(setup->device, &device, &why) == DP_OK;
    char cards[PROCESSES_TEXT_MAX] = "";
    if (dp_process_group_serves(setup->team, setup->backend)) {
        snprintf(cards, sizeof cards, "%u cards, the first ",
                 dp_process_group_processes(setup->team));
    }
    snprintf(text, size, "%s: %s%s", setup->backend->name, cards, told ? device.name : "?");
}

dp_status dp_worker_open_trainer(dp_worker *w, const dp_worker_command *c, dp_why *why)
{
    if (w->trainer != NULL) {
        return dp_why_set(why, DP_EXISTS, "this trainer is open already");
    }
    dp_trainer_setup setup = {.threads = w->options.threads,
                              .backend = w->options.backend,
                              .device = w->options.device,
                              .card_share = w->options.vram_share,
                              .team = w->options.team,
                              .alive = dp_worker_alive,
                              .context = w};
    memcpy(setup.member, c->msg.member, sizeof setup.member);
    setup.seed = c->msg.seed;
    DP_TRY(dp_memfd_map(c->fds[0], DP_MANIFEST_BYTES_MAX, &setup.manifest));
    dp_status status = dp_memfd_map(c->fds[1], DP_BPE_JSON_BYTES_MAX, &setup.tokenizer);
    if (status == DP_OK) {
        status = open_trainer(w, c, &setup, why);
        dp_memfd_unmap(setup.tokenizer);
    }
    dp_memfd_unmap(setup.manifest);
    DP_TRY(status);
    if (dp_manifest_external(dp_trainer_manifest(w->trainer))) { /* It has taken neither. */
        setup.backend = NULL;
        setup.team = NULL;
    }
    if (dp_manifest_adapts(dp_trainer_manifest(w->trainer))) { /* One process trains them. */
        setup.team = NULL;
    }
    w->backend = setup.backend != NULL ? setup.backend : dp_backend_cpu();
    dp_worker_keep_files(w, c);
    atomic_store(&w->elements, dp_trainer_elements(w->trainer));
    dp_trainer_msg reply = {.kind = DP_TRAINER_OPENED, .elements = dp_trainer_elements(w->trainer)};
    name_device(&setup, dp_trainer_manifest(w->trainer)->precision, reply.text, sizeof reply.text);
    return dp_worker_answer(w, &reply, NULL, 0);
}

void dp_worker_drop_trainer(dp_worker *w)
{
    dp_sensor_look_close(w->sensors);
    w->sensors = NULL;
    dp_script_close(w->script);
    w->script = NULL;
    dp_run_files_close(&w->files);
    dp_trainer_close(w->trainer);
    w->trainer = NULL;
    unmap_shards(w);
}
