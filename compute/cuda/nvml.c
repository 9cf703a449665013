#include "compute/cuda/nvml.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum { PROCESSES_MAX = 64, MILLIWATTS = 1000, SENSOR_OF_GPU = 0, NVML_OK = 0, NVML_TOO_SMALL = 7 };

/* As nvml.h of NVIDIA lays them out; their names there are in the strings below. */
typedef struct utilization {
    unsigned gpu; /* percent of the last second in which some kernel ran */
    unsigned memory;
} utilization;

typedef struct memory {
    unsigned long long total; /* bytes */
    unsigned long long unused;
    unsigned long long used;
} memory;

typedef struct process {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance;
    unsigned compute_instance;
} process;

typedef struct library {
    void *handle;
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_bus)(const char *bus, void **device);
    int (*temperature)(void *device, int sensor, unsigned *celsius);
    int (*power)(void *device, unsigned *milliwatts);
    int (*rates)(void *device, utilization *out);
    int (*memory)(void *device, memory *out);
    int (*processes)(void *device, unsigned *count, process *out);
} library;

/* False when it is not there or lacks a call. */
static bool find(void *handle, const char *name, void *call)
{
    void *const symbol = dlsym(handle, name);
    memcpy(call, &symbol, sizeof symbol); /* ISO C has no cast from data to functions. */
    return symbol != NULL;
}

static bool library_open(library *l)
{
    *l = (library){.handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
    if (l->handle == NULL) {
        return false;
    }
    const bool whole = find(l->handle, "nvmlInit_v2", &l->init) &&
                       find(l->handle, "nvmlShutdown", &l->shutdown) &&
                       find(l->handle, "nvmlDeviceGetHandleByPciBusId_v2", &l->by_bus) &&
                       find(l->handle, "nvmlDeviceGetTemperature", &l->temperature) &&
                       find(l->handle, "nvmlDeviceGetPowerUsage", &l->power) &&
                       find(l->handle, "nvmlDeviceGetUtilizationRates", &l->rates) &&
                       find(l->handle, "nvmlDeviceGetMemoryInfo", &l->memory) &&
                       find(l->handle, "nvmlDeviceGetComputeRunningProcesses_v3", &l->processes);
    if (!whole || l->init() != NVML_OK) {
        dlclose(l->handle);
        return false;
    }
    return true;
}

static void library_close(library *l)
{
    l->shutdown();
    dlclose(l->handle);
}

static uint32_t others_of(const library *l, void *device)
{
    process found[PROCESSES_MAX];
    unsigned count = PROCESSES_MAX;
    const int told = l->processes(device, &count, found);
    if (told != NVML_OK || count > PROCESSES_MAX) {
        return told == NVML_TOO_SMALL ? PROCESSES_MAX : 0; /* more than there is room for */
    }
    uint32_t others = 0;
    for (unsigned i = 0; i < count; i++) {
        others += found[i].pid != (unsigned)getpid();
    }
    return others;
}

void dp_nvml_look(const char *bus, dp_device *out)
{
    library l;
    void *device;
    unsigned number;
    utilization rates;
    memory room;
    out->celsius = INT32_MIN;
    out->watts = 0;
    out->percent = 0;
    out->memory_usable = 0;
    if (!library_open(&l)) {
        return;
    }
    if (l.by_bus(bus, &device) == NVML_OK) {
        if (l.temperature(device, SENSOR_OF_GPU, &number) == NVML_OK) {
            out->celsius = (int32_t)number;
        }
        if (l.power(device, &number) == NVML_OK) {
            out->watts = number / MILLIWATTS;
        }
        if (l.memory(device, &room) == NVML_OK) {
            out->memory_usable = room.unused;
        }
        /* The load is that of other programs unless no other process has the card open. */
        if (others_of(&l, device) > 0 && l.rates(device, &rates) == NVML_OK) {
            out->percent = rates.gpu;
        }
    }
    library_close(&l);
}
