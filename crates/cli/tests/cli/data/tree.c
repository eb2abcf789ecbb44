// Builds a search tree in random order and looks keys up, half of them among a few: pointers, skew and some
// stores.
#include <stdio.h>
#include <stdlib.h>

struct node {
    unsigned key, uses;
    struct node *child[2];
    char value[104];
};

static unsigned state = 1;

static unsigned next(void) { return state = state * 1664525u + 1013904223u; }

int main(int count, char **arguments) {
    unsigned nodes = count > 1 ? atoi(arguments[1]) : 4000, lookups = count > 2 ? atoi(arguments[2]) : 20000;
    struct node *root = NULL;
    for (unsigned i = 0; i < nodes; i++) {
        struct node **place = &root, *node = calloc(1, sizeof *node);
        node->key = i * 2654435761u;
        while (*place) place = &(*place)->child[node->key > (*place)->key];
        *place = node;
    }
    unsigned found = 0;
    for (unsigned i = 0; i < lookups; i++) {
        unsigned range = next() >> 31 ? nodes : nodes / 16, key = (next() >> 8) % range * 2654435761u;
        struct node *node = root;
        while (node && node->key != key) node = node->child[key > node->key];
        if (node) node->uses++, found++;
    }
    printf("%u nodes, %u of %u found\n", nodes, found, lookups);
    return found == lookups ? 0 : 1;
}
