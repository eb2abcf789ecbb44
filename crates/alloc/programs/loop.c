/* Times malloc and free for a benchmark. For each line SIZE THREADS PAIRS of its input it prints the
 * processor time in nanoseconds that a thread takes for PAIRS pairs, in batches of 16, at a call depth
 * of 13. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { DEPTH = 12, BATCH = 16, MOST = 64 };
static size_t size;
static long pairs;

static double nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

__attribute__((noinline)) static double work(void) {
    double start = nanoseconds();
    for (long i = 0; i < pairs; i += BATCH) {
        void *blocks[BATCH];
        for (int k = 0; k < BATCH; k++) { blocks[k] = malloc(size); __asm__ volatile("" ::: "memory"); }
        for (int k = 0; k < BATCH; k++) free(blocks[k]);
    }
    return nanoseconds() - start;
}

__attribute__((noinline)) static double deep(int depth) {
    double taken = depth ? deep(depth - 1) : work();
    __asm__ volatile("" ::: "memory");
    return taken;
}

static void *thread(void *taken) { *(double *)taken = deep(DEPTH); return NULL; }

int main(void) {
    int threads;
    while (scanf("%zu %d %ld", &size, &threads, &pairs) == 3 && threads >= 1 && threads <= MOST) {
        pthread_t others[MOST];
        double taken[MOST], sum = 0;
        for (int k = 1; k < threads; k++) pthread_create(&others[k], NULL, thread, &taken[k]);
        taken[0] = deep(DEPTH);
        for (int k = 1; k < threads; k++) pthread_join(others[k], NULL);
        for (int k = 0; k < threads; k++) sum += taken[k];
        printf("%.0f\n", sum / threads);
        fflush(stdout);
    }
}
