/* Allocates blocks of SIZE bytes until there are none, then frees them all and allocates one of 10 MiB. It
 * prints how many MiB it got, and whether the last block was there. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    size_t size = argc > 1 ? strtoul(argv[1], NULL, 10) : 1 << 20, count = 0;
    void **blocks = NULL, **block;
    while ((block = malloc(size))) { *block = blocks; blocks = block; count++; }
    if (errno != ENOMEM) return 1;
    while ((block = blocks)) { blocks = *block; free(block); }
    printf("%zu %s\n", count * size >> 20, malloc(10 << 20) ? "again" : "no more");
}
