/* Make writes fail, or the wall clock jump, for a program that is started with LD_PRELOAD.
 *
 * FAULT_PATH    fail writes to files whose path contains this
 * FAULT_AFTER   after this many bytes (of all such files together)
 * FAULT_ERRNO   with this error; fsync fails too
 * CLOCK_JUMP    add or subtract this many seconds, in turns of 50 calls */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static long written;

static int watched(int fd) {
    const char *part = getenv("FAULT_PATH");
    char link[64], path[4096];
    if (!part || fd < 3) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strstr(path, part) != NULL;
}

static int fails(int fd, size_t count) {
    int before = errno;
    int fault = watched(fd) && __sync_add_and_fetch(&written, (long)count) > atol(getenv("FAULT_AFTER"));
    errno = fault ? atoi(getenv("FAULT_ERRNO")) : before;
    return fault;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *data, size_t count) { return fails(fd, count) ? -1 : REAL(write)(fd, data, count); }
ssize_t pwrite(int fd, const void *data, size_t count, off_t at) { return fails(fd, count) ? -1 : REAL(pwrite)(fd, data, count, at); }
ssize_t pwrite64(int fd, const void *data, size_t count, off64_t at) { return fails(fd, count) ? -1 : REAL(pwrite64)(fd, data, count, at); }
ssize_t writev(int fd, const struct iovec *parts, int count) { return fails(fd, 1) ? -1 : REAL(writev)(fd, parts, count); }
int fsync(int fd) { return fails(fd, 0) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return fails(fd, 0) ? -1 : REAL(fdatasync)(fd); }

static long jump(void) {
    static long calls;
    const char *seconds = getenv("CLOCK_JUMP");
    long turn = __sync_fetch_and_add(&calls, 1) / 50 % 3;
    return seconds ? atol(seconds) * (turn == 1) - atol(seconds) * (turn == 2) : 0;
}

int clock_gettime(clockid_t which, struct timespec *now) {
    int result = REAL(clock_gettime)(which, now);
    if (result == 0 && which == CLOCK_REALTIME) now->tv_sec += jump();
    return result;
}
int gettimeofday(struct timeval *now, void *zone) {
    int result = REAL(gettimeofday)(now, zone);
    if (result == 0) now->tv_sec += jump();
    return result;
}
time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
