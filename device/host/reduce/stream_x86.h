/* Non-temporal copy: full cache lines bypass the caches, so the destination is not read first. The including file
 * defines nt_line(void *line, const void *from), which stores 64 bytes to an aligned address. */
#define HAVE_STREAM

static void stream_n(void *dst, const void *src, size_t bytes) {
  char *d = dst;
  const char *s = src;
  size_t head = -(uintptr_t)d & 63;
  if (head > bytes) head = bytes;
  memcpy(d, s, head);
  d += head, s += head, bytes -= head;
  for (; bytes >= 256; bytes -= 256, d += 256, s += 256) {
    nt_line(d, s);
    nt_line(d + 64, s + 64);
    nt_line(d + 128, s + 128);
    nt_line(d + 192, s + 192);
  }
  for (; bytes >= 64; bytes -= 64, d += 64, s += 64) nt_line(d, s);
  memcpy(d, s, bytes);
}

static void fence_n(void) { _mm_sfence(); }
