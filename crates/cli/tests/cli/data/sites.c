// Allocates at sites that use their memory in known ways. Nodes are made one by one, read once; a table is
// made by a wrapper, read ROUNDS times; a list grows by realloc, written as it grows; a child of a fork reads
// its copy of the table.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINE = 64, NODES = 1 << 14, NODE = 48, TABLE = 1 << 20, LIST = 1 << 19 };

struct node { struct node *next; char rest[NODE - sizeof(struct node *)]; };

static void *volatile kept;

__attribute__((noinline)) static void *xmalloc(size_t bytes) {
    void *block = malloc(bytes);
    if (!block) abort();
    return block;
}

__attribute__((noinline)) static struct node *make_nodes(void) {
    struct node *first = NULL;
    for (int number = 0; number < NODES; number++) {
        struct node *node = malloc(sizeof *node);
        node->next = first;
        first = node;
    }
    return first;
}

__attribute__((noinline)) static volatile char *make_table(void) {
    return xmalloc(TABLE);
}

__attribute__((noinline)) static void *make_list(void) {
    char *list = NULL;
    for (long size = LINE; size <= LIST; size *= 2) {
        list = realloc(list, size);
        for (long at = size / 2; at < size; at += LINE) ((volatile char *)list)[at] = 1;
    }
    return list;
}

static void read_all(volatile char *table, long rounds) {
    for (long round = 0; round < rounds; round++)
        for (long at = 0; at < TABLE; at += LINE) table[at];
}

int main(int count, char **arguments) {
    long rounds = count > 1 ? atol(arguments[1]) : 1;
    struct node *nodes = make_nodes();
    volatile char *table = make_table();
    kept = make_list();
    for (struct node *node = nodes; node; node = node->next) kept = node;
    read_all(table, rounds);
    pid_t child = fork();
    if (child == 0) {
        read_all(table, 1);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    puts("done");
    return 0;
}
