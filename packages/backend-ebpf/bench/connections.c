// SPDX-License-Identifier: Apache-2.0
//
// Makes and takes connections as fast as a process can, and says what they cost. IPv4.
//
//   connections serve PORT                      takes TCP connections until it is killed; says "ready"
//   connections tcp ADDRESS PORT COUNT          connects COUNT times; nanoseconds of one call: median, 99th percentile
//   connections udp ADDRESS PORT COUNT          the same of connect() of a UDP socket
//   connections send ADDRESS PORT COUNT         the same of sendto() of an unconnected UDP socket
//   connections receive ADDRESS PORT COUNT      the same of recvfrom() of a socket there, which another one sends to
//   connections watch ADDRESS FIRST LAST ...    connects a UDP socket to port 80 of each ADDRESS in turn, until standard
//                                               input ends; the port that the socket then has must be of FIRST to LAST
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(1);
}

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static struct sockaddr_in address_of(const char *text, int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  if (inet_pton(AF_INET, text, &address.sin_addr) != 1) fail(text);
  return address;
}

static int by_value(const void *a, const void *b) {
  const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
  return left < right ? -1 : left > right;
}

static void serve(int port) {
  struct sockaddr_in address = address_of("0.0.0.0", port);
  const int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0) fail("bind");
  if (listen(listener, 4096) != 0) fail("listen");
  puts("ready");
  fflush(stdout);
  for (;;) {
    const int connection = accept(listener, NULL, NULL);
    if (connection >= 0) close(connection);
  }
}

static void report(uint32_t *times, int count) {
  qsort(times, (size_t)count, sizeof(*times), by_value);
  printf("{\"median\":%u,\"p99\":%u}\n", times[count / 2], times[(int)(count * 0.99)]);
}

// A reset ends each connection, so that no port waits.
static void connect_tcp(struct sockaddr_in address, int count, uint32_t *times) {
  const struct linger reset = {.l_onoff = 1, .l_linger = 0};
  for (int index = 0; index < count; index++) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    const uint64_t start = now();
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) fail("connect");
    times[index] = (uint32_t)(now() - start);
    close(fd);
  }
}

static void connect_udp(struct sockaddr_in address, int count, uint32_t *times) {
  for (int index = 0; index < count; index++) {
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    const uint64_t start = now();
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) fail("connect");
    times[index] = (uint32_t)(now() - start);
    close(fd);
  }
}

static void send_udp(struct sockaddr_in address, int count, uint32_t *times) {
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  for (int index = 0; index < count; index++) {
    const uint64_t start = now();
    if (sendto(fd, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&address, sizeof(address)) < 0 && errno != ECONNREFUSED) fail("sendto");
    times[index] = (uint32_t)(now() - start);
  }
}

static void receive_udp(struct sockaddr_in address, int count, uint32_t *times) {
  const int fd = socket(AF_INET, SOCK_DGRAM, 0), client = socket(AF_INET, SOCK_DGRAM, 0);
  if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0) fail("bind");
  for (int index = 0; index < count; index++) {
    char byte;
    struct sockaddr_in sender;
    socklen_t length = sizeof(sender);
    if (sendto(client, "x", 1, 0, (struct sockaddr *)&address, sizeof(address)) < 0) fail("sendto");
    const uint64_t start = now();
    if (recvfrom(fd, &byte, 1, 0, (struct sockaddr *)&sender, &length) < 0) fail("recvfrom");
    times[index] = (uint32_t)(now() - start);
  }
}

struct watched {
  struct sockaddr_in address;
  int first;
  int last;
};

static void watch(const struct watched *services, int count) {
  uint64_t connects = 0, wrong = 0, errors = 0;
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
  puts("ready");
  fflush(stdout);
  for (;; connects++) {
    char byte;
    if ((connects & 1023) == 0 && read(STDIN_FILENO, &byte, 1) == 0) break;
    const struct watched *service = &services[connects % (uint64_t)count];
    struct sockaddr_in peer;
    socklen_t length = sizeof(peer);
    if (connect(fd, (const struct sockaddr *)&service->address, sizeof(service->address)) != 0 ||
        getpeername(fd, (struct sockaddr *)&peer, &length) != 0) {
      errors++;
      continue;
    }
    const int port = ntohs(peer.sin_port);
    if (port < service->first || port > service->last) wrong++;
  }
  printf("{\"connects\":%lu,\"wrong\":%lu,\"errors\":%lu}\n", connects, wrong, errors);
}

int main(int count, char **arguments) {
  if (count < 3) return 2;
  const char *what = arguments[1];
  if (strcmp(what, "serve") == 0) serve(atoi(arguments[2]));
  if (strcmp(what, "watch") == 0) {
    struct watched services[16];
    int watched = 0;
    for (int index = 2; index + 2 < count && watched < 16; index += 3, watched++) {
      services[watched].address = address_of(arguments[index], 80);
      services[watched].first = atoi(arguments[index + 1]);
      services[watched].last = atoi(arguments[index + 2]);
    }
    watch(services, watched);
    return 0;
  }
  const struct sockaddr_in address = address_of(arguments[2], atoi(arguments[3]));
  const int rounds = atoi(arguments[4]);
  uint32_t *times = calloc((size_t)rounds, sizeof(*times));
  if (strcmp(what, "tcp") == 0) connect_tcp(address, rounds, times);
  if (strcmp(what, "udp") == 0) connect_udp(address, rounds, times);
  if (strcmp(what, "send") == 0) send_udp(address, rounds, times);
  if (strcmp(what, "receive") == 0) receive_udp(address, rounds, times);
  report(times, rounds);
  return 0;
}
