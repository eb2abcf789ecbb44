/* To be preloaded before the library: call FAIL_AT of the system calls below fails with ENOMEM and is named
 * on standard error; with FAIL_ON all later calls fail too. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static long calls;

static int fails(const char *name) {
    const char *at = getenv("FAIL_AT");
    long call = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED), chosen = at ? atol(at) : 0;
    if (call == chosen) {
        write(2, "failing: ", 9);
        write(2, name, strlen(name));
        write(2, "\n", 1);
    }
    if (call == chosen || (call > chosen && getenv("FAIL_ON"))) { errno = ENOMEM; return 1; }
    return 0;
}

void *mmap(void *start, size_t size, int protection, int flags, int file, off_t offset) {
    if (fails("mmap")) return MAP_FAILED;
    return (void *)syscall(SYS_mmap, start, size, protection, flags, file, offset);
}
int munmap(void *start, size_t size) { return fails("munmap") ? -1 : syscall(SYS_munmap, start, size); }
int mprotect(void *start, size_t size, int protection) {
    return fails("mprotect") ? -1 : syscall(SYS_mprotect, start, size, protection);
}
int madvise(void *start, size_t size, int advice) {
    return fails("madvise") ? -1 : syscall(SYS_madvise, start, size, advice);
}
int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int mode = va_arg(rest, int);
    va_end(rest);
    return fails("open") ? -1 : syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
int posix_fallocate(int file, off_t offset, off_t size) {
    if (fails("posix_fallocate")) return ENOMEM;
    return syscall(SYS_fallocate, file, 0, offset, size) ? errno : 0;
}
ssize_t readlink(const char *path, char *room, size_t size) {
    return fails("readlink") ? -1 : syscall(SYS_readlink, path, room, size);
}
ssize_t getrandom(void *room, size_t size, unsigned flags) {
    return fails("getrandom") ? -1 : syscall(SYS_getrandom, room, size, flags);
}
