// Uses memory of each kind in a known way: FILE is mapped and read once, static memory is read ROUNDS times,
// and a mapping of no file is given back and another of the same size comes in its place.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LINE = 64, STATIC = 1 << 20, HEAP = 96 << 10, MAPPED = 3 << 20, FILE_BYTES = 256 << 10 };

static volatile char variables[STATIC];

static void touch(volatile char *memory, long bytes) {
    for (long at = 0; at < bytes; at += LINE) memory[at]++;
}

static void *work(void *memory) {
    pthread_setname_np(pthread_self(), "worker");
    touch(memory, HEAP);
    return NULL;
}

static char *map(void) {
    return mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int main(int count, char **arguments) {
    if (count < 3) return 1;
    int file = open(arguments[1], O_RDWR);
    char *content = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (content == MAP_FAILED) return 1;
    touch(content, FILE_BYTES);
    for (long round = 0; round < atol(arguments[2]); round++) touch(variables, STATIC);
    char *heap = malloc(HEAP);
    pthread_t thread;
    pthread_create(&thread, NULL, work, heap);
    pthread_join(thread, NULL);
    for (int time = 0; time < 2; time++) {
        char *memory = map();
        touch(memory, MAPPED);
        munmap(memory, MAPPED);
    }
    puts("done");
    return 0;
}
