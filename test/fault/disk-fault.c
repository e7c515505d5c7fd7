/*
 * Preloaded into a test's child process: makes the disk fail on demand.
 * FAULT_FILE names a file; while it exists, its text "<call> <errno> <part of a path>" says which calls fail:
 * `write` (the first half of the bytes is written, then the error: a torn write), `sync`, `lock` (another process
 * holds the file's lock), or `open` (for writing, or to create: a read-only disk). The other calls end the process as
 * `kill -9` does: `torn` amid a write, `before` and `after` at the ends of a sync.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#undef fwrite_unlocked /* a macro of stdio.h */
#undef fflush_unlocked

/* The errno that this call on the file at this path is to fail with, or 0. */
static int path_fault(const char *call, const char *path) {
  const char *control = getenv("FAULT_FILE");
  if (control == NULL) return 0;
  int in = (int)syscall(SYS_openat, AT_FDCWD, control, O_RDONLY);
  if (in < 0) return 0;
  char text[512] = {0};
  long got = syscall(SYS_read, in, text, sizeof text - 1);
  syscall(SYS_close, in);
  char wanted[16], part[256];
  int code;
  if (got <= 0 || sscanf(text, "%15s %d %255s", wanted, &code, part) != 3 || strcmp(wanted, call) != 0) return 0;
  return strstr(path, part) == NULL ? 0 : code;
}

/* The same for an open file. */
static int fault(const char *call, int fd) {
  char link[64], path[PATH_MAX] = {0};
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  return readlink(link, path, sizeof path - 1) <= 0 ? 0 : path_fault(call, path);
}

/* Ends the process here where this call on the file asks for it. */
static void end_at(const char *call, int fd) {
  if (fault(call, fd) != 0) kill(getpid(), SIGKILL);
}

static int fail(int code) {
  errno = code;
  return -1;
}

/* LevelDB writes through stdio; glibc's own calls to the kernel cannot be replaced, so its entry points are. */
size_t fwrite_unlocked(const void *bytes, size_t size, size_t count, FILE *file) {
  static size_t (*real)(const void *, size_t, size_t, FILE *);
  if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "fwrite_unlocked");
  if (fault("torn", fileno(file)) != 0) {
    syscall(SYS_write, fileno(file), bytes, size * count / 2);
    kill(getpid(), SIGKILL);
  }
  int code = fault("write", fileno(file));
  if (code == 0) return real(bytes, size, count, file);
  long half = syscall(SYS_write, fileno(file), bytes, size * count / 2);
  errno = code;
  return half < 0 ? 0 : (size_t)half / size;
}

/* What a failed flush leaves in the buffer is lost, as with a real full disk. */
int fflush_unlocked(FILE *file) {
  static int (*real)(FILE *);
  if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "fflush_unlocked");
  int code = file == NULL ? 0 : fault("write", fileno(file));
  if (code == 0) return real(file);
  __fpurge(file);
  errno = code;
  return EOF;
}

ssize_t write(int fd, const void *bytes, size_t count) {
  int code = fault("write", fd);
  if (code == 0) return syscall(SYS_write, fd, bytes, count);
  if (count < 2) return fail(code);
  return syscall(SYS_write, fd, bytes, count / 2) < 0 ? -1 : fail(code);
}

/* A file that is opened so syncs with every write. */
static int syncs(int fd) {
  return (syscall(SYS_fcntl, fd, F_GETFL) & O_DSYNC) != 0;
}

/* Less than a half: what is written in whole pages may end with padding. */
static size_t torn(size_t count) {
  return count / 2 < 512 ? count / 2 : 512;
}

static ssize_t write_parts(int fd, const struct iovec *parts, int count, off_t offset) {
  int synced = syncs(fd);
  const struct iovec *first = parts;
  int code = fault("write", fd);
  if (code != 0 || fault("torn", fd) != 0) {
    syscall(SYS_pwrite64, fd, first->iov_base, torn(first->iov_len), offset);
    if (code == 0) kill(getpid(), SIGKILL);
    return fail(code);
  }
  if (synced) end_at("before", fd);
  ssize_t written = syscall(SYS_pwritev, fd, parts, count, offset, 0);
  code = synced ? fault("sync", fd) : 0;
  if (synced) end_at("after", fd);
  return code == 0 ? written : fail(code);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
  struct iovec part = {(void *)bytes, count};
  return write_parts(fd, &part, 1, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
  return pwrite(fd, bytes, count, offset);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
  return write_parts(fd, parts, count, offset);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset) {
  return write_parts(fd, parts, count, offset);
}

static int sync_by(long number, int fd) {
  end_at("before", fd);
  int code = fault("sync", fd);
  int result = code == 0 ? (int)syscall(number, fd) : fail(code);
  end_at("after", fd);
  return result;
}

int fdatasync(int fd) {
  return sync_by(SYS_fdatasync, fd);
}

int fsync(int fd) {
  return sync_by(SYS_fsync, fd);
}

int fcntl(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  long argument = va_arg(rest, long);
  va_end(rest);
  int code = command == F_SETLK ? fault("lock", fd) : 0;
  return code == 0 ? (int)syscall(SYS_fcntl, fd, command, argument) : fail(code);
}

int fcntl64(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  long argument = va_arg(rest, long);
  va_end(rest);
  return fcntl(fd, command, argument);
}

int open(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  int mode = va_arg(rest, int);
  va_end(rest);
  int code = (flags & (O_ACCMODE | O_CREAT)) == O_RDONLY ? 0 : path_fault("open", path);
  return code == 0 ? (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode) : fail(code);
}

int open64(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  int mode = va_arg(rest, int);
  va_end(rest);
  return open(path, flags, mode);
}

int mkdir(const char *path, mode_t mode) {
  struct stat found;
  int code = stat(path, &found) == 0 ? 0 : path_fault("open", path); /* EEXIST comes before EROFS */
  return code == 0 ? (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode) : fail(code);
}
