/* Kill this process, or let a call fail, at the nth change of files below a folder; log what changes elsewhere and what
   is sent. Preload it; `research/faults/campaign.py` compiles it and calls `faults_arm` and `faults_watch`. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OPEN = 1, WRITE = 2, SYNC = 4, NAME = 8, REMOVE = 16 };

static char root[PATH_MAX], allowed[8 * PATH_MAX];
static long at, steps;
static int fails_with, stays, applies, fired, journal = -1;
static unsigned char mine[1 << 16];

/* Count changes below `folder` from 1; at number `number` die (error < 0), or fail with `error` where the call can,
   once or (`always`) from then on. */
void faults_arm(const char *folder, long number, int error, int always) {
    steps = fired = 0, at = number, fails_with = error, stays = always;
    applies = error == EMFILE ? OPEN : error == EROFS ? ~0 : ~REMOVE;
    snprintf(root, sizeof root, "%s", folder);
}

long faults_steps(void) { return steps; }

/* Log to `path` every file that is changed below none of `folders` (each ends with a colon), and every connection. */
void faults_watch(const char *path, const char *folders) {
    if (journal >= 0) syscall(SYS_close, journal);
    journal = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    snprintf(allowed, sizeof allowed, "%s", folders);
}

static void note(const char *kind, const char *what) {
    char line[PATH_MAX + 64];
    int size = snprintf(line, sizeof line, "%s %s\n", kind, what);
    if (journal >= 0) syscall(SYS_write, journal, line, size);
}

static int below(const char *path, const char *folder, size_t size) {
    return size && !strncmp(path, folder, size) && (path[size] == '/' || !path[size]);
}

static const char *whole(int folder, const char *path, char *buffer) {
    char base[PATH_MAX] = "";
    if (!path || *path == '/') return path;
    if (folder == AT_FDCWD) {
        if (!getcwd(base, sizeof base)) return path;
    } else {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t size = readlink(link, base, sizeof base - 1);
        base[size > 0 ? size : 0] = 0;
    }
    if (snprintf(buffer, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) return path;
    return buffer;
}

static int step(int kind) {
    long number = __sync_add_and_fetch(&steps, 1);
    if (!at || number < at) return 0;
    if (fails_with < 0) {
        kill(getpid(), SIGKILL);
        for (;;) pause();
    }
    if (!(applies & kind) || (fired && !stays)) return 0;
    fired = 1;
    return fails_with;
}

/* The error of a change of a path, 0 to go on. */
static int change(int kind, int folder, const char *path) {
    char buffer[PATH_MAX];
    const char *full = whole(folder, path, buffer);
    if (!full) return 0;
    if (root[0] && below(full, root, strlen(root))) return step(kind);
    if (journal >= 0 && strncmp(full, "/dev/", 5) && strncmp(full, "/proc/", 6)) {
        for (const char *each = allowed, *end; (end = strchr(each, ':')); each = end + 1)
            if (below(full, each, end - each)) return 0;
        note("changes", full);
    }
    return 0;
}

static int of(int kind, int descriptor) {
    return descriptor >= 0 && descriptor < (int)sizeof mine && mine[descriptor] ? step(kind) : 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define WRAP(type, name, parameters, error, call)              \
    type name parameters {                                     \
        static __typeof__(&name) real;                         \
        int code = (error);                                    \
        if (code) { errno = code; return -1; }                 \
        if (!real) real = REAL(name);                          \
        return real call;                                      \
    }

#define OPENS(name, parameters, folder, call)                                                    \
    int name parameters {                                                                        \
        static int (*real) parameters;                                                           \
        int mode = 0, writes = flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC);                  \
        if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {                               \
            va_list rest;                                                                        \
            va_start(rest, flags);                                                               \
            mode = va_arg(rest, int);                                                            \
            va_end(rest);                                                                        \
        }                                                                                        \
        int code = writes ? change(OPEN, folder, path) : 0;                                      \
        if (code) { errno = code; return -1; }                                                   \
        if (!real) real = dlsym(RTLD_NEXT, #name);                                               \
        int found = real call;                                                                   \
        char buffer[PATH_MAX];                                                                   \
        const char *full = writes && root[0] ? whole(folder, path, buffer) : 0;                  \
        if (found >= 0 && found < (int)sizeof mine)                                              \
            mine[found] = full && below(full, root, strlen(root));                               \
        return found;                                                                            \
    }

OPENS(open, (const char *path, int flags, ...), AT_FDCWD, (path, flags, mode))
OPENS(open64, (const char *path, int flags, ...), AT_FDCWD, (path, flags, mode))
OPENS(openat, (int folder, const char *path, int flags, ...), folder, (folder, path, flags, mode))
OPENS(openat64, (int folder, const char *path, int flags, ...), folder, (folder, path, flags, mode))

int close(int descriptor) {
    if (descriptor >= 0 && descriptor < (int)sizeof mine) mine[descriptor] = 0;
    return syscall(SYS_close, descriptor);
}

WRAP(ssize_t, write, (int f, const void *b, size_t n), of(WRITE, f), (f, b, n))
WRAP(ssize_t, writev, (int f, const struct iovec *v, int n), of(WRITE, f), (f, v, n))
WRAP(ssize_t, pwrite, (int f, const void *b, size_t n, off_t o), of(WRITE, f), (f, b, n, o))
WRAP(ssize_t, pwrite64, (int f, const void *b, size_t n, off64_t o), of(WRITE, f), (f, b, n, o))
WRAP(ssize_t, sendfile, (int f, int g, off_t *o, size_t n), of(WRITE, f), (f, g, o, n))
WRAP(ssize_t, sendfile64, (int f, int g, off64_t *o, size_t n), of(WRITE, f), (f, g, o, n))
WRAP(ssize_t, copy_file_range, (int g, off64_t *p, int f, off64_t *o, size_t n, unsigned m), of(WRITE, f),
     (g, p, f, o, n, m))
WRAP(int, ftruncate, (int f, off_t n), of(WRITE, f), (f, n))
WRAP(int, ftruncate64, (int f, off64_t n), of(WRITE, f), (f, n))
WRAP(int, fsync, (int f), of(SYNC, f), (f))
WRAP(int, fdatasync, (int f), of(SYNC, f), (f))
WRAP(int, rename, (const char *a, const char *b), change(NAME, AT_FDCWD, b), (a, b))
WRAP(int, renameat, (int f, const char *a, int g, const char *b), change(NAME, g, b), (f, a, g, b))
WRAP(int, renameat2, (int f, const char *a, int g, const char *b, unsigned m), change(NAME, g, b), (f, a, g, b, m))
WRAP(int, link, (const char *a, const char *b), change(NAME, AT_FDCWD, b), (a, b))
WRAP(int, symlink, (const char *a, const char *b), change(NAME, AT_FDCWD, b), (a, b))
WRAP(int, symlinkat, (const char *a, int g, const char *b), change(NAME, g, b), (a, g, b))
WRAP(int, mkdir, (const char *p, mode_t m), change(NAME, AT_FDCWD, p), (p, m))
WRAP(int, mkdirat, (int f, const char *p, mode_t m), change(NAME, f, p), (f, p, m))
WRAP(int, unlink, (const char *p), change(REMOVE, AT_FDCWD, p), (p))
WRAP(int, unlinkat, (int f, const char *p, int m), change(REMOVE, f, p), (f, p, m))
WRAP(int, rmdir, (const char *p), change(REMOVE, AT_FDCWD, p), (p))

int connect(int descriptor, const struct sockaddr *address, socklen_t size) {
    char shown[INET6_ADDRSTRLEN] = "";
    if (address && (address->sa_family == AF_INET || address->sa_family == AF_INET6)) {
        const void *where = address->sa_family == AF_INET ? (const void *)&((struct sockaddr_in *)address)->sin_addr
                                                          : (const void *)&((struct sockaddr_in6 *)address)->sin6_addr;
        note("connects", inet_ntop(address->sa_family, where, shown, sizeof shown));
    }
    return syscall(SYS_connect, descriptor, address, size);
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    static __typeof__(&getaddrinfo) real;
    unsigned char number[sizeof(struct in6_addr)];
    if (name && inet_pton(AF_INET, name, number) != 1 && inet_pton(AF_INET6, name, number) != 1) note("looks up", name);
    if (!real) real = REAL(getaddrinfo);
    return real(name, service, hints, found);
}
