/* Frees what must not be freed, in the way that the argument names. It prints a line if it lives on. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *freed(void *block) { free(block); return NULL; }

static void in_a_thread(void *block) {
    pthread_t thread;
    pthread_create(&thread, NULL, freed, block);
    pthread_join(thread, NULL);
}

enum { MANY = 5000 };
static char *many[MANY];

static char *one_of_many(size_t size) {
    for (int k = 0; k < MANY; k++) { many[k] = malloc(size); memset(many[k], 0xa5, size); }
    return many[7];
}

static void free_many(void) {
    for (int k = 0; k < MANY; k++) free(many[k]);
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "";
    size_t size = argc > 2 ? strtoul(argv[2], NULL, 10) : 64;
    char *block = malloc(size), *volatile same = block;
    memset(block, 0x5a, size);
    if (!strcmp(way, "twice")) { free(block); free(same); }
    if (!strcmp(way, "after-others")) { void *other = malloc(size); free(block); free(other); free(same); }
    if (!strcmp(way, "after-many")) { same = one_of_many(size); free_many(); free(same); }
    if (!strcmp(way, "in-another-thread")) { free(block); in_a_thread(same); }
    if (!strcmp(way, "after-another-thread")) { in_a_thread(block); free(same); }
    if (!strcmp(way, "realloc")) { free(block); same = realloc(same, 2 * size); }
    if (!strcmp(way, "inside")) free(same + (size / 2 & ~15ul));
    if (!strcmp(way, "inside-of-many")) free(one_of_many(size) + 16);
    if (!strcmp(way, "next-page")) free(same + 4096);
    if (!strcmp(way, "misaligned")) free(same + 1);
    if (!strcmp(way, "before-one-of-many")) free(one_of_many(size) - 8);
    if (!strcmp(way, "realloc-inside")) same = realloc(same + 16, size);
    printf("lives on\n");
}
