// Stands in for NVIDIA's libcuda (compiled with -DCUDA) and libcufile (with -DCUFILE): the same functions and structures, over
// memory of this machine.
//
// Invariant: an address of the memory of a GPU cannot be read or written by the program: its bytes are elsewhere, and only the
// calls here know where. A copy to it arrives when the context is synchronized, and no earlier.
//
// The environment tells what happens:
//   STAND_IN_LOG=FILE            each call that takes or gives back something is a line of this file
//   STAND_IN_GPUS=N              how many GPUs there are; one if it is not set
//   STAND_IN_FAIL=CALL:CODE:N    the call fails with the code from its Nth time on
//   STAND_IN_SHORT=1             every other transfer moves a part
//   STAND_IN_HANG=1              no operation of a batch ends
//   STAND_IN_WAYS=A.B:S:C:F      what the driver tells: the version of nvidia-fs, and flags of storage, control and features;
//                                if it is not set, all of a machine where each NVMe disk is reached directly
//   STAND_IN_PCI=ADDRESS         where each GPU is
//   STAND_IN_COPIED=N            statistics are kept, and N I/Os of each GPU went through the memory of the machine
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

char *stand_in_bytes(uint64_t address, size_t length);
int stand_in_fails(const char *call);
void stand_in_log(const char *format, ...);
int stand_in_context(void);

#ifdef CUDA
struct memory { uint64_t address; size_t length; char *bytes; int gpu; };
static struct memory memories[256];
struct copy { char *to; char *from; size_t length; struct copy *next; };
static struct copy *copies;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int current = -1;
static int is_initialized, retained[16];

void stand_in_log(const char *format, ...)
{
    const char *path = getenv("STAND_IN_LOG");
    if (!path) return;
    char line[256];
    va_list values;
    va_start(values, format);
    int length = vsnprintf(line, sizeof line - 1, format, values);
    va_end(values);
    line[length++] = '\n';
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (write(fd, line, length) != length) abort();
    close(fd);
}

int stand_in_fails(const char *call)
{
    static int counts[1];
    const char *text = getenv("STAND_IN_FAIL");
    size_t length = strlen(call);
    if (!text || strncmp(text, call, length) || text[length] != ':') return 0;
    int code, from;
    if (sscanf(text + length, ":%d:%d", &code, &from) != 2) abort();
    return __atomic_add_fetch(counts, 1, __ATOMIC_SEQ_CST) >= from ? code : 0;
}

int stand_in_context(void) { return current; }

char *stand_in_bytes(uint64_t address, size_t length)
{
    for (int i = 0; i < 256; i++) {
        struct memory *m = &memories[i];
        if (m->length && address >= m->address && address + length <= m->address + m->length)
            return m->bytes + (address - m->address);
    }
    return NULL;
}

static void arrive(void)
{
    while (copies) {
        struct copy *copy = copies;
        copies = copy->next;
        memcpy(copy->to, copy->from, copy->length);
        free(copy->from);
        free(copy);
    }
}

static int gpus(void) { return getenv("STAND_IN_GPUS") ? atoi(getenv("STAND_IN_GPUS")) : 1; }

#define FAIL(call) do { int code = stand_in_fails(#call); if (code) return code; } while (0)

int cuInit(unsigned flags)
{
    FAIL(cuInit);
    is_initialized = 1;
    return flags;
}

int cuGetErrorName(int error, const char **name)
{
    *name = error == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : error == 100 ? "CUDA_ERROR_NO_DEVICE"
        : error == 101 ? "CUDA_ERROR_INVALID_DEVICE" : error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : NULL;
    return *name ? 0 : 1;
}

int cuDeviceGet(int *device, int ordinal)
{
    FAIL(cuDeviceGet);
    if (!is_initialized) return 3;
    if (ordinal < 0 || ordinal >= gpus()) return 101;
    *device = ordinal;
    return 0;
}

int cuDeviceGetPCIBusId(char *text, int length, int device)
{
    const char *address = getenv("STAND_IN_PCI");
    if (!address || length < 13 || device >= gpus()) return 1;
    snprintf(text, length, "%s", address);
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    FAIL(cuDevicePrimaryCtxRetain);
    __atomic_add_fetch(&retained[device], 1, __ATOMIC_SEQ_CST);
    stand_in_log("take context %d", device);
    *context = (void *)(intptr_t)(device + 1);
    return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    if (__atomic_sub_fetch(&retained[device], 1, __ATOMIC_SEQ_CST) < 0) abort();
    stand_in_log("give context %d", device);
    return 0;
}

int cuCtxSetCurrent(void *context)
{
    current = (int)(intptr_t)context - 1;
    return 0;
}

int cuCtxSynchronize(void)
{
    if (current < 0) return 201;
    pthread_mutex_lock(&lock);
    arrive();
    pthread_mutex_unlock(&lock);
    return 0;
}

int cuMemAlloc_v2(uint64_t *address, size_t length)
{
    FAIL(cuMemAlloc);
    if (current < 0) return 201;
    void *place = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *bytes = calloc(1, length);
    if (place == MAP_FAILED || !bytes) return 2;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 256; i++)
        if (!memories[i].length) {
            memories[i] = (struct memory){ (uint64_t)place, length, bytes, current };
            break;
        }
    pthread_mutex_unlock(&lock);
    *address = (uint64_t)place;
    stand_in_log("take memory on %d", current);
    return 0;
}

int cuMemFree_v2(uint64_t address)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 256; i++)
        if (memories[i].length && memories[i].address == address) {
            stand_in_log("give memory on %d", memories[i].gpu);
            munmap((void *)address, memories[i].length);
            free(memories[i].bytes);
            memories[i].length = 0;
        }
    pthread_mutex_unlock(&lock);
    return 0;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t length)
{
    FAIL(cuMemcpyHtoD);
    char *bytes = stand_in_bytes(to, length);
    if (current < 0 || !bytes) return 1;
    struct copy *copy = malloc(sizeof *copy);
    *copy = (struct copy){ bytes, malloc(length), length, NULL };
    memcpy(copy->from, from, length);
    pthread_mutex_lock(&lock);
    struct copy **end = &copies;
    while (*end) end = &(*end)->next;
    *end = copy;
    pthread_mutex_unlock(&lock);
    return 0;
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t length)
{
    FAIL(cuMemcpyDtoH);
    char *bytes = stand_in_bytes(from, length);
    if (current < 0 || !bytes) return 1;
    pthread_mutex_lock(&lock);
    arrive();
    memcpy(to, bytes, length);
    pthread_mutex_unlock(&lock);
    return 0;
}
#endif

#ifdef CUFILE
typedef struct { int error, cuda_error; } status;
typedef struct { int type; union { int fd; void *handle; } handle; const void *operations; } description;
typedef struct {
    int mode;
    union { struct { void *base; off_t file_offset, memory_offset; size_t size; } batch; } u;
    void *file;
    int command;
    void *cookie;
} request;
typedef struct { void *cookie; int state; size_t result; } event;

static int is_open;
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static const void *registered[256];

#define STATUS(call) do { int code = stand_in_fails(#call); if (code) return of(code); } while (0)

static status of(int code) { return (status){ code > 5000 ? code : code ? 5011 : 0, code > 5000 ? 0 : code }; }

status cuFileDriverOpen(void)
{
    STATUS(cuFileDriverOpen);
    if (is_open) return of(5026);
    is_open = 1;
    stand_in_log("take driver");
    return of(0);
}

status cuFileDriverClose_v2(void)
{
    if (!is_open) abort();
    is_open = 0;
    stand_in_log("give driver");
    return of(0);
}

typedef struct {
    struct { unsigned major, minor; size_t poll, direct; unsigned storage, control; } nvfs;
    unsigned features, cache, buffer_cache, pinned, batch, timeout;
} properties;

status cuFileDriverGetProperties(properties *p)
{
    STATUS(cuFileDriverGetProperties);
    if (!is_open) return of(5001);
    const char *text = getenv("STAND_IN_WAYS");
    *p = (properties){ { 2, 26, 4, 16384, 1 << 4, 1 << 1 }, 0xf, 131072, 1024, 33554432, 128, 0 };
    if (text && sscanf(text, "%u.%u:%x:%x:%x", &p->nvfs.major, &p->nvfs.minor, &p->nvfs.storage, &p->nvfs.control,
                       &p->features) != 5) abort();
    return of(0);
}

typedef struct { uint64_t ok, failed; } counter;
typedef struct {
    struct {
        counter calls[6];
        uint64_t io[10];
        counter batches[8], batch_posix_processed, batch_submissions[6];
        uint64_t batch_io[12];
    } basic;
    uint64_t sizes[2][32];
    uint32_t gpus;
    struct { char uuid[16]; uint64_t reads[13], writes[11], registrations[5]; } per_gpu[16];
} statistics;

status cuFileGetStatsL3(statistics *s)
{
    const char *text = getenv("STAND_IN_COPIED");
    if (!is_open) return of(5001);
    if (!text) return of(5022);
    memset(s, 0, sizeof *s);
    s->gpus = 2;
    for (int i = 0; i < 2; i++) s->per_gpu[i].reads[7] = strtoul(text, NULL, 10);
    return of(0);
}

status cuFileHandleRegister(void **file, description *descr)
{
    STATUS(cuFileHandleRegister);
    if (!is_open) return of(5001);
    if (descr->type != 1) return of(5022);
    int flags = fcntl(descr->handle.fd, F_GETFL);
    if (flags < 0 || !(flags & O_DIRECT)) return of(5020);
    int *own = malloc(sizeof *own);
    *own = descr->handle.fd;
    *file = own;
    stand_in_log("take file");
    return of(0);
}

void cuFileHandleDeregister(void *file)
{
    free(file);
    stand_in_log("give file");
}

static const void **place(const void *base)
{
    for (int i = 0; i < 256; i++) if (registered[i] == base) return &registered[i];
    return NULL;
}

status cuFileBufRegister(const void *base, size_t length, int flags)
{
    STATUS(cuFileBufRegister);
    if (!is_open) return of(5001);
    if (flags || !stand_in_bytes((uint64_t)base, length)) return of(5014);
    pthread_mutex_lock(&table);
    *place(NULL) = base;
    pthread_mutex_unlock(&table);
    stand_in_log("take registration");
    return of(0);
}

status cuFileBufDeregister(const void *base)
{
    pthread_mutex_lock(&table);
    if (!place(base)) abort();
    *place(base) = NULL;
    pthread_mutex_unlock(&table);
    stand_in_log("give registration");
    return of(0);
}

// The file must be open for direct I/O: so bytes go through a page of this library's own.
static ssize_t move(int writes, void *file, const void *base, size_t size, off_t at, off_t within)
{
    static int count;
    char *bytes = stand_in_bytes((uint64_t)base + within, size), *page;
    if (!is_open) return -5001;
    if (!place(base)) return -5024;
    if (!bytes) return -5014;
    if (getenv("STAND_IN_SHORT") && size > 4096 && __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST) % 2) size = 4096;
    if (posix_memalign((void **)&page, 4096, size)) return -5043;
    if (writes) memcpy(page, bytes, size);
    ssize_t result = writes ? pwrite(*(int *)file, page, size, at) : pread(*(int *)file, page, size, at);
    int error = errno;
    if (!writes && result > 0) memcpy(bytes, page, result);
    free(page);
    errno = error;
    return result;
}

static ssize_t at_once(const char *call, int writes, void *file, const void *base, size_t size, off_t at, off_t within)
{
    int code = stand_in_fails(call);
    if (code > 5000) return -code;
    if (code) {
        errno = code;
        return -1;
    }
    return stand_in_context() < 0 ? -5047 : move(writes, file, base, size, at, within);
}

ssize_t cuFileRead(void *file, void *base, size_t size, off_t at, off_t within)
{
    return at_once("cuFileRead", 0, file, base, size, at, within);
}

ssize_t cuFileWrite(void *file, const void *base, size_t size, off_t at, off_t within)
{
    return at_once("cuFileWrite", 1, file, base, size, at, within);
}

// A thread serves the newest request first.
struct batch {
    pthread_mutex_t lock;
    pthread_cond_t work, ends;
    pthread_t thread;
    unsigned max, waiting, running, ended;
    int is_over;
    request *requests;
    event *events;
};

static void *serve(void *argument)
{
    struct batch *b = argument;
    pthread_mutex_lock(&b->lock);
    while (!b->is_over) {
        if (!b->waiting || getenv("STAND_IN_HANG")) {
            pthread_cond_wait(&b->work, &b->lock);
            continue;
        }
        request r = b->requests[--b->waiting];
        b->running++;
        pthread_mutex_unlock(&b->lock);
        int code = stand_in_fails("batch");
        ssize_t result = code ? -code
            : move(r.command, r.file, r.u.batch.base, r.u.batch.size, r.u.batch.file_offset, r.u.batch.memory_offset);
        if (result == -1) result = -errno;
        pthread_mutex_lock(&b->lock);
        b->running--;
        b->events[b->ended++] = (event){ r.cookie, result < 0 ? 0x40 : 0x10, result };
        pthread_cond_broadcast(&b->ends);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

status cuFileBatchIOSetUp(void **handle, unsigned max)
{
    STATUS(cuFileBatchIOSetUp);
    if (!is_open) return of(5001);
    if (max < 1 || max > 128) return of(5030);
    struct batch *b = calloc(1, sizeof *b);
    b->max = max;
    b->requests = calloc(max, sizeof *b->requests);
    b->events = calloc(max, sizeof *b->events);
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->work, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&b->ends, &monotonic);
    if (pthread_create(&b->thread, NULL, serve, b)) abort();
    *handle = b;
    stand_in_log("take batch");
    return of(0);
}

status cuFileBatchIOSubmit(void *handle, unsigned count, request *requests, unsigned flags)
{
    struct batch *b = handle;
    STATUS(cuFileBatchIOSubmit);
    if (flags || !count || count > b->max) return of(5022);
    for (unsigned i = 0; i < count; i++) if (requests[i].mode != 1) return of(5022);
    pthread_mutex_lock(&b->lock);
    int is_full = b->waiting + b->running + b->ended + count > b->max;
    if (!is_full) {
        memcpy(b->requests + b->waiting, requests, count * sizeof *requests);
        b->waiting += count;
        pthread_cond_signal(&b->work);
    }
    pthread_mutex_unlock(&b->lock);
    stand_in_log("submit %u", count);
    return of(is_full ? 5037 : 0);
}

status cuFileBatchIOGetStatus(void *handle, unsigned min, unsigned *count, event *events, struct timespec *timeout)
{
    struct batch *b = handle;
    STATUS(cuFileBatchIOGetStatus);
    if (min > *count) return of(5022);
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout->tv_sec + (until.tv_nsec + timeout->tv_nsec) / 1000000000;
    until.tv_nsec = (until.tv_nsec + timeout->tv_nsec) % 1000000000;
    pthread_mutex_lock(&b->lock);
    while (b->ended < min && !pthread_cond_timedwait(&b->ends, &b->lock, &until)) {}
    if (*count > b->ended) *count = b->ended;
    b->ended -= *count;
    memcpy(events, b->events + b->ended, *count * sizeof *events);
    pthread_mutex_unlock(&b->lock);
    return of(0);
}

void cuFileBatchIODestroy(void *handle)
{
    struct batch *b = handle;
    pthread_mutex_lock(&b->lock);
    if (b->waiting || b->running) abort();
    b->is_over = 1;
    pthread_cond_signal(&b->work);
    pthread_mutex_unlock(&b->lock);
    pthread_join(b->thread, NULL);
    free(b->requests);
    free(b->events);
    free(b);
    stand_in_log("give batch");
}
#endif
