/* Forks while another thread gets memory for a region, after a first attempt at it has failed: jemalloc then
 * takes a lock of its page map that its fork handlers leave alone. The child needs that lock for other
 * regions. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static _Thread_local enum { NOTHING, TO_FAIL, TO_REST } growing;
static volatile int rests;

int mprotect(void *start, size_t size, int protection) {
    if (growing == TO_FAIL) { growing = TO_REST; errno = ENOMEM; return -1; }
    return syscall(SYS_mprotect, start, size, protection);
}
void *mmap(void *start, size_t size, int protection, int flags, int file, off_t offset) {
    if (growing == TO_REST) { growing = NOTHING; rests = 1; usleep(300000); }
    return (void *)syscall(SYS_mmap, start, size, protection, flags, file, offset);
}

/* Each is a context of its own, so most have a region of their own. */
#define CONTEXT(n) __attribute__((noinline)) static void *context##n(void) { void *block = malloc(24); __asm__("" ::: "memory"); return block; }
#define EIGHT(each, tens) each(tens##0) each(tens##1) each(tens##2) each(tens##3) each(tens##4) each(tens##5) each(tens##6) each(tens##7)
EIGHT(CONTEXT, 1) EIGHT(CONTEXT, 2) EIGHT(CONTEXT, 3) EIGHT(CONTEXT, 4)
#define NAME(n) context##n,
static void *(*const contexts[])(void) = {EIGHT(NAME, 1) EIGHT(NAME, 2) EIGHT(NAME, 3) EIGHT(NAME, 4)};

static void *grow(void *unused) {
    for (int k = 0; k < 16 && !rests; k++) {
        growing = TO_FAIL;
        if (!contexts[k]()) abort();
        growing = NOTHING;
    }
    return unused;
}

int main(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, grow, NULL)) return 2;
    while (!rests) usleep(100);
    pid_t child = fork();
    if (!child) {
        alarm(20);
        for (int k = 16; k < 32; k++) if (!contexts[k]()) abort();
        _exit(0);
    }
    int status = -1;
    if (waitpid(child, &status, 0) != child || status) return 3;
    pthread_join(thread, NULL);
    write(1, "ok\n", 3);
}
