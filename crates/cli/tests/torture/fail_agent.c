// Runs a command and fails one of the system calls that libisotherm.so makes inside of a program: those of
// the agent's process, and those of the program's own thread that start the agent.
//
//   fail_agent NUMBER COUNT-FILE COMMAND...
//
// A system call filter (SECCOMP_RET_USER_NOTIF) asks this process about every call of these kinds; ptrace
// does not reach the agent (CLONE_UNTRACED). Writes the number of calls to COUNT-FILE and ends as the
// command does.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// Whose calls: the agent's process, that of the program, or whoever makes one. An argument narrows it.
enum whose { AGENT, PROGRAM, ANY };
static const char *const NAMES[] = {"isotherm-agent\n", "program\n"};
enum { ALL = -1 };

static const struct { long call; int error; enum whose whose; int argument; unsigned long value; } CAN_FAIL[] = {
    {SYS_read, EAGAIN, AGENT, ALL, 0},      {SYS_pread64, EIO, AGENT, ALL, 0},
    {SYS_ioctl, ENOMEM, AGENT, ALL, 0},     {SYS_ppoll, ENOMEM, AGENT, ALL, 0},
    {SYS_recvfrom, ENOMEM, AGENT, ALL, 0},  {SYS_sendmsg, ENOMEM, AGENT, ALL, 0},
    {SYS_mmap, ENOMEM, AGENT, ALL, 0},      {SYS_munmap, ENOMEM, AGENT, ALL, 0},
    {SYS_mprotect, ENOMEM, AGENT, ALL, 0},  {SYS_madvise, ENOMEM, AGENT, ALL, 0},
    {SYS_memfd_create, EMFILE, AGENT, ALL, 0}, {SYS_ftruncate, EIO, AGENT, ALL, 0},
    {SYS_fcntl, EMFILE, AGENT, ALL, 0},     {SYS_tgkill, EAGAIN, AGENT, ALL, 0},
    {SYS_sched_setscheduler, EPERM, AGENT, ALL, 0}, {SYS_close_range, ENOMEM, AGENT, ALL, 0},
    {SYS_prctl, EINVAL, AGENT, 0, PR_SET_SECCOMP}, {SYS_prctl, EINVAL, AGENT, 0, PR_SET_NO_NEW_PRIVS},
    {SYS_prctl, EINVAL, ANY, 0, PR_GET_TID_ADDRESS}, {SYS_userfaultfd, EMFILE, ANY, ALL, 0},
    {SYS_socket, EMFILE, PROGRAM, ALL, 0},  {SYS_connect, EAGAIN, PROGRAM, ALL, 0},
    {SYS_getsockopt, ENOMEM, PROGRAM, ALL, 0}, {SYS_pidfd_open, EMFILE, PROGRAM, ALL, 0},
    {SYS_clone, EAGAIN, ANY, 0, CLONE_VM | CLONE_UNTRACED | CLONE_SETTLS},
    {SYS_mmap, ENOMEM, ANY, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK},
};
enum { KINDS = sizeof CAN_FAIL / sizeof *CAN_FAIL };

static void fail(const char *call) {
    perror(call);
    exit(99);
}

// Has the kernel ask about the calls above from now on; returns the descriptor to answer at.
static int filter(void) {
    struct sock_filter steps[2 * KINDS + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    for (int at = 0; at < KINDS; at++) {
        steps[1 + 2 * at] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CAN_FAIL[at].call, 0, 1);
        steps[2 + 2 * at] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    }
    steps[2 * KINDS + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {2 * KINDS + 2, steps};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

static int is_named(pid_t process, const char *expected) {
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", process);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    if (!fgets(name, sizeof name, file))
        name[0] = 0;
    fclose(file);
    return !strcmp(name, expected);
}

// Returns the error that the call can fail with; 0 if it is none of the library's.
static int error_of(const struct seccomp_notif *asked) {
    for (int at = 0; at < KINDS; at++) {
        int argument = CAN_FAIL[at].argument;
        if (asked->data.nr == SYS_ioctl && asked->data.args[1] == UFFDIO_WAKE)
            return 0; // Waking does not fail.
        if (CAN_FAIL[at].call != asked->data.nr)
            continue;
        if (argument != ALL && asked->data.args[argument] != CAN_FAIL[at].value)
            continue;
        enum whose whose = CAN_FAIL[at].whose;
        if (whose == ANY || is_named(asked->pid, NAMES[whose]))
            return CAN_FAIL[at].error;
    }
    return 0;
}

int main(int count, char **arguments) {
    if (count < 4)
        return 99;
    long number = atol(arguments[1]), calls = 0;
    int *listener = mmap(NULL, sizeof *listener, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (listener == MAP_FAILED)
        fail("mmap");
    // The descriptors are shared until the child executes the command.
    pid_t child = syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
    if (child < 0)
        fail("clone");
    if (child == 0) {
        int made = filter();
        __atomic_store_n(listener, made < 0 ? -errno : made, __ATOMIC_SEQ_CST);
        if (made < 0)
            _exit(99);
        execvp(arguments[3], arguments + 3);
        _exit(127);
    }
    while (!__atomic_load_n(listener, __ATOMIC_SEQ_CST))
        usleep(100);
    if (*listener < 0)
        return fprintf(stderr, "seccomp: %s\n", strerror(-*listener)), 99;
    struct pollfd waiting = {*listener, POLLIN, 0};
    // The kernel tells of the end of the last process with the filter.
    while (poll(&waiting, 1, -1) > 0 && !(waiting.revents & POLLHUP)) {
        struct seccomp_notif asked = {0};
        if (ioctl(*listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) < 0)
            continue;
        struct seccomp_notif_resp answer = {asked.id, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        int error = error_of(&asked);
        if (error && ++calls == number) {
            answer.error = -error;
            answer.flags = 0;
        }
        ioctl(*listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child)
        fail("waitpid");
    FILE *file = fopen(arguments[2], "w");
    if (!file || fprintf(file, "%ld\n", calls) < 0 || fclose(file))
        fail(arguments[2]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
