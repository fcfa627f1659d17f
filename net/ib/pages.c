#include "pages.h"

#include <pthread.h>
#include <stdlib.h>

enum { PAGE = 4096 };

typedef struct page {
  struct page *next;
  const gccl_card_pages *m;
  char *at, *device;
  uint32_t users;
} page;

static page *pages;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static page **find(const gccl_card_pages *m, const char *at) {
  page **p = &pages;
  while (*p && ((*p)->m != m || (*p)->at != at)) p = &(*p)->next;
  return p;
}

/* Preconditions: lock. */
static void let_go(const gccl_card_pages *m, const char *at) {
  page **p = find(m, at), *gone = *p;
  if (!gone || --gone->users) return;
  *p = gone->next;
  m->unmap(m->arg, gone->at);
  free(gone);
}

static page *take(const gccl_card_pages *m, char *at, int io, char *why) {
  page *p = *find(m, at);
  if (p) {
    p->users++;
    return p;
  }
  if (!(p = calloc(1, sizeof *p))) {
    gccl_net_why(why, GCCL_NET_ENOMEM, "out of memory");
    return NULL;
  }
  void *device = NULL;
  if (m->map(m->arg, at, PAGE, io, &device, why) < 0) {
    free(p);
    return NULL;
  }
  *p = (page){pages, m, at, device, 1};
  return pages = p;
}

static char *first_of(const void *at) { return (char *)((uintptr_t)at & ~(uintptr_t)(PAGE - 1)); }

int ib_pages_pin(const gccl_card_pages *m, void *at, uint64_t bytes, int io, void **device, char *why) {
  char *first = first_of(at), *end = (char *)at + bytes, *start = NULL;
  *device = at;
  if (!m) return 0;
  int rc = 0;
  pthread_mutex_lock(&lock);
  for (char *p = first; p < end && !rc; p += PAGE) {
    page *got = take(m, p, io, why);
    if (got && p == first) start = got->device;
    if (got && got->device == start + (p - first)) continue;
    rc = got ? gccl_net_why(why, GCCL_NET_ENOTSUP, "the device sees neighbouring pages apart") : GCCL_NET_ESYSTEM;
    for (char *q = first; q < p + (got ? PAGE : 0); q += PAGE) let_go(m, q);
  }
  pthread_mutex_unlock(&lock);
  *device = start + ((char *)at - first);
  return rc;
}

void ib_pages_unpin(const gccl_card_pages *m, void *at, uint64_t bytes) {
  if (!m) return;
  pthread_mutex_lock(&lock);
  for (char *p = first_of(at), *end = (char *)at + bytes; p < end; p += PAGE) let_go(m, p);
  pthread_mutex_unlock(&lock);
}
