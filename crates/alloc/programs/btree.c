/* A B+ tree of small objects, each a block of its own: records, nodes, and each node's arrays of keys and pointers.
 *
 *     btree RECORDS READS [SEED]
 *
 * inserts RECORDS keys in random order, then reads READS keys, all as likely as each other: what makes some objects
 * hotter is only where they stand in the tree. It prints the CPU seconds of both and a checksum. Sizes, order and the way
 * of reading are those of the benchmark that tiering papers use (see `isotherm workloads btree`). It is C so that frame
 * pointers are the compiler's choice. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ORDER = 6, ARRAY = 64 };

/* Noinline functions are the calling contexts that a compiler without them would leave: one for each kind of object. */
#define CONTEXT __attribute__((noinline))

struct value { uint64_t number; char text[56]; };
struct node {
    int leaf, count;
    uint64_t *keys;  /* up to ORDER of them */
    void **children; /* nodes, or records */
    uint64_t unused[4];
};
struct split { uint64_t key; struct node *right; };

static uint64_t state;
static uint64_t next_random(void) {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void *checked(void *block) {
    if (!block) { perror("btree"); exit(1); }
    return block;
}

CONTEXT static struct node *make_node(int leaf) {
    struct node *node = checked(malloc(sizeof *node));
    node->leaf = leaf;
    node->count = 0;
    node->keys = checked(malloc(ARRAY));
    node->children = checked(malloc(ARRAY));
    return node;
}

CONTEXT static struct value *make_value(uint64_t key) {
    struct value *value = checked(malloc(sizeof *value));
    value->number = key * 3;
    memset(value->text, (int)key, sizeof value->text);
    return value;
}

/* The first place whose key is not below the key. */
static int place_of(const struct node *node, uint64_t key) {
    int place = 0;
    while (place < node->count && node->keys[place] < key) place++;
    return place;
}

static void put(struct node *node, int place, uint64_t key, int child, void *value) {
    int children = node->count + !node->leaf;
    memmove(node->keys + place + 1, node->keys + place, (node->count - place) * sizeof *node->keys);
    memmove(node->children + child + 1, node->children + child, (children - child) * sizeof *node->children);
    node->keys[place] = key;
    node->children[child] = value;
    node->count++;
}

CONTEXT static struct split split_leaf(struct node *node) {
    struct node *right = make_node(1);
    right->count = node->count / 2;
    node->count -= right->count;
    memcpy(right->keys, node->keys + node->count, right->count * sizeof *right->keys);
    memcpy(right->children, node->children + node->count, right->count * sizeof *right->children);
    return (struct split){ node->keys[node->count - 1], right };
}

CONTEXT static struct split split_inner(struct node *node) {
    struct node *right = make_node(0);
    int kept = node->count / 2;
    right->count = node->count - kept - 1;
    memcpy(right->keys, node->keys + kept + 1, right->count * sizeof *right->keys);
    memcpy(right->children, node->children + kept + 1, (right->count + 1) * sizeof *right->children);
    node->count = kept;
    return (struct split){ node->keys[kept], right };
}

CONTEXT static struct split insert_leaf(struct node *node, uint64_t key) {
    int place = place_of(node, key);
    put(node, place, key, place, make_value(key));
    return node->count == ORDER ? split_leaf(node) : (struct split){ 0, NULL };
}

CONTEXT static struct split insert(struct node *node, uint64_t key) {
    if (node->leaf) return insert_leaf(node, key);
    int place = place_of(node, key);
    struct split split = insert(node->children[place], key);
    if (!split.right) return split;
    put(node, place, split.key, place + 1, split.right);
    return node->count == ORDER ? split_inner(node) : (struct split){ 0, NULL };
}

CONTEXT static struct node *grow(struct node *root, struct split split) {
    struct node *node = make_node(0);
    node->keys[0] = split.key;
    node->children[0] = root;
    node->children[1] = split.right;
    node->count = 1;
    return node;
}

static const struct value *find(const struct node *node, uint64_t key) {
    while (!node->leaf) node = node->children[place_of(node, key)];
    int place = place_of(node, key);
    return place < node->count && node->keys[place] == key ? node->children[place] : NULL;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

/* A bijection, so that keys come in random order. */
static uint64_t key_of(uint64_t index) { return (index + 1) * 0x9e3779b97f4a7c15u; }

int main(int count, char **arguments) {
    if (count < 3) { fprintf(stderr, "expected RECORDS READS [SEED]\n"); return 2; }
    uint64_t records = strtoull(arguments[1], NULL, 10), reads = strtoull(arguments[2], NULL, 10), sum = 0;
    state = count > 3 ? strtoull(arguments[3], NULL, 10) : 1;
    struct node *root = make_node(1);
    double start = seconds();
    for (uint64_t i = 0; i < records; i++) {
        struct split split = insert(root, key_of(i));
        if (split.right) root = grow(root, split);
    }
    double loaded = seconds();
    for (uint64_t i = 0; i < reads; i++) {
        const struct value *value = find(root, key_of(next_random() % records));
        if (!value) { fprintf(stderr, "btree: a key is lost\n"); return 1; }
        sum += value->number;
    }
    printf("load %.3f s, read %.3f s, sum %016llx\n", loaded - start, seconds() - loaded, (unsigned long long)sum);
    return 0;
}
