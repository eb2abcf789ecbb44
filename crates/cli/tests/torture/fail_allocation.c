// By LD_PRELOAD: fails one allocation of the program `isotherm`, the one numbered by FAIL_ALLOCATION, and
// writes how many there were to FAIL_COUNT at exit. With FAIL_SIZE, only those of that many bytes count.
// Other programs are left alone.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static long number = -1, only, count;

static int fails(size_t size) {
    if (number < 0 || (only && size != (size_t)only) || __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) != number)
        return 0;
    errno = ENOMEM;
    return 1;
}

__attribute__((constructor)) static void begin(void) {
    const char *text = getenv("FAIL_ALLOCATION"), *size = getenv("FAIL_SIZE");
    only = size ? atol(size) : 0;
    if (text && !strcmp(program_invocation_short_name, "isotherm"))
        number = atol(text);
}

__attribute__((destructor)) static void end(void) {
    const char *path = getenv("FAIL_COUNT");
    if (number < 0 || !path)
        return;
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    dprintf(file, "%ld\n", count);
    close(file);
}

void *malloc(size_t size) { return fails(size) ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return fails(count * size) ? NULL : __libc_calloc(count, size); }
void *realloc(void *block, size_t size) { return fails(size) ? NULL : __libc_realloc(block, size); }
void *memalign(size_t alignment, size_t size) { return fails(size) ? NULL : __libc_memalign(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void **block, size_t alignment, size_t size) {
    *block = memalign(alignment, size);
    return *block ? 0 : ENOMEM;
}
