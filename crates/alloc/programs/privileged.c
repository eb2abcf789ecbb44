/* Prints the region of a block, 0 or more if the library serves this program. */
#include <stdio.h>
#include <stdlib.h>

int isotherm_alloc_region(const void *);

int main(void) { printf("%d\n", isotherm_alloc_region(malloc(100)) >= 0); }
