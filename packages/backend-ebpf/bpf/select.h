// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * From a destination to an endpoint: the part that all programs share. It reads rendered decisions and takes none.
 * docs/design/ebpf-socket.md explains why it is safe while the agent writes.
 *
 * How to use it:
 *
 *   struct sy_request request = { .destination = ..., .client = ..., ... };
 *   struct sy_frontend frontend;
 *   struct sy_choice choice;
 *   int verdict = sy_find(&request, &frontend);             // cheap: is the destination ours? For every packet.
 *   if (verdict == SY_FOUND)
 *     verdict = sy_pick(&request, &frontend, &choice);      // first packets only: counts, and pins clients
 *
 * sy_find answers SY_PASS (not ours), SY_REJECT or SY_DROP (guards of cluster IPs; nothing is counted, no service is
 * known), or SY_FOUND. It needs of the request: destination, port, protocol.
 *
 * sy_pick answers
 *   SY_FORWARD  to choice->address and ->port; choice->masquerade says whether to replace the source.
 *   SY_REJECT   answer with an error.
 *   SY_DROP     stay silent.
 *   SY_PASS     not handled here: the socket's address must be known first, or the frontend was deleted.
 *   SY_AGAIN    three reads in a row were inconsistent, so no endpoint is certain: the wire program drops the packet
 *               (the client sends its SYN again), a socket is refused.
 * The choice is valid after SY_FORWARD only.
 *
 * Order of the writer's stores, so that no reader sees a wrong endpoint (each store of 8 bytes is single):
 *   endpoint   not alive and a new generation first, then address and service, then port, flags and generation as one store.
 *              An endpoint that is chosen by a published set is alive; it dies after the set without it is published.
 *   set        slots of a fresh range first, then the word with base and count: the commit.
 *   service    a new cookie and the sets first, then its frontends; frontends are deleted before the service.
 *   ids, slots are not used again for a second.
 */
#pragma once
#include "layouts.gen.h"

/* Points of a reader at which the agent may write: tests insert a write. */
#ifndef SY_BETWEEN
#define SY_BETWEEN(what_was_read)
#endif

/* Verdicts. */
#define SY_PASS 0
#define SY_FORWARD 1
#define SY_REJECT 2
#define SY_DROP 3
#define SY_AGAIN 4
#define SY_FOUND 5

/* Attempts to read while the agent writes. */
#define SY_TRIES 3
#define SY_SECOND 1000000000ull

/* Source and destination. All fields must be set; zero means "none" in the last two. */
struct sy_request {
  struct sy_address destination;
  struct sy_address client; /* as the affinity key has it: by client_kind */
  __u32 client_kind;        /* SY_AFFINITY_ADDRESS: client is the source address, and source ranges are checked */
  __u32 random;             /* any number; which endpoint of a set */
  __be16 port;
  __u8 protocol; /* IPPROTO_* */
  __u8 class;    /* SY_CLASS_* */
  /* The flow's former endpoint. It is kept while it exists, also outside of the set. */
  __u32 kept_endpoint;
  __u32 kept_generation;
};

/* The matching entry. */
struct sy_frontend {
  __u64 value;
  struct sy_frontend_key key;
};

/* The chosen endpoint. */
struct sy_choice {
  struct sy_address address;
  __be16 port;
  __u8 masquerade;
  __u8 is_kept; /* it is the request's kept endpoint; nothing was counted */
  __u32 endpoint;
  __u32 generation;
  __u32 service;
};

/* One load of 8 bytes at a field that is aligned to 8: what was written with one store is seen whole. */
#define SY_LOAD64(record, field) \
  (*(volatile __u64 *)(void *)((char *)(record) + __builtin_offsetof(__typeof__(*(record)), field)))
#define SY_LOAD32(record, field) \
  (*(volatile __u32 *)(void *)((char *)(record) + __builtin_offsetof(__typeof__(*(record)), field)))
#define SY_STORE64(record, field, number) (SY_LOAD64(record, field) = (number))

/* Port, flags and generation of an endpoint in one load; affinity, cookie and flags of a service in one load. */
_Static_assert(__builtin_offsetof(struct sy_endpoint, port) == 16, "sy_endpoint_state");
_Static_assert(__builtin_offsetof(struct sy_service, affinity_seconds) == 16, "sy_service_state");
#define SY_STATE_FLAGS(state) ((__u16)((state) >> 16))
#define SY_STATE_GENERATION(state) ((__u32)((state) >> 32))
#define SY_STATE_AFFINITY(state) ((__u32)(state))
#define SY_STATE_COOKIE(state) ((__u16)((state) >> 32))

static __always_inline int sy_is_same(const struct sy_address *a, const struct sy_address *b)
{
  return a->word[0] == b->word[0] && a->word[1] == b->word[1] && a->word[2] == b->word[2] && a->word[3] == b->word[3];
}

static __always_inline int sy_is_v4(const struct sy_address *address)
{
  return address->word[0] == 0 && address->word[1] == 0 && address->word[2] == __builtin_bswap32(0xffff);
}

static __always_inline void sy_from_v4(struct sy_address *address, __be32 v4)
{
  address->word[0] = 0;
  address->word[1] = 0;
  address->word[2] = __builtin_bswap32(0xffff);
  address->word[3] = v4;
}

static __always_inline struct sy_configuration *sy_settings(void)
{
  __u32 zero = 0;
  return bpf_map_lookup_elem(&configuration, &zero);
}

static __always_inline int sy_is_inside(const struct sy_address *address, const struct sy_address *cidr, const struct sy_address *mask)
{
  return (address->word[0] & mask->word[0]) == cidr->word[0] && (address->word[1] & mask->word[1]) == cidr->word[1] &&
         (address->word[2] & mask->word[2]) == cidr->word[2] && (address->word[3] & mask->word[3]) == cidr->word[3];
}

/* Verdict for a destination without a frontend: it may be a cluster IP without this port, or an unused address of a service CIDR. */
static __always_inline int sy_guard(const struct sy_request *request, struct sy_frontend *frontend)
{
  const struct sy_configuration *settings = sy_settings();
  if (!settings) return SY_PASS;
  int inside = (settings->guards > 0 && sy_is_inside(&request->destination, &settings->guard0_address, &settings->guard0_mask)) ||
               (settings->guards > 1 && sy_is_inside(&request->destination, &settings->guard1_address, &settings->guard1_mask));
  if (!inside && !settings->guard_all) return SY_PASS;
  frontend->key.address = request->destination;
  frontend->key.port = 0;
  frontend->key.protocol = 0;
  frontend->key.scope = SY_SCOPE_GUARD;
  if (bpf_map_lookup_elem(&frontends, &frontend->key)) return SY_REJECT;
  return inside ? SY_DROP : SY_PASS;
}

static __always_inline int sy_read_frontend(struct sy_frontend *frontend)
{
  const __u64 *value = bpf_map_lookup_elem(&frontends, &frontend->key);
  if (!value) return 0;
  frontend->value = *(const volatile __u64 *)value;
  SY_BETWEEN(FRONTEND);
  return 1;
}

/* A frontend of the address has priority over a NodePort, a NodePort over the guard. */
static __always_inline int sy_find(const struct sy_request *request, struct sy_frontend *frontend)
{
  frontend->value = 0;
  frontend->key.address = request->destination;
  frontend->key.port = request->port;
  frontend->key.protocol = request->protocol;
  frontend->key.scope = SY_SCOPE_ADDRESS;
  frontend->key.reserved = 0;
  if (sy_read_frontend(frontend)) return SY_FOUND;
  const __u32 *flags = bpf_map_lookup_elem(&node_addresses, &frontend->key.address);
  if (flags && (*flags & SY_NODE_ADDRESS_NODE_PORT)) {
    __builtin_memset(&frontend->key.address, 0, sizeof(frontend->key.address));
    frontend->key.scope = SY_SCOPE_NODE_PORT;
    if (sy_read_frontend(frontend)) return SY_FOUND;
  }
  return sy_guard(request, frontend);
}

/*
 * The kernel may reuse a hash table's element for another key between look-up and load. So a read counts only if the key still has that
 * value at the end. A service's frontends are deleted before the service and have its cookie, so the service is then the one that was
 * read.
 */
static __always_inline int sy_is_still(const struct sy_frontend *frontend)
{
  const __u64 *value = bpf_map_lookup_elem(&frontends, &frontend->key);
  return value && *(const volatile __u64 *)value == frontend->value;
}

/*
 * Reads an endpoint, if it has the flags and belongs to the service. The state is read before and after the rest: the generation differs
 * when the record was reused.
 */
static __always_inline int sy_read_endpoint(__u32 id, __u32 service, __u16 flags, struct sy_choice *choice)
{
  struct sy_endpoint *endpoint = bpf_map_lookup_elem(&endpoints, &id);
  if (!endpoint) return 0;
  __u64 state = SY_LOAD64(endpoint, port);
  SY_BETWEEN(ENDPOINT);
  if ((SY_STATE_FLAGS(state) & flags) != flags) return 0;
  for (int i = 0; i < 4; i++) choice->address.word[i] = SY_LOAD32(endpoint, address.word[i]);
  if (SY_LOAD32(endpoint, service) != service) return 0;
  if (SY_LOAD64(endpoint, port) != state) return 0;
  choice->port = (__be16)state;
  choice->endpoint = id;
  choice->generation = SY_STATE_GENERATION(state);
  return 1;
}

/* Whether the client is in a service's source ranges; the trie holds one prefix for each range. */
static __always_inline int sy_is_allowed(const struct sy_request *request, __u32 service)
{
  struct sy_source_range_key key = { .prefix_length = 160, .service = service, .address = request->client };
  return bpf_map_lookup_elem(&source_ranges, &key) != 0;
}

/* The client's pinned endpoint, if it is still in the set. */
static __always_inline int sy_pinned(const struct sy_affinity_key *key, __u32 seconds, __u16 flags, struct sy_choice *choice)
{
  struct sy_affinity_value *pin = bpf_map_lookup_elem(&affinity, key);
  if (!pin) return 0;
  __u64 now = bpf_ktime_get_ns();
  __u64 seen = SY_LOAD64(pin, last_seen);
  if (now > seen && now - seen > seconds * SY_SECOND) return 0;
  __u32 generation = SY_LOAD32(pin, generation);
  if (!sy_read_endpoint(SY_LOAD32(pin, endpoint), key->service, flags, choice) || choice->generation != generation) return 0;
  if (now > seen && now - seen > SY_SECOND) SY_STORE64(pin, last_seen, now);
  return 1;
}

static __always_inline void sy_pin(const struct sy_affinity_key *key, const struct sy_choice *choice)
{
  struct sy_affinity_value pin = {
    .endpoint = choice->endpoint,
    .generation = choice->generation,
    .last_seen = bpf_ktime_get_ns(),
  };
  bpf_map_update_elem(&affinity, key, &pin, BPF_ANY);
}

/* Chooses an endpoint of a published set. */
static __always_inline int sy_draw(__u64 set, __u32 random, __u32 service, struct sy_choice *choice)
{
  __u32 index = sy_selection_base(set) + (__u32)(((__u64)random * sy_selection_count(set)) >> 32);
  const __u64 *slot = bpf_map_lookup_elem(&slots, &index);
  if (!slot) return 0;
  __u64 reference = *(const volatile __u64 *)slot;
  SY_BETWEEN(SLOT);
  if (sy_slot_service(reference) != service) return 0;
  return sy_read_endpoint(sy_slot_endpoint(reference), service, SY_ENDPOINT_ALIVE, choice);
}

static __always_inline void sy_count(__u32 service, __u32 counter)
{
  __u64 *counters = bpf_map_lookup_elem(&statistics, &service);
  if (counters) counters[counter & 3]++; /* of this CPU; an interrupt here may lose one */
}

#define SY_COUNTER(name) (__builtin_offsetof(struct sy_statistics, name) / 8)

/* Result of one look at the maps; a pin is written only after a consistent look. */
struct sy_look {
  __u32 counter;
  __u32 affinity_seconds;
  __u32 is_new; /* not the client's pinned endpoint */
  __u32 is_old; /* the set was replaced meanwhile */
  struct sy_affinity_key client;
};

/*
 * A global function, so that the verifier checks it once, apart from its callers: inlined three times into each program, the
 * combinations of its branches made loading take ten times as long. The verifier assumes that pointer arguments may be null. Needs Linux
 * 5.12: earlier kernels accept no pointers to global functions.
 */
__noinline int sy_look_at(const struct sy_request *request, __u64 frontend, struct sy_choice *choice, struct sy_look *look)
{
  if (!request || !choice || !look) return SY_AGAIN;
  __u32 id = sy_frontend_service(frontend);
  __u32 actions = sy_frontend_actions(frontend);
  struct sy_service *service = bpf_map_lookup_elem(&services, &id);
  if (!service) return SY_AGAIN;
  __u64 state = SY_LOAD64(service, affinity_seconds);
  if (SY_STATE_COOKIE(state) != sy_frontend_cookie(frontend)) return SY_AGAIN;
  choice->service = id;
  choice->is_kept = 0;
  look->affinity_seconds = 0;
  look->is_new = 0;
  look->is_old = 0;

  if (request->client_kind != SY_AFFINITY_ADDRESS) {
    if (actions & (SY_FRONTEND_SOCKETS_PASS | SY_FRONTEND_SOURCE_RANGES)) return SY_PASS;
  } else if ((actions & SY_FRONTEND_SOURCE_RANGES) && !sy_is_allowed(request, id)) {
    look->counter = SY_COUNTER(source_range);
    return SY_DROP;
  }
  __u32 action = actions >> (request->class * SY_ACTION_BITS);
  choice->masquerade = (action & SY_ACTION_MASQUERADE) != 0;
  action &= SY_ACTION_MASQUERADE - 1;
  int is_local = action == SY_ACTION_LOCAL;
  __u64 set = is_local ? SY_LOAD64(service, local_set) : SY_LOAD64(service, cluster_set);
  SY_BETWEEN(SET);
  /* A set may be empty already while its frontends still say "forward". */
  int is_empty = sy_selection_count(set) == 0;
  if (action == SY_ACTION_REJECT || (action == SY_ACTION_CLUSTER && is_empty)) {
    look->counter = SY_COUNTER(no_endpoints);
    return SY_REJECT;
  }
  if (action == SY_ACTION_DROP || is_empty) {
    look->counter = SY_COUNTER(no_local_endpoint);
    return SY_DROP;
  }
  look->counter = SY_COUNTER(connections);
  if (request->kept_endpoint && sy_read_endpoint(request->kept_endpoint, id, SY_ENDPOINT_ALIVE, choice) &&
      choice->generation == request->kept_generation) {
    choice->is_kept = 1;
    return SY_FORWARD;
  }
  look->affinity_seconds = SY_STATE_AFFINITY(state);
  if (look->affinity_seconds) {
    __u16 flags = SY_ENDPOINT_ALIVE | (is_local ? SY_ENDPOINT_IN_LOCAL : SY_ENDPOINT_IN_CLUSTER);
    look->client.service = id;
    look->client.kind = request->client_kind;
    look->client.client = request->client;
    if (sy_pinned(&look->client, look->affinity_seconds, flags, choice)) return SY_FORWARD;
  }
  look->is_new = 1;
  if (!sy_draw(set, request->random, id, choice)) return SY_AGAIN;
  look->is_old = set != (is_local ? SY_LOAD64(service, local_set) : SY_LOAD64(service, cluster_set));
  return SY_FORWARD;
}

static __always_inline int sy_pick(const struct sy_request *request, struct sy_frontend *frontend, struct sy_choice *choice)
{
  struct sy_look look;
  for (int i = 0; i < SY_TRIES; i++) {
    /* Cleared each time, so that all attempts begin alike and the verifier checks one of them instead of all paths to it. */
    __builtin_memset(&look, 0, sizeof(look));
    __builtin_memset(choice, 0, sizeof(*choice));
    int verdict = sy_look_at(request, frontend->value, choice, &look);
    /*
     * A set that is replaced all the time must not lead to a refusal: a set published a moment ago is as good. The last look would be
     * wrong only if its range was reused during it, which takes the second of the quarantine.
     */
    if (look.is_old && i < SY_TRIES - 1) verdict = SY_AGAIN;
    if (verdict != SY_AGAIN && sy_is_still(frontend)) {
      if (verdict == SY_PASS || choice->is_kept) return verdict;
      if (verdict == SY_FORWARD && look.affinity_seconds && look.is_new) sy_pin(&look.client, choice);
      sy_count(choice->service, look.counter);
      return verdict;
    }
    verdict = sy_find(request, frontend);
    if (verdict != SY_FOUND) return verdict;
  }
  return SY_AGAIN;
}
