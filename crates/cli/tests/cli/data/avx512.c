// Runs an instruction of AVX-512, whatever the processor says of itself.
#include <stdio.h>

__attribute__((noinline)) void add_wide(void) {
    __asm__ volatile("vaddps %%zmm0, %%zmm0, %%zmm0" ::: "xmm0");
}

int main(void) {
    puts("begins");
    fflush(stdout);
    add_wide();
    puts("ends");
    return 0;
}
