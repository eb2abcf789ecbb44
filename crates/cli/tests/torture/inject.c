// Runs a command and fails one of its system calls, with an error that the call's manual page lists.
//
//   inject NUMBER COUNT-FILE COMMAND...
//
// Counts the calls of all threads that can fail for want of something, each from the moment when it has its
// stack for signals: glibc's loader crashes where its first mappings fail, and Rust's runtime ends the
// process where it gets no such stack. Left alone are children that the command forks; close(2), for Linux
// always closes; and recv(2) in the thread that launches the program, whose panic is Rust's.
// Writes their number to COUNT-FILE and ends as the command does.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/ptrace.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

long ptrace(int request, ...);

#ifndef __x86_64__
#error "the registers of x86-64 are known only"
#endif

static const struct { long call; int error; } CAN_FAIL[] = {
    {SYS_read, EIO},          {SYS_pread64, EIO},       {SYS_readv, EIO},         {SYS_preadv, EIO},
    {SYS_write, ENOSPC},      {SYS_pwrite64, ENOSPC},   {SYS_writev, ENOSPC},     {SYS_open, EMFILE},
    {SYS_openat, EMFILE},     {SYS_stat, ENOMEM},       {SYS_fstat, ENOMEM},
    {SYS_lstat, ENOMEM},      {SYS_newfstatat, ENOMEM}, {SYS_statx, ENOMEM},      {SYS_access, EIO},
    {SYS_faccessat, EIO},     {SYS_faccessat2, EIO},    {SYS_readlink, EIO},      {SYS_readlinkat, EIO},
    {SYS_getdents64, ENOMEM}, {SYS_mkdir, ENOSPC},      {SYS_mkdirat, ENOSPC},    {SYS_unlink, EIO},
    {SYS_unlinkat, EIO},      {SYS_rmdir, EIO},         {SYS_symlink, ENOSPC},    {SYS_symlinkat, ENOSPC},
    {SYS_chmod, EIO},         {SYS_fchmod, EIO},        {SYS_fchmodat, EIO},      {SYS_ftruncate, EIO},
    {SYS_flock, ENOLCK},      {SYS_rename, ENOSPC},     {SYS_renameat, ENOSPC},   {SYS_renameat2, ENOSPC},
    {SYS_mmap, ENOMEM},       {SYS_munmap, ENOMEM},     {SYS_mremap, ENOMEM},     {SYS_mprotect, ENOMEM},
    {SYS_madvise, ENOMEM},    {SYS_memfd_create, EMFILE}, {SYS_poll, ENOMEM},     {SYS_ppoll, ENOMEM},
    {SYS_socket, EMFILE},     {SYS_bind, ENOMEM},       {SYS_listen, EADDRINUSE}, {SYS_accept4, EMFILE},
    {SYS_connect, EAGAIN},    {SYS_getsockopt, ENOMEM}, {SYS_sendmsg, ENOMEM},    {SYS_recvmsg, ENOMEM},
    {SYS_sendto, ENOMEM},     {SYS_recvfrom, ENOMEM},   {SYS_pipe2, EMFILE},      {SYS_clone, EAGAIN},
    {SYS_clone3, EAGAIN},     {SYS_fork, EAGAIN},       {SYS_vfork, EAGAIN},      {SYS_dup, EMFILE},
    {SYS_fcntl, EMFILE},      {SYS_ioctl, ENOMEM},      {SYS_pidfd_open, EMFILE}, {SYS_perf_event_open, EMFILE},
    {SYS_move_pages, ENOMEM}, {SYS_kill, EPERM},       {SYS_sched_getaffinity, ESRCH},
};

static int error_of(long call) {
    for (size_t at = 0; at < sizeof CAN_FAIL / sizeof *CAN_FAIL; at++)
        if (CAN_FAIL[at].call == call)
            return CAN_FAIL[at].error;
    return 0;
}

// Threads that have their stack for signals.
static pid_t ready[1024];
static size_t ready_count;

static int is_ready(pid_t thread) {
    for (size_t at = 0; at < ready_count; at++)
        if (ready[at] == thread)
            return 1;
    return 0;
}

static int launches(pid_t thread) {
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", thread);
    FILE *file = fopen(path, "r");
    if (!file || !fgets(name, sizeof name, file))
        name[0] = 0;
    if (file)
        fclose(file);
    return !strcmp(name, "isotherm-launch\n");
}

static int error_in(pid_t thread, long call) {
    return call == SYS_recvfrom && launches(thread) ? 0 : error_of(call);
}

static void fail(const char *call) {
    perror(call);
    exit(99);
}

int main(int count, char **arguments) {
    if (count < 4)
        return 99;
    long number = atol(arguments[1]), calls = 0, failed = -1;
    pid_t failing = 0;
    int ends[2], error = 0, status = 0;
    if (pipe(ends))
        fail("pipe");
    pid_t child = fork();
    if (child == 0) {
        char byte;
        close(ends[1]);
        if (read(ends[0], &byte, 1) != 1)
            _exit(99);
        close(ends[0]);
        execvp(arguments[3], arguments + 3);
        _exit(127);
    }
    long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    if (child < 0 || ptrace(PTRACE_SEIZE, child, 0, options))
        fail("ptrace");
    if (write(ends[1], "", 1) != 1)
        fail("write");
    close(ends[0]);
    close(ends[1]);
    for (;;) {
        pid_t thread = waitpid(-1, &status, __WALL);
        if (thread < 0)
            fail("waitpid");
        if (!WIFSTOPPED(status)) {
            if (thread == child)
                break;
            continue;
        }
        int signal = WSTOPSIG(status), deliver = 0;
        if (signal == (SIGTRAP | 0x80)) {
            struct user_regs_struct registers;
            struct ptrace_syscall_info stop;
            if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof stop, &stop) <= 0)
                continue;
            int entry = stop.op == PTRACE_SYSCALL_INFO_ENTRY;
            if (entry && stop.entry.nr == SYS_sigaltstack && stop.entry.args[0] && !is_ready(thread)) {
                if (ready_count == sizeof ready / sizeof *ready)
                    return 99;
                ready[ready_count++] = thread;
            } else if (entry && is_ready(thread) && error_in(thread, stop.entry.nr) && ++calls == number) {
                failing = thread;
                failed = stop.entry.nr;
                error = error_of(stop.entry.nr);
                ptrace(PTRACE_GETREGS, thread, 0, &registers);
                registers.orig_rax = -1;
                ptrace(PTRACE_SETREGS, thread, 0, &registers);
            } else if (stop.op == PTRACE_SYSCALL_INFO_EXIT && thread == failing) {
                failing = 0;
                ptrace(PTRACE_GETREGS, thread, 0, &registers);
                registers.rax = -error;
                ptrace(PTRACE_SETREGS, thread, 0, &registers);
            }
        } else if (status >> 16 == 0) {
            deliver = signal;
        }
        // A thread that was killed meanwhile reports that next.
        ptrace(PTRACE_SYSCALL, thread, 0, deliver);
    }
    FILE *file = fopen(arguments[2], "w");
    if (!file || fprintf(file, "%ld failed: %ld\n", calls, failed) < 0 || fclose(file))
        fail(arguments[2]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
