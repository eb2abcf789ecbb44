/* Allocates in frames of variable size: a large one, then small ones near the stack's end, in main and in a
 * thread. */
#include <alloca.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) static void *allocate(size_t size) {
    volatile char *frame = alloca(size);
    frame[0] = 1;
    void *block = malloc(64);
    frame[size - 1] = 2;
    return block;
}

static void *work(void *unused) {
    void *large = allocate(200000);
    /* Some of these frames end where the large one ended, modulo a page, by which contexts are looked up. */
    for (size_t size = 2048; size < 6144; size += 16) free(allocate(size));
    free(large);
    return unused;
}

int main(void) {
    pthread_t thread;
    work(NULL);
    if (pthread_create(&thread, NULL, work, NULL) || pthread_join(thread, NULL)) return 1;
    puts("ok");
    return 0;
}
