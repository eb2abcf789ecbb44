/* The B+ tree benchmark of tiering papers (Mitosis' btree, after A. Aviram's tree), with its sizes, its
 * blocks and their places of allocation: an array of elements; records and nodes from slabs of 1 MiB;
 * for each node an array of keys and one of pointers, a line each, allocated one by one and cleared,
 * and two more while a node is split.
 *
 * btree RECORDS READS [SEED]
 *
 * inserts RECORDS even keys in random order (the published source gives all the same key, evidently a
 * slip), then looks up READS keys drawn from twice as many. Half exist, and only its place in the tree
 * makes an object hotter. It prints the CPU seconds of inserting and of looking up, and a checksum. It
 * is in C so that the compiler chooses whether there are frame pointers. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ORDER = 6, LINE = 64, SLAB = 1 << 20, SLAB_ALIGNMENT = 2 << 20, STRIDE = 2 };

struct element { uint64_t key, reads, value; char payload[LINE - 24]; };
struct record { uint64_t value; struct record *next; uint64_t flags, reads; };
struct node {
    void **pointers;  /* up to ORDER: nodes, or in a leaf records and, last, the next leaf */
    uint64_t *keys;   /* up to ORDER - 1 */
    struct node *parent;
    uint64_t leaf, count, reads;
    struct node *next;
};

static void *allocate(size_t size, size_t alignment) {
    void *block;
    if (posix_memalign(&block, alignment, size)) { fprintf(stderr, "btree: no memory\n"); exit(1); }
    return memset(block, 0, size);
}

/* Slabs of objects of one size; the first words of free objects link them. */
struct slab { void *free; size_t size; };
static struct slab records = { NULL, sizeof(struct record) }, nodes = { NULL, sizeof(struct node) };

static void *take(struct slab *slab) {
    if (!slab->free) {
        char *block = allocate(SLAB, SLAB_ALIGNMENT);
        for (size_t at = 0; at + slab->size <= SLAB; at += slab->size) {
            *(void **)(block + at) = slab->free;
            slab->free = block + at;
        }
    }
    void *object = slab->free;
    slab->free = *(void **)object;
    return memset(object, 0, slab->size);
}

static struct node *make_node(int leaf) {
    struct node *node = take(&nodes);
    node->keys = allocate((ORDER - 1) * sizeof *node->keys, LINE);
    node->pointers = allocate(ORDER * sizeof *node->pointers, LINE);
    node->leaf = leaf;
    return node;
}

/* Returns a key's child in an inner node, or its place in a leaf: the number of keys not above it. */
static uint64_t rank(const struct node *node, uint64_t key) {
    uint64_t at = 0;
    while (at < node->count && node->keys[at] <= key) at++;
    return at;
}

static struct node *find_leaf(struct node *node, uint64_t key) {
    while (!node->leaf) node = node->pointers[rank(node, key)];
    return node;
}

static struct record *find(struct node *root, uint64_t key) {
    struct node *leaf = find_leaf(root, key);
    for (uint64_t at = 0; at < leaf->count; at++)
        if (leaf->keys[at] == key) return leaf->pointers[at];
    return NULL;
}

static struct node *put_in_parent(struct node *root, struct node *left, uint64_t key, struct node *right);

/* Inserts into a full leaf: keys go to temporary arrays and from there to the leaf and a new one. */
static struct node *split_leaf(struct node *root, struct node *leaf, uint64_t key, struct record *record) {
    struct node *right = make_node(1);
    uint64_t *keys = allocate((ORDER + 1) * sizeof *keys, LINE);
    void **pointers = allocate((ORDER + 1) * sizeof *pointers, LINE);
    uint64_t place = rank(leaf, key), kept = ORDER / 2;
    for (uint64_t at = 0; at < ORDER - 1; at++) {
        keys[at + (at >= place)] = leaf->keys[at];
        pointers[at + (at >= place)] = leaf->pointers[at];
    }
    keys[place] = key;
    pointers[place] = record;
    for (uint64_t at = 0; at < ORDER; at++) {
        struct node *to = at < kept ? leaf : right;
        to->keys[at < kept ? at : at - kept] = keys[at];
        to->pointers[at < kept ? at : at - kept] = pointers[at];
    }
    leaf->count = kept;
    right->count = ORDER - kept;
    free(pointers);
    free(keys);
    right->pointers[ORDER - 1] = leaf->pointers[ORDER - 1];
    leaf->pointers[ORDER - 1] = right;
    for (uint64_t at = kept; at < ORDER - 1; at++) leaf->pointers[at] = right->pointers[at] = NULL;
    right->parent = leaf->parent;
    return put_in_parent(root, leaf, right->keys[0], right);
}

static struct node *split_inner(struct node *root, struct node *node, uint64_t child, uint64_t key, struct node *added) {
    void **pointers = allocate((ORDER + 1) * sizeof *pointers, LINE);
    uint64_t *keys = allocate(ORDER * sizeof *keys, LINE);
    for (uint64_t at = 0; at < ORDER; at++) pointers[at + (at > child)] = node->pointers[at];
    for (uint64_t at = 0; at < ORDER - 1; at++) keys[at + (at >= child)] = node->keys[at];
    pointers[child + 1] = added;
    keys[child] = key;
    struct node *right = make_node(0);
    uint64_t kept = ORDER / 2 - 1, middle = keys[kept];
    memcpy(node->pointers, pointers, (kept + 1) * sizeof *pointers);
    memcpy(node->keys, keys, kept * sizeof *keys);
    memcpy(right->pointers, pointers + kept + 1, (ORDER - kept) * sizeof *pointers);
    memcpy(right->keys, keys + kept + 1, (ORDER - kept - 1) * sizeof *keys);
    node->count = kept;
    right->count = ORDER - kept - 1;
    free(pointers);
    free(keys);
    right->parent = node->parent;
    for (uint64_t at = 0; at <= right->count; at++) ((struct node *)right->pointers[at])->parent = right;
    return put_in_parent(root, node, middle, right);
}

static struct node *make_root(struct node *left, uint64_t key, struct node *right) {
    struct node *root = make_node(0);
    root->keys[0] = key;
    root->pointers[0] = left;
    root->pointers[1] = right;
    root->count = 1;
    return left->parent = right->parent = root;
}

/* Puts the node split off `left`, from `key` on, behind it in the parent; returns the root. */
static struct node *put_in_parent(struct node *root, struct node *left, uint64_t key, struct node *right) {
    struct node *parent = left->parent;
    if (!parent) return make_root(left, key, right);
    uint64_t child = 0;
    while (parent->pointers[child] != left) child++;
    if (parent->count == ORDER - 1) return split_inner(root, parent, child, key, right);
    for (uint64_t at = parent->count; at > child; at--) {
        parent->pointers[at + 1] = parent->pointers[at];
        parent->keys[at] = parent->keys[at - 1];
    }
    parent->pointers[child + 1] = right;
    parent->keys[child] = key;
    parent->count++;
    return root;
}

static struct node *insert(struct node *root, uint64_t key, uint64_t value) {
    if (find(root, key)) return root;
    struct record *record = take(&records);
    record->value = value;
    struct node *leaf = find_leaf(root, key);
    if (leaf->count == ORDER - 1) return split_leaf(root, leaf, key, record);
    uint64_t place = rank(leaf, key);
    for (uint64_t at = leaf->count; at > place; at--) {
        leaf->keys[at] = leaf->keys[at - 1];
        leaf->pointers[at] = leaf->pointers[at - 1];
    }
    leaf->keys[place] = key;
    leaf->pointers[place] = record;
    leaf->count++;
    return root;
}

static uint64_t state;
static uint64_t next_random(void) {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static struct element *make_elements(uint64_t count) {
    struct element *elements = allocate(count * sizeof *elements, SLAB_ALIGNMENT);
    for (uint64_t at = 0; at < count; at++) elements[at] = (struct element){ .key = at * STRIDE, .value = at * 3 };
    for (uint64_t at = count; at-- > 1;) {
        uint64_t other = next_random() % (at + 1), key = elements[at].key;
        elements[at].key = elements[other].key;
        elements[other].key = key;
    }
    return elements;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

int main(int count, char **arguments) {
    if (count < 3) { fprintf(stderr, "expected RECORDS READS [SEED]\n"); return 2; }
    uint64_t number = strtoull(arguments[1], NULL, 10), reads = strtoull(arguments[2], NULL, 10), sum = 0;
    state = count > 3 ? strtoull(arguments[3], NULL, 10) : 1;
    struct element *elements = make_elements(number);
    struct node *root = make_node(1);
    double start = seconds();
    for (uint64_t at = 0; at < number; at++) root = insert(root, elements[at].key, (uint64_t)&elements[at]);
    double loaded = seconds();
    for (uint64_t at = 0; at < reads; at++) {
        uint64_t key = next_random() % (number * STRIDE);
        struct record *record = find(root, key);
        if ((record != NULL) != (key % STRIDE == 0)) { fprintf(stderr, "btree: wrong for key %lu\n", (unsigned long)key); return 1; }
        if (!record) continue;
        record->reads++;
        sum += ((struct element *)record->value)->value;
    }
    printf("load %.3f s, read %.3f s, sum %016lx\n", loaded - start, seconds() - loaded, (unsigned long)sum);
    return 0;
}
