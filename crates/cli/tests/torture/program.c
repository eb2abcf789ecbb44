// A short program whose output tells whether its memory is right: it fills and changes memory, also in a
// child, as often as its argument says.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 1 << 19, ROUNDS = 72 };

static uint64_t work(uint64_t seed, int times) {
    uint64_t *words = calloc(WORDS, sizeof *words), sum = 0;
    for (int round = 0; round < ROUNDS * times; round++)
        for (size_t at = 0; at < WORDS; at++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            words[seed >> 45] += seed + at;
        }
    for (size_t at = 0; at < WORDS; at++)
        sum = sum * 31 + words[at];
    free(words);
    return sum;
}

int main(int count, char **arguments) {
    int status = 0, times = count > 1 ? atoi(arguments[1]) : 1;
    pid_t child = fork();
    uint64_t sum = work(child ? 1 : 2, times);
    if (child && (child < 0 || waitpid(child, &status, 0) != child))
        return 1;
    printf("%d %016llx\n", WEXITSTATUS(status), (unsigned long long)sum);
    return child ? 3 : 4;
}
