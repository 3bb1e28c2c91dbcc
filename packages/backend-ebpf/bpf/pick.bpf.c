// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * For tests: the selection alone, by program test run. A packet holds a request; the answer is written behind it. The program can also
 * write to a map while the selection reads: as the agent would on another CPU, but at a known point.
 */
#include "layouts.gen.h"

#define SY_BETWEEN(what_was_read) sy_write_after(SY_READ_##what_was_read)
/* The point of the write: after this read; 0: no write. */
#define SY_READ_FRONTEND 1
#define SY_READ_SET 2
#define SY_READ_SLOT 3
#define SY_READ_ENDPOINT 4
/* Map of the write. */
#define SY_TO_FRONTEND 0
#define SY_TO_SERVICE 1
#define SY_TO_SLOT 2
#define SY_TO_ENDPOINT 3

/* One store of 8 bytes, once. */
struct sy_write {
  __u32 after;
  __u32 to;
  __u32 index; /* of the record; unused for the requested frontend */
  __u32 word;  /* of the record */
  __u64 value;
};

struct sy_write agent;
struct sy_frontend_key asked;

static __attribute__((noinline)) int sy_write_after(__u32 what_was_read)
{
  __u64 *record;
  if (agent.after != what_was_read) return 0;
  agent.after = 0;
  if (agent.to == SY_TO_FRONTEND) {
    record = bpf_map_lookup_elem(&frontends, &asked);
    if (record) *record = agent.value;
  } else if (agent.to == SY_TO_SERVICE) {
    record = bpf_map_lookup_elem(&services, &agent.index);
    if (record) record[agent.word & 3] = agent.value;
  } else if (agent.to == SY_TO_SLOT) {
    record = bpf_map_lookup_elem(&slots, &agent.index);
    if (record) *record = agent.value;
  } else {
    record = bpf_map_lookup_elem(&endpoints, &agent.index);
    if (record) record[agent.word & 3] = agent.value;
  }
  return 0;
}

#include "select.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The packet's bytes. */
struct sy_exchange {
  struct sy_request request;
  __u32 verdict;
  struct sy_choice choice;
  struct sy_write write;
};
_Static_assert(sizeof(struct sy_request) == 52, "the offsets are known to pick-program.ts");
_Static_assert(__builtin_offsetof(struct sy_exchange, choice) == 56, "the offsets are known to pick-program.ts");
_Static_assert(__builtin_offsetof(struct sy_exchange, write) == 88, "the offsets are known to pick-program.ts");
_Static_assert(sizeof(struct sy_exchange) == 112, "the offsets are known to pick-program.ts");

SEC("tc")
int pick(struct __sk_buff *packet)
{
  struct sy_exchange exchange;
  struct sy_frontend frontend;
  if (bpf_skb_load_bytes(packet, 0, &exchange, sizeof(exchange))) return -1;
  agent = exchange.write;
  asked.address = exchange.request.destination;
  asked.port = exchange.request.port;
  asked.protocol = exchange.request.protocol;
  asked.scope = SY_SCOPE_ADDRESS;
  __builtin_memset(&exchange.choice, 0, sizeof(exchange.choice));
  int verdict = sy_find(&exchange.request, &frontend);
  if (verdict == SY_FOUND) verdict = sy_pick(&exchange.request, &frontend, &exchange.choice);
  exchange.verdict = verdict;
  return bpf_skb_store_bytes(packet, 0, &exchange, sizeof(exchange), 0);
}
