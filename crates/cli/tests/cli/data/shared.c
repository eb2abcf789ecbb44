// Uses 8 MiB of its own, 16 MiB that is shared and 8 MiB of a thread's stack for some seconds.
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MIB = 1 << 20, OWN = 8 * MIB, SHARED = 16 * MIB, STACK = 8 * MIB };

static void touch(volatile char *memory, long bytes) {
    for (long i = 0; i < bytes; i += 4096) memory[i]++;
}

static void *live(void *nothing) {
    char deep[STACK];
    touch(deep, STACK);
    pause();
    return nothing;
}

int main(int count, char **arguments) {
    time_t end = time(NULL) + (count > 1 ? atoi(arguments[1]) : 1);
    int both = PROT_READ | PROT_WRITE;
    char *own = mmap(NULL, OWN, both, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *shared = mmap(NULL, SHARED, both, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (own == MAP_FAILED || shared == MAP_FAILED) return 1;
    madvise(own, OWN, MADV_NOHUGEPAGE);
    touch(shared, SHARED);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK + MIB);
    if (pthread_create(&thread, &attributes, live, NULL)) return 1;
    while (time(NULL) < end) touch(own, OWN);
}
