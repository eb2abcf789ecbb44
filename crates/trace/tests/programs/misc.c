/* Small behaviours: misc threads N | segv | kill | status N | signal | close | self | sweep */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINES = 1 << 17 };

static char *sweep(void) {
    char *memory = aligned_alloc(64, (size_t)LINES * 64);
    for (size_t i = 0; i < LINES; i++) memory[i * 64] = 1;
    return memory;
}

static void *work(void *unused) {
    (void)unused;
    return sweep();
}

static volatile sig_atomic_t caught;
static void handle(int number) { caught = number; }

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    if (!strcmp(argv[1], "threads")) {
        pthread_t threads[16];
        int count = argc > 2 ? atoi(argv[2]) : 4;
        for (int i = 0; i < count; i++) pthread_create(&threads[i], NULL, work, NULL);
        for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
        return 0;
    }
    if (!strcmp(argv[1], "self")) {
        execl("/proc/self/exe", argv[0], "status", "7", (char *)NULL);
        return 1;
    }
    sweep();
    if (!strcmp(argv[1], "segv")) *(volatile int *)8 = 1;
    if (!strcmp(argv[1], "kill")) kill(getpid(), SIGKILL);
    if (!strcmp(argv[1], "status")) return atoi(argv[2]);
    if (!strcmp(argv[1], "close")) {
        for (int i = 3; i < 1024; i++) close(i);
        sweep();
    }
    if (!strcmp(argv[1], "signal")) {
        signal(SIGUSR1, handle);
        kill(getpid(), SIGUSR1);
        sweep();
        printf("%d\n", caught == SIGUSR1);
    }
    if (!strcmp(argv[1], "sleep")) sleep(60);
    return 0;
}
