// Makes one call of a program fail, for tests: preloaded, it counts the calls that one object makes of each
// function below, over all processes of a run, and fails the chosen one.
//
//   FAULT_PROGRAM  name of the executable that it works in
//   FAULT_OBJECT   part of the file name of the object whose calls count; empty for the executable itself
//   FAULT_CALL     function whose call fails
//   FAULT_NUMBER   which of the calls fails, from 1; 0 for none
//   FAULT_LASTS    1 if all later calls fail, too
//   FAULT_ERROR    the error's number
//   FAULT_COUNTS   file of a counter (8 bytes) for each function, in the order below
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Functions, and what they return at a failure: all take at most six words, and return one.
#define CALLS(X) \
    X(malloc, 0) X(calloc, 0) X(realloc, 0) X(posix_memalign, error) X(mmap, -1) X(mmap64, -1) \
    X(open, -1) X(open64, -1) X(openat64, -1) X(read, -1) X(readv, -1) X(write, -1) X(writev, -1) \
    X(pread64, -1) X(pwrite64, -1) X(lseek64, -1) X(fsync, -1) X(ftruncate64, -1) X(fallocate, -1) \
    X(rename, -1) X(unlink, -1) X(unlinkat, -1) X(mkdir, -1) X(rmdir, -1) \
    X(stat64, -1) X(fstat64, -1) X(lstat64, -1) X(statx, -1) X(faccessat, -1) \
    X(realpath, 0) X(readlink, -1) X(getcwd, 0) X(opendir, 0) X(readdir64, 0) \
    X(pipe2, -1) X(fcntl, -1) X(ioctl, -1) X(poll, -1) X(dup2, -1) \
    X(fork, -1) X(posix_spawnp, error) X(execvp, -1) X(execve, -1) X(waitpid, -1) X(waitid, -1) \
    X(kill, -1) X(sigaction, -1) X(pthread_create, error) X(process_vm_readv, -1)

enum {
#define NUMBER(name, failure) CALL_##name,
    CALLS(NUMBER) COUNT
};
static const char *const NAMES[] = {
#define TEXT(name, failure) #name,
    CALLS(TEXT)
};

static unsigned long *counts;
static unsigned long number, low, high;
static int chosen = -1, error, lasts;
static char object[256], program[256], itself[4096];

static int find_object(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size, (void)data;
    // The executable is the first, and has no name.
    const char *name = strrchr(info->dlpi_name, '/');
    if (object[0] && (!name || !strstr(name, object))) return 0;
    unsigned long start = ~0ul, end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
        unsigned long at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (at < start) start = at;
        if (at + info->dlpi_phdr[i].p_memsz > end) end = at + info->dlpi_phdr[i].p_memsz;
    }
    low = start;
    __atomic_store_n(&high, end, __ATOMIC_RELEASE);
    return 1;
}

static int fails(int call, const void *caller) {
    if (!counts) return 0;
    if (!__atomic_load_n(&high, __ATOMIC_ACQUIRE)) dl_iterate_phdr(find_object, NULL);
    unsigned long at = (unsigned long)caller;
    if (at < low || at >= high) return 0;
    unsigned long now = __atomic_add_fetch(&counts[call], 1, __ATOMIC_RELAXED);
    if (call != chosen || !number || (lasts ? now < number : now != number)) return 0;
    errno = error;
    return 1;
}

// `dlsym` may itself allocate.
typedef long Function(long, long, long, long, long, long);
extern Function __libc_malloc, __libc_calloc, __libc_realloc;

static Function *find_real(int call) {
    if (call == CALL_malloc) return __libc_malloc;
    if (call == CALL_calloc) return __libc_calloc;
    if (call == CALL_realloc) return __libc_realloc;
    return (Function *)dlsym(RTLD_NEXT, NAMES[call]);
}

// QEMU that executes itself again is watched again: the new environment is the emulated program's.
static char *const *watched(char *const *environment) {
    static char *with[4096], preload[4200];
    size_t length = 0;
    while (environment && environment[length] && length < 4094) length++;
    memcpy(with, environment, length * sizeof *with);
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", itself);
    with[length] = preload, with[length + 1] = NULL;
    return with;
}

static long pass(int call, long a, long b, long c, long d, long e, long f) {
    static Function *real[COUNT];
    if (!real[call]) real[call] = find_real(call);
    const char *name = call == CALL_execve && counts ? strrchr((const char *)a, '/') : NULL;
    if (name && !strcmp(name + 1, program)) c = (long)watched((char *const *)c);
    return real[call](a, b, c, d, e, f);
}

#define DEFINE(name, failure) \
    long fault_##name(long a, long b, long c, long d, long e, long f) __asm__(#name); \
    long fault_##name(long a, long b, long c, long d, long e, long f) { \
        if (fails(CALL_##name, __builtin_return_address(0))) return failure; \
        return pass(CALL_##name, a, b, c, d, e, f); \
    }
CALLS(DEFINE)

__attribute__((constructor)) static void begin(void) {
    static char path[4096];
    const char *wanted = getenv("FAULT_PROGRAM"), *file = getenv("FAULT_COUNTS");
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    const char *name = length > 0 ? strrchr(path, '/') : NULL;
    if (!wanted || !file || !name || strcmp(name + 1, wanted)) return;
    snprintf(program, sizeof program, "%s", wanted);
    const char *preload = getenv("LD_PRELOAD");
    snprintf(itself, sizeof itself, "%s", preload ? preload : "");
    snprintf(object, sizeof object, "%s", getenv("FAULT_OBJECT") ?: "");
    // What this program starts, and what it emulates, is left alone.
    unsetenv("LD_PRELOAD");
    for (int call = 0; call < COUNT; call++)
        if (!strcmp(NAMES[call], getenv("FAULT_CALL") ?: "")) chosen = call;
    number = strtoul(getenv("FAULT_NUMBER") ?: "0", NULL, 10);
    lasts = atoi(getenv("FAULT_LASTS") ?: "0");
    error = atoi(getenv("FAULT_ERROR") ?: "5");
    int descriptor = open(file, O_RDWR | O_CREAT, 0600);
    if (descriptor < 0 || ftruncate(descriptor, COUNT * sizeof *counts)) abort();
    void *memory = mmap(NULL, COUNT * sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
    if (memory == MAP_FAILED) abort();
    counts = memory;
}
