// Changes its mappings all the time, forks past the C library, loses owners of robust mutexes and starts
// short threads, and writes a sum of all that it found in its memory.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, SLOTS = 48, PAGES = 24, ROUNDS = 6000 };

static struct slot { unsigned char *start; int pages; uint64_t seed[PAGES]; } slots[SLOTS];
static uint64_t state = 7, sum;
static volatile sig_atomic_t signals;

static uint64_t next(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void *map(int pages) {
    void *start = mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        fail("mmap");
    return start;
}

static void write_page(struct slot *slot, int page) {
    slot->seed[page] = next() | 1;
    uint64_t *words = (uint64_t *)(slot->start + (size_t)page * PAGE);
    for (int at = 0; at < PAGE / 8; at++)
        words[at] = slot->seed[page] * (at + 1);
}

static void check(const struct slot *slot, int page) {
    const uint64_t *words = (const uint64_t *)(slot->start + (size_t)page * PAGE);
    for (int at = 0; at < PAGE / 8; at++)
        if (words[at] != slot->seed[page] * (at + 1)) {
            fprintf(stderr, "page %d word %d is %lx\n", page, at, words[at]);
            exit(1);
        }
    sum = sum * 31 + words[7];
}

static void check_all(void) {
    for (struct slot *slot = slots; slot < slots + SLOTS; slot++)
        for (int page = 0; page < slot->pages; page++)
            check(slot, page);
}

static void step(struct slot *slot) {
    if (!slot->pages) {
        slot->pages = 1 + next() % PAGES;
        slot->start = map(slot->pages);
        for (int page = 0; page < slot->pages; page++)
            write_page(slot, page);
        return;
    }
    size_t bytes = (size_t)slot->pages * PAGE;
    int page = next() % slot->pages;
    switch (next() % 8) {
    case 0:
        if (munmap(slot->start, bytes))
            fail("munmap");
        slot->pages = 0;
        return;
    case 1: { // Two mappings in one call (Linux 6.17), where the kernel can.
        void *to = map(slot->pages);
        if (mprotect(slot->start, PAGE, PROT_READ))
            fail("mprotect");
        void *moved = mremap(slot->start, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to);
        if (moved == MAP_FAILED && errno != EFAULT)
            fail("mremap");
        if (moved == MAP_FAILED && munmap(to, bytes))
            fail("munmap");
        sum = sum * 31 + (moved == MAP_FAILED);
        slot->start = moved == MAP_FAILED ? slot->start : moved;
        if (mprotect(slot->start, PAGE, PROT_READ | PROT_WRITE))
            fail("mprotect");
        break;
    }
    case 2: {
        void *moved = mremap(slot->start, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, map(slot->pages));
        if (moved == MAP_FAILED)
            fail("mremap");
        slot->start = moved;
        break;
    }
    case 3:
        if (madvise(slot->start + (size_t)page * PAGE, PAGE, MADV_DONTNEED))
            fail("madvise");
        slot->seed[page] = 0;
        break;
    case 4:
        if (mprotect(slot->start, bytes, PROT_NONE) || mprotect(slot->start, bytes, PROT_READ | PROT_WRITE))
            fail("mprotect");
        break;
    default:
        write_page(slot, page);
    }
    check(slot, page);
}

static int status_of(pid_t child) {
    int status;
    while (waitpid(child, &status, 0) != child)
        if (errno != EINTR)
            fail("waitpid");
    return status;
}

// The child unmaps and moves at once, and checks the rest.
static void fork_past_the_library(void) {
    pid_t child = syscall(SYS_fork);
    if (child < 0)
        fail("fork");
    if (child == 0) {
        for (int at = 0; at < SLOTS; at += 2)
            if (slots[at].pages) {
                munmap(slots[at].start, (size_t)slots[at].pages * PAGE);
                slots[at].pages = 0;
            }
        check_all();
        _exit((int)(sum % 120));
    }
    sum = sum * 31 + (uint64_t)status_of(child);
}

static void spawn(void) {
    pid_t child = vfork();
    if (child < 0)
        fail("vfork");
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
        _exit(127);
    }
    sum = sum * 31 + (uint64_t)status_of(child);
}

static void *die(void *mutex) {
    if (pthread_mutex_lock(mutex))
        exit(1);
    return NULL;
}

static void lose_an_owner(void) {
    pthread_mutexattr_t robust;
    pthread_mutex_t *mutex = map(1);
    pthread_t owner;
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setpshared(&robust, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(mutex, &robust);
    if (pthread_create(&owner, NULL, die, mutex))
        fail("pthread_create");
    if (pthread_mutex_lock(mutex) == EOWNERDEAD)
        sum = sum * 31 + 1, pthread_mutex_consistent(mutex);
    else { // This thread came first.
        pthread_mutex_unlock(mutex);
        pthread_join(owner, NULL);
        if (pthread_mutex_lock(mutex) != EOWNERDEAD)
            exit(1);
        sum = sum * 31 + 1, pthread_mutex_consistent(mutex);
        owner = 0;
    }
    if (owner)
        pthread_join(owner, NULL);
    pthread_mutex_unlock(mutex);
    munmap(mutex, PAGE);
}

static void count(int signal) {
    (void)signal;
    signals++;
}

int main(void) {
    signal(SIGUSR1, count);
    for (int round = 0; round < ROUNDS; round++) {
        step(&slots[next() % SLOTS]);
        if (round % 200 == 0)
            fork_past_the_library();
        if (round % 300 == 0)
            spawn();
        if (round % 50 == 0)
            lose_an_owner();
        if (round % 7 == 0)
            raise(SIGUSR1);
    }
    check_all();
    printf("%016llx %d\n", (unsigned long long)sum, (int)signals);
    return 0;
}
