/* Allocates by every function in two threads and in a child, and accepts that there is no memory: null with
 * ENOMEM. It verifies what it got. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 64 };
static const size_t SIZES[] = {1, 24, 64, 200, 1000, 4000, 6000, 20000, 300000, 5000000};

static void require(int holds, const char *what) {
    if (!holds) { dprintf(2, "faults: %s, errno %d\n", what, errno); abort(); }
}

static char *allocate(unsigned turn, size_t size) {
    char *block = NULL;
    errno = 0;
    switch (turn % 5) {
    case 0: block = malloc(size); break;
    case 1:
        block = calloc(1, size);
        for (size_t k = 0; block && k < size; k += 8) require(block[k] == 0, "calloc without zeros");
        break;
    case 2: block = realloc(NULL, size); break;
    case 3:
        block = memalign(1 << turn % 13, size);
        require((size_t)block % (1 << turn % 13) == 0, "not aligned");
        break;
    case 4:
        if (posix_memalign((void **)&block, 8192, size)) { errno = ENOMEM; block = NULL; }
        require((size_t)block % 8192 == 0, "not aligned");
        break;
    }
    require(block || errno == ENOMEM, "null without ENOMEM");
    return block;
}

static void work(unsigned seed) {
    char *blocks[BLOCKS] = {0};
    size_t sizes[BLOCKS];
    for (unsigned turn = seed; turn < seed + 4 * BLOCKS; turn++) {
        unsigned k = turn % BLOCKS;
        size_t size = SIZES[turn * 7 % (sizeof SIZES / sizeof *SIZES)];
        if (blocks[k]) {
            require(blocks[k][0] == (char)k && blocks[k][sizes[k] - 1] == (char)k, "other contents");
            if (turn & 1) { free(blocks[k]); blocks[k] = NULL; }
        }
        char *block = blocks[k] ? realloc(blocks[k], size) : allocate(turn, size);
        if (!block) continue;
        blocks[k] = block;
        sizes[k] = size;
        block[0] = block[size - 1] = k;
    }
    for (unsigned k = 0; k < BLOCKS; k++) free(blocks[k]);
}

static void *thread(void *seed) { work(*(unsigned *)seed); return NULL; }

int main(void) {
    unsigned seeds[] = {3, 11};
    pthread_t threads[2];
    work(0);
    int made[2];
    for (int k = 0; k < 2; k++) {
        int error = pthread_create(&threads[k], NULL, thread, &seeds[k]);
        made[k] = !error;
        require(made[k] || error == EAGAIN || error == ENOMEM, "no thread");
    }
    pid_t child = fork();
    if (!child) { work(5); _exit(0); }
    int status = -1;
    require(waitpid(child, &status, 0) == child && !status, "the child");
    for (int k = 0; k < 2; k++) if (made[k]) pthread_join(threads[k], NULL);
    write(1, "ok\n", 3);
}
