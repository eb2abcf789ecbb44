/* Prints the regions of blocks from known calling contexts, one per line: NAME REGION. */
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define CONTEXT __attribute__((noinline))
#define HERE __asm__ volatile("" ::: "memory")

static int (*region_of)(const void *);

CONTEXT static void *innermost(size_t size) { void *block = malloc(size); HERE; return block; }

#define CHAIN(name) CONTEXT static void *name(size_t size) { void *block = innermost(size); HERE; return block; }
CHAIN(chain0) CHAIN(chain1) CHAIN(chain2) CHAIN(chain3) CHAIN(chain4) CHAIN(chain5) CHAIN(chain6) CHAIN(chain7)

CONTEXT static void *deep(int depth, size_t size) {
    void *block = depth ? deep(depth - 1, size) : innermost(size);
    HERE;
    return block;
}

/* Allocates in a frame of variable size. */
CONTEXT static void *variable(int bytes, size_t size) {
    volatile char *room = alloca(bytes);
    room[0] = room[bytes - 1] = 1;
    void *block = innermost(size);
    HERE;
    return block;
}

/* Prints the region of many blocks of one context, or ends the program if they differ. */
static void print(const char *name, void *(*chain)(size_t)) {
    int region = -1;
    for (int i = 0; i < 1000; i++) {
        void *block = chain(i % 300 + 1);
        int here = region_of(block);
        if (i == 0) region = here;
        if (here != region) { printf("%s: block %d in region %d, not %d\n", name, i, here, region); exit(1); }
        if (i % 2) free(block);
    }
    printf("%s %d\n", name, region);
}

static void *recursion(size_t size) { return deep(40, size); }
static void *shallow(size_t size) { return deep(2, size); }
static void *alloca_16(size_t size) { return variable(16 + (int)size, size); }

static void *thread(void *unused) { print("thread", chain0); return unused; }

static ucontext_t main_context, own_context;
static void on_own_stack(void) { print("own_stack", chain0); }

static volatile int handled;
static void handler(int signal) { free(malloc(50)); handled += signal == SIGUSR1; }

int main(void) {
    region_of = (int (*)(const void *))dlsym(RTLD_DEFAULT, "isotherm_alloc_region");
    if (!region_of) { puts("no library"); return 2; }
    print("chain0", chain0); print("chain1", chain1); print("chain2", chain2); print("chain3", chain3);
    print("chain4", chain4); print("chain5", chain5); print("chain6", chain6); print("chain7", chain7);
    print("recursion", recursion); print("shallow", shallow); print("alloca", alloca_16);
    pthread_t other;
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    static char stack[65536];
    getcontext(&own_context);
    own_context.uc_stack.ss_sp = stack;
    own_context.uc_stack.ss_size = sizeof stack;
    own_context.uc_link = &main_context;
    makecontext(&own_context, on_own_stack, 0);
    swapcontext(&main_context, &own_context);
    signal(SIGUSR1, handler);
    for (int i = 0; i < 1000; i++) raise(SIGUSR1);
    printf("handled %d\n", handled);
    return 0;
}
