/* Memory patterns with known dependences: patterns chase|chains|gather|stream */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 1 << 18, STEPS = 1 << 18, CHAINS = 4 };

typedef struct node {
    struct node *next;
    uint64_t padding[7];
} node;

static uint64_t state = 88172645463325252u;

static uint64_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* One cycle through all nodes in random order (Sattolo). */
static node *ring(void) {
    node *nodes = aligned_alloc(64, sizeof(node) * NODES);
    uint32_t *order = malloc(sizeof(uint32_t) * NODES);
    for (uint32_t i = 0; i < NODES; i++) order[i] = i;
    for (uint32_t i = NODES - 1; i > 0; i--) {
        uint32_t j = draw() % i, swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    for (uint32_t i = 0; i < NODES; i++) nodes[order[i]].next = &nodes[order[(i + 1) % NODES]];
    free(order);
    return nodes;
}

/* Marks where the measured part begins and ends for the test: a store to a line of its own. */
static volatile char *marker;
static void mark(int index) { marker[index * 4096] = 1; }

static uint64_t chase(void) {
    node *at = ring();
    mark(0);
    for (int i = 0; i < STEPS; i++) at = at->next;
    mark(1);
    return (uintptr_t)at & 1;
}

static uint64_t chains(void) {
    node *nodes = ring(), *at[CHAINS];
    for (int c = 0; c < CHAINS; c++) at[c] = &nodes[c * (NODES / CHAINS)];
    mark(0);
    for (int i = 0; i < STEPS / CHAINS; i++) {
        at[0] = at[0]->next;
        at[1] = at[1]->next;
        at[2] = at[2]->next;
        at[3] = at[3]->next;
    }
    mark(1);
    return ((uintptr_t)at[0] ^ (uintptr_t)at[1] ^ (uintptr_t)at[2] ^ (uintptr_t)at[3]) & 1;
}

static uint64_t gather(void) {
    uint32_t *indices = malloc(sizeof(uint32_t) * STEPS);
    node *nodes = aligned_alloc(64, sizeof(node) * NODES * 4);
    uint64_t sum = 0;
    for (int i = 0; i < STEPS; i++) indices[i] = draw() % (NODES * 4);
    /* Also drives the indices out of the cache. */
    memset(nodes, 0, sizeof(node) * NODES * 4);
    printf("%lx %lx\n", (uintptr_t)nodes >> 6, ((uintptr_t)nodes >> 6) + NODES * 4);
    mark(0);
    for (int i = 0; i < STEPS; i++) sum += nodes[indices[i]].padding[0];
    mark(1);
    return sum;
}

static uint64_t stream(void) {
    node *nodes = aligned_alloc(64, sizeof(node) * NODES);
    uint64_t sum = 0;
    memset(nodes, 0, sizeof(node) * NODES);
    mark(0);
    for (int i = 0; i < NODES; i++) sum += nodes[i].padding[0];
    mark(1);
    return sum;
}

int main(int argc, char **argv) {
    marker = aligned_alloc(4096, 4096 * 2);
    printf("%lx %lx\n", (uintptr_t)marker >> 6, ((uintptr_t)marker + 4096) >> 6);
    if (argc == 2 && !strcmp(argv[1], "chase")) return (int)chase();
    if (argc == 2 && !strcmp(argv[1], "chains")) return (int)chains();
    if (argc == 2 && !strcmp(argv[1], "gather")) return (int)gather();
    if (argc == 2 && !strcmp(argv[1], "stream")) return (int)stream();
    return 2;
}
