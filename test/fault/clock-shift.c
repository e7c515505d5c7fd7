/*
 * Preloaded into a test's child process: shifts its clocks while it runs. CLOCK_SHIFT names a file of two numbers of seconds, each a
 * 64-bit integer of this machine: by the first the wall clock alone is set, the second passes on all clocks.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *shift;

__attribute__((constructor)) static void open_shift(void) {
  const char *path = getenv("CLOCK_SHIFT");
  int file = path == NULL ? -1 : open(path, O_RDONLY);
  if (file < 0) return;
  void *map = mmap(NULL, 2 * sizeof *shift, PROT_READ, MAP_SHARED, file, 0);
  if (map != MAP_FAILED) shift = map;
  close(file);
}

static int64_t wall_shift(void) {
  return shift == NULL ? 0 : shift[0] + shift[1];
}

int clock_gettime(clockid_t clock, struct timespec *out) {
  static int (*real)(clockid_t, struct timespec *);
  if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
  int code = real(clock, out);
  if (code != 0 || shift == NULL) return code;
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) out->tv_sec += wall_shift();
  if (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_BOOTTIME)
    out->tv_sec += shift[1];
  return code;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
  static int (*real)(struct timeval *restrict, void *restrict);
  if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "gettimeofday");
  int code = real(out, zone);
  if (code == 0) out->tv_sec += wall_shift();
  return code;
}

time_t time(time_t *out) {
  struct timeval now;
  gettimeofday(&now, NULL);
  if (out != NULL) *out = now.tv_sec;
  return now.tv_sec;
}
