// Prints its environment's LD_PRELOAD and ISOTHERM_SOCKET, whether it has more rights than its user, and
// whether libisotherm.so is loaded; with arguments, executes them afterwards.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static const char *text(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

int main(int count, char **arguments) {
    char line[4096];
    int loaded = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        loaded |= strstr(line, "libisotherm.so") != NULL;
    printf("preload %s\nsocket %s\nsecure %lu\nloaded %d\n", text("LD_PRELOAD"), text("ISOTHERM_SOCKET"),
           getauxval(AT_SECURE), loaded);
    fflush(stdout);
    if (count > 1) {
        execvp(arguments[1], arguments + 1);
        return 127;
    }
    return 7;
}
