#include "daemon/owner/card_use.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"

enum { PROCESSES_MAX = 64, SAMPLES_MAX = 256, NVML_OK = 0, NVML_TOO_SMALL = 7 };

/* As nvml.h of NVIDIA lays them out; their names there are in the strings below. */
typedef struct process {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance;
    unsigned compute_instance;
} process;

typedef struct sample {
    unsigned pid;
    unsigned long long at_us;
    unsigned percent; /* of the card's time */
    unsigned memory;
    unsigned encoder;
    unsigned decoder;
} sample;

struct dp_card_library {
    void *handle;
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *count);
    int (*by_index)(unsigned index, void **device);
    int (*computing)(void *device, unsigned *count, process *out);
    int (*load)(void *device, sample *out, unsigned *count, unsigned long long since_us);
};

typedef struct looking {
    dp_card_use *use;
    const char *root;
    uint32_t self;
    uint32_t script;
} looking;

static bool find(void *handle, const char *name, void *call)
{
    void *const symbol = dlsym(handle, name);
    memcpy(call, &symbol, sizeof symbol); /* ISO C has no cast from data to functions. */
    return symbol != NULL;
}

static bool library_open(struct dp_card_library *l)
{
    l->handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (l->handle == NULL) {
        return false;
    }
    const bool whole = find(l->handle, "nvmlInit_v2", &l->init) &&
                       find(l->handle, "nvmlShutdown", &l->shutdown) &&
                       find(l->handle, "nvmlDeviceGetCount_v2", &l->count) &&
                       find(l->handle, "nvmlDeviceGetHandleByIndex_v2", &l->by_index) &&
                       find(l->handle, "nvmlDeviceGetComputeRunningProcesses_v3", &l->computing) &&
                       find(l->handle, "nvmlDeviceGetProcessUtilization", &l->load);
    if (!whole || l->init() != NVML_OK) {
        dlclose(l->handle);
        return false;
    }
    return true;
}

/* Opens the library, or leaves it closed. */
static void open_once(dp_card_use *use)
{
    struct dp_card_library *const l = use->library == NULL ? dp_alloc(1, sizeof *l) : NULL;
    if (l != NULL && library_open(l)) {
        use->library = l;
    } else {
        dp_free(l);
    }
}

void dp_card_use_end(dp_card_use *use)
{
    if (use->library != NULL) {
        DP_IGNORE(use->library->shutdown() != NVML_OK); /* It is not used again. */
        dlclose(use->library->handle);
        dp_free(use->library);
        use->library = NULL;
    }
}

/* Is it a process of somebody else? */
static bool is_other(const looking *l, uint32_t pid, char name[DP_MACHINE_PROCESS_NAME_MAX])
{
    dp_machine_process is;
    char text[16];
    snprintf(text, sizeof text, "%u", pid);
    const bool is_there =
        dp_machine_process_read(l->root, text, &is) ||
        (l->root[0] == '\0' && kill((pid_t)pid, 0) != 0 && errno == EPERM); /* hidepid of proc(5) */
    dp_machine_process_name(l->root, pid, name);
    return is_there && strcmp(name, "dpnode-worker") != 0 &&
           !dp_machine_process_is_of(l->root, pid, l->self, l->script);
}

static void note_other(const looking *l, unsigned card, uint32_t pid, const char *name)
{
    l->use->used |= 1U << card;
    l->use->pid = pid;
    snprintf(l->use->name, sizeof l->use->name, "%s", name);
}

/* Programs with a compute context. */
static int look_at_computing(const looking *l, void *device, unsigned card)
{
    process found[PROCESSES_MAX];
    unsigned count = PROCESSES_MAX;
    const int told = l->use->library->computing(device, &count, found);
    if (told != NVML_OK || count > PROCESSES_MAX) {
        return told; /* So many programs: the list of the next look may be shorter. */
    }
    for (unsigned i = 0; i < count; i++) {
        char name[DP_MACHINE_PROCESS_NAME_MAX];
        if (is_other(l, found[i].pid, name)) {
            note_other(l, card, found[i].pid, name);
        } else if (dp_machine_process_is_of(l->root, found[i].pid, l->self, l->script)) {
            l->use->own |= 1U << card;
        }
    }
    return told;
}

/* The load of others since the last look. */
static void look_at_load(const looking *l, void *device, unsigned card)
{
    sample *const found = dp_alloc(SAMPLES_MAX, sizeof *found);
    unsigned count = SAMPLES_MAX;
    uint64_t newest = l->use->seen_us[card];
    if (found == NULL || l->use->library->load(device, found, &count, newest) != NVML_OK) {
        dp_free(found);
        return; /* The usual answer without a new sample. */
    }
    unsigned percent = 0;
    unsigned most = 0;
    for (unsigned i = 0; i < count && i < SAMPLES_MAX; i++) {
        char name[DP_MACHINE_PROCESS_NAME_MAX];
        newest = found[i].at_us > newest ? found[i].at_us : newest;
        if (found[i].percent > 0 && found[i].percent <= 100 && is_other(l, found[i].pid, name)) {
            percent += found[i].percent;
            if (found[i].percent > most && percent > DP_CARD_BUSY_PERCENT) {
                most = found[i].percent;
                note_other(l, card, found[i].pid, name);
            }
        }
    }
    l->use->seen_us[card] = newest;
    dp_free(found);
}

void dp_card_use_look(dp_card_use *use, const char *root, uint32_t self, uint32_t script)
{
    const looking l = {.use = use, .root = root, .self = self, .script = script};
    unsigned count = 0;
    int told = NVML_OK;
    open_once(use);
    use->used = 0;
    use->pid = 0;
    use->told = use->library != NULL && use->library->count(&count) == NVML_OK;
    for (unsigned card = 0; use->told && card < count && card < DP_CARDS_MAX; card++) {
        void *device = NULL;
        told = use->library->by_index(card, &device);
        if (told == NVML_OK) {
            told = look_at_computing(&l, device, card);
        }
        if (told == NVML_OK && (use->own & 1U << card) != 0) {
            look_at_load(&l, device, card);
        }
        use->told = told == NVML_OK || told == NVML_TOO_SMALL;
    }
    use->used &= use->own;
    use->pid = use->used != 0 ? use->pid : 0;
}

bool dp_card_yielding_pass(dp_card_yielding *yielding, const dp_card_use *use, uint64_t now_ms)
{
    const bool held = yielding->holds;
    if (use != NULL && use->used != 0) {
        yielding->holds = true;
        yielding->used_ms = now_ms;
    } else if (now_ms - yielding->used_ms >= DP_CARD_FREE_MS) {
        yielding->holds = false;
    }
    return yielding->holds != held;
}
