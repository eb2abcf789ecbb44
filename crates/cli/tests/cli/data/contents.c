// Walks over 2 MiB of random-looking numbers and 2 MiB of one sentence, for three seconds while recorded.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES (2 << 20)

int main(void) {
    unsigned char *noise = aligned_alloc(4096, BYTES), *text = aligned_alloc(4096, BYTES);
    unsigned long state = 88172645463325252UL, sum = 0;
    const char *sentence = "What is cold is written small. ";
    for (int i = 0; i < BYTES; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        noise[i] = state;
        text[i] = sentence[i % strlen(sentence)];
    }
    printf("noise %lu, text %lu\n", (unsigned long)noise >> 12, (unsigned long)text >> 12);
    for (int round = 0; round < 200; round++)
        for (int i = 0; i < BYTES; i += 64) sum += noise[i] + text[i];
    fprintf(stderr, "%lu\n", sum);
    return 0;
}
